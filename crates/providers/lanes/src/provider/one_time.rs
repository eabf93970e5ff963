// SPDX-License-Identifier: Apache-2.0
//! Keys of one-time keys, whatever their trees are (HSS, XMSS): this provider alone has them.
//!
//! A private key is seeds. A one-time key that signs twice gives itself away, so a private key is none without the store that
//! counts for it, and cannot leave: it is never made from outside, copied or wrapped. How many are left is
//! `CKA_HSS_KEYS_REMAINING` in all of them: the standard has no other name for it.

use metaslot_awslc_wrapper::{Failed, random};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::buffer::hold;
use metaslot_spi::key_info;
use metaslot_spi::provider::{Direction, Signature, SignatureStream};
use metaslot_spi::{Attributes, Key, NewObject, Params, Secrets, Value, detail};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

/// A kind of trees.
pub(super) trait Trees: Copy + Debug + Send + Sync + 'static {
    /// A private key with the trees that were grown last.
    type Private: Send + 'static;

    /// The private key of an object.
    fn grown(self, key: &Key) -> Result<Self::Private>;

    /// Whether there is memory for the trees of a signature.
    fn room(self, private: &Self::Private) -> Result<()>;

    /// How many signatures a key has.
    fn signatures(self, private: &Self::Private) -> Option<u64>;

    /// The signature with a number.
    fn sign(
        self,
        private: &mut Self::Private,
        number: u64,
        message: &[u8],
    ) -> std::result::Result<Vec<u8>, Failed>;

    /// Whether a signature is one of a message.
    fn verify(
        self,
        public: &[u8],
        message: &[u8],
        signature: &[u8],
    ) -> std::result::Result<bool, Failed>;

    /// Whether these are the bytes of a public key.
    fn is_public(self, public: &[u8]) -> bool;

    /// Bytes of a signature; 0 where the key does not say it.
    fn length(self, key: &Key) -> usize;
}

/// Random bytes for seeds, for a key that the template of its private half lets be made.
pub(super) fn seeds(private: &Attributes, length: usize) -> Result<Secret> {
    if !private.bool(CKA_TOKEN) {
        detail::set(format_args!(
            "what a key of one-time keys has used is on the disk before its signature leaves: CKA_TOKEN must be true"
        ));
        return Err(Error::TEMPLATE_INCONSISTENT);
    }
    let mut seeds = Secret::try_zeroed(length).ok_or(Error::DEVICE_MEMORY)?;
    random::fill(seeds.expose_mut()).map_err(|Failed| Error::DEVICE_ERROR)?;
    Ok(seeds)
}

/// The halves of a new pair: what each shows, the public key, the seeds, and how many signatures it has.
pub(super) fn pair(
    [mut first, mut attributes]: [Attributes; 2],
    public: Vec<u8>,
    seeds: Secret,
    signatures: u64,
) -> (NewObject, NewObject) {
    first.set(CKA_VALUE, Value::Bytes(public));
    attributes.set(CKA_HSS_KEYS_REMAINING, Value::Ulong(signatures));
    // A row that is written without a login is not authenticated: its count could be anything.
    attributes.set(CKA_PRIVATE, Value::Bool(true));
    attributes.set(CKA_SENSITIVE, Value::Bool(true));
    attributes.set(CKA_EXTRACTABLE, Value::Bool(false));
    attributes.set(CKA_COPYABLE, Value::Bool(false));
    let mut secrets = Secrets::new();
    secrets.set(CKA_VALUE, seeds);
    let first = NewObject { attributes: first, secrets: Secrets::new() };
    (first, NewObject { attributes, secrets })
}

/// As `Provider::complete`; `shown` is what the public half shows besides its value.
pub(super) fn complete(
    object: &mut NewObject,
    shown: impl Fn(&[u8]) -> Option<Attributes>,
) -> Result<()> {
    if object.attributes.ulong(CKA_CLASS) != Some(CKO_PUBLIC_KEY) {
        detail::set(format_args!(
            "a private key of one-time keys is made in its token: nobody knows what another one has used"
        ));
        return Err(Error::TEMPLATE_INCONSISTENT);
    }
    let public = object.attributes.bytes(CKA_VALUE).ok_or(Error::TEMPLATE_INCOMPLETE)?;
    let shown = shown(public).ok_or(Error::ATTRIBUTE_VALUE_INVALID)?;
    let said = |attribute| object.attributes.get(attribute);
    if shown.iter().any(|(attribute, value)| said(attribute).is_some_and(|said| said != value)) {
        return Err(Error::TEMPLATE_INCONSISTENT);
    }
    key_info::complete_shown(&mut object.attributes, &shown)
}

/// Signatures by keys of such trees.
#[derive(Clone, Copy, Debug)]
pub(super) struct OneTime<T>(pub(super) T);

impl<T: Trees> OneTime<T> {
    fn private(self, key: &Key) -> Result<&Mutex<T::Private>> {
        key.prepared(|key| self.0.grown(key).map(Mutex::new))
    }

    fn sign(self, key: &Key, message: &[u8], out: &mut [u8]) -> Result<usize> {
        let private = self.private(key)?;
        let private = &mut *private.lock().unwrap_or_else(PoisonError::into_inner);
        // Before one is taken, which would be lost.
        self.0.room(private)?;
        let left = key.one_time()?.spend()?;
        let signatures = self.0.signatures(private).ok_or(Error::KEY_TYPE_INCONSISTENT)?;
        let number = signatures.checked_sub(left + 1).ok_or(Error::KEY_EXHAUSTED)?;
        let signature = self.0.sign(private, number, message);
        let signature = signature.map_err(|Failed| Error::DEVICE_ERROR)?;
        let out = out.get_mut(..signature.len()).ok_or(Error::BUFFER_TOO_SMALL)?;
        out.copy_from_slice(&signature);
        Ok(out.len())
    }

    fn verify(self, key: &Key, message: &[u8], signature: &[u8]) -> Result<()> {
        // Public keys of HSS of several levels do not say it.
        let length = self.0.length(key);
        if ![0, signature.len()].contains(&length) {
            return Err(Error::SIGNATURE_LEN_RANGE);
        }
        match self.0.verify(key.bytes(CKA_VALUE)?, message, signature) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Error::SIGNATURE_INVALID),
            Err(Failed) => Err(Error::DEVICE_ERROR),
        }
    }
}

impl<T: Trees> Signature for OneTime<T> {
    fn check(&self, direction: Direction, key: &Key, _: &Params) -> Result<()> {
        match (direction, key.class()) {
            (Direction::Forward, CKO_PRIVATE_KEY) => {
                match key.attributes().ulong(CKA_HSS_KEYS_REMAINING) {
                    Some(1..) => self.private(key).map(drop),
                    _ => Err(Error::KEY_EXHAUSTED),
                }
            }
            (Direction::Backward, CKO_PUBLIC_KEY) if self.0.is_public(key.bytes(CKA_VALUE)?) => {
                Ok(())
            }
            _ => Err(Error::KEY_TYPE_INCONSISTENT),
        }
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        self.0.length(key)
    }

    fn sign(&self, key: &Key, _: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        Self::sign(*self, key, data, out)
    }

    fn verify(&self, key: &Key, _: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        Self::verify(*self, key, data, signature)
    }

    fn start(&self, _: Direction, key: &Arc<Key>, _: &Params) -> Result<Box<dyn SignatureStream>> {
        Ok(Box::new(Whole { by: *self, key: Arc::clone(key), message: Vec::new() }))
    }
}

/// A message that comes in parts: which one-time key signs it is decided at its end.
#[derive(Debug)]
struct Whole<T> {
    by: OneTime<T>,
    key: Arc<Key>,
    message: Vec<u8>,
}

impl<T: Trees> SignatureStream for Whole<T> {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        hold(&mut self.message, data, Error::DATA_LEN_RANGE)
    }

    fn sign(&mut self, out: &mut [u8]) -> Result<usize> {
        self.by.sign(&self.key, &self.message, out)
    }

    fn verify(&mut self, signature: &[u8]) -> Result<()> {
        self.by.verify(&self.key, &self.message, signature)
    }
}
