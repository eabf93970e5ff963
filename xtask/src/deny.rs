// SPDX-License-Identifier: Apache-2.0
//! What may be built in: licences, banned packages and sources, as `deny.toml` says. Where cargo-deny is installed it reads the
//! same file and says the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::iter::Peekable;

use anyhow::{Context, Result};
use toml::{Table, Value as Toml};

use crate::cargo::{Metadata, root, users_of};

/// What `deny.toml` says.
struct Rules {
    licences: BTreeSet<String>,
    /// Each with those that may use it all the same.
    banned: BTreeMap<String, BTreeSet<String>>,
    registries: BTreeSet<String>,
}

/// Compares every package with `deny.toml`.
pub(crate) fn packages(metadata: &Metadata, wrong: &mut Vec<String>) -> Result<()> {
    let path = root().join("deny.toml");
    let text = fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    let rules = Rules::read(&text).context("deny.toml is not as expected")?;
    let mut count = 0;
    for package in metadata.packages() {
        let of = |field: &str| package[field].as_str();
        count += 1;
        wrong.extend(rules.complaints(of("name").unwrap_or_default(), of("license"), of("source")));
    }
    for (name, wrappers) in &rules.banned {
        wrong.extend(banned(name, wrappers, &users_of(name)?));
    }
    println!("    {count} packages as deny.toml allows");
    Ok(())
}

/// Who uses what is banned, and may not.
fn banned<'a>(
    name: &'a str,
    wrappers: &'a BTreeSet<String>,
    users: &'a BTreeSet<String>,
) -> impl Iterator<Item = String> + 'a {
    let users = users.difference(wrappers);
    users.map(move |user| format!("{user} uses {name}, which deny.toml bans"))
}

impl Rules {
    fn read(text: &str) -> Result<Self> {
        let table: Table = text.parse().context("it is no TOML")?;
        let list = |section: &str, key: &str| -> Result<Vec<Toml>> {
            let list = table.get(section).and_then(|section| section.get(key)?.as_array());
            list.cloned().with_context(|| format!("[{section}] has no list {key}"))
        };
        let text = |value: &Toml| value.as_str().map(str::to_owned);
        let banned = |row: &Toml| {
            let wrappers = row.get("wrappers").and_then(Toml::as_array);
            let wrappers = wrappers.into_iter().flatten().filter_map(text).collect();
            Some((row.get("crate").and_then(text)?, wrappers))
        };
        Ok(Self {
            licences: list("licenses", "allow")?.iter().filter_map(text).collect(),
            banned: list("bans", "deny")?.iter().filter_map(banned).collect(),
            registries: list("sources", "allow-registry")?.iter().filter_map(text).collect(),
        })
    }

    fn complaints(&self, name: &str, licence: Option<&str>, source: Option<&str>) -> Vec<String> {
        let mut wrong = Vec::new();
        if !self.fulfils(licence.unwrap_or_default()) {
            wrong.push(format!(
                "{name} has the licence {licence:?}, which deny.toml does not allow"
            ));
        }
        // The workspace's own packages have none.
        let registry = source.map(|source| source.strip_prefix("registry+").unwrap_or(source));
        if registry.is_some_and(|registry| !self.registries.contains(registry)) {
            wrong.push(format!("{name} comes from {source:?}, which deny.toml does not allow"));
        }
        wrong
    }

    /// Whether an SPDX expression can be fulfilled with what is allowed. Packages of old write `/` for `OR`.
    fn fulfils(&self, expression: &str) -> bool {
        let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
        let mut words = spaced.split_whitespace().peekable();
        self.either(&mut words) && words.next().is_none()
    }

    fn either<'a>(&self, words: &mut Peekable<impl Iterator<Item = &'a str>>) -> bool {
        let mut good = self.both(words);
        while words.next_if_eq(&"OR").is_some() {
            good |= self.both(words);
        }
        good
    }

    fn both<'a>(&self, words: &mut Peekable<impl Iterator<Item = &'a str>>) -> bool {
        let mut good = self.one(words);
        while words.next_if_eq(&"AND").is_some() {
            good &= self.one(words);
        }
        good
    }

    fn one<'a>(&self, words: &mut Peekable<impl Iterator<Item = &'a str>>) -> bool {
        match words.next() {
            Some("(") => {
                let good = self.either(words);
                words.next() == Some(")") && good
            }
            Some(licence) => {
                // An exception is a licence of its own, which is not in the list.
                let excepted = words.next_if_eq(&"WITH").is_some() && words.next().is_some();
                !excepted && self.licences.contains(licence)
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_are_read_as_expressions() {
        let rules = Rules {
            licences: ["MIT", "ISC"].map(str::to_owned).into(),
            banned: BTreeMap::new(),
            registries: ["here".to_owned()].into(),
        };
        for good in
            ["MIT", "GPL-3.0 OR MIT", "GPL-3.0/MIT", "MIT AND (ISC OR X)", "X WITH Y OR ISC"]
        {
            assert!(rules.fulfils(good), "{good}");
        }
        for bad in ["", "GPL-3.0", "MIT AND X", "MIT WITH Y", "(MIT", "MIT MIT", "X AND Y OR X"] {
            assert!(!rules.fulfils(bad), "{bad}");
        }
        assert!(rules.complaints("fine", Some("MIT"), Some("registry+here")).is_empty());
        assert_eq!(rules.complaints("ring", None, Some("git+there")).len(), 2);
        let set = |name: &str| BTreeSet::from([name.to_owned()]);
        assert_eq!(banned("ring", &set("tls"), &set("tls")).count(), 0);
        let complaints: Vec<_> = banned("ring", &set("tls"), &set("any")).collect();
        assert_eq!(complaints, ["any uses ring, which deny.toml bans"]);
    }
}
