// SPDX-License-Identifier: Apache-2.0
//! What of another configuration a daemon takes over while it serves.

use super::{AuditConfig, Config, DaemonConfig, ListenConfig, Reach};

impl Config {
    /// What is different in another one and counts after a restart only, as files name it. The rest may change while a daemon
    /// serves: who may connect, how often and with how much memory, who has which keys, and the audit log.
    #[must_use]
    pub fn needs_restart(&self, other: &Self) -> Vec<&'static str> {
        let Self {
            tokens,
            foreign,
            pools,
            metaslot,
            daemon,
            counters,
            audit: _,
            lanes,
            lanes_without,
            self_tests,
            wanted,
            routes,
        } = self;
        let DaemonConfig {
            socket,
            agent,
            listen,
            fence,
            group: _,
            connections: _,
            memory: _,
            clients: _,
        } = daemon;
        // Its files are read anew.
        let address = |listen: &Option<ListenConfig>| listen.as_ref().map(|listen| listen.address);
        let same = [
            ("[[token]]", *tokens == other.tokens),
            ("[[foreign]]", *foreign == other.foreign),
            ("[[pool]]", *pools == other.pools),
            ("[metaslot]", *metaslot == other.metaslot),
            ("[provider.NAME]", *wanted == other.wanted && *routes == other.routes),
            ("socket", *socket == other.daemon.socket),
            ("agent", *agent == other.daemon.agent),
            ("listen", address(listen) == address(&other.daemon.listen)),
            ("fence", *fence == other.daemon.fence),
            ("counters", *counters == other.counters),
            ("lanes", *lanes == other.lanes),
            ("lanes_without", *lanes_without == other.lanes_without),
            ("self_tests", *self_tests == other.self_tests),
        ];
        same.into_iter().filter(|(_, same)| !same).map(|(name, _)| name).collect()
    }

    /// As it is with what of another one counts at once, and with its audit log if that does, too.
    #[must_use]
    pub fn with_changes(&self, other: &Self, log: bool) -> Self {
        let DaemonConfig { socket, agent, listen, fence, .. } = self.daemon.clone();
        let listen = match (listen, other.daemon.listen.clone()) {
            (Some(ListenConfig { address, .. }), Some(new)) => {
                Some(ListenConfig { address, ..new })
            }
            (old, _) => old,
        };
        let daemon = DaemonConfig { socket, agent, listen, fence, ..other.daemon.clone() };
        let audit = if log { &other.audit } else { &self.audit };
        Self { daemon, audit: audit.clone(), ..self.clone() }
    }

    /// Whether the audit log is another.
    #[must_use]
    pub fn has_another_log(&self, other: &Self) -> bool {
        self.audit != other.audit
    }

    /// Whether the audit log can be written by who has these.
    #[must_use]
    pub fn log_is_within(&self, reach: &Reach) -> bool {
        let Some(AuditConfig { file: Some(file), .. }) = &self.audit else { return true };
        file.parent().is_some_and(|parent| reach.directories.iter().any(|one| one == parent))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::parse;

    const OLD: &str =
        "audit = \"/log/audit\"\n[[token]]\npath = \"/a\"\n[daemon]\nsocket = \"/s\"\n";

    #[test]
    fn what_a_daemon_holds_open_needs_a_restart() {
        let old = parse(OLD).expect("it is right");
        let needs = |text: &str| old.needs_restart(&parse(text).expect("it is right"));
        let client = "[[client]]\nservices = []\ntoken = \"a\"\noperations = []\n";
        let more = "group = \"a\"\nconnections = 1\nmemory = 1\n";
        assert!(needs(OLD).is_empty());
        assert!(
            needs(&format!("{}{more}{client}", OLD.replace("log/audit", "log/other"))).is_empty()
        );
        let text = "lanes = false\n[[token]]\npath = \"/b\"\n[daemon]\nagent = \"/s\"\n[provider.lanes]\ndisable = [\"CKM_SHA256\"]";
        let rest = ["[[token]]", "[provider.NAME]", "socket", "agent", "lanes"];
        assert_eq!(needs(text), rest);
        let new = parse(text).expect("it is right");
        let changed = old.with_changes(&new, true);
        assert_eq!(
            (changed.needs_restart(&new), changed.has_another_log(&new)),
            (rest.to_vec(), false)
        );
        assert_eq!(changed.daemon.clients, new.daemon.clients);
        assert!(old.with_changes(&new, false).has_another_log(&new));
    }

    #[test]
    fn certificates_change_and_the_address_does_not() {
        let of = |address: &str, key: &str| {
            let files = "certificate = \"/c\"\nclient-ca = \"/a\"\n";
            let text = format!("{OLD}listen = \"{address}\"\nkey = \"{key}\"\n{files}");
            parse(&text).expect("it is right")
        };
        let (old, new) = (of("127.0.0.1:1", "/k"), of("127.0.0.1:2", "/new"));
        assert!(old.needs_restart(&of("127.0.0.1:1", "/new")).is_empty());
        assert_eq!(old.needs_restart(&new), ["listen"]);
        let without = parse(OLD).expect("it is right");
        let changed = |from: &super::Config, to| from.with_changes(to, true).daemon.listen;
        assert_eq!(changed(&old, &new), of("127.0.0.1:1", "/new").daemon.listen);
        assert_eq!((changed(&old, &without), changed(&without, &old)), (old.daemon.listen, None));
    }

    #[test]
    fn a_log_is_written_where_the_fence_lets_it_be() {
        let reach = parse(OLD).expect("it is right").reach();
        let within = |text: &str| parse(text).expect("it is right").log_is_within(&reach);
        assert!(within(OLD) && within(&OLD.replace("log/audit", "log/other")));
        assert!(!within(&OLD.replace("log/audit", "elsewhere/audit")));
        assert!(within(&OLD.replace("\"/log/audit\"", "\"journald\"")));
    }
}
