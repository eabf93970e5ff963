// SPDX-License-Identifier: Apache-2.0
//! What `metaslot doctor` must know of the configuration: the module reads all of it, refuses what is
//! wrong in it (`docs/configuration.md`), and keeps to itself what it says.

use crate::failure::Failure;
use crate::places;
use std::path::PathBuf;
use toml::de::{DeArray, DeTable, DeValue};

/// The first configuration that is there.
#[derive(Debug, Default)]
pub(super) struct Configuration {
    /// `None` where there is no file.
    pub(super) file: Option<PathBuf>,
    /// Why it is not known.
    pub(super) problem: Option<String>,
    pub(super) tokens: Vec<TokenSection>,
    /// The `[[foreign]]` sections; their path is that of the module.
    pub(super) foreign: Vec<TokenSection>,
    /// The directory of the counters; `None` where the usual ones are used.
    pub(super) counters: Option<PathBuf>,
    /// `counters = false`
    pub(super) counters_off: bool,
}

/// One `[[token]]`.
#[derive(Debug, Default)]
pub(super) struct TokenSection {
    pub(super) path: PathBuf,
    pub(super) policy: Option<String>,
    pub(super) allow: Vec<String>,
    pub(super) kdf: Option<String>,
    pub(super) anchor: Option<PathBuf>,
    pub(super) pepper: Option<PathBuf>,
    pub(super) fast_login: bool,
}

impl Configuration {
    /// Looks where the module looks.
    pub(super) fn read() -> Self {
        match places::in_force() {
            Some((file, Ok(text))) => Self { file: Some(file), ..Self::parse(&text) },
            Some((file, Err(error))) => {
                let problem = Some(Failure::io("cannot be read", &error).message().to_owned());
                Self { file: Some(file), problem, ..Self::default() }
            }
            None => {
                let token = TokenSection { path: places::usual_token(), ..<_>::default() };
                Self { tokens: vec![token], ..Self::default() }
            }
        }
    }

    /// What of a message of the module's is about this file.
    pub(super) fn complaint(&self, message: &str) -> Option<String> {
        let named = format!("{}: ", self.file.as_ref()?.display());
        message.strip_prefix(&named).map(str::to_owned)
    }

    /// The module does not take it, so nothing in it counts.
    pub(super) fn refused(&mut self, problem: String) {
        *self = Self { file: self.file.take(), problem: Some(problem), ..Self::default() };
    }

    fn parse(text: &str) -> Self {
        let mut all = Self::default();
        let table = match DeTable::parse(text) {
            Ok(table) => table,
            Err(error) => {
                return Self { problem: Some(error.message().to_owned()), ..Self::default() };
            }
        };
        for (key, value) in table.get_ref() {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("token", DeValue::Array(list)) => all.tokens = sections(list),
                ("foreign", DeValue::Array(list)) => all.foreign = sections(list),
                ("counters", DeValue::String(path)) => all.counters = Some(path.as_ref().into()),
                ("counters", DeValue::Boolean(false)) => all.counters_off = true,
                _ => {}
            }
        }
        all
    }
}

fn sections(list: &DeArray<'_>) -> Vec<TokenSection> {
    let tables = list.iter().filter_map(|section| match section.get_ref() {
        DeValue::Table(table) => Some(TokenSection::of(table)),
        _ => None,
    });
    tables.collect()
}

impl TokenSection {
    fn of(section: &DeTable<'_>) -> Self {
        let mut token = Self::default();
        for (key, value) in section {
            let text = |value: &DeValue<'_>| match value {
                DeValue::String(text) => Some(text.to_string()),
                _ => None,
            };
            let said = text(value.get_ref());
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("path" | "module", _) => token.path = said.unwrap_or_default().into(),
                ("policy", _) => token.policy = said,
                ("kdf", _) => token.kdf = said,
                ("anchor", _) => token.anchor = said.map(PathBuf::from),
                ("pepper", _) => token.pepper = said.map(PathBuf::from),
                ("fast_login", _) => token.fast_login = true,
                ("allow", DeValue::Array(names)) => {
                    token.allow = names.iter().filter_map(|name| text(name.get_ref())).collect();
                }
                _ => {}
            }
        }
        token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_checks_need_is_read() {
        let all = Configuration::parse(
            "counters = false\n[[token]]\npath = \"/a\"\npolicy = \"legacy\"\nallow = [\"weak-rsa\"]\n\
             [[token]]\npath = \"/b\"\nanchor = \"/c\"\nfast_login = \"15m\"\n\
             [[foreign]]\nmodule = \"/d\"\npolicy = \"legacy\"\n",
        );
        let [one, two] = &all.tokens[..] else { panic!("two tokens: {all:?}") };
        assert_eq!(
            (one.policy.as_deref(), &one.allow[..]),
            (Some("legacy"), &["weak-rsa".into()][..])
        );
        assert_eq!((two.anchor.as_deref(), two.fast_login), (Some("/c".as_ref()), true));
        let [foreign] = &all.foreign[..] else { panic!("one module: {all:?}") };
        assert_eq!(
            (foreign.path.to_str(), foreign.policy.as_deref()),
            (Some("/d"), Some("legacy"))
        );
        assert!(all.counters_off && all.problem.is_none());
        assert!(Configuration::parse("[[token]").problem.is_some());
    }
}
