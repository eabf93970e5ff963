// SPDX-License-Identifier: Apache-2.0
//! Keys on the short Weierstrass curves (PKCS#11 3.2 §6.3), for every provider: what is made of them.

use crate::der::Malformed;
use crate::key_info::{self, PrivateKeyInfo};
use crate::{Attributes, Key, NewObject, Secrets};
use metaslot_ck::*;
use metaslot_memory::Secret;

pub use crate::curves::Curve;

/// What a library does with keys on the curves that it has.
pub trait Library {
    /// A key, public or private.
    type Key;

    /// Whether it has the curve.
    fn has(curve: &'static Curve) -> bool;

    /// A new key pair.
    ///
    /// # Errors
    /// `CKR_DEVICE_ERROR`
    fn generate(curve: &'static Curve) -> Result<Self::Key>;

    /// A public key from its encoded point; `None` for one that is at infinity or not on the curve.
    fn public(curve: &'static Curve, point: &[u8]) -> Option<Self::Key>;

    /// A private key from its scalar, big-endian; `None` for one that is zero or not below the order.
    fn private(curve: &'static Curve, scalar: &[u8]) -> Option<Self::Key>;

    /// Writes the uncompressed public point, which has [`Curve::point_length`] bytes.
    ///
    /// # Errors
    /// `CKR_DEVICE_ERROR`
    fn write_point(key: &Self::Key, out: &mut [u8]) -> Result<()>;

    /// Writes the private scalar, which has [`Curve::order_length`] bytes.
    ///
    /// # Errors
    /// `CKR_DEVICE_ERROR`
    fn write_scalar(key: &Self::Key, out: &mut [u8]) -> Result<()>;
}

/// The curve that a DER `CKA_EC_PARAMS` names, where the library has it.
///
/// # Errors
/// As [`Curve::named`].
pub fn curve_of<L: Library>(params: &[u8]) -> Result<&'static Curve> {
    let curve = Curve::named(params)?;
    if L::has(curve) { Ok(curve) } else { Err(Error::CURVE_NOT_SUPPORTED) }
}

/// Whether a key or a template with these attributes is this library's: not where they name a curve that only others have.
#[must_use]
pub fn serves<L: Library>(attributes: &Attributes) -> bool {
    let curve = attributes.bytes(CKA_EC_PARAMS).and_then(|params| Curve::named(params).ok());
    curve.is_none_or(L::has)
}

/// The key of a `Key`.
///
/// # Errors
/// `CKR_CURVE_NOT_SUPPORTED`, `CKR_KEY_TYPE_INCONSISTENT`
pub fn prepare<L: Library>(key: &Key) -> Result<(&'static Curve, L::Key)> {
    let curve = curve_of::<L>(key.bytes(CKA_EC_PARAMS)?)?;
    let made = if key.class() == CKO_PRIVATE_KEY {
        L::private(curve, key.secret(CKA_VALUE)?)
    } else {
        L::public(curve, curve.point(key.bytes(CKA_EC_POINT)?))
    };
    Ok((curve, made.ok_or(Error::KEY_TYPE_INCONSISTENT)?))
}

/// What both halves of a pair show.
fn shown<L: Library>(curve: &Curve, key: &L::Key) -> Result<Attributes> {
    let mut point = vec![0; curve.point_length()];
    L::write_point(key, &mut point)?;
    Ok(key_info::ec_shown(curve.oid, &point))
}

fn secrets<L: Library>(curve: &Curve, key: &L::Key) -> Result<Secrets> {
    let mut scalar = Secret::zeroed(curve.order_length());
    L::write_scalar(key, scalar.expose_mut())?;
    let mut secrets = Secrets::new();
    secrets.set(CKA_VALUE, scalar);
    Ok(secrets)
}

/// Both halves of a new pair.
///
/// # Errors
/// As `GeneratePair::generate_pair`.
pub fn generate<L: Library>(template: &Attributes) -> Result<(NewObject, NewObject)> {
    let params = template.bytes(CKA_EC_PARAMS).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    let curve = curve_of::<L>(params)?;
    let key = L::generate(curve)?;
    let attributes = shown::<L>(curve, &key)?;
    let public = NewObject { attributes: attributes.clone(), secrets: Secrets::new() };
    Ok((public, NewObject { attributes, secrets: secrets::<L>(curve, &key)? }))
}

/// The public key that attributes say.
fn said<L: Library>(curve: &'static Curve, point: &[u8]) -> Result<Attributes> {
    let key = L::public(curve, curve.point(point)).ok_or(Error::ATTRIBUTE_VALUE_INVALID)?;
    shown::<L>(curve, &key)
}

/// Completes an imported public key.
///
/// # Errors
/// As `Provider::complete`.
pub fn complete_public<L: Library>(object: &mut NewObject) -> Result<()> {
    let attributes = &mut object.attributes;
    let params = attributes.bytes(CKA_EC_PARAMS).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    let curve = curve_of::<L>(params)?;
    let point = attributes.bytes(CKA_EC_POINT).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    let shown = said::<L>(curve, point)?;
    key_info::complete_shown(attributes, &shown)
}

/// Completes an imported private key: the public point is computed.
///
/// # Errors
/// As `Provider::complete`.
pub fn complete_private<L: Library>(object: &mut NewObject) -> Result<()> {
    let NewObject { attributes, secrets: given } = object;
    let params = attributes.bytes(CKA_EC_PARAMS).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    let curve = curve_of::<L>(params)?;
    let scalar = given.get(CKA_VALUE).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    let key = L::private(curve, scalar).ok_or(Error::ATTRIBUTE_VALUE_INVALID)?;
    let shown = shown::<L>(curve, &key)?;
    if let Some(point) = attributes.bytes(CKA_EC_POINT)
        && said::<L>(curve, point)? != shown
    {
        return Err(Error::TEMPLATE_INCONSISTENT);
    }
    *given = secrets::<L>(curve, &key)?;
    key_info::complete_shown(attributes, &shown)
}

/// The `PrivateKeyInfo` of a key, with its prepared form (RFC 5915 §3).
///
/// # Errors
/// As `Provider::encode_private_key`.
pub fn encode<L: Library>(key: &Key, prepared: &L::Key) -> Result<Secret> {
    let curve = curve_of::<L>(key.bytes(CKA_EC_PARAMS)?)?;
    let scalar = key.secret(CKA_VALUE).map_err(|_| Error::KEY_NOT_WRAPPABLE)?;
    let mut point = vec![0; curve.point_length()];
    L::write_point(prepared, &mut point)?;
    Ok(key_info::ec_private(curve.oid, scalar, &point))
}

/// The key in a `PrivateKeyInfo`, not yet complete.
///
/// # Errors
/// [`Malformed`] for another curve or a scalar of another length.
pub fn decode(info: PrivateKeyInfo<'_>) -> std::result::Result<NewObject, Malformed> {
    let (oid, scalar) = info.ec()?;
    let curve = Curve::of_oid(oid).filter(|curve| curve.order_length() == scalar.len());
    curve.map(|_| key_info::with_value(CKK_EC, oid, scalar)).ok_or(Malformed)
}
