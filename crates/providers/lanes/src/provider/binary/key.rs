// SPDX-License-Identifier: Apache-2.0
//! Keys: their curves' names, generation, import, the forms that are computed with and those that are wrapped.

use super::row::{Meetings, row, size};
use crate::binary::{self, Curve, PrivateKey, PublicKey};
use crate::provider::batch::{Batch, Meeting};
use crate::provider::parts::Size;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::key_info::{self, EcParams, PrivateKeyInfo};
use metaslot_spi::provider::{Algorithm, GeneratePair};
use metaslot_spi::{Attributes, Key, NewObject, Params, Secrets};

/// The names of FIPS 186-4, beside those of SEC 2.
const NIST: [(&str, Curve); 10] = [
    ("K-163", Curve::Sect163k1),
    ("B-163", Curve::Sect163r2),
    ("K-233", Curve::Sect233k1),
    ("B-233", Curve::Sect233r1),
    ("K-283", Curve::Sect283k1),
    ("B-283", Curve::Sect283r1),
    ("K-409", Curve::Sect409k1),
    ("B-409", Curve::Sect409r1),
    ("K-571", Curve::Sect571k1),
    ("B-571", Curve::Sect571r1),
];

// Scalars are drawn until one is below the order, which has no bias to begin with: extra bits would
// change nothing.
pub(super) fn rows() -> Vec<Algorithm> {
    [CKM_EC_KEY_PAIR_GEN, CKM_EC_KEY_PAIR_GEN_W_EXTRA_BITS]
        .map(|mechanism| Algorithm { generate_pair: Some(&KeyPair), ..row(mechanism) })
        .into()
}

/// The curve that a DER `CKA_EC_PARAMS` names, if it is one of these.
fn named(params: &[u8]) -> Option<Curve> {
    Curve::from_oid(params).or_else(|| match EcParams::parse(params).ok()? {
        EcParams::Oid(_) => None,
        EcParams::Name(name) => {
            let name = std::str::from_utf8(name).ok()?;
            let nist = NIST.iter().find(|row| row.0 == name).map(|row| row.1);
            nist.or_else(|| Curve::named(name))
        }
    })
}

/// The content of the curve's object identifier.
fn oid(curve: Curve) -> &'static [u8] {
    &curve.oid()[2..]
}

/// The curve of a key, if it is one of these.
pub(super) fn curve(key: &Key) -> Option<Curve> {
    (key.key_type() == CKK_EC).then(|| named(key.attributes().bytes(CKA_EC_PARAMS)?))?
}

fn curve_of(key: &Key) -> Result<Curve> {
    curve(key).ok_or(Error::KEY_TYPE_INCONSISTENT)
}

/// The prepared form of a private key.
pub(super) fn private(key: &Key) -> Result<&PrivateKey> {
    key.check_class(CKO_PRIVATE_KEY)?;
    key.prepared(|key| {
        PrivateKey::from_bytes(curve_of(key)?, key.secret(CKA_VALUE)?)
            .map_err(|_| Error::KEY_TYPE_INCONSISTENT)
    })
}

/// The prepared form of a public key.
pub(super) fn public(key: &Key) -> Result<&PublicKey> {
    key.check_class(CKO_PUBLIC_KEY)?;
    key.prepared(|key| {
        point(curve_of(key)?, key.bytes(CKA_EC_POINT)?).ok_or(Error::KEY_TYPE_INCONSISTENT)
    })
}

/// A peer's point, validated (SEC 1 §3.2.2.1).
pub(super) fn point(curve: Curve, bytes: &[u8]) -> Option<PublicKey> {
    PublicKey::from_bytes(curve, key_info::ec_point(curve.field_length(), bytes)).ok()
}

fn public_of(key: &PrivateKey) -> Result<PublicKey> {
    binary::public_keys(&[key]).pop().ok_or(Error::DEVICE_ERROR)
}

/// What both halves of a pair show.
fn shown(key: &PublicKey) -> Attributes {
    key_info::ec_shown(oid(key.curve()), &key.to_bytes())
}

fn secrets(key: &PrivateKey) -> Secrets {
    let mut secrets = Secrets::new();
    secrets.set(CKA_VALUE, key.to_bytes());
    secrets
}

/// As `Provider::complete`.
pub(crate) fn complete(object: &mut NewObject) -> Result<()> {
    let NewObject { attributes, secrets: given } = object;
    if attributes.ulong(CKA_KEY_TYPE) != Some(CKK_EC) {
        return Err(Error::FUNCTION_NOT_SUPPORTED);
    }
    let curve =
        attributes.bytes(CKA_EC_PARAMS).and_then(named).ok_or(Error::CURVE_NOT_SUPPORTED)?;
    let said = attributes
        .bytes(CKA_EC_POINT)
        .map(|said| point(curve, said).ok_or(Error::ATTRIBUTE_VALUE_INVALID))
        .transpose()?;
    let public = match attributes.ulong(CKA_CLASS) {
        Some(CKO_PUBLIC_KEY) => said.ok_or(Error::TEMPLATE_INCOMPLETE)?,
        Some(CKO_PRIVATE_KEY) => {
            let scalar = given.get(CKA_VALUE).ok_or(Error::TEMPLATE_INCOMPLETE)?;
            let key = PrivateKey::from_bytes(curve, scalar)
                .map_err(|_| Error::ATTRIBUTE_VALUE_INVALID)?;
            let public = public_of(&key)?;
            if said.is_some_and(|said| said != public) {
                return Err(Error::TEMPLATE_INCONSISTENT);
            }
            *given = secrets(&key);
            public
        }
        _ => return Err(Error::TEMPLATE_INCONSISTENT),
    };
    key_info::complete_shown(attributes, &shown(&public))
}

/// As `Provider::encode_private_key`.
pub(crate) fn encode(key: &Key) -> Result<Secret> {
    if curve(key).is_none() {
        return Err(Error::KEY_NOT_WRAPPABLE);
    }
    let private = private(key).map_err(|_| Error::KEY_NOT_WRAPPABLE)?;
    let point = public_of(private)?.to_bytes();
    Ok(key_info::ec_private(oid(private.curve()), private.to_bytes().expose(), &point))
}

/// As `Provider::decode_private_key`: the key comes back complete and checked.
pub(crate) fn decode(der: &[u8]) -> Result<NewObject> {
    let parsed = PrivateKeyInfo::parse(der).ok();
    let parsed = parsed.filter(|info| info.algorithm == key_info::EC_PUBLIC_KEY);
    let (said, scalar) =
        parsed.and_then(|info| info.ec().ok()).ok_or(Error::WRAPPED_KEY_INVALID)?;
    let curve = Curve::ALL.into_iter().find(|curve| oid(*curve) == said);
    if curve.is_none_or(|curve| scalar.len() != curve.order_length()) {
        return Err(Error::WRAPPED_KEY_INVALID);
    }
    let mut object = key_info::with_value(CKK_EC, said, scalar);
    complete(&mut object).map_err(|_| Error::WRAPPED_KEY_INVALID)?;
    Ok(object)
}

#[derive(Debug)]
pub(super) struct KeyPair;

impl GeneratePair for KeyPair {
    fn serves(&self, public: &Attributes) -> bool {
        public.bytes(CKA_EC_PARAMS).and_then(named).is_some()
    }

    fn generate_pair(&self, _: &Params, template: &Attributes) -> Result<(NewObject, NewObject)> {
        let params = template.bytes(CKA_EC_PARAMS).ok_or(Error::TEMPLATE_INCOMPLETE)?;
        let curve = named(params).ok_or(Error::CURVE_NOT_SUPPORTED)?;
        let pair = PAIRS[curve as usize].run(Pair { curve, made: None })?;
        let (private, public) = pair.made.ok_or(Error::DEVICE_ERROR)?;
        let attributes = shown(&public);
        let public = NewObject { attributes: attributes.clone(), secrets: Secrets::new() };
        Ok((public, NewObject { attributes, secrets: secrets(&private) }))
    }
}

/// A key pair to be made.
#[derive(Debug)]
struct Pair {
    curve: Curve,
    made: Option<(PrivateKey, PublicKey)>,
}

/// Key pairs on one curve.
#[derive(Debug)]
struct Pairs;

static PAIRS: Meetings<Pairs> = [const { Meeting::new(Pairs) }; Curve::ALL.len()];

impl Batch for Pairs {
    type Work<'a> = Pair;
    type Request<'r> = &'r mut Pair;

    const ONE_IN_A_LANE: bool = true;

    fn size(&self) -> Size {
        size()
    }

    fn request<'r>(&self, work: &'r mut Pair) -> Option<&'r mut Pair> {
        Some(work)
    }

    fn compute(&self, requests: &mut [&mut Pair]) {
        let Some(curve) = requests.first().map(|request| request.curve) else { return };
        let pairs = binary::generate(curve, requests.len()).unwrap_or_default();
        for (request, pair) in requests.iter_mut().zip(pairs) {
            request.made = Some(pair);
        }
    }
}
