// SPDX-License-Identifier: Apache-2.0
//! SLH-DSA keys and signatures (FIPS 205; PKCS#11 3.2 §6.69): this provider alone has them, so that it does everything that
//! belongs to their keys, on every processor.
//!
//! A message is hashed twice, so one that comes in parts is kept until its end.

use crate::slh_dsa::{self, Set};
use metaslot_awslc_wrapper::{Failed, constant_time, random};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::key_info::{self, PrivateKeyInfo};
use metaslot_spi::provider::{
    Algorithm, Direction, GeneratePair, Signature, SignatureStream, checked,
};
use metaslot_spi::{Attributes, Key, NewObject, Params, Secrets, Value};
use std::sync::Arc;

/// Of public keys, in bytes.
const SIZES: (u64, u64) = (32, 64);

pub(super) const ROWS: [Algorithm; 2] = checked([
    Algorithm {
        mechanism: CKM_SLH_DSA_KEY_PAIR_GEN,
        key_sizes: SIZES,
        generate_pair: Some(&KeyPair),
        ..Algorithm::NONE
    },
    Algorithm {
        mechanism: CKM_SLH_DSA,
        key_sizes: SIZES,
        sign: Some(&SlhDsa),
        verify: Some(&SlhDsa),
        ..Algorithm::NONE
    },
]);

/// The last bytes of the object identifiers (RFC 9909 §3), in the order of [`Set::all`].
const OIDS: [u8; 12] = [20, 26, 21, 27, 22, 28, 23, 29, 24, 30, 25, 31];
/// And the first.
const NIST_SIGNATURES: [u8; 8] = [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x03];

/// The longest context, in bytes.
const MAX_CONTEXT: usize = 255;

/// The number of a set in [`Set::all`], from its `CKP_…`.
fn place(attributes: &Attributes) -> Result<usize> {
    let said = attributes.ulong(CKA_PARAMETER_SET).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    let place = said.checked_sub(CKP_SLH_DSA_SHA2_128S).and_then(|at| usize::try_from(at).ok());
    place.filter(|at| *at < OIDS.len()).ok_or(Error::PARAMETER_SET_NOT_SUPPORTED)
}

fn oid(place: usize) -> [u8; 9] {
    let [a, b, c, d, e, f, g, h] = NIST_SIGNATURES;
    [a, b, c, d, e, f, g, h, OIDS[place]]
}

fn set(key: &Key) -> Result<&'static Set> {
    place(key.attributes())
        .map(|place| &Set::all()[place])
        .map_err(|_| Error::KEY_TYPE_INCONSISTENT)
}

/// What both halves of a pair show.
fn shown(place: usize, public: &[u8]) -> Attributes {
    let info = key_info::bare_public(&oid(place), public);
    [
        (CKA_PARAMETER_SET, Value::Ulong(CKP_SLH_DSA_SHA2_128S + place as CK_ULONG)),
        (CKA_PUBLIC_KEY_INFO, Value::Bytes(info)),
    ]
    .into_iter()
    .collect()
}

#[derive(Debug)]
struct KeyPair;

impl GeneratePair for KeyPair {
    fn generate_pair(&self, _: &Params, template: &Attributes) -> Result<(NewObject, NewObject)> {
        let place = place(template)?;
        let set = &Set::all()[place];
        let mut private = Secret::try_zeroed(set.private_length()).ok_or(Error::DEVICE_MEMORY)?;
        let (seeds, root) = private.expose_mut().split_at_mut(set.private_length() / 4 * 3);
        random::fill(seeds).map_err(|Failed| Error::DEVICE_ERROR)?;
        root.copy_from_slice(&root_of(set, seeds)?);
        let public = private.expose()[set.private_length() / 2..].to_vec();
        let attributes = shown(place, &public);
        let mut first = attributes.clone();
        first.set(CKA_VALUE, Value::Bytes(public));
        let mut secrets = Secrets::new();
        secrets.set(CKA_VALUE, private);
        Ok((
            NewObject { attributes: first, secrets: Secrets::new() },
            NewObject { attributes, secrets },
        ))
    }
}

/// Of SK.seed, SK.prf and PK.seed.
fn root_of(set: &'static Set, seeds: &[u8]) -> Result<Vec<u8>> {
    let node = seeds.len() / 3;
    room(set)?;
    Ok(slh_dsa::root(set, &seeds[..node], &seeds[2 * node..]))
}

fn room(set: &'static Set) -> Result<()> {
    if slh_dsa::has_room(set) { Ok(()) } else { Err(Error::HOST_MEMORY) }
}

/// As `Provider::complete`.
pub(super) fn complete(object: &mut NewObject) -> Result<()> {
    let place = place(&object.attributes)?;
    let set = &Set::all()[place];
    let public = match object.attributes.ulong(CKA_CLASS) {
        Some(CKO_PUBLIC_KEY) => {
            let public = object.attributes.bytes(CKA_VALUE).ok_or(Error::TEMPLATE_INCOMPLETE)?;
            Some(public.to_vec()).filter(|public| public.len() == set.public_length())
        }
        Some(CKO_PRIVATE_KEY) => {
            let private = object.secrets.get(CKA_VALUE).ok_or(Error::TEMPLATE_INCOMPLETE)?;
            public_of(set, private)?
        }
        _ => return Err(Error::TEMPLATE_INCONSISTENT),
    };
    let public = public.ok_or(Error::ATTRIBUTE_VALUE_INVALID)?;
    key_info::complete_shown(&mut object.attributes, &shown(place, &public))
}

/// The public half of a private key, if that has it as its seeds make it.
fn public_of(set: &'static Set, private: &[u8]) -> Result<Option<Vec<u8>>> {
    if private.len() != set.private_length() {
        return Ok(None);
    }
    let (seeds, root) = private.split_at(private.len() / 4 * 3);
    let same = constant_time::equal(&root_of(set, seeds)?, root);
    Ok(same.then(|| private[private.len() / 2..].to_vec()))
}

/// The `PrivateKeyInfo` (RFC 9909 §6).
pub(super) fn encode(key: &Key) -> Result<Secret> {
    let place = place(key.attributes()).map_err(|_| Error::KEY_NOT_WRAPPABLE)?;
    let value = key.secret(CKA_VALUE).map_err(|_| Error::KEY_NOT_WRAPPABLE)?;
    Ok(key_info::bare_private(&oid(place), value))
}

/// As `Provider::decode_private_key`: the key comes back complete and checked.
pub(super) fn decode(der: &[u8]) -> Result<NewObject> {
    let invalid = Error::WRAPPED_KEY_INVALID;
    let info = PrivateKeyInfo::parse(der).map_err(|_| invalid)?;
    let place = (0..OIDS.len()).find(|place| info.algorithm == oid(*place)).ok_or(invalid)?;
    info.parameters.end().map_err(|_| invalid)?;
    let mut object = NewObject::default();
    object.attributes = shown(place, &[]);
    object.attributes.remove(CKA_PUBLIC_KEY_INFO);
    object.attributes.set(CKA_CLASS, Value::Ulong(CKO_PRIVATE_KEY));
    object.attributes.set(CKA_KEY_TYPE, Value::Ulong(CKK_SLH_DSA));
    object.secrets.set(CKA_VALUE, Secret::copy_of(info.private.rest()));
    complete(&mut object).map_err(|error| match error {
        Error::HOST_MEMORY => error,
        _ => invalid,
    })?;
    Ok(object)
}

/// The context of the parameters, and whether the signature is to be hedged (FIPS 205 §9.2).
fn context(direction: Direction, params: &Params) -> Result<(&[u8], bool)> {
    let (hedge, context) = match params {
        Params::None => return Ok((&[], true)),
        Params::SignContext { hedge, context } if context.len() <= MAX_CONTEXT => (*hedge, context),
        _ => return Err(Error::MECHANISM_PARAM_INVALID),
    };
    match hedge {
        CKH_HEDGE_PREFERRED | CKH_HEDGE_REQUIRED => Ok((context, true)),
        CKH_DETERMINISTIC_REQUIRED => Ok((context, false)),
        // To verify, it is all the same how it was signed, as with ML-DSA.
        _ if direction == Direction::Backward => Ok((context, true)),
        _ => Err(Error::MECHANISM_PARAM_INVALID),
    }
}

/// What stands before a message (§10.2.1, algorithm 22).
fn prefix(context: &[u8]) -> [u8; 2] {
    [0, context.len() as u8]
}

fn sign(key: &Key, (context, hedged): (&[u8], bool), data: &[u8], out: &mut [u8]) -> Result<usize> {
    let set = set(key)?;
    room(set)?;
    let mut fresh = [0; 32];
    let fresh = &mut fresh[..set.public_length() / 2];
    if hedged {
        random::fill(fresh).map_err(|Failed| Error::DEVICE_ERROR)?;
    }
    let fresh = hedged.then_some(&*fresh);
    let out = out.get_mut(..set.signature_length()).ok_or(Error::BUFFER_TOO_SMALL)?;
    let message = [&prefix(context)[..], context, data];
    slh_dsa::sign(set, key.secret(CKA_VALUE)?, fresh, &message, out)
        .map_err(|Failed| Error::DEVICE_ERROR)?;
    Ok(out.len())
}

fn verify(key: &Key, context: &[u8], data: &[u8], signature: &[u8]) -> Result<()> {
    let set = set(key)?;
    if signature.len() != set.signature_length() {
        return Err(Error::SIGNATURE_LEN_RANGE);
    }
    room(set)?;
    let message = [&prefix(context)[..], context, data];
    match slh_dsa::verify(set, key.bytes(CKA_VALUE)?, &message, signature) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::SIGNATURE_INVALID),
        Err(Failed) => Err(Error::DEVICE_ERROR),
    }
}

#[derive(Debug)]
struct SlhDsa;

impl Signature for SlhDsa {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        context(direction, params)?;
        let (set, length) = (set(key)?, |bytes: &[u8]| bytes.len());
        let fits = match (direction, key.class()) {
            (Direction::Forward, CKO_PRIVATE_KEY) => {
                key.secret(CKA_VALUE).map(length)? == set.private_length()
            }
            (Direction::Backward, CKO_PUBLIC_KEY) => {
                key.bytes(CKA_VALUE).map(length)? == set.public_length()
            }
            _ => false,
        };
        if fits { Ok(()) } else { Err(Error::KEY_TYPE_INCONSISTENT) }
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        set(key).map_or(0, Set::signature_length)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        sign(key, context(Direction::Forward, params)?, data, out)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        verify(key, context(Direction::Backward, params)?.0, data, signature)
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        let (context, hedged) = context(direction, params)?;
        let (key, context) = (Arc::clone(key), context.to_vec());
        Ok(Box::new(Stream { key, context, hedged, message: Vec::new() }))
    }
}

/// A signature in parts.
#[derive(Debug)]
struct Stream {
    key: Arc<Key>,
    context: Vec<u8>,
    hedged: bool,
    message: Vec<u8>,
}

impl SignatureStream for Stream {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        self.message.try_reserve(data.len()).map_err(|_| Error::HOST_MEMORY)?;
        self.message.extend_from_slice(data);
        Ok(())
    }

    fn sign(&mut self, out: &mut [u8]) -> Result<usize> {
        sign(&self.key, (&self.context, self.hedged), &self.message, out)
    }

    fn verify(&mut self, signature: &[u8]) -> Result<()> {
        verify(&self.key, &self.context, &self.message, signature)
    }
}
