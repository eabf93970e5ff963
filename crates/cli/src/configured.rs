// SPDX-License-Identifier: Apache-2.0
//! What commands must know of the configuration: the module reads all of it, refuses what is
//! wrong in it (`docs/configuration.md`), and keeps to itself what it says.

use crate::failure::Failure;
use crate::places;
use std::path::PathBuf;
use toml::de::{DeArray, DeTable, DeValue};

/// Room in `CK_SLOT_INFO` (PKCS#11 3.2 §3.2), in bytes.
const SLOT_DESCRIPTION: usize = 64;

/// The first configuration that is there, with its drop-ins.
#[derive(Debug, Default)]
pub(crate) struct Configuration {
    /// In their order; the first may be a drop-in.
    pub(crate) files: Vec<PathBuf>,
    /// Why it is not known, with the file.
    pub(crate) problem: Option<String>,
    pub(crate) tokens: Vec<TokenSection>,
    /// The `[[foreign]]` sections; their path is that of the module, or of the socket.
    pub(crate) foreign: Vec<TokenSection>,
    /// Which token is slot 0's own, by its label.
    pub(crate) metaslot: Option<String>,
    /// The directory of the counters; `None` where the usual ones are used.
    pub(crate) counters: Option<PathBuf>,
    /// `counters = false`
    pub(crate) counters_off: bool,
}

/// One `[[token]]`.
#[derive(Debug, Default)]
pub(crate) struct TokenSection {
    pub(crate) path: PathBuf,
    /// Of a `[[foreign]]` section.
    pub(crate) name: Option<String>,
    /// Whether its path is a server's socket.
    pub(crate) is_server: bool,
    /// As its slot is described; the path where nothing is said.
    pub(crate) description: Option<String>,
    pub(crate) policy: Option<String>,
    pub(crate) allow: Vec<String>,
    pub(crate) kdf: Option<String>,
    /// Who shares it.
    pub(crate) group: Option<String>,
    pub(crate) anchor: Option<PathBuf>,
    pub(crate) pepper: Option<PathBuf>,
}

impl Configuration {
    /// Looks where the module looks.
    pub(crate) fn read() -> Self {
        let mut all = Self::default();
        for (file, text) in places::in_force().into_iter().chain(places::drop_ins()) {
            let one = match text {
                Ok(text) => Self::parse(&text),
                Err(error) => {
                    let problem = Failure::io("cannot be read", &error).message().to_owned();
                    Self { problem: Some(problem), ..Self::default() }
                }
            };
            all.add(file, one);
        }
        if all.problem.is_none() && all.tokens.is_empty() && all.foreign.is_empty() {
            let description = Some(String::from("Metaslot"));
            all.tokens.push(TokenSection {
                path: places::usual_token(),
                description,
                ..<_>::default()
            });
        }
        all
    }

    /// One more file.
    fn add(&mut self, file: PathBuf, one: Self) {
        let problem = one.problem.map(|problem| format!("{}: {problem}", file.display()));
        self.problem = self.problem.take().or(problem);
        self.files.push(file);
        self.tokens.extend(one.tokens);
        self.foreign.extend(one.foreign);
        self.metaslot = one.metaslot.or_else(|| self.metaslot.take());
        if one.counters.is_some() || one.counters_off {
            (self.counters, self.counters_off) = (one.counters, one.counters_off);
        }
    }

    /// The one section of ours whose slot is described so; blanks at the end do not count, nor what a slot has no room for.
    pub(crate) fn described(self, description: &str) -> Option<TokenSection> {
        let mut found = self.tokens.into_iter().filter(|section| section.has(description));
        found.next().filter(|_| found.next().is_none())
    }

    /// What of a message of the module's is about one of the files, or about a variable beside them.
    pub(crate) fn complaint(&self, message: &str) -> Option<String> {
        let is_named = |file: &PathBuf| message.starts_with(&format!("{}: ", file.display()));
        let is_it = is_of_environment(message) || self.files.iter().any(is_named);
        is_it.then(|| message.to_owned())
    }

    /// The module does not take it, so nothing in it counts.
    pub(crate) fn refused(&mut self, problem: String) {
        let files = std::mem::take(&mut self.files);
        *self = Self { files, problem: Some(problem), ..Self::default() };
    }

    fn parse(text: &str) -> Self {
        let mut all = Self::default();
        let table = match DeTable::parse(text) {
            Ok(table) => table,
            Err(error) => {
                let line = error.span().map(|place| line_of(text, place.start));
                let line = line.map_or_else(String::new, |line| format!("line {line}: "));
                let problem = Some(format!("{line}{}", error.message()));
                return Self { problem, ..Self::default() };
            }
        };
        for (key, value) in table.get_ref() {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("token", DeValue::Array(list)) => all.tokens = sections(list),
                ("foreign", DeValue::Array(list)) => all.foreign = sections(list),
                ("metaslot", DeValue::Table(section)) => {
                    let named = section.iter().find(|(key, _)| key.get_ref() == "token");
                    all.metaslot = named.and_then(|(_, value)| string(value.get_ref()));
                }
                ("counters", DeValue::String(path)) => all.counters = Some(path.as_ref().into()),
                ("counters", DeValue::Boolean(false)) => all.counters_off = true,
                _ => {}
            }
        }
        all
    }
}

/// Whether a message of the module's is about a variable of its environment.
pub(crate) fn is_of_environment(message: &str) -> bool {
    let variable = message.split_once(": ").map_or("", |(variable, _)| variable);
    variable.starts_with("METASLOT_LOG")
}

fn string(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        _ => None,
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
    /// Whether its slot is described so.
    pub(crate) fn has(&self, description: &str) -> bool {
        let said = self.description.clone().unwrap_or_else(|| self.path.display().to_string());
        let end = said.floor_char_boundary(said.len().min(SLOT_DESCRIPTION));
        said[..end].trim_end() == description
    }

    fn of(section: &DeTable<'_>) -> Self {
        let mut token = Self::default();
        for (key, value) in section {
            let said = string(value.get_ref());
            token.is_server |= key.get_ref() == "socket";
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("path" | "store" | "module" | "socket", _) => {
                    token.path = said.unwrap_or_default().into()
                }
                ("name", _) => token.name = said,
                ("description", _) => token.description = said,
                ("policy", _) => token.policy = said,
                ("kdf", _) => token.kdf = said,
                ("group", _) => token.group = said,
                ("anchor", _) => token.anchor = said.map(PathBuf::from),
                ("pepper", _) => token.pepper = said.map(PathBuf::from),
                ("allow", DeValue::Array(names)) => {
                    token.allow = names.iter().filter_map(|name| string(name.get_ref())).collect();
                }
                _ => {}
            }
        }
        token
    }
}

/// As the module counts them.
fn line_of(text: &str, place: usize) -> usize {
    1 + text.bytes().take(place).filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_joined_in_their_order() {
        let mut all = Configuration::default();
        for (file, text) in [
            ("/a.toml", "counters = false\n[[token]]\npath = \"/a\"\n"),
            ("/b.toml", "counters = \"/c\"\n[[token]]\npath = \"/b\"\n"),
        ] {
            all.add(file.into(), Configuration::parse(text));
        }
        assert_eq!((all.tokens.len(), all.counters_off), (2, false));
        assert_eq!(all.complaint("/b.toml: line 1: no").as_deref(), Some("/b.toml: line 1: no"));
        assert_eq!(all.complaint("/b: no"), None);
        all.add("/d.toml".into(), Configuration::parse("[[token]"));
        assert!(all.problem.is_some_and(|problem| problem.starts_with("/d.toml: line 1: ")));
        let third = Configuration::parse("[[token]]\npath = \"/a\"\nbad\n[").problem;
        assert!(third.is_some_and(|problem| problem.starts_with("line 3: ")));
    }

    #[test]
    fn what_the_checks_need_is_read() {
        let all = Configuration::parse(
            "counters = false\n[[token]]\npath = \"/a\"\npolicy = \"legacy\"\nallow = [\"weak-rsa\"]\n\
             [[token]]\npath = \"/b\"\nanchor = \"/c\"\nfast_login = \"15m\"\n\
             [[foreign]]\nname = \"d\"\nmodule = \"/d\"\npolicy = \"legacy\"\n",
        );
        let [one, two] = &all.tokens[..] else { panic!("two tokens: {all:?}") };
        assert_eq!(
            (one.policy.as_deref(), &one.allow[..]),
            (Some("legacy"), &["weak-rsa".into()][..])
        );
        assert_eq!(two.anchor.as_deref(), Some("/c".as_ref()));
        let [foreign] = &all.foreign[..] else { panic!("one module: {all:?}") };
        assert_eq!(
            (foreign.path.to_str(), foreign.policy.as_deref()),
            (Some("/d"), Some("legacy"))
        );
        assert_eq!(foreign.name.as_deref(), Some("d"));
        assert!(all.counters_off && all.problem.is_none());
        assert!(Configuration::parse("[[token]").problem.is_some());
    }
}
