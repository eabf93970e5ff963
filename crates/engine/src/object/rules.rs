// SPDX-License-Identifier: Apache-2.0
//! What a template may say, what it leaves open, and what follows from it.

use super::attribute::{self, AttributeRow, CKA_BIRTH_ROLES, ROLES, class_bit};
use crate::metaslot::policy::Policy;
use crate::template::Typed;
use crate::token::Login;
use crate::{Attributes, NewObject, Value};
use metaslot_ck::*;

/// How an object comes to be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Origin {
    /// `C_CreateObject`
    Created,
    /// `C_GenerateKey`, `C_GenerateKeyPair` by this mechanism.
    Generated(CK_MECHANISM_TYPE),
    /// `C_UnwrapKey`
    Unwrapped,
    /// `C_DeriveKey`; what the base key says of itself.
    Derived { always_sensitive: bool, never_extractable: bool },
}

/// Checks each attribute of a template for `class` against the table.
pub(crate) fn check(
    typed: &Typed,
    class: u64,
    may: u32,
    login: Login,
    policy: &Policy,
) -> Result<()> {
    let bit = class_bit(class).ok_or(Error::ATTRIBUTE_VALUE_INVALID)?;
    let attributes = typed.attributes.iter().map(|(attribute, value)| (attribute, Some(value)));
    let secrets = typed.secrets.iter().map(|(attribute, _)| (attribute, None));
    for (attribute, value) in attributes.chain(secrets) {
        let row = AttributeRow::find(attribute).ok_or(Error::ATTRIBUTE_TYPE_INVALID)?;
        if row.on & bit == 0 {
            return Err(Error::TEMPLATE_INCONSISTENT);
        }
        if row.may & may == 0 {
            // PKCS#11 3.2 §4.1.1: what only the token may set is read-only.
            return Err(Error::ATTRIBUTE_READ_ONLY);
        }
        if row.may & attribute::SO != 0 && value == Some(&Value::Bool(true)) {
            policy.trusting(login)?;
        }
    }
    Ok(())
}

/// The attributes of a new object: the template, what the provider found, and the defaults.
pub(crate) fn complete(
    origin: Origin,
    class: u64,
    template: Attributes,
    made: NewObject,
    login: Login,
) -> Result<NewObject> {
    let NewObject { attributes: found, secrets } = made;
    let mut all = template;
    for (attribute, value) in found.iter() {
        match all.get(attribute) {
            // What a provider computes must not contradict what the caller said.
            Some(said) if said != value && attribute != CKA_EC_PARAMS => {
                return Err(Error::TEMPLATE_INCONSISTENT);
            }
            _ => all.set(attribute, value.clone()),
        }
    }
    all.set(CKA_CLASS, Value::Ulong(class));
    defaults(&mut all, COMMON);
    match class {
        CKO_DATA => defaults(&mut all, DATA),
        CKO_CERTIFICATE => certificate(&mut all)?,
        CKO_PUBLIC_KEY => key(&mut all, PUBLIC),
        CKO_PRIVATE_KEY => {
            key(&mut all, PRIVATE);
            derive_default(&mut all);
        }
        CKO_SECRET_KEY => key(&mut all, SECRET),
        _ => return Err(Error::ATTRIBUTE_VALUE_INVALID),
    }
    let secret = matches!(class, CKO_PRIVATE_KEY | CKO_SECRET_KEY);
    if all.get(CKA_PRIVATE).is_none() {
        // Session keys of a token that nobody logged in to are public: plain acceleration works.
        let private = secret && (all.bool(CKA_TOKEN) || login == Login::User);
        all.set(CKA_PRIVATE, Value::Bool(private));
    }
    if matches!(class, CKO_PUBLIC_KEY | CKO_PRIVATE_KEY | CKO_SECRET_KEY) {
        provenance(&mut all, origin, secret);
    }
    Ok(NewObject { attributes: all, secrets })
}

type Defaults = &'static [(CK_ATTRIBUTE_TYPE, bool)];

const COMMON: Defaults =
    &[(CKA_TOKEN, false), (CKA_MODIFIABLE, true), (CKA_COPYABLE, true), (CKA_DESTROYABLE, true)];

const DATA: Defaults = &[(CKA_PRIVATE, false)];

const PUBLIC: Defaults = &[
    (CKA_ENCRYPT, true),
    (CKA_VERIFY, true),
    (CKA_VERIFY_RECOVER, true),
    (CKA_WRAP, false),
    (CKA_DERIVE, false),
    (CKA_TRUSTED, false),
];

const PRIVATE: Defaults = &[
    (CKA_DECRYPT, true),
    (CKA_SIGN, true),
    (CKA_SIGN_RECOVER, true),
    (CKA_UNWRAP, false),
    (CKA_SENSITIVE, true),
    (CKA_EXTRACTABLE, false),
    (CKA_ALWAYS_AUTHENTICATE, false),
    (CKA_WRAP_WITH_TRUSTED, false),
];

const SECRET: Defaults = &[
    (CKA_ENCRYPT, true),
    (CKA_DECRYPT, true),
    (CKA_SIGN, true),
    (CKA_VERIFY, true),
    (CKA_WRAP, false),
    (CKA_UNWRAP, false),
    (CKA_DERIVE, false),
    (CKA_SENSITIVE, true),
    (CKA_EXTRACTABLE, false),
    (CKA_TRUSTED, false),
    (CKA_WRAP_WITH_TRUSTED, false),
];

fn defaults(all: &mut Attributes, rows: Defaults) {
    for (attribute, value) in rows {
        if all.get(*attribute).is_none() {
            all.set(*attribute, Value::Bool(*value));
        }
    }
}

fn key(all: &mut Attributes, rows: Defaults) {
    defaults(all, rows);
    for attribute in [CKA_LABEL, CKA_ID, CKA_START_DATE, CKA_END_DATE] {
        if all.get(attribute).is_none() {
            all.set(attribute, Value::Bytes(Vec::new()));
        }
    }
    if rows.iter().any(|row| row.0 == CKA_VERIFY_RECOVER || row.0 == CKA_SIGN_RECOVER)
        && all.get(CKA_SUBJECT).is_none()
    {
        all.set(CKA_SUBJECT, Value::Bytes(Vec::new()));
    }
}

/// Many programs make EC keys without `CKA_DERIVE` and then derive with them.
fn derive_default(all: &mut Attributes) {
    if all.get(CKA_DERIVE).is_none() {
        let agrees = matches!(all.ulong(CKA_KEY_TYPE), Some(CKK_EC | CKK_EC_MONTGOMERY));
        all.set(CKA_DERIVE, Value::Bool(agrees));
    }
}

fn certificate(all: &mut Attributes) -> Result<()> {
    if all.ulong(CKA_CERTIFICATE_TYPE).is_none() {
        return Err(Error::TEMPLATE_INCOMPLETE);
    }
    if all.get(CKA_VALUE).is_none() && all.get(CKA_URL).is_none() {
        return Err(Error::TEMPLATE_INCOMPLETE);
    }
    defaults(all, &[(CKA_TRUSTED, false), (CKA_PRIVATE, false)]);
    if all.get(CKA_CERTIFICATE_CATEGORY).is_none() {
        all.set(CKA_CERTIFICATE_CATEGORY, Value::Ulong(0));
    }
    Ok(())
}

/// `CKA_LOCAL`, `CKA_ALWAYS_SENSITIVE`, `CKA_NEVER_EXTRACTABLE`, `CKA_KEY_GEN_MECHANISM` follow from
/// where the key came from (PKCS#11 3.2 §4.9, §4.10, §5.18).
fn provenance(all: &mut Attributes, origin: Origin, secret: bool) {
    let (local, mechanism) = match origin {
        Origin::Generated(mechanism) => (true, mechanism),
        _ => (false, UNAVAILABLE),
    };
    all.set(CKA_LOCAL, Value::Bool(local));
    all.set(CKA_KEY_GEN_MECHANISM, Value::Ulong(mechanism));
    if secret {
        let (was_sensitive, was_kept) = match origin {
            Origin::Generated(_) => (true, true),
            Origin::Derived { always_sensitive, never_extractable } => {
                (always_sensitive, never_extractable)
            }
            Origin::Created | Origin::Unwrapped => (false, false),
        };
        let always = was_sensitive && all.bool(CKA_SENSITIVE);
        let never = was_kept && !all.bool(CKA_EXTRACTABLE);
        all.set(CKA_ALWAYS_SENSITIVE, Value::Bool(always));
        all.set(CKA_NEVER_EXTRACTABLE, Value::Bool(never));
    }
    let roles = all.ulong(CKA_BIRTH_ROLES).unwrap_or(0) | roles(all);
    all.set(CKA_BIRTH_ROLES, Value::Ulong(roles));
}

/// The usages of these attributes as bits.
pub(crate) fn roles(all: &Attributes) -> u64 {
    ROLES.iter().enumerate().fold(0, |bits, (at, role)| bits | u64::from(all.bool(*role)) << at)
}

/// The bit of one usage among [`roles`].
pub(crate) const fn role(usage: CK_ATTRIBUTE_TYPE) -> u64 {
    let mut at = 0;
    while at < ROLES.len() {
        if ROLES[at] == usage {
            return 1 << at;
        }
        at += 1;
    }
    0
}

/// Applies changes (`C_SetAttributeValue`, `C_CopyObject`) to existing attributes; `may` says which
/// of the two.
pub(crate) fn change(
    old: &Attributes,
    changes: &Typed,
    may: u32,
    login: Login,
    policy: &Policy,
) -> Result<Attributes> {
    if !changes.secrets.is_empty() {
        return Err(Error::ATTRIBUTE_READ_ONLY);
    }
    let bit = old.ulong(CKA_CLASS).and_then(class_bit).ok_or(Error::GENERAL_ERROR)?;
    let mut new = old.clone();
    for (attribute, value) in changes.attributes.iter() {
        let row = AttributeRow::find(attribute).ok_or(Error::ATTRIBUTE_TYPE_INVALID)?;
        if old.get(attribute) == Some(value) {
            continue;
        }
        if row.on & bit == 0 {
            return Err(Error::ATTRIBUTE_TYPE_INVALID);
        }
        if row.may & may == 0 {
            return Err(Error::ATTRIBUTE_READ_ONLY);
        }
        one_way(row, old, value)?;
        if row.may & attribute::SO != 0 && value == &Value::Bool(true) {
            policy.trusting(login)?;
        }
        if row.may & attribute::USAGE != 0 && value == &Value::Bool(true) {
            policy.adding_usage()?;
        }
        new.set(attribute, value.clone());
    }
    if old.get(CKA_BIRTH_ROLES).is_some() {
        let all = old.ulong(CKA_BIRTH_ROLES).unwrap_or(0) | roles(&new);
        new.set(CKA_BIRTH_ROLES, Value::Ulong(all));
    }
    Ok(new)
}

fn one_way(row: &AttributeRow, old: &Attributes, value: &Value) -> Result<()> {
    let was = old.bool(row.number);
    let stuck_on = row.may & attribute::ONLY_ON != 0 && was;
    let stuck_off = row.may & attribute::ONLY_OFF != 0 && !was && old.get(row.number).is_some();
    if (stuck_on && value == &Value::Bool(false)) || (stuck_off && value == &Value::Bool(true)) {
        return Err(Error::ATTRIBUTE_READ_ONLY);
    }
    Ok(())
}
