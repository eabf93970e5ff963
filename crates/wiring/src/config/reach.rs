// SPDX-License-Identifier: Apache-2.0
//! What a process needs of the system after its start: what `metaslotd` keeps when it puts a fence around itself.

use super::{Config, Counters, TokenConfig};
use crate::environment::{runtime_directories, volatile_directories};
use std::path::{Path, PathBuf};

/// What a process needs of the system after its start.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Reach {
    /// In which it makes, changes and removes files.
    pub directories: Vec<PathBuf>,
    /// Files that it changes in their places.
    pub changed: Vec<PathBuf>,
    /// Files that it reads.
    pub read: Vec<PathBuf>,
    /// Whether modules of others run in it or are started by it: what they need is not known.
    pub modules: bool,
    /// Whether it looks at which programs other processes run.
    pub programs: bool,
    /// Whether it has secrets in the kernel's keyring.
    pub keyring: bool,
    /// Whether the kernel computes for it.
    pub kernel: bool,
    /// Whether tokens are in databases, to which it connects.
    pub databases: bool,
    /// The TCP ports to which it connects for these. What reads their URLs knows them.
    pub ports: Vec<u16>,
}

impl Config {
    /// What its engine needs after it was made.
    #[must_use]
    pub fn reach(&self) -> Reach {
        let parent = |path: &PathBuf| path.parent().map(Path::to_owned);
        let mut directories: Vec<_> =
            self.files().filter_map(|token| parent(&token.path)).collect();
        directories.extend(volatile_directories());
        match &self.counters {
            Counters::Usual => directories.extend(runtime_directories()),
            Counters::Directory(directory) => directories.push(directory.clone()),
            Counters::Private => {}
        }
        // Lines go to whatever file has the name.
        let log = self.audit.as_ref().and_then(|audit| audit.file.as_ref());
        directories.extend(log.and_then(parent));
        let is_elsewhere = |isolation: &metaslot_foreign::Isolation| isolation.program.is_none();
        let mut modules = self.foreign.iter().filter(|foreign| foreign.enabled);
        Reach {
            directories,
            changed: self.tokens.iter().filter_map(|token| token.anchor.clone()).collect(),
            read: self.tokens.iter().filter_map(|token| token.pepper.clone()).collect(),
            modules: modules.any(|one| !one.module.isolation.as_ref().is_some_and(is_elsewhere)),
            programs: self.daemon.clients.iter().any(super::ClientConfig::looks_at_programs),
            keyring: self.tokens.iter().any(|token| token.fast_login.is_some()),
            kernel: self.wanted.contains(&"kernel"),
            databases: self.tokens.iter().any(|token| token.remote.is_some()),
            ports: Vec::new(),
        }
    }

    /// The tokens that are in files.
    fn files(&self) -> impl Iterator<Item = &TokenConfig> {
        self.tokens.iter().filter(|token| token.remote.is_none())
    }

    /// The URLs of databases that tokens are in.
    pub fn databases(&self) -> impl Iterator<Item = &str> {
        self.tokens.iter().filter_map(|token| Some(token.remote.as_ref()?.url.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::parse;

    #[test]
    fn what_is_configured_is_reached() {
        let reach = |more: &str| {
            let token = "[[token]]\npath = \"/t/token.db\"\nanchor = \"/a\"\npepper = \"/p\"\n";
            parse(&format!("{token}{more}")).expect("it is right").reach()
        };
        let plain = reach("");
        assert!(plain.directories.contains(&"/t".into()));
        assert!(plain.directories.contains(&"/run/metaslot".into()));
        assert_eq!((plain.changed, plain.read), (vec!["/a".into()], vec!["/p".into()]));
        assert!(!plain.modules && !plain.programs && !plain.keyring && !plain.kernel);
        assert!(!plain.databases);
        let shared = parse("[[token]]\nstore = \"postgresql://h/d\"\n").expect("it is right");
        assert_eq!(shared.databases().collect::<Vec<_>>(), ["postgresql://h/d"]);
        let shared = shared.reach();
        assert!(shared.databases && !shared.directories.contains(&"postgresql://h".into()));
        // A setting of the whole stands before the sections.
        let logged = parse("audit = \"/log/audit\"\n[[token]]\npath = \"/t/token.db\"\n");
        assert!(logged.expect("it is right").reach().directories.contains(&"/log".into()));
        let module = |place: &str| reach(&format!("[[foreign]]\nname = \"x\"\n{place}\n")).modules;
        assert!(module("module = \"/m.so\"") && module("module = \"/m.so\"\nisolated = true"));
        assert!(
            !module("socket = \"/s\"")
                && !module("module = \"/m.so\"\n[provider.x]\nenabled = false")
        );
        assert!(reach("fast_login = \"5m\"").keyring && reach("[provider.kernel]").kernel);
        let client = |who| {
            let rest = "token = \"web\"\noperations = []";
            reach(&format!("[[client]]\nservices = [\"{who}\"]\n{rest}\n")).programs
        };
        assert!(client("program:/bin/true") && !client("user:root"));
    }
}
