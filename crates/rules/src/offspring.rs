// SPDX-License-Identifier: Apache-2.0
//! What a key passes on to those that come of it: what its templates impose, and what protects it.

use crate::attributes::{are_one_curve, check};
use crate::facts::Facts;
use crate::lineage::of_one_step;
use crate::login::Login;
use crate::policy::Policy;
use crate::subject::Subject;
use crate::template::{Typed, class_of, typed};
use metaslot_ck::attribute;
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::*;
use metaslot_spi::lengths::Lengths;
use metaslot_spi::provider::{Direction, Encapsulation, Place};
use metaslot_spi::{Attributes, Key, Params, Template, Value, detail};

/// What `template` of a key imposes on its offspring, with what the caller says of it.
///
/// PKCS#11 3.2 §4.9, §4.10: where the caller says something else, it is not what the owner of the key
/// wanted its offspring to be.
pub fn with_imposed(
    said: Attributes,
    by: &Attributes,
    template: CK_ATTRIBUTE_TYPE,
    login: Login,
) -> Result<Attributes> {
    let Some(Value::Template(imposed)) = by.get(template) else { return Ok(said) };
    let class = said.ulong(CKA_CLASS).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    let typed = Typed { attributes: imposed.clone(), ..Typed::default() };
    check(&typed, class, attribute::MAKE, login)?;
    let mut all = said;
    for (attribute, value) in imposed.iter() {
        match all.get(attribute) {
            Some(other) if other != value => return Err(conflict(template)),
            _ => all.set(attribute, value.clone()),
        }
    }
    Ok(all)
}

/// The error where the caller's template says otherwise than the key's template of this name (PKCS#11 3.2 §5.18.4, §5.18.8).
const fn conflict(template: CK_ATTRIBUTE_TYPE) -> Error {
    match template {
        CKA_ENCAPSULATE_TEMPLATE => Error::KEY_HANDLE_INVALID,
        _ => Error::TEMPLATE_INCONSISTENT,
    }
}

/// What a key has from the one that makes it, where its template says nothing.
pub(crate) fn unless_said(template: &mut Attributes, attribute: CK_ATTRIBUTE_TYPE, value: bool) {
    if template.get(attribute).is_none() {
        template.set(attribute, Value::Bool(value));
    }
}

/// What a key that is unwrapped, encapsulated or decapsulated is where its template says nothing: it may be wrapped (PKCS#11 3.2 §5.18.4,
/// §5.18.8), and its value cannot be read.
pub fn may_leave(template: &mut Attributes) {
    if template.get(CKA_EXTRACTABLE).is_none() {
        unless_said(template, CKA_SENSITIVE, true);
        template.set(CKA_EXTRACTABLE, Value::Bool(true));
    }
}

/// A template for making a key of `class`: checked, with class and key type in it.
pub fn generated_template(
    mechanism: CK_MECHANISM_TYPE,
    class: u64,
    template: Template,
    login: Login,
) -> Result<Attributes> {
    let typed = typed(template, Some(class))?;
    check(&typed, class, attribute::MAKE, login)?;
    let Typed { attributes: mut all, .. } = typed;
    if all.ulong(CKA_CLASS).is_some_and(|said| said != class) {
        return Err(Error::TEMPLATE_INCONSISTENT);
    }
    all.set(CKA_CLASS, Value::Ulong(class));
    let rows = MechanismRow::find(mechanism).ok_or(Error::MECHANISM_INVALID)?.keys;
    match (all.ulong(CKA_KEY_TYPE), rows) {
        (None, [first, ..]) => all.set(CKA_KEY_TYPE, Value::Ulong(*first)),
        (Some(said), rows) if mechanism != CKM_PKCS5_PBKD2 && !rows.contains(&said) => {
            return Err(Error::TEMPLATE_INCONSISTENT);
        }
        _ => {}
    }
    Ok(all)
}

/// Whether what the templates of a pair say of its curve or its parameters is the same of both halves: looked at before the pair is
/// made, for a token that makes it keeps it, and no provider is told of the private half's.
pub fn of_one_kind(public: &Attributes, private: &Attributes) -> Result<()> {
    for attribute in [CKA_KEY_TYPE, CKA_EC_PARAMS, CKA_PARAMETER_SET, CKA_PUBLIC_EXPONENT] {
        let (Some(one), Some(other)) = (public.get(attribute), private.get(attribute)) else {
            continue;
        };
        if one != other && !are_one_curve(attribute, one, other) {
            detail::set(format_args!(
                "the templates of the two halves say different {}",
                attribute_name(attribute).unwrap_or("things")
            ));
            return Err(Error::TEMPLATE_INCONSISTENT);
        }
    }
    Ok(())
}

/// A template of a key that is derived, encapsulated or decapsulated, with class and key type, and with what the base key's
/// template of the name `imposes` says.
pub fn derived_template(
    (mechanism, params): (CK_MECHANISM_TYPE, &Params),
    (base, imposes): (&Attributes, CK_ATTRIBUTE_TYPE),
    template: Template,
    login: Login,
) -> Result<Attributes> {
    let natural = if mechanism == CKM_HKDF_DATA { CKO_DATA } else { CKO_SECRET_KEY };
    let class = class_of(&template).unwrap_or(natural);
    if class != natural {
        return Err(Error::TEMPLATE_INCONSISTENT);
    }
    // A data object has no CKA_VALUE_LEN of its own; a derivation says its length by it.
    let (lengths, rest): (Template, Template) =
        template.into_iter().partition(|(attribute, _)| *attribute == CKA_VALUE_LEN);
    let typed_rest = typed(rest, Some(class))?;
    check(&typed_rest, class, attribute::MAKE, login)?;
    let mut all = typed_rest.attributes;
    all.set(CKA_CLASS, Value::Ulong(class));
    let mut all = with_imposed(all, base, imposes, login)?;
    if let Some(length) = typed(lengths, Some(class))?.attributes.remove(CKA_VALUE_LEN) {
        if all.get(CKA_VALUE_LEN).is_some_and(|imposed| imposed != &length) {
            return Err(conflict(imposes));
        }
        all.set(CKA_VALUE_LEN, length);
    }
    if class == CKO_SECRET_KEY && all.get(CKA_KEY_TYPE).is_none() {
        all.set(CKA_KEY_TYPE, Value::Ulong(untold_type(mechanism, params)?));
    }
    Ok(all)
}

/// Of a derived key whose template does not say its type.
fn untold_type(mechanism: CK_MECHANISM_TYPE, params: &Params) -> Result<CK_KEY_TYPE> {
    match (mechanism, params) {
        // PKCS#11 3.2 §6.64.4: keys of this one are of several types, and it wants to be told.
        (CKM_IKE1_PRF_DERIVE, _) => Err(Error::TEMPLATE_INCOMPLETE),
        // §6.64.3: it has that of the PRF.
        (CKM_IKE_PRF_DERIVE, Params::Ike { prf, .. }) => {
            let keys = MechanismRow::find(*prf).map_or(&[][..], |row| row.keys);
            let own = keys.iter().find(|key| **key != CKK_GENERIC_SECRET);
            Ok(own.copied().unwrap_or(CKK_GENERIC_SECRET))
        }
        _ => Ok(CKK_GENERIC_SECRET),
    }
}

/// What a derived secret key has from a secret key where the template says nothing: readable from a
/// readable one, protected and as private from any other.
pub fn inherit(base: &Subject, all: &mut Attributes, class: u64) {
    if base.class() != CKO_SECRET_KEY || class != CKO_SECRET_KEY {
        return;
    }
    let readable = base.facts().readable;
    unless_said(all, CKA_SENSITIVE, !readable);
    unless_said(all, CKA_EXTRACTABLE, readable);
    if base.private() {
        unless_said(all, CKA_PRIVATE, true);
    }
}

/// How many bytes to derive for a template, where the policy lets a key be made of it.
pub fn permitted_length(
    policy: Policy,
    base: &Facts,
    params: &Params,
    natural: Option<usize>,
    all: &Attributes,
) -> Result<usize> {
    permitted(policy, base, derived_length(all, natural, of_one_step(params))?, all)
}

fn permitted(policy: Policy, base: &Facts, length: usize, all: &Attributes) -> Result<usize> {
    if all.ulong(CKA_CLASS) == Some(CKO_SECRET_KEY) {
        policy.making(all, true)?;
        if !base.readable {
            policy.long_enough(length, Error::KEY_SIZE_RANGE)?;
        }
    }
    Ok(length)
}

/// How long a secret is that is encapsulated, or decapsulated, for a template, where the policy lets a key be made of it; `None` where
/// the ciphertext says it.
///
/// # Errors
/// For a length that the mechanism does not give `CKR_TEMPLATE_INCONSISTENT`, or `CKR_WRAPPED_KEY_LEN_RANGE` where the ciphertext says it.
pub fn agreed_length(
    policy: Policy,
    (algorithm, direction): (&dyn Encapsulation, Direction),
    (base, key): (&Facts, &Key),
    params: &Params,
    all: &Attributes,
) -> Result<Option<usize>> {
    let told = algorithm.carries() && direction == Direction::Backward;
    let length = derived_length(all, algorithm.natural_length(key, params), false);
    let wrong = if told { Error::WRAPPED_KEY_LEN_RANGE } else { Error::TEMPLATE_INCONSISTENT };
    match length.and_then(|length| permitted(policy, base, length, all)) {
        Err(Error::TEMPLATE_INCOMPLETE) if told => policy.making(all, true).map(|()| None),
        // What decapsulates has another code for its own size (PKCS#11 3.2 §5.18.9).
        Err(Error::KEY_SIZE_RANGE) if direction == Direction::Backward => Err(wrong),
        Ok(length) if !algorithm.gives(key, params, length) => Err(wrong),
        length => length.map(Some),
    }
}

/// How many bytes to derive: what the template says, what the key type fixes, or what comes out.
fn derived_length(all: &Attributes, natural: Option<usize>, one_step: bool) -> Result<usize> {
    let key_type = all.ulong(CKA_KEY_TYPE);
    let only = match key_type.and_then(Lengths::of) {
        Some(Lengths::Always(length)) => Some(length),
        _ => None,
    };
    let length = match (all.ulong(CKA_VALUE_LEN).or(only), key_type) {
        (Some(length), _) => usize::try_from(length).unwrap_or(usize::MAX),
        (None, Some(CKK_GENERIC_SECRET | CKK_HKDF) | None) => {
            natural.ok_or(Error::TEMPLATE_INCOMPLETE)?
        }
        (None, Some(_)) => {
            return natural.filter(|_| !one_step).ok_or(Error::TEMPLATE_INCOMPLETE);
        }
    };
    if length == 0 || length > MAX_DERIVED { Err(Error::KEY_SIZE_RANGE) } else { Ok(length) }
}

/// As long as two keys are together.
pub fn both_lengths(one: &Attributes, other: &Attributes) -> Option<usize> {
    let length = |key: &Attributes| usize::try_from(key.ulong(CKA_VALUE_LEN)?).ok();
    length(one)?.checked_add(length(other)?)
}

/// No derivation gives more than this, in bytes.
const MAX_DERIVED: usize = 1 << 16;

/// A template of a key that arrives in a wrap, which has this place for it: class and key type must be said.
pub fn arriving(template: Template, place: Place, login: Login) -> Result<Attributes> {
    let class = class_of(&template).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    if !(class == CKO_SECRET_KEY || class == CKO_PRIVATE_KEY && place.takes_private_keys()) {
        return Err(Error::TEMPLATE_INCONSISTENT);
    }
    let typed = typed(template, Some(class))?;
    check(&typed, class, attribute::MAKE, login)?;
    if typed.attributes.get(CKA_KEY_TYPE).is_none() {
        return Err(Error::TEMPLATE_INCOMPLETE);
    }
    Ok(typed.attributes)
}

/// What the key itself says of being wrapped (PKCS#11 3.2 §5.18.3).
pub fn wrappable(key: &Subject, wrapping: &Attributes) -> Result<()> {
    let attributes = key.attributes();
    if !attributes.bool(CKA_EXTRACTABLE) {
        return Err(Error::KEY_UNEXTRACTABLE);
    }
    if attributes.bool(CKA_WRAP_WITH_TRUSTED) && !wrapping.bool(CKA_TRUSTED) {
        return Err(Error::KEY_NOT_WRAPPABLE);
    }
    if let Some(Value::Template(wanted)) = wrapping.get(CKA_WRAP_TEMPLATE)
        && !key.matches(wanted)
    {
        return Err(Error::KEY_HANDLE_INVALID);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_say_one_thing_of_what_both_have() {
        let half = |attribute, value: Value| [(attribute, value)].into_iter().collect();
        let curve = |bytes: &[u8]| half(CKA_EC_PARAMS, Value::Bytes(bytes.to_vec()));
        let p256 = [6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
        let by_name = [&[0x13, 9][..], b"secp256r1"].concat();
        let differ = Err(Error::TEMPLATE_INCONSISTENT);
        for (other, expected) in [
            (curve(&p256), Ok(())),
            (curve(&by_name), Ok(())),
            (Attributes::default(), Ok(())),
            (half(CKA_PARAMETER_SET, Value::Ulong(2)), Ok(())),
            (curve(&[6, 5, 0x2b, 0x81, 4, 0, 0x22]), differ),
            (curve(b"none"), differ),
        ] {
            assert_eq!(of_one_kind(&curve(&p256), &other), expected, "{other:?}");
            assert_eq!(of_one_kind(&other, &curve(&p256)), expected, "{other:?}");
        }
        let set = |number| half(CKA_PARAMETER_SET, Value::Ulong(number));
        assert_eq!([1, 2].map(|other| of_one_kind(&set(1), &set(other))), [Ok(()), differ]);
    }
}
