// SPDX-License-Identifier: Apache-2.0
//! `[provider.NAME]`: what a provider may do.

use super::service;
use super::setting::{Complaint, Setting, apply, at, set, table, text, wrong};
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::{CK_MECHANISM_TYPE, mechanism_name};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The names of our own.
pub(super) const OURS: [&str; 5] = ["awslc", "classics", "kernel", "lanes", "openssl"];

/// Those of our own that have to be wanted: their section says so.
pub const WANTED: [&str; 2] = ["openssl", "kernel"];

/// What the `[provider.NAME]` sections of one provider say together.
#[derive(Debug, Default)]
pub(super) struct ProviderConfig {
    pub(super) name: String,
    enabled: Option<bool>,
    /// Whether this process is one of those that alone have it.
    only: Option<bool>,
    /// Whether it is one of those that do without.
    except: Option<bool>,
    /// Mechanisms that it may not do.
    pub(super) disabled: Vec<CK_MECHANISM_TYPE>,
}

const SETTINGS: &[Setting<ProviderConfig>] = &[
    ("enabled", |provider, value| match value.get_ref() {
        DeValue::Boolean(truth) => {
            provider.check_dispensable(value, *truth)?;
            set(&mut provider.enabled, Some(*truth))
        }
        _ => Err(wrong(value, "enabled is true or false")),
    }),
    ("only", |provider, value| {
        provider.check_dispensable(value, false)?;
        set(&mut provider.only, Some(service::is_one_of(value)?))
    }),
    ("except", |provider, value| {
        provider.check_dispensable(value, false)?;
        set(&mut provider.except, Some(service::is_one_of(value)?))
    }),
    ("disable", |provider, value| {
        set(&mut provider.disabled, mechanisms(value, "disable is a list of mechanisms")?)
    }),
];

/// Reads the sections of one file, by the names of their providers, of which those of `foreign` modules are some. What an
/// earlier file says of the same stays where this one says nothing.
pub(super) fn read(
    sections: &DeTable<'_>,
    foreign: &[&str],
    all: &mut Vec<ProviderConfig>,
) -> Result<(), Complaint> {
    let known: Vec<_> = OURS.into_iter().chain(foreign.iter().copied()).collect();
    for (name, section) in sections {
        if !known.contains(&name.get_ref().as_ref()) {
            let reason = format!("there is no such provider: there are {}", known.join(", "));
            return Err(at(name, &reason));
        }
        if name.get_ref() == "openssl" && !cfg!(feature = "openssl") {
            return Err(at(name, "this library was built without OpenSSL"));
        }
        let settings = table(section, "a provider is a section")?;
        let place = all.iter().position(|one| one.name == *name.get_ref());
        let place = place.unwrap_or_else(|| {
            all.push(ProviderConfig { name: name.get_ref().to_string(), ..<_>::default() });
            all.len() - 1
        });
        apply(settings, "a provider has no setting", SETTINGS, &mut all[place])?;
    }
    Ok(())
}

impl ProviderConfig {
    /// Whether this process has it.
    pub(super) fn is_enabled(&self) -> bool {
        self.enabled.unwrap_or(true) && self.only.unwrap_or(true) && !self.except.unwrap_or(false)
    }

    fn check_dispensable(
        &self,
        value: &Spanned<DeValue<'_>>,
        enabled: bool,
    ) -> Result<(), Complaint> {
        match enabled || self.name != "awslc" {
            true => Ok(()),
            false => Err(at(
                value,
                "awslc makes random numbers and keys for the others: disable some of its mechanisms instead",
            )),
        }
    }
}

/// The names of the settings.
#[cfg(test)]
pub(super) fn names() -> Vec<&'static str> {
    super::setting::names(SETTINGS)
}

/// The mechanisms of a list of names such as `CKM_AES_GCM`, or `CKM_AES_*`.
pub(super) fn mechanisms(
    value: &Spanned<DeValue<'_>>,
    must: &str,
) -> Result<Vec<CK_MECHANISM_TYPE>, Complaint> {
    let DeValue::Array(names) = value.get_ref() else { return Err(wrong(value, must)) };
    let lists = names.iter().map(named).collect::<Result<Vec<_>, _>>()?;
    Ok(lists.concat())
}

/// Those of one name.
fn named(value: &Spanned<DeValue<'_>>) -> Result<Vec<CK_MECHANISM_TYPE>, Complaint> {
    let wanted = text(value)?;
    let is_it = |name: &str| match wanted.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == wanted,
    };
    let numbers = MechanismRow::all().iter().map(|row| row.number);
    let found: Vec<_> =
        numbers.filter(|number| mechanism_name(*number).is_some_and(is_it)).collect();
    match found.is_empty() {
        true => Err(wrong(value, "must be a mechanism such as \"CKM_AES_GCM\" or \"CKM_AES_*\"")),
        false => Ok(found),
    }
}
