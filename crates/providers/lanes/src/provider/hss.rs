// SPDX-License-Identifier: Apache-2.0
//! HSS keys and signatures (RFC 8554; PKCS#11 3.2 §6.65): this provider alone has them.
//!
//! A private key is a seed and a name. A one-time key that signs twice gives itself away, so a private key is none without the
//! store that counts for it, and cannot leave: it is never made from outside, copied or wrapped.

use crate::hss::{self, HIGHEST, ID, MOST_LEVELS, Private, Set};
use metaslot_awslc_wrapper::{Failed, random};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::buffer::hold;
use metaslot_spi::key_info;
use metaslot_spi::provider::{
    Algorithm, Direction, GeneratePair, Signature, SignatureStream, checked,
};
use metaslot_spi::{Attributes, Key, NewObject, Params, Secrets, Value, detail};
use std::sync::{Arc, Mutex, PoisonError};

/// Of hashes, in bytes.
const SIZES: (u64, u64) = (24, 32);

pub(super) const ROWS: [Algorithm; 2] = checked([
    Algorithm {
        mechanism: CKM_HSS_KEY_PAIR_GEN,
        key_sizes: SIZES,
        generate_pair: Some(&KeyPair),
        ..Algorithm::NONE
    },
    Algorithm {
        mechanism: CKM_HSS,
        key_sizes: SIZES,
        sign: Some(&Hss),
        verify: Some(&Hss),
        ..Algorithm::NONE
    },
]);

/// id-alg-hss-lms-hashsig (RFC 9708 §4), whose public key stands there as it is.
const OID: [u8; 11] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x10, 0x03, 0x11];

/// The sets of all levels.
fn sets(private: &Attributes) -> Result<Vec<Set>> {
    let (Some(Value::Ulongs(trees)), Some(Value::Ulongs(chains))) =
        (private.get(CKA_HSS_LMS_TYPES), private.get(CKA_HSS_LMOTS_TYPES))
    else {
        return Err(Error::TEMPLATE_INCOMPLETE);
    };
    let levels = private.ulong(CKA_HSS_LEVELS).unwrap_or(trees.len() as u64);
    if !(1..=MOST_LEVELS).contains(&trees.len())
        || trees.len() != chains.len()
        || levels != trees.len() as u64
    {
        return Err(Error::TEMPLATE_INCONSISTENT);
    }
    let number = |number: &u64| u32::try_from(*number).ok();
    let set = |(tree, chain)| Set::new(number(tree)?, number(chain)?);
    let sets: Option<Vec<Set>> = trees.iter().zip(chains).map(set).collect();
    let sets = sets.ok_or(Error::PARAMETER_SET_NOT_SUPPORTED)?;
    if sets.iter().any(|set| !set.has_hash_of(&sets[0])) {
        detail::set(format_args!("all levels of a key have one hash function (SP 800-208 §4)"));
        return Err(Error::TEMPLATE_INCONSISTENT);
    }
    Ok(sets)
}

/// What both halves of a pair show.
fn shown(levels: usize, public: &[u8]) -> Attributes {
    [
        (CKA_HSS_LEVELS, Value::Ulong(levels as u64)),
        (CKA_PUBLIC_KEY_INFO, Value::Bytes(key_info::bare_public(&OID, public))),
    ]
    .into_iter()
    .collect()
}

/// What the public half shows besides.
fn shown_in_public(public: &[u8]) -> Option<Attributes> {
    let (levels, top) = hss::parse_public(public)?;
    let mut attributes = shown(levels, public);
    attributes.set(CKA_HSS_LMS_TYPE, Value::Ulong(top.tree_type.into()));
    attributes.set(CKA_HSS_LMOTS_TYPE, Value::Ulong(top.chain_type.into()));
    Some(attributes)
}

#[derive(Debug)]
struct KeyPair;

impl GeneratePair for KeyPair {
    fn generate_pair(&self, _: &Params, _: &Attributes) -> Result<(NewObject, NewObject)> {
        Err(Error::TEMPLATE_INCOMPLETE)
    }

    fn generate_halves(
        &self,
        _: &Params,
        _: &Attributes,
        private: &Attributes,
    ) -> Result<(NewObject, NewObject)> {
        let sets = sets(private)?;
        if !private.bool(CKA_TOKEN) {
            detail::set(format_args!(
                "what a key of one-time keys has used is on the disk before its signature leaves: CKA_TOKEN must be true"
            ));
            return Err(Error::TEMPLATE_INCONSISTENT);
        }
        if sets.iter().any(|set| set.height > HIGHEST) {
            detail::set(format_args!(
                "trees of more than 15 levels verify and are not made: use several levels of trees"
            ));
            return Err(Error::PARAMETER_SET_NOT_SUPPORTED);
        }
        let signatures = hss::signatures(&sets).ok_or(Error::PARAMETER_SET_NOT_SUPPORTED)?;
        let mut value = Secret::try_zeroed(sets[0].node + ID).ok_or(Error::DEVICE_MEMORY)?;
        random::fill(value.expose_mut()).map_err(|Failed| Error::DEVICE_ERROR)?;
        let public = grown(&sets, value.expose())?.public();
        let mut first = shown_in_public(&public).ok_or(Error::GENERAL_ERROR)?;
        let mut attributes = shown(sets.len(), &public);
        let types =
            |of: fn(&Set) -> u32| Value::Ulongs(sets.iter().map(|set| of(set).into()).collect());
        attributes.set(CKA_HSS_LMS_TYPES, types(|set| set.tree_type));
        attributes.set(CKA_HSS_LMOTS_TYPES, types(|set| set.chain_type));
        attributes.set(CKA_HSS_KEYS_REMAINING, Value::Ulong(signatures));
        // A row that is written without a login is not authenticated: its count could be anything.
        attributes.set(CKA_PRIVATE, Value::Bool(true));
        attributes.set(CKA_SENSITIVE, Value::Bool(true));
        attributes.set(CKA_EXTRACTABLE, Value::Bool(false));
        attributes.set(CKA_COPYABLE, Value::Bool(false));
        first.set(CKA_VALUE, Value::Bytes(public));
        let mut secrets = Secrets::new();
        secrets.set(CKA_VALUE, value);
        let first = NewObject { attributes: first, secrets: Secrets::new() };
        Ok((first, NewObject { attributes, secrets }))
    }
}

/// Of a seed with its name.
fn grown(sets: &[Set], value: &[u8]) -> Result<Private> {
    let (seed, id) = value.split_last_chunk::<ID>().ok_or(Error::KEY_TYPE_INCONSISTENT)?;
    if seed.len() != sets[0].node {
        return Err(Error::KEY_TYPE_INCONSISTENT);
    }
    room(&sets[..1])?;
    Ok(Private::new(sets, seed, id))
}

fn room(sets: &[Set]) -> Result<()> {
    if hss::has_room(sets) { Ok(()) } else { Err(Error::HOST_MEMORY) }
}

/// As `Provider::complete`.
pub(super) fn complete(object: &mut NewObject) -> Result<()> {
    if object.attributes.ulong(CKA_CLASS) != Some(CKO_PUBLIC_KEY) {
        detail::set(format_args!(
            "a private key of one-time keys is made in its token: nobody knows what another one has used"
        ));
        return Err(Error::TEMPLATE_INCONSISTENT);
    }
    let public = object.attributes.bytes(CKA_VALUE).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    let shown = shown_in_public(public).ok_or(Error::ATTRIBUTE_VALUE_INVALID)?;
    let said = |attribute| object.attributes.get(attribute);
    if shown.iter().any(|(attribute, value)| said(attribute).is_some_and(|said| said != value)) {
        return Err(Error::TEMPLATE_INCONSISTENT);
    }
    key_info::complete_shown(&mut object.attributes, &shown)
}

/// A private key in this process.
#[derive(Debug)]
struct Grown {
    private: Private,
    /// No one-time key before this one signs here, whatever the key's row says.
    next: u64,
}

/// `CKM_HSS`
#[derive(Debug)]
struct Hss;

impl Hss {
    fn private(key: &Key) -> Result<&Mutex<Grown>> {
        key.prepared(|key| {
            let sets = sets(key.attributes()).map_err(|_| Error::KEY_TYPE_INCONSISTENT)?;
            let private = grown(&sets, key.secret(CKA_VALUE)?)?;
            Ok(Mutex::new(Grown { private, next: 0 }))
        })
    }

    fn sign(key: &Key, message: &[u8], out: &mut [u8]) -> Result<usize> {
        let private = Self::private(key)?;
        let mut grown = private.lock().unwrap_or_else(PoisonError::into_inner);
        let Grown { private, next } = &mut *grown;
        // Before one is taken, which would be lost.
        room(&private.sets()[1..])?;
        let left = key.one_time()?.spend()?;
        let signatures = hss::signatures(private.sets()).ok_or(Error::KEY_TYPE_INCONSISTENT)?;
        let number = signatures.checked_sub(left + 1).ok_or(Error::KEY_EXHAUSTED)?;
        if number < *next {
            detail::set(format_args!(
                "the token's file was replaced by an older one: this process has signed with one-time key {number} already"
            ));
            return Err(Error::KEY_FUNCTION_NOT_PERMITTED);
        }
        *next = number + 1;
        let signature = private.sign(number, &[message]).map_err(|Failed| Error::DEVICE_ERROR)?;
        let out = out.get_mut(..signature.len()).ok_or(Error::BUFFER_TOO_SMALL)?;
        out.copy_from_slice(&signature);
        Ok(out.len())
    }

    fn verify(key: &Key, message: &[u8], signature: &[u8]) -> Result<()> {
        match hss::verify(key.bytes(CKA_VALUE)?, &[message], signature) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::SIGNATURE_INVALID),
            Err(Failed) => Err(Error::DEVICE_ERROR),
        }
    }
}

impl Signature for Hss {
    fn check(&self, direction: Direction, key: &Key, _: &Params) -> Result<()> {
        match (direction, key.class()) {
            (Direction::Forward, CKO_PRIVATE_KEY) => {
                match key.attributes().ulong(CKA_HSS_KEYS_REMAINING) {
                    Some(1..) => Self::private(key).map(drop),
                    _ => Err(Error::KEY_EXHAUSTED),
                }
            }
            (Direction::Backward, CKO_PUBLIC_KEY) => match hss::parse_public(key.bytes(CKA_VALUE)?)
            {
                Some(_) => Ok(()),
                None => Err(Error::KEY_TYPE_INCONSISTENT),
            },
            _ => Err(Error::KEY_TYPE_INCONSISTENT),
        }
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        sets(key.attributes()).map_or(0, |sets| hss::signature_length(&sets))
    }

    fn sign(&self, key: &Key, _: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        Self::sign(key, data, out)
    }

    fn verify(&self, key: &Key, _: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        Self::verify(key, data, signature)
    }

    fn start(&self, _: Direction, key: &Arc<Key>, _: &Params) -> Result<Box<dyn SignatureStream>> {
        Ok(Box::new(Whole { key: Arc::clone(key), message: Vec::new() }))
    }
}

/// A message that comes in parts: which one-time key signs it is decided at its end.
#[derive(Debug)]
struct Whole {
    key: Arc<Key>,
    message: Vec<u8>,
}

impl SignatureStream for Whole {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        hold(&mut self.message, data, Error::DATA_LEN_RANGE)
    }

    fn sign(&mut self, out: &mut [u8]) -> Result<usize> {
        Hss::sign(&self.key, &self.message, out)
    }

    fn verify(&mut self, signature: &[u8]) -> Result<()> {
        Hss::verify(&self.key, &self.message, signature)
    }
}
