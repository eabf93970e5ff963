// SPDX-License-Identifier: Apache-2.0
//! ML-DSA keys and signatures (FIPS 204; PKCS#11 3.2 §6.67).
//!
//! A private key is kept as its seed, where it has one, and in its expanded form, which `CKA_VALUE` is. Signatures are hedged
//! unless the caller wants deterministic ones.

use crate::{generate, hashes};
use metaslot_awslc_wrapper::ml_dsa::{MAX_CONTEXT, MU_LENGTH, MlDsaKey, Mu, SEED_LENGTH, Set};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::der::{Malformed, Node, Reader, tag};
use metaslot_spi::provider::{
    Algorithm, Direction, GeneratePair, Signature, SignatureStream, checked,
};
use metaslot_spi::{Attributes, Key, NewObject, Params, Secrets, Value, detail, key_info};
use std::sync::Arc;

/// Of public keys, in bytes.
pub(crate) const SIZES: (u64, u64) = (1312, 2592);

pub(crate) const ROWS: [Algorithm; 2] = checked([
    Algorithm {
        mechanism: CKM_ML_DSA_KEY_PAIR_GEN,
        key_sizes: SIZES,
        generate_pair: Some(&KeyPair),
        ..Algorithm::NONE
    },
    Algorithm {
        mechanism: CKM_ML_DSA,
        key_sizes: SIZES,
        sign: Some(&MlDsa),
        verify: Some(&MlDsa),
        ..Algorithm::NONE
    },
]);

/// The parameter sets: `CKP_…`, and the content of their object identifiers (RFC 9881 §2).
const SETS: [(CK_ML_DSA_PARAMETER_SET_TYPE, Set, &[u8]); 3] = [
    (CKP_ML_DSA_44, Set::Ml44, &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x03, 0x11]),
    (CKP_ML_DSA_65, Set::Ml65, &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x03, 0x12]),
    (CKP_ML_DSA_87, Set::Ml87, &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x03, 0x13]),
];

/// The set that attributes name.
fn set(attributes: &Attributes) -> Result<Set> {
    let said = attributes.ulong(CKA_PARAMETER_SET).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    let row = SETS.iter().find(|row| row.0 == said);
    row.map(|row| row.1).ok_or(Error::PARAMETER_SET_NOT_SUPPORTED)
}

fn oid(set: Set) -> &'static [u8] {
    SETS.iter().find(|row| row.1 == set).map_or(&[], |row| row.2)
}

/// Whether an object identifier is one of a parameter set.
pub(crate) fn is_oid(algorithm: &[u8]) -> bool {
    SETS.iter().any(|row| row.2 == algorithm)
}

/// RFC 9881 §4
fn public_key_info(set: Set, public: &[u8]) -> Vec<u8> {
    let algorithm = Node::Sequence(&[Node::Oid(oid(set))]);
    Node::Sequence(&[algorithm, Node::BitString(public)]).to_vec()
}

#[derive(Debug)]
struct KeyPair;

impl GeneratePair for KeyPair {
    fn generate_pair(&self, _: &Params, template: &Attributes) -> Result<(NewObject, NewObject)> {
        let set = set(template)?;
        let number = template.get(CKA_PARAMETER_SET).ok_or(Error::TEMPLATE_INCOMPLETE)?;
        let mut seed = Secret::zeroed(SEED_LENGTH);
        generate::random(seed.expose_mut())?;
        let key = MlDsaKey::private(set, seed.expose()).map_err(|_| Error::DEVICE_ERROR)?;
        let public = key.public_bytes().map_err(|_| Error::DEVICE_ERROR)?;
        let mut secrets = Secrets::new();
        secrets.set(CKA_VALUE, key.expanded().map_err(|_| Error::DEVICE_ERROR)?);
        secrets.set(CKA_SEED, seed);
        let mut private = Attributes::default();
        private.set(CKA_PARAMETER_SET, number.clone());
        private.set(CKA_PUBLIC_KEY_INFO, Value::Bytes(public_key_info(set, &public)));
        let mut shown = private.clone();
        shown.set(CKA_VALUE, Value::Bytes(public));
        Ok((
            NewObject { attributes: shown, secrets: Secrets::new() },
            NewObject { attributes: private, secrets },
        ))
    }
}

/// Completes an imported public key.
pub(crate) fn complete_public(object: &mut NewObject) -> Result<()> {
    let set = set(&object.attributes)?;
    let public = object.attributes.bytes(CKA_VALUE).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    MlDsaKey::public(set, public).map_err(|_| Error::ATTRIBUTE_VALUE_INVALID)?;
    let info = public_key_info(set, public);
    key_info::set_public(&mut object.attributes, info)
}

/// Completes an imported private key: of a seed the expanded form is computed, and with both they must belong together.
pub(crate) fn complete_private(object: &mut NewObject) -> Result<()> {
    let set = set(&object.attributes)?;
    let invalid = |_| Error::ATTRIBUTE_VALUE_INVALID;
    let (seed, value) = (object.secrets.get(CKA_SEED), object.secrets.get(CKA_VALUE));
    let (bytes, length) = match (seed, value) {
        (None, None) => return Err(Error::TEMPLATE_INCOMPLETE),
        (Some(seed), _) => (seed, SEED_LENGTH),
        (None, Some(value)) => (value, set.private_length()),
    };
    if bytes.len() != length {
        detail::set(format_args!(
            "its private half has {} bytes, and the parameter set wants {length}",
            bytes.len()
        ));
        return Err(Error::ATTRIBUTE_VALUE_INVALID);
    }
    let key = MlDsaKey::private(set, bytes).map_err(invalid)?;
    let expanded = key.expanded().map_err(|_| Error::DEVICE_ERROR)?;
    match value {
        Some(value) if value.len() != expanded.len() => return Err(Error::ATTRIBUTE_VALUE_INVALID),
        Some(value) if !metaslot_awslc_wrapper::constant_time::equal(value, expanded.expose()) => {
            detail::set(format_args!("its expanded key is not that of its seed"));
            return Err(Error::TEMPLATE_INCONSISTENT);
        }
        _ => {}
    }
    let public = key.public_bytes().map_err(|_| Error::DEVICE_ERROR)?;
    object.secrets.set(CKA_VALUE, expanded);
    key_info::set_public(&mut object.attributes, public_key_info(set, &public))
}

/// The `PrivateKeyInfo` (RFC 9881 §6): with seed and expanded key, or the expanded key of a key that has no seed.
pub(crate) fn encode(key: &Key) -> Result<Secret> {
    let set = set(key.attributes()).map_err(|_| Error::KEY_NOT_WRAPPABLE)?;
    let expanded = key.secret(CKA_VALUE).map_err(|_| Error::KEY_NOT_WRAPPABLE)?;
    let algorithm = [Node::Oid(oid(set))];
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
pub(crate) fn decode(
    algorithm: &[u8],
    mut private: Reader<'_>,
) -> std::result::Result<NewObject, Malformed> {
    let set = SETS.iter().find(|row| row.2 == algorithm).ok_or(Malformed)?;
    let mut object = NewObject::default();
    object.attributes.set(CKA_KEY_TYPE, Value::Ulong(CKK_ML_DSA));
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

/// A key ready for use, and the public half that each µ begins with.
#[derive(Debug)]
struct Prepared {
    key: MlDsaKey,
    public: Vec<u8>,
}

fn prepared(key: &Key) -> Result<&Prepared> {
    key.prepared(|key| {
        let set = set(key.attributes()).map_err(|_| Error::KEY_TYPE_INCONSISTENT)?;
        let invalid = |_| Error::KEY_TYPE_INCONSISTENT;
        let key = match key.class() {
            CKO_PRIVATE_KEY => MlDsaKey::private(set, key.secret(CKA_VALUE)?).map_err(invalid)?,
            _ => MlDsaKey::public(set, key.bytes(CKA_VALUE)?).map_err(invalid)?,
        };
        let public = key.public_bytes().map_err(|_| Error::DEVICE_ERROR)?;
        Ok(Prepared { key, public })
    })
}

/// What the parameters ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms<'a> {
    context: &'a [u8],
    deterministic: bool,
}

/// Checks the parameters.
pub(crate) fn terms(direction: Direction, params: &Params) -> Result<Terms<'_>> {
    let (hedge, context) = match params {
        Params::None => (CKH_HEDGE_PREFERRED, &[][..]),
        Params::SignContext { hedge, context } | Params::HashSignContext { hedge, context, .. } => {
            (*hedge, &**context)
        }
        _ => return Err(Error::MECHANISM_PARAM_INVALID),
    };
    let deterministic = match hedge {
        CKH_HEDGE_PREFERRED | CKH_HEDGE_REQUIRED => false,
        CKH_DETERMINISTIC_REQUIRED => true,
        // To verify, it is all the same how it was signed (§6.67.5).
        _ if direction == Direction::Backward => false,
        _ => return Err(Error::MECHANISM_PARAM_INVALID),
    };
    if context.len() > MAX_CONTEXT {
        return Err(Error::MECHANISM_PARAM_INVALID);
    }
    Ok(Terms { context, deterministic })
}

/// What all mechanisms check.
pub(crate) fn check(direction: Direction, key: &Key, params: &Params) -> Result<()> {
    hashes::class_fits(direction, key)?;
    terms(direction, params)?;
    prepared(key).map(|_| ())
}

/// Of a signature.
pub(crate) fn length(key: &Key) -> usize {
    set(key.attributes()).map_or(0, Set::signature_length)
}

/// A µ in the making, and how it will be signed.
#[derive(Debug)]
pub(crate) struct Begun {
    mu: Mu,
    deterministic: bool,
}

impl Begun {
    pub(crate) fn new(key: &Key, terms: Terms<'_>, prehashed: bool) -> Result<Self> {
        let mu = Mu::new(&prepared(key)?.public, prehashed, terms.context);
        let mu = mu.map_err(|_| Error::DEVICE_ERROR)?;
        Ok(Self { mu, deterministic: terms.deterministic })
    }

    pub(crate) fn update(&mut self, data: &[u8]) -> Result<()> {
        self.mu.update(data).map_err(|_| Error::DEVICE_ERROR)
    }

    pub(crate) fn sign(self, key: &Key, out: &mut [u8]) -> Result<usize> {
        let mu = self.mu.finish().map_err(|_| Error::DEVICE_ERROR)?;
        sign(key, &mu, self.deterministic, out)
    }

    pub(crate) fn verify(self, key: &Key, signature: &[u8]) -> Result<()> {
        let mu = self.mu.finish().map_err(|_| Error::DEVICE_ERROR)?;
        verify(key, &mu, signature)
    }
}

fn sign(key: &Key, mu: &[u8; MU_LENGTH], deterministic: bool, out: &mut [u8]) -> Result<usize> {
    let key = &prepared(key)?.key;
    let out = out.get_mut(..key.set().signature_length()).ok_or(Error::BUFFER_TOO_SMALL)?;
    let signed = match deterministic {
        true => key.sign_deterministically(mu, out),
        false => key.sign(mu, out),
    };
    signed.map_err(|_| Error::DEVICE_ERROR)?;
    Ok(out.len())
}

fn verify(key: &Key, mu: &[u8; MU_LENGTH], signature: &[u8]) -> Result<()> {
    let key = &prepared(key)?.key;
    if signature.len() != key.set().signature_length() {
        return Err(Error::SIGNATURE_LEN_RANGE);
    }
    key.verify(mu, signature).map_err(|_| Error::SIGNATURE_INVALID)
}

#[derive(Debug)]
struct MlDsa;

impl MlDsa {
    fn begin(direction: Direction, key: &Key, params: &Params) -> Result<Begun> {
        Begun::new(key, terms(direction, params)?, false)
    }
}

impl Signature for MlDsa {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        check(direction, key, params)
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        length(key)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        let mut begun = Self::begin(Direction::Forward, key, params)?;
        begun.update(data)?;
        begun.sign(key, out)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        let mut begun = Self::begin(Direction::Backward, key, params)?;
        begun.update(data)?;
        begun.verify(key, signature)
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        let begun = Some(Self::begin(direction, key, params)?);
        Ok(Box::new(Stream { key: Arc::clone(key), begun }))
    }
}

/// A signature in parts.
#[derive(Debug)]
struct Stream {
    key: Arc<Key>,
    /// Until it is used up.
    begun: Option<Begun>,
}

impl Stream {
    fn take(&mut self) -> Result<Begun> {
        self.begun.take().ok_or(Error::OPERATION_NOT_INITIALIZED)
    }
}

impl SignatureStream for Stream {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        self.begun.as_mut().ok_or(Error::OPERATION_NOT_INITIALIZED)?.update(data)
    }

    fn sign(&mut self, out: &mut [u8]) -> Result<usize> {
        self.take()?.sign(&self.key, out)
    }

    fn verify(&mut self, signature: &[u8]) -> Result<()> {
        self.take()?.verify(&self.key, signature)
    }
}
