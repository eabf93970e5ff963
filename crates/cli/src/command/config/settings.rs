// SPDX-License-Identifier: Apache-2.0
//! What can be set, and what counts where nothing is said (`docs/configuration.md`).

/// Settings of one kind of section: their names, and what counts without them.
pub(super) type Settings = &'static [(&'static str, &'static str)];

/// Settings of the whole.
pub(super) const WHOLE: Settings = &[
    ("counters", "the runtime directories"),
    ("audit", "none"),
    ("audit_required", "false"),
    ("lanes", "true"),
    ("lanes_without", "[]"),
    ("self_tests", "false"),
];

/// Of each `[[token]]`.
pub(super) const TOKEN: Settings = &[
    ("path", ""),
    ("store", "none"),
    ("password-source", "none"),
    ("away", "\"10m\""),
    ("description", "the path"),
    ("policy", "\"default\""),
    ("allow", "[]"),
    ("group", "none"),
    ("fast_login", "never"),
    ("kdf", "\"argon2id\""),
    ("pin_min", "4"),
    ("pepper", "none"),
    ("anchor", "none"),
    ("pin-source", "none"),
    ("identity", "none: the user"),
];

/// Of each `[[foreign]]`.
pub(super) const FOREIGN: Settings = &[
    ("name", ""),
    ("module", ""),
    ("socket", "none"),
    ("pin-source", "none"),
    ("trusted", "true"),
    ("serves", "[]"),
    ("policy", "\"default\""),
    ("allow", "[]"),
    ("isolated", "false"),
    ("limit", "\"60s\""),
    ("metaslot", "where its policy is that of slot 0"),
    ("parameters", "none"),
];

/// Of each `[[pool]]`.
pub(super) const POOL: Settings = &[
    ("name", ""),
    ("tokens", ""),
    ("policy", "\"default\""),
    ("allow", "[]"),
    ("metaslot", "where its policy is that of slot 0"),
];

/// Of `[daemon]`.
pub(super) const DAEMON: Settings = &[
    ("socket", "none"),
    ("agent", "none"),
    ("listen", "none"),
    ("certificate", "none"),
    ("key", "none"),
    ("client-ca", "none"),
    ("group", "none"),
    ("connections", "512"),
    ("memory", "256"),
    ("fence", "true"),
];

/// Of each `[[client]]`.
pub(super) const CLIENT: Settings = &[
    ("services", ""),
    ("token", ""),
    ("keys", "all objects"),
    ("operations", ""),
    ("mechanisms", "those of the keys"),
];

/// Of `[metaslot]`.
pub(super) const METASLOT: Settings =
    &[("enabled", "true"), ("token", "the first"), ("slot", "the first")];

/// Of each `[provider.NAME]`.
pub(super) const PROVIDER: Settings =
    &[("enabled", "true"), ("only", "every process"), ("except", "[]"), ("disable", "[]")];

/// Variables that count in place of a setting of `[metaslot]`.
pub(super) const VARIABLES: &[(&str, &str)] = &[
    ("enabled", "METASLOT_ENABLED"),
    ("token", "METASLOT_OBJECTSTORE_TOKEN"),
    ("slot", "METASLOT_OBJECTSTORE_SLOT"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_book_and_this_table_name_the_same_settings() {
        let book = include_str!("../../../../../docs/configuration.md");
        let named = |heading: &str| -> Vec<String> {
            let (_, part) = book.split_once(heading).expect("the book has this part");
            let (_, rows) = part.split_once("| setting | value | default |\n").expect("a table");
            let rows = rows.lines().skip(1).take_while(|row| row.starts_with('|'));
            let first = rows.filter_map(|row| row.split('|').nth(1));
            let names = first.flat_map(|names| names.split(','));
            names.map(|name| name.trim().trim_matches('`').to_owned()).collect()
        };
        for (heading, settings) in [
            ("## Settings of a `[[token]]`", TOKEN),
            ("## Other modules", FOREIGN),
            ("## One key in several tokens", POOL),
            ("## The metaslot", METASLOT),
            ("## A daemon that holds the keys", DAEMON),
            ("### Keys of a service", CLIENT),
            ("## What a provider may do", PROVIDER),
            ("## Settings of the whole", WHOLE),
        ] {
            let mut ours: Vec<_> = settings.iter().map(|row| row.0.to_owned()).collect();
            let mut theirs = named(heading);
            ours.sort();
            theirs.sort();
            assert_eq!(ours, theirs, "{heading}");
        }
    }
}
