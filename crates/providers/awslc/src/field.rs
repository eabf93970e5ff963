// SPDX-License-Identifier: Apache-2.0
//! Keys in groups modulo a prime (PKCS#11 3.2 §6.2, §6.4): how pairs of DSA and Diffie-Hellman are made and completed.

use crate::failure::device_error;
use metaslot_awslc_wrapper::Failed;
use metaslot_awslc_wrapper::field::{Group, SIZES};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::der::without_zeros;
use metaslot_spi::field_key::FieldKind;
use metaslot_spi::known_groups::is_known_prime;
use metaslot_spi::provider::{Algorithm, GeneratePair};
use metaslot_spi::{Attributes, NewObject, Params, Secrets, Value, key_info};

/// Smallest and largest prime, in bits.
pub(crate) const SIZES_BITS: (u64, u64) = (SIZES.0 as u64, SIZES.1 as u64);

/// How long a private value is where nobody says it, in bits: twice the strength of the longest known group, and more.
const USUAL_BITS: usize = 512;

/// A row that makes pairs.
pub(crate) const fn pair_row(mechanism: CK_MECHANISM_TYPE, pairs: &'static Pairs) -> Algorithm {
    Algorithm { mechanism, key_sizes: SIZES_BITS, generate_pair: Some(pairs), ..Algorithm::NONE }
}

/// Length of a number, in bits.
pub(crate) fn bits(number: &[u8]) -> u64 {
    let number = without_zeros(number);
    number.first().map_or(0, |first| number.len() as u64 * 8 - u64::from(first.leading_zeros()))
}

/// The group that attributes say, as it is shown and as it is computed in.
pub(crate) fn group(kind: &FieldKind, of: &Attributes) -> Result<(Attributes, Group)> {
    let shown = kind.group(of)?;
    let number = |attribute| shown.bytes(attribute).unwrap_or_default();
    let order = kind.has_order().then(|| number(CKA_SUBPRIME));
    let group = Group::new(number(CKA_PRIME), number(CKA_BASE), order);
    let group = group.map_err(|Failed| Error::DOMAIN_PARAMS_INVALID)?;
    Ok((shown, group))
}

pub(crate) fn kind(attributes: &Attributes) -> Result<&'static FieldKind> {
    let kind = attributes.ulong(CKA_KEY_TYPE).and_then(FieldKind::of);
    kind.ok_or(Error::ATTRIBUTE_VALUE_INVALID)
}

/// Wrong parameters of a template, as the functions that take one say it.
pub(crate) fn of_template(error: Error) -> Error {
    if error == Error::DOMAIN_PARAMS_INVALID { Error::ATTRIBUTE_VALUE_INVALID } else { error }
}

/// As `Provider::complete`.
pub(crate) fn complete_public(object: &mut NewObject) -> Result<()> {
    let kind = kind(&object.attributes)?;
    let (shown, group) = group(kind, &object.attributes).map_err(of_template)?;
    let public = object.attributes.bytes(CKA_VALUE).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    let public = without_zeros(public).to_vec();
    group.check_public(&public).map_err(|Failed| Error::ATTRIBUTE_VALUE_INVALID)?;
    let shown = kind.shown(&shown, &public);
    object.attributes.set(CKA_VALUE, Value::Bytes(public));
    key_info::complete_shown(&mut object.attributes, &shown)
}

/// As well: the public value is computed.
pub(crate) fn complete_private(object: &mut NewObject) -> Result<()> {
    let kind = kind(&object.attributes)?;
    let (shown, group) = group(kind, &object.attributes).map_err(of_template)?;
    let private = object.secrets.get(CKA_VALUE).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    let public = group.public(private).map_err(|Failed| Error::ATTRIBUTE_VALUE_INVALID)?;
    let bits = bits(private);
    let mut shown = kind.shown(&shown, &public);
    if !kind.has_order() {
        shown.set(CKA_VALUE_BITS, Value::Ulong(bits));
    }
    key_info::complete_shown(&mut object.attributes, &shown)
}

/// Pairs of one key type.
#[derive(Debug)]
pub(crate) struct Pairs(pub(crate) CK_KEY_TYPE);

impl GeneratePair for Pairs {
    fn generate_pair(
        &self,
        params: &Params,
        public: &Attributes,
    ) -> Result<(NewObject, NewObject)> {
        self.generate_halves(params, public, &Attributes::default())
    }

    fn generate_halves(
        &self,
        _: &Params,
        public: &Attributes,
        private: &Attributes,
    ) -> Result<(NewObject, NewObject)> {
        let kind = FieldKind::of(self.0).ok_or(Error::MECHANISM_INVALID)?;
        let (shown, group) = group(kind, public).map_err(of_template)?;
        let bits = private_bits(private, &shown, &group)?;
        let value = group.private(bits).map_err(device_error)?;
        let number = group.public(value.expose()).map_err(device_error)?;
        let mut attributes = kind.shown(&shown, &number);
        let mut first = attributes.clone();
        first.set(CKA_VALUE, Value::Bytes(without_zeros(&number).to_vec()));
        if !kind.has_order() {
            attributes.set(CKA_VALUE_BITS, Value::Ulong(bits as u64));
        }
        let mut secrets = Secrets::new();
        secrets.set(CKA_VALUE, Secret::copy_of(without_zeros(value.expose())));
        Ok((
            NewObject { attributes: first, secrets: Secrets::new() },
            NewObject { attributes, secrets },
        ))
    }
}

/// How long a private value shall be; a group with an order says it by that.
fn private_bits(private: &Attributes, shown: &Attributes, group: &Group) -> Result<usize> {
    let most = group.bits() - 1;
    let known = shown.bytes(CKA_PRIME).is_some_and(is_known_prime);
    match private.ulong(CKA_VALUE_BITS).filter(|bits| *bits > 0) {
        Some(bits) => {
            let bits = usize::try_from(bits).ok().filter(|bits| *bits <= most);
            bits.ok_or(Error::ATTRIBUTE_VALUE_INVALID)
        }
        None => Ok(if known { USUAL_BITS } else { most }),
    }
}
