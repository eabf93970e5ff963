// SPDX-License-Identifier: Apache-2.0
//! `[provider.NAME]`: what a provider may do.

use super::service;
use super::setting::{Complaint, at, text, wrong};
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::{CK_MECHANISM_TYPE, mechanism_name};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The names of our own.
pub(super) const OURS: [&str; 4] = ["awslc", "kernel", "lanes", "openssl"];

/// Those of our own that have to be wanted: their section says so.
pub(crate) const WANTED: [&str; 2] = ["openssl", "kernel"];

/// One `[provider.NAME]`.
#[derive(Debug)]
pub(super) struct ProviderConfig {
    pub(super) name: String,
    /// Whether this process has it.
    pub(super) enabled: bool,
    /// Mechanisms that it may not do.
    pub(super) disabled: Vec<CK_MECHANISM_TYPE>,
}

/// The sections, by the names of their providers, of which those of `foreign` modules are some.
pub(super) fn parse(
    sections: &DeTable<'_>,
    foreign: &[&str],
) -> Result<Vec<ProviderConfig>, Complaint> {
    let known: Vec<_> = OURS.into_iter().chain(foreign.iter().copied()).collect();
    let mut all = Vec::new();
    for (name, section) in sections {
        if !known.contains(&name.get_ref().as_ref()) {
            let reason = format!("there is no such provider: there are {}", known.join(", "));
            return Err(at(name, &reason));
        }
        if name.get_ref() == "openssl" && !cfg!(feature = "openssl") {
            return Err(at(name, "this library was built without OpenSSL"));
        }
        let DeValue::Table(settings) = section.get_ref() else {
            return Err(wrong(section, "a provider is a section"));
        };
        all.push(ProviderConfig::parse(name.get_ref(), settings)?);
    }
    Ok(all)
}

impl ProviderConfig {
    fn parse(name: &str, settings: &DeTable<'_>) -> Result<Self, Complaint> {
        let (mut enabled, mut disabled) = (true, Vec::new());
        for (key, value) in settings {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("enabled", DeValue::Boolean(false)) | ("only" | "except", _)
                    if name == "awslc" =>
                {
                    let reason = "awslc makes random numbers and keys for the others: disable some of its mechanisms instead";
                    return Err(at(value, reason));
                }
                ("enabled", DeValue::Boolean(truth)) => enabled &= *truth,
                ("only", _) => enabled &= service::is_one_of(value)?,
                ("except", _) => enabled &= !service::is_one_of(value)?,
                ("enabled", _) => return Err(wrong(value, "enabled is true or false")),
                ("disable", DeValue::Array(names)) => {
                    for name in names.iter() {
                        disabled.extend(mechanisms(name)?);
                    }
                }
                ("disable", _) => return Err(wrong(value, "disable is a list of mechanisms")),
                (other, _) => {
                    return Err(at(key, &format!("a provider has no setting {other:?}")));
                }
            }
        }
        Ok(Self { name: name.to_owned(), enabled, disabled })
    }
}

/// The mechanisms of a name such as `CKM_AES_GCM`, or `CKM_AES_*`.
fn mechanisms(value: &Spanned<DeValue<'_>>) -> Result<Vec<CK_MECHANISM_TYPE>, Complaint> {
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
