// SPDX-License-Identifier: Apache-2.0
//! What a template may say, what it leaves open, and what follows from it.

use crate::lineage::of_password;
use crate::linked::link;
use crate::login::Login;
use crate::policy::{Policy, Refusal};
use crate::purpose::Purposes;
use crate::subject::{Subject, standing};
use crate::template::Typed;
use metaslot_ck::attribute::{self, AttributeRow, CKA_PURPOSES, Standing, class_bit, is_secret};
use metaslot_ck::*;
use metaslot_spi::{Attributes, NewObject, Value, curves, detail, hashes};

/// What is known of an object when it is made.
#[derive(Clone, Copy, Debug)]
pub struct Birth {
    origin: Origin,
    purposes: Purposes,
    login: Login,
}

impl Birth {
    /// An object of this origin, for these purposes, made while this one is logged in.
    #[must_use]
    pub const fn new(origin: Origin, purposes: Purposes, login: Login) -> Self {
        Self { origin, purposes, login }
    }
}

/// How an object comes to be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Origin {
    /// `C_CreateObject`
    Created,
    /// `C_GenerateKey`, `C_GenerateKeyPair` by this mechanism.
    Generated(CK_MECHANISM_TYPE),
    /// `C_UnwrapKey`
    Unwrapped,
    /// `C_DeriveKey`
    Derived {
        /// What the base key says of itself.
        always_sensitive: bool,
        /// As well.
        never_extractable: bool,
    },
}

/// Checks each attribute of a template for `class` against the table; in the templates of a key, each
/// attribute that it imposes.
pub fn check(typed: &Typed, class: u64, right: u32, login: Login) -> Result<()> {
    class_bit(class).ok_or(Error::ATTRIBUTE_VALUE_INVALID)?;
    let attributes = typed.attributes.iter().map(|(attribute, value)| (attribute, Some(value)));
    let secrets = typed.secrets.iter().map(|(attribute, _)| (attribute, None));
    for (attribute, value) in attributes.chain(secrets) {
        let row = AttributeRow::of(attribute, class).ok_or(Error::TEMPLATE_INCONSISTENT)?;
        if !row.may(right) {
            // PKCS#11 3.2 §4.1.1: what only the token may set is read-only.
            return Err(Error::ATTRIBUTE_READ_ONLY);
        }
        match value {
            Some(Value::Template(imposed)) => check_imposed(imposed, login)?,
            // Shown where nothing limits the key, an empty list is not a limit that allows nothing.
            Some(Value::Ulongs(limit)) if limit.is_empty() => {
                return Err(Error::ATTRIBUTE_VALUE_INVALID);
            }
            Some(value) => trusting(row, value, login)?,
            None => {}
        }
    }
    Ok(())
}

/// What an object of trust must say: of which certificate, and by its digest where it trusts it for anything.
fn trust(all: &Attributes) -> Result<()> {
    // What is empty by default is not said by being empty (PKCS#11 3.2, trust objects): no certificate has that digest.
    let there = |attribute| all.bytes(attribute).is_some_and(|said| !said.is_empty());
    let uses = CKA_TRUST_SERVER_AUTH..=CKA_TRUST_OCSP_SIGNING;
    let said = all.iter().filter(|(attribute, _)| uses.contains(attribute));
    let mut trusts = false;
    for (_, value) in said {
        match value {
            Value::Ulong(said) if *said <= u64::from(CKT_TRUST_MUST_VERIFY_TRUST) => {
                let nothing = [CKT_TRUST_UNKNOWN, CKT_NOT_TRUSTED].map(u64::from);
                trusts |= !nothing.contains(said);
            }
            _ => return Err(Error::ATTRIBUTE_VALUE_INVALID),
        }
    }
    // PKCS#11 3.2 §4.7: where no function is named it is SHA-1.
    let by = all.ulong(CKA_NAME_HASH_ALGORITHM).unwrap_or(CKM_SHA_1);
    let digest = all.bytes(CKA_HASH_OF_CERTIFICATE).unwrap_or_default();
    if !digest.is_empty() && hashes::length(by).is_some_and(|length| length != digest.len()) {
        detail::set(format_args!(
            "its CKA_HASH_OF_CERTIFICATE is not as long as CKA_NAME_HASH_ALGORITHM makes it"
        ));
        return Err(Error::TEMPLATE_INCONSISTENT);
    }
    let named = there(CKA_ISSUER) && there(CKA_SERIAL_NUMBER);
    match named && (there(CKA_HASH_OF_CERTIFICATE) || !trusts) {
        true => Ok(()),
        false => Err(Error::TEMPLATE_INCOMPLETE),
    }
}

/// Whether two values name one curve: that of a key is written as an object identifier, and may be said by name.
pub(crate) fn are_one_curve(attribute: CK_ATTRIBUTE_TYPE, found: &Value, said: &Value) -> bool {
    match (found, said) {
        (Value::Bytes(found), Value::Bytes(said)) if attribute == CKA_EC_PARAMS => {
            curves::are_one(found, said)
        }
        _ => false,
    }
}

/// A template inside a template: each attribute must be one that a caller could give.
fn check_imposed(imposed: &Attributes, login: Login) -> Result<()> {
    for (attribute, value) in imposed.iter() {
        let mut rows = AttributeRow::named(attribute).iter();
        let row =
            rows.find(|row| row.may(attribute::MAKE)).ok_or(Error::ATTRIBUTE_VALUE_INVALID)?;
        match value {
            Value::Template(inner) => check_imposed(inner, login)?,
            value => trusting(row, value, login)?,
        }
    }
    Ok(())
}

/// `CKA_TRUSTED` is the SO's word (PKCS#11 3.2 §4.1, footnote 10), either way: a key that stops being
/// trusted would open what only trusted keys wrap as something less.
fn trusting(row: &AttributeRow, value: &Value, login: Login) -> Result<()> {
    let by_others = row.may(attribute::SO) && value == &Value::Bool(true) && login != Login::So;
    if by_others { Err(Error::ATTRIBUTE_READ_ONLY) } else { Ok(()) }
}

/// As many attributes as a secret key has that neither its template nor the provider names, and the engine's own.
const USUAL: usize = 24;

/// The attributes of a new object: the template, what the provider found, and the defaults.
pub fn complete(
    birth: Birth,
    class: u64,
    template: Attributes,
    made: NewObject,
) -> Result<NewObject> {
    let NewObject { attributes: mut all, secrets } = made;
    all.reserve(USUAL);
    for (attribute, said) in template {
        match all.get(attribute) {
            // What a provider computes must not contradict what the caller said.
            Some(found) if found != &said && !are_one_curve(attribute, found, &said) => {
                return Err(Error::TEMPLATE_INCONSISTENT);
            }
            Some(_) => {}
            None => all.set(attribute, said),
        }
    }
    all.set(CKA_CLASS, Value::Ulong(class));
    if class == CKO_CERTIFICATE {
        certificate(&all)?;
    }
    if class == CKO_TRUST {
        trust(&all)?;
    }
    if matches!(class, CKO_PUBLIC_KEY | CKO_PRIVATE_KEY) {
        link(&mut all)?;
    }
    let secret = is_secret(class);
    if secret {
        key_defaults(&mut all, class, birth.origin);
    }
    encapsulates(&mut all, class, birth.purposes);
    defaults(&mut all, class, birth.purposes)?;
    if all.get(CKA_PRIVATE).is_none() {
        // Session keys made without a login are public: plain acceleration works.
        let private = secret && (all.bool(CKA_TOKEN) || birth.login == Login::User);
        all.set(CKA_PRIVATE, Value::Bool(private));
    }
    asks_in_private(&all)?;
    if secret || class == CKO_PUBLIC_KEY {
        provenance(&mut all, birth, secret);
    } else if class == CKO_DOMAIN_PARAMETERS {
        all.set(CKA_LOCAL, Value::Bool(matches!(birth.origin, Origin::Generated(_))));
    }
    Ok(NewObject { attributes: all, secrets })
}

/// PKCS#11 3.2 §4.9: only a private object can want a login for each use.
fn asks_in_private(all: &Attributes) -> Result<()> {
    let asks = all.bool(CKA_ALWAYS_AUTHENTICATE) && !all.bool(CKA_PRIVATE);
    if asks { Err(Error::TEMPLATE_INCONSISTENT) } else { Ok(()) }
}

/// What the table writes into every new object, and takes out of it. A usage that the template leaves
/// out is one of the key's only where it serves what the key is for.
fn defaults(all: &mut Attributes, class: u64, purposes: Purposes) -> Result<()> {
    let bit = class_bit(class).ok_or(Error::ATTRIBUTE_VALUE_INVALID)?;
    for row in AttributeRow::born().iter().filter(|row| row.classes & bit != 0) {
        if row.may(attribute::IGNORED) {
            all.remove(row.number);
        }
        if let (None, Some(value)) = (all.get(row.number), row.at_birth) {
            let serves = Purposes::of(row.number, class);
            let beyond = row.may(attribute::USAGE) && !purposes.has(serves);
            let value = if beyond { Standing::False } else { value };
            all.set(row.number, standing(value, row.kind).clone());
        }
    }
    Ok(())
}

/// What keys derive where their template is silent, and whether they do nothing else then: what is signed by a key and what it agrees
/// on are to be kept apart. Many programs make EC keys without `CKA_DERIVE`, sign and then derive with them.
#[rustfmt::skip]
const DERIVE: [(CK_OBJECT_CLASS, CK_KEY_TYPE, bool); 5] = [
    (CKO_PRIVATE_KEY, CKK_EC, false),
    (CKO_PRIVATE_KEY, CKK_EC_MONTGOMERY, true),
    (CKO_PRIVATE_KEY, CKK_DH, false),
    (CKO_PRIVATE_KEY, CKK_X9_42_DH, false),
    (CKO_SECRET_KEY, CKK_HKDF, false),
];

/// Defaults that the standard leaves to the token (footnote 9), and one that it does not: a secret key
/// is protected unless the caller brings it in the clear or makes it extractable.
fn key_defaults(all: &mut Attributes, class: u64, origin: Origin) {
    let kind = (class, all.ulong(CKA_KEY_TYPE));
    let row = DERIVE.iter().find(|row| (row.0, Some(row.1)) == kind);
    let alone = row.is_some_and(|row| row.2);
    let derives = row.is_some() && !(alone && all.bool(CKA_SIGN));
    let brought = origin == Origin::Created;
    let open = class != CKO_PRIVATE_KEY && (brought || all.bool(CKA_EXTRACTABLE));
    let mut default = |attribute, value| {
        if all.get(attribute).is_none() {
            all.set(attribute, Value::Bool(value));
        }
        all.bool(attribute)
    };
    if default(CKA_DERIVE, derives) && alone {
        default(CKA_SIGN, false);
    }
    let sensitive = default(CKA_SENSITIVE, !open);
    default(CKA_EXTRACTABLE, open && !sensitive);
}

/// A key of ML-KEM has one use; a template that names none would make a key that is good for nothing.
fn encapsulates(all: &mut Attributes, class: u64, purposes: Purposes) {
    let usage = match class {
        CKO_PUBLIC_KEY => CKA_ENCAPSULATE,
        CKO_PRIVATE_KEY => CKA_DECAPSULATE,
        _ => return,
    };
    let silent = all.get(usage).is_none() && purposes.has(Purposes::of(usage, class));
    if all.ulong(CKA_KEY_TYPE) == Some(CKK_ML_KEM) && silent {
        all.set(usage, Value::Bool(true));
    }
}

/// States what another module might leave open for a key: it is private, sensitive and stays.
pub fn protected(template: &mut Attributes) {
    let extractable = template.bool(CKA_EXTRACTABLE);
    let secret = matches!(template.ulong(CKA_CLASS), Some(CKO_SECRET_KEY | CKO_OTP_KEY));
    let sensitive = !(secret && extractable);
    let states = [(CKA_PRIVATE, true), (CKA_SENSITIVE, sensitive), (CKA_EXTRACTABLE, false)];
    for (attribute, value) in states {
        if template.get(attribute).is_none() {
            template.set(attribute, Value::Bool(value));
        }
    }
}

/// The usages that a key made for use has where its template is silent.
pub(crate) fn usual_usages(class: u64, key_type: CK_KEY_TYPE) -> Vec<CK_ATTRIBUTE_TYPE> {
    let mut all = Attributes::default();
    all.set(CKA_KEY_TYPE, Value::Ulong(key_type));
    key_defaults(&mut all, class, Origin::Unwrapped);
    encapsulates(&mut all, class, Purposes::USE);
    let Ok(()) = defaults(&mut all, class, Purposes::USE) else { return Vec::new() };
    let usual = |(attribute, value): (CK_ATTRIBUTE_TYPE, &Value)| {
        let row = AttributeRow::of(attribute, class)?;
        (row.may(attribute::USAGE) && value == &Value::Bool(true)).then_some(attribute)
    };
    all.iter().filter_map(usual).collect()
}

/// PKCS#11 3.2 §4.6: a certificate has a value, or a URL where it is found, and says whose it is.
fn certificate(all: &Attributes) -> Result<()> {
    let there = |attribute| all.get(attribute).is_some();
    let kind = all.ulong(CKA_CERTIFICATE_TYPE).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    let named = there(if kind == CKC_X_509_ATTR_CERT { CKA_OWNER } else { CKA_SUBJECT });
    let complete = named && (there(CKA_VALUE) || there(CKA_URL));
    if complete { Ok(()) } else { Err(Error::TEMPLATE_INCOMPLETE) }
}

/// `CKA_LOCAL`, `CKA_ALWAYS_SENSITIVE`, `CKA_NEVER_EXTRACTABLE`, `CKA_KEY_GEN_MECHANISM` and the purposes
/// follow from where the key came from (PKCS#11 3.2 §4.9, §4.10, §5.18).
fn provenance(all: &mut Attributes, birth: Birth, secret: bool) {
    let (local, mechanism) = match birth.origin {
        Origin::Generated(mechanism) => (true, mechanism),
        _ => (false, UNAVAILABLE),
    };
    all.set(CKA_LOCAL, Value::Bool(local));
    all.set(CKA_KEY_GEN_MECHANISM, Value::Ulong(mechanism));
    let mut purposes = birth.purposes;
    if secret {
        let (was_sensitive, was_kept) = match birth.origin {
            Origin::Generated(mechanism) if of_password(mechanism) => (false, false),
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
        if local && always && never {
            purposes = purposes.and(Purposes::SEALED);
        }
    }
    all.set(CKA_PURPOSES, purposes.value());
}

/// Applies changes (`C_SetAttributeValue`, `C_CopyObject`) to an existing object; `right` says which of the two.
pub fn change(
    old: &Subject,
    changes: &Typed,
    right: u32,
    login: Login,
    policy: Policy,
) -> Result<Attributes> {
    if !changes.secrets.is_empty() {
        return Err(Error::ATTRIBUTE_READ_ONLY);
    }
    let mut new = old.attributes().clone();
    for (attribute, value) in changes.attributes.iter() {
        let as_it_is = old.attributes().get(attribute) == Some(value);
        if as_it_is && right == attribute::COPY {
            continue;
        }
        let row = AttributeRow::of(attribute, old.class()).ok_or(Error::ATTRIBUTE_TYPE_INVALID)?;
        if !row.may(right) {
            return Err(Error::ATTRIBUTE_READ_ONLY);
        }
        one_way(row, old.attributes().get(attribute), value)?;
        if row.may(attribute::SO) && login != Login::So {
            return Err(Error::ATTRIBUTE_READ_ONLY);
        }
        if row.may(attribute::USAGE) && value == &Value::Bool(true) {
            policy.adding_usage(old.facts())?;
        }
        new.set(attribute, value.clone());
    }
    if old.attributes().get(attribute::CKA_FOREIGN_ROW).is_some() {
        policy.changing_elsewhere(old.facts(), &new)?;
    }
    if old.class() == CKO_TRUST {
        trust(&new).map_err(|error| match error {
            Error::TEMPLATE_INCOMPLETE => Error::TEMPLATE_INCONSISTENT,
            other => other,
        })?;
    }
    if right == attribute::COPY { asks_in_private(&new).map(|()| new) } else { Ok(new) }
}

/// What a caller says of a key, within what its wrapped form says: no more than that, and what it
/// leaves out is as it was.
pub fn within(said: &Attributes, template: Attributes, policy: Policy) -> Result<Attributes> {
    let class = template.ulong(CKA_CLASS).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    let mut all = template;
    for (attribute, value) in said.iter().filter(|(attribute, _)| *attribute != CKA_PURPOSES) {
        match all.get(attribute) {
            Some(other) => may_follow(class, attribute, value, other, policy)?,
            None => all.set(attribute, value.clone()),
        }
    }
    Ok(all)
}

/// Whether an attribute of a key may be `to` where something else says `from`: what a change may not
/// do, a template may not say.
pub fn may_follow(
    class: u64,
    attribute: CK_ATTRIBUTE_TYPE,
    from: &Value,
    to: &Value,
    policy: Policy,
) -> Result<()> {
    if from == to {
        return Ok(());
    }
    let row = AttributeRow::of(attribute, class).ok_or(Error::TEMPLATE_INCONSISTENT)?;
    if !row.may(attribute::CHANGE | attribute::COPY) {
        return Err(Error::TEMPLATE_INCONSISTENT);
    }
    one_way(row, Some(from), to).map_err(|_| Error::TEMPLATE_INCONSISTENT)?;
    let adds = row.may(attribute::USAGE) && to == &Value::Bool(true);
    policy.refuse(Refusal::RoleChanges, adds, Error::TEMPLATE_INCONSISTENT)
}

fn one_way(row: &AttributeRow, old: Option<&Value>, new: &Value) -> Result<()> {
    let stuck_on = row.may(attribute::ONLY_ON) && old == Some(&Value::Bool(true));
    let stuck_off = row.may(attribute::ONLY_OFF) && old == Some(&Value::Bool(false));
    let stuck = (stuck_on && new == &Value::Bool(false))
        || (stuck_off && new == &Value::Bool(true))
        || (row.may(attribute::ONLY_FEWER) && !is_fewer(old, new));
    if stuck { Err(Error::ATTRIBUTE_READ_ONLY) } else { Ok(()) }
}

/// Whether `new` allows no more than `old`, where no elements mean no limit.
fn is_fewer(old: Option<&Value>, new: &Value) -> bool {
    match (old, new) {
        (Some(Value::Ulongs(old)), Value::Ulongs(new)) if !old.is_empty() => {
            !new.is_empty() && new.iter().all(|number| old.contains(number))
        }
        (Some(Value::Ulong(old)), Value::Ulong(new)) => new <= old,
        // What a counter has left.
        (Some(Value::Bytes(old)), Value::Bytes(new)) => old.len() == new.len() && new >= old,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is signed and what is agreed on are kept apart unless the template says both.
    #[test]
    fn a_key_of_x25519_signs_or_agrees() {
        for (said, signs, derives) in [
            (&[][..], false, true),
            (&[(CKA_SIGN, true)], true, false),
            (&[(CKA_SIGN, false)], false, true),
            (&[(CKA_DERIVE, true)], false, true),
            (&[(CKA_DERIVE, false)], true, false),
            (&[(CKA_SIGN, true), (CKA_DERIVE, true)], true, true),
        ] {
            let of_usage =
                |(usage, value): &(CK_ATTRIBUTE_TYPE, bool)| (*usage, Value::Bool(*value));
            let mut all: Attributes = said.iter().map(of_usage).collect();
            all.set(CKA_KEY_TYPE, Value::Ulong(CKK_EC_MONTGOMERY));
            let origin = Origin::Generated(CKM_EC_MONTGOMERY_KEY_PAIR_GEN);
            key_defaults(&mut all, CKO_PRIVATE_KEY, origin);
            assert_eq!(defaults(&mut all, CKO_PRIVATE_KEY, Purposes::USE), Ok(()));
            assert_eq!((all.bool(CKA_SIGN), all.bool(CKA_DERIVE)), (signs, derives), "{said:?}");
        }
    }
}
