// SPDX-License-Identifier: Apache-2.0
//! SLH-DSA keys and signatures (FIPS 205; PKCS#11 3.2 §6.69): this provider alone has them, so that it does everything that
//! belongs to their keys, on every processor.
//!
//! A message is hashed twice, so one that comes in parts is kept until its end.

use super::form::Form;
use crate::slh_dsa::{self, Set};
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_awslc_wrapper::prehash::{Function, Hashing};
use metaslot_awslc_wrapper::shake::Function::{Shake128, Shake256};
use metaslot_awslc_wrapper::{Failed, constant_time, random, shake};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::buffer::hold;
use metaslot_spi::key_info::{self, PrivateKeyInfo};
use metaslot_spi::parts;
use metaslot_spi::provider::{
    Algorithm, Direction, GeneratePair, Signature, SignatureStream, checked,
};
use metaslot_spi::{Attributes, Key, NewObject, Params, Secrets, Value};
use std::sync::Arc;

/// Of public keys, in bytes.
const SIZES: (u64, u64) = (32, 64);

const fn row(mechanism: CK_MECHANISM_TYPE, signature: &'static dyn Signature) -> Algorithm {
    Algorithm::signature(mechanism, SIZES, signature)
}

pub(super) const ROWS: [Algorithm; 13] = checked([
    Algorithm {
        mechanism: CKM_SLH_DSA_KEY_PAIR_GEN,
        key_sizes: SIZES,
        generate_pair: Some(&KeyPair),
        ..Algorithm::NONE
    },
    row(CKM_SLH_DSA, &SlhDsa(Form::Pure)),
    row(CKM_HASH_SLH_DSA, &SlhDsa(Form::Digested)),
    row(CKM_HASH_SLH_DSA_SHA224, &hashed(Hash::Sha224)),
    row(CKM_HASH_SLH_DSA_SHA256, &hashed(Hash::Sha256)),
    row(CKM_HASH_SLH_DSA_SHA384, &hashed(Hash::Sha384)),
    row(CKM_HASH_SLH_DSA_SHA512, &hashed(Hash::Sha512)),
    row(CKM_HASH_SLH_DSA_SHA3_224, &hashed(Hash::Sha3_224)),
    row(CKM_HASH_SLH_DSA_SHA3_256, &hashed(Hash::Sha3_256)),
    row(CKM_HASH_SLH_DSA_SHA3_384, &hashed(Hash::Sha3_384)),
    row(CKM_HASH_SLH_DSA_SHA3_512, &hashed(Hash::Sha3_512)),
    row(CKM_HASH_SLH_DSA_SHAKE128, &squeezed(Shake128)),
    row(CKM_HASH_SLH_DSA_SHAKE256, &squeezed(Shake256)),
]);

const fn hashed(hash: Hash) -> SlhDsa {
    SlhDsa(Form::Hashed(Function::Hash(hash)))
}

const fn squeezed(shake: shake::Function) -> SlhDsa {
    SlhDsa(Form::Hashed(Function::Shake(shake)))
}

/// The last bytes of the object identifiers (RFC 9909 §3), in the order of [`Set::all`].
const OIDS: [u8; 12] = [20, 26, 21, 27, 22, 28, 23, 29, 24, 30, 25, 31];
/// And the first.
const NIST_SIGNATURES: [u8; 8] = [0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x03];

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
    object
        .attributes
        .set(CKA_PARAMETER_SET, Value::Ulong(CKP_SLH_DSA_SHA2_128S + place as CK_ULONG));
    object.attributes.set(CKA_CLASS, Value::Ulong(CKO_PRIVATE_KEY));
    object.attributes.set(CKA_KEY_TYPE, Value::Ulong(CKK_SLH_DSA));
    object.secrets.set(CKA_VALUE, Secret::copy_of(info.private.rest()));
    complete(&mut object).map_err(|error| match error {
        Error::HOST_MEMORY => error,
        _ => invalid,
    })?;
    Ok(object)
}

/// `CKM_SLH_DSA` and `CKM_HASH_SLH_DSA…`
#[derive(Debug)]
struct SlhDsa(Form);

impl SlhDsa {
    fn begin(&self, direction: Direction, key: &Key, params: &Params) -> Result<Begun> {
        check(direction, key)?;
        let terms = params.signing(direction)?;
        let function = self.0.function(params)?;
        let mut before = [&terms.prefix(function.is_some())[..], terms.context].concat();
        if let Some(function) = function {
            before.extend(function.identifier().ok_or(Error::MECHANISM_PARAM_INVALID)?);
        }
        let data = match (self.0, function) {
            (Form::Hashed(function), _) => {
                let hashing = Hashing::new(function).map_err(|Failed| Error::DEVICE_MEMORY)?;
                Data::Hashing(function, hashing)
            }
            (_, function) => Data::Whole(Vec::new(), function.map(Function::length)),
        };
        Ok(Begun { before, deterministic: terms.deterministic, data })
    }
}

/// What is signed, as far as it is known.
#[derive(Debug)]
struct Begun {
    /// The form, the context, the name of a hash function (§10.2).
    before: Vec<u8>,
    deterministic: bool,
    data: Data,
}

#[derive(Debug)]
enum Data {
    /// A message, or a digest of so many bytes.
    Whole(Vec<u8>, Option<usize>),
    Hashing(Function, Hashing),
}

impl Begun {
    /// The end of what is signed; `rest` is what was not kept here.
    fn end<'a>(data: Data, rest: &'a [u8], room: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        match data {
            Data::Whole(all, length) => {
                *room = all;
                let all = if room.is_empty() { rest } else { room };
                let fits = length.is_none_or(|length| length == all.len());
                if fits { Ok(all) } else { Err(Error::DATA_LEN_RANGE) }
            }
            Data::Hashing(function, mut hashing) => {
                hashing.update(rest).map_err(|Failed| Error::DEVICE_ERROR)?;
                room.resize(function.length(), 0);
                hashing.finish(room).map_err(|Failed| Error::DEVICE_ERROR)?;
                Ok(room)
            }
        }
    }

    /// `rest` is what was not kept here.
    fn sign_with(self, key: &Key, rest: &[u8], out: &mut [u8]) -> Result<usize> {
        let set = set(key)?;
        room(set)?;
        let mut fresh = [0; 32];
        let fresh = &mut fresh[..set.public_length() / 2];
        if !self.deterministic {
            random::fill(fresh).map_err(|Failed| Error::DEVICE_ERROR)?;
        }
        let fresh = (!self.deterministic).then_some(&*fresh);
        let out = out.get_mut(..set.signature_length()).ok_or(Error::BUFFER_TOO_SMALL)?;
        let mut room = Vec::new();
        let message = [&*self.before, Self::end(self.data, rest, &mut room)?];
        slh_dsa::sign(set, key.secret(CKA_VALUE)?, fresh, &message, out)
            .map_err(|Failed| Error::DEVICE_ERROR)?;
        Ok(out.len())
    }

    fn verify_with(self, key: &Key, rest: &[u8], signature: &[u8]) -> Result<()> {
        let set = set(key)?;
        if signature.len() != set.signature_length() {
            return Err(Error::SIGNATURE_LEN_RANGE);
        }
        room(set)?;
        let mut room = Vec::new();
        let message = [&*self.before, Self::end(self.data, rest, &mut room)?];
        match slh_dsa::verify(set, key.bytes(CKA_VALUE)?, &message, signature) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::SIGNATURE_INVALID),
            Err(Failed) => Err(Error::DEVICE_ERROR),
        }
    }
}

impl parts::Begun for Begun {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        match &mut self.data {
            Data::Whole(all, _) => hold(all, data, Error::DATA_LEN_RANGE),
            Data::Hashing(_, hashing) => hashing.update(data).map_err(|Failed| Error::DEVICE_ERROR),
        }
    }

    fn sign(self, key: &Key, out: &mut [u8]) -> Result<usize> {
        self.sign_with(key, &[], out)
    }

    fn verify(self, key: &Key, signature: &[u8]) -> Result<()> {
        self.verify_with(key, &[], signature)
    }
}

/// Whether a key signs, or verifies.
fn check(direction: Direction, key: &Key) -> Result<()> {
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

impl Signature for SlhDsa {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        self.0.function(params)?;
        params.signing(direction)?;
        check(direction, key)
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        set(key).map_or(0, Set::signature_length)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        self.begin(Direction::Forward, key, params)?.sign_with(key, data, out)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        self.begin(Direction::Backward, key, params)?.verify_with(key, data, signature)
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        if matches!(self.0, Form::Digested) {
            return Err(Error::FUNCTION_NOT_SUPPORTED);
        }
        Ok(parts::stream(key, self.begin(direction, key, params)?))
    }
}
