// SPDX-License-Identifier: Apache-2.0
//! `[[pool]]`: tokens of other modules that are one of ours.

use super::setting::{Complaint, Setting, apply, at, boolean, set, table, texts};
use super::token::{allow, preset};
use super::{Config, PoolConfig, simple_name};
use metaslot_engine::Policy;
use toml::Spanned;
use toml::de::DeValue;

/// What a section says.
struct Draft {
    name: Option<String>,
    tokens: Vec<String>,
    policy: Policy,
    shown: Option<bool>,
}

/// First the preset, then what is allowed beyond it.
const SETTINGS: &[Setting<Draft>] = &[
    ("name", |pool, value| set(&mut pool.name, Some(simple_name(value)?))),
    ("tokens", |pool, value| set(&mut pool.tokens, texts(value, "tokens is a list of labels")?)),
    ("policy", |pool, value| set(&mut pool.policy, preset(value)?.0)),
    ("allow", |pool, value| allow(&mut pool.policy, value)),
    ("metaslot", |pool, value| set(&mut pool.shown, Some(boolean(value)?))),
];

impl Config {
    /// One `[[pool]]`.
    pub(super) fn add_pool(&mut self, section: &Spanned<DeValue<'_>>) -> Result<(), Complaint> {
        let settings = table(section, "a pool is a section")?;
        let (policy, tokens) = (Policy::DEFAULT, Vec::new());
        let mut draft = Draft { name: None, tokens, policy, shown: None };
        apply(settings, "a pool has no setting", SETTINGS, &mut draft)?;
        let Draft { name, tokens, policy, shown } = draft;
        let name = self.new_name(name, settings, section, "a pool needs a name")?;
        if tokens.is_empty() {
            return Err(at(section, "a pool needs tokens"));
        }
        self.pools.push(PoolConfig { name, tokens, policy, shown });
        Ok(())
    }
}

/// The names of the settings.
#[cfg(test)]
pub(super) fn names() -> Vec<&'static str> {
    super::setting::names(SETTINGS)
}
