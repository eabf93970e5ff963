// SPDX-License-Identifier: Apache-2.0
//! Keys that grow from a seed, by parameter sets: how they are made, brought and written. A private key is kept as its seed, where it
//! has one, and in its expanded form, which `CKA_VALUE` is.

use crate::failure::device_error;
use crate::generate;
use metaslot_awslc_wrapper::seeded::SeededKey;
use metaslot_awslc_wrapper::{Failed, constant_time};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::der::{Malformed, Node, Reader, tag};
use metaslot_spi::{Attributes, Key, NewObject, Secrets, Value, detail, key_info};

/// A parameter set: `CKP_…`, the library's, and the content of its object identifier.
pub(crate) struct Row<S: 'static>(pub(crate) CK_ULONG, pub(crate) S, pub(crate) &'static [u8]);

/// The library's keys of one algorithm.
pub(crate) trait Seeded: SeededKey {
    const KEY_TYPE: CK_KEY_TYPE;
    const SETS: &'static [Row<Self::Set>];
}

/// The set that attributes name.
pub(crate) fn set<K: Seeded>(attributes: &Attributes) -> Result<&'static Row<K::Set>> {
    let said = attributes.ulong(CKA_PARAMETER_SET).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    K::SETS.iter().find(|row| row.0 == said).ok_or(Error::PARAMETER_SET_NOT_SUPPORTED)
}

/// Whether an object identifier is one of a parameter set.
pub(crate) fn is_oid<K: Seeded>(algorithm: &[u8]) -> bool {
    K::SETS.iter().any(|row| row.2 == algorithm)
}

/// As `GeneratePair::generate_pair`.
pub(crate) fn generate_pair<K: Seeded>(template: &Attributes) -> Result<(NewObject, NewObject)> {
    let Row(number, set, oid) = set::<K>(template)?;
    let mut seed = Secret::try_zeroed(K::SEED_LENGTH).ok_or(Error::DEVICE_MEMORY)?;
    generate::random(seed.expose_mut())?;
    let key = K::of_seed(*set, seed.expose()).map_err(device_error)?;
    let public = key.public_bytes().map_err(device_error)?;
    let mut secrets = Secrets::new();
    secrets.set(CKA_VALUE, key.expanded().map_err(device_error)?);
    secrets.set(CKA_SEED, seed);
    let mut private = Attributes::default();
    private.set(CKA_PARAMETER_SET, Value::Ulong(*number));
    private.set(CKA_PUBLIC_KEY_INFO, Value::Bytes(key_info::bare_public(oid, &public)));
    let mut shown = private.clone();
    shown.set(CKA_VALUE, Value::Bytes(public));
    Ok((
        NewObject { attributes: shown, secrets: Secrets::new() },
        NewObject { attributes: private, secrets },
    ))
}

/// Completes an imported public key.
pub(crate) fn complete_public<K: Seeded>(object: &mut NewObject) -> Result<()> {
    let Row(_, set, oid) = set::<K>(&object.attributes)?;
    let public = object.attributes.bytes(CKA_VALUE).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    K::of_public(*set, public).map_err(|Failed| Error::ATTRIBUTE_VALUE_INVALID)?;
    let info = key_info::bare_public(oid, public);
    key_info::set_public(&mut object.attributes, info)
}

/// Completes an imported private key: of a seed the expanded form is computed, and with both they must belong together.
pub(crate) fn complete_private<K: Seeded>(object: &mut NewObject) -> Result<()> {
    let Row(_, set, oid) = set::<K>(&object.attributes)?;
    let invalid = |Failed| Error::ATTRIBUTE_VALUE_INVALID;
    let (seed, value) = (object.secrets.get(CKA_SEED), object.secrets.get(CKA_VALUE));
    long(seed, K::SEED_LENGTH).and_then(|()| long(value, K::private_length(*set)))?;
    let key = match (seed, value) {
        (None, None) => return Err(Error::TEMPLATE_INCOMPLETE),
        (Some(seed), _) => K::of_seed(*set, seed).map_err(invalid)?,
        (None, Some(value)) => K::of_expanded(*set, value).map_err(invalid)?,
    };
    let expanded = key.expanded().map_err(device_error)?;
    if value.is_some_and(|value| !constant_time::equal(value, expanded.expose())) {
        detail::set(format_args!("its expanded key is not that of its seed"));
        return Err(Error::TEMPLATE_INCONSISTENT);
    }
    let public = key.public_bytes().map_err(device_error)?;
    object.secrets.set(CKA_VALUE, expanded);
    key_info::set_public(&mut object.attributes, key_info::bare_public(oid, &public))
}

/// Whether what there is of a private key is as long as its parameter set wants.
fn long(bytes: Option<&[u8]>, length: usize) -> Result<()> {
    let Some(said) = bytes.map(<[u8]>::len).filter(|said| *said != length) else { return Ok(()) };
    detail::set(format_args!(
        "its private half has {said} bytes, and the parameter set wants {length}"
    ));
    Err(Error::ATTRIBUTE_VALUE_INVALID)
}

/// The `PrivateKeyInfo` (RFC 9881 §6, RFC 9935 §6): with seed and expanded key, or the expanded key of a key that has no seed.
pub(crate) fn encode<K: Seeded>(key: &Key) -> Result<Secret> {
    let Row(_, _, oid) = set::<K>(key.attributes()).map_err(|_| Error::KEY_NOT_WRAPPABLE)?;
    let expanded = key.secret(CKA_VALUE).map_err(|_| Error::KEY_NOT_WRAPPABLE)?;
    let algorithm = [Node::Oid(oid)];
    let expanded = Node::OctetString(expanded);
    Ok(match key.secret(CKA_SEED) {
        Ok(seed) => {
            let both = [Node::OctetString(seed), expanded];
            key_info::private(&algorithm, &Node::Sequence(&both))
        }
        Err(_) => key_info::private(&algorithm, &expanded),
    })
}

/// `[0] IMPLICIT OCTET STRING`
const SEED_ALONE: u8 = 0x80;

/// What a `PrivateKeyInfo` of one of the sets holds, in any of its three forms.
pub(crate) fn decode<K: Seeded>(
    algorithm: &[u8],
    mut private: Reader<'_>,
) -> std::result::Result<NewObject, Malformed> {
    let set = K::SETS.iter().find(|row| row.2 == algorithm).ok_or(Malformed)?;
    let mut object = NewObject::default();
    object.attributes.set(CKA_KEY_TYPE, Value::Ulong(K::KEY_TYPE));
    object.attributes.set(CKA_PARAMETER_SET, Value::Ulong(set.0));
    let mut put = |attribute, bytes: &[u8]| object.secrets.set(attribute, Secret::copy_of(bytes));
    if let Ok(seed) = private.clone().element(SEED_ALONE) {
        private.element(SEED_ALONE)?;
        put(CKA_SEED, seed);
    } else if let Ok(expanded) = private.clone().element(tag::OCTET_STRING) {
        private.element(tag::OCTET_STRING)?;
        put(CKA_VALUE, expanded);
    } else {
        let mut both = private.sequence()?;
        put(CKA_SEED, both.element(tag::OCTET_STRING)?);
        put(CKA_VALUE, both.element(tag::OCTET_STRING)?);
        both.end()?;
    }
    private.end()?;
    Ok(object)
}
