// SPDX-License-Identifier: Apache-2.0
//! Signatures: which mechanism makes what libcrypto asks for, and in which form.

use crate::abi::{Answer, Given, Params, deep};
use crate::failure::{Failure, Result};
use crate::hash::{Hash, named};
use crate::host::Token;
use crate::key::Key;
use crate::kind::{Does, Form};
use crate::message::{Message, Whole};
use crate::operation::{Operation, key_of};
use crate::pausing::Signing;
use crate::provider::Provider;
use crate::pss::{Pss, SALT_OF_SHA1};
use crate::public::RSA;
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params as Parameter};
use metaslot_spi::der::{Node, Reader, only, tag};
use std::ffi::CStr;
use std::sync::Arc;

/// id-dsa-with-sha1, and what those with others begin with, which are numbered from one.
const DSA_SHA1: &[u8] = b"\x2a\x86\x48\xce\x38\x04\x03";
const DSA: &[u8] = b"\x60\x86\x48\x01\x65\x03\x04\x03";
const DSA_HASHES: [CK_MECHANISM_TYPE; 8] = [
    CKM_SHA224,
    CKM_SHA256,
    CKM_SHA384,
    CKM_SHA512,
    CKM_SHA3_224,
    CKM_SHA3_256,
    CKM_SHA3_384,
    CKM_SHA3_512,
];

/// How RSA pads: libcrypto's number and name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Padding {
    Pkcs1,
    None,
    Oaep,
    Pss,
    Tls,
}

const PADDINGS: &[(Padding, i64, &CStr)] = &[
    (Padding::Pkcs1, 1, c"pkcs1"),
    (Padding::None, 3, c"none"),
    (Padding::Oaep, 4, c"oaep"),
    (Padding::Pss, 6, c"pss"),
    (Padding::Tls, 7, c"tls"),
];

impl Padding {
    /// As a program says it, by number or by name.
    pub(crate) fn of(given: Given<'_>) -> Result<Self> {
        let is = |row: &&(Self, i64, &CStr)| {
            given.number() == Some(row.1)
                || given.text().is_some_and(|name| name.as_bytes() == row.2.to_bytes())
        };
        let found = PADDINGS.iter().find(is);
        found.map(|row| row.0).ok_or_else(|| Failure::unsupported("this padding is not supported"))
    }

    /// Its number and its name.
    pub(crate) fn shown(self) -> (i64, &'static CStr) {
        PADDINGS.iter().find(|row| row.0 == self).map_or((0, c""), |row| (row.1, row.2))
    }
}

/// Length of the salt of PSS.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Salt {
    /// As long as the digest.
    Digest,
    /// As long as there is room; to verify, any.
    Auto,
    /// As long as there is room.
    Most,
    /// As long as there is room, but not longer than the digest.
    AutoDigest,
    Bytes(usize),
}

const SALTS: &[(Salt, i64, &str)] = &[
    (Salt::Digest, -1, "digest"),
    (Salt::Auto, -2, "auto"),
    (Salt::Most, -3, "max"),
    (Salt::AutoDigest, -4, "auto-digestmax"),
];

/// An instance of EdDSA (RFC 8032 §5): its name, the kind of keys, whether the digest of the message is signed, and the shortest and the longest
/// context string.
#[derive(Debug)]
struct Instance(&'static str, &'static str, bool, usize, usize);

/// Of every context string.
const LONGEST_CONTEXT: usize = 255;

const INSTANCES: [Instance; 5] = [
    Instance("Ed25519", "ED25519", false, 0, 0),
    Instance("Ed448", "ED448", false, 0, LONGEST_CONTEXT),
    Instance("Ed25519ctx", "ED25519", false, 1, LONGEST_CONTEXT),
    Instance("Ed25519ph", "ED25519", true, 0, LONGEST_CONTEXT),
    Instance("Ed448ph", "ED448", true, 0, LONGEST_CONTEXT),
];

/// A signature that is being made or checked.
#[derive(Debug)]
pub(crate) struct Signature {
    provider: Arc<Provider>,
    key: Option<Arc<Key>>,
    hash: Option<&'static Hash>,
    padding: Padding,
    salt: Salt,
    mgf: Option<&'static Hash>,
    message: Message,
    /// The message is hashed as it comes: the hash function stays what it is.
    hashes: bool,
    /// What EdDSA, ML-DSA and SLH-DSA sign with the message.
    context: Vec<u8>,
    /// Of EdDSA.
    instance: Option<&'static Instance>,
    /// Without random numbers, which ML-DSA and SLH-DSA have.
    deterministic: bool,
    /// What is to be checked in the end.
    given: Vec<u8>,
}

impl Operation for Signature {
    fn new(provider: Arc<Provider>) -> Self {
        let (padding, salt) = (Padding::Pkcs1, Salt::Auto);
        Self {
            provider,
            key: None,
            hash: None,
            padding,
            salt,
            mgf: None,
            message: Message::default(),
            hashes: false,
            context: Vec::new(),
            instance: None,
            deterministic: false,
            given: Vec::new(),
        }
    }

    fn provider(&self) -> &Arc<Provider> {
        &self.provider
    }

    fn copy(&self) -> Result<Self> {
        let (provider, key) = (Arc::clone(&self.provider), self.key.clone());
        let (message, context) = (self.message.copy()?, self.context.clone());
        Ok(Self { provider, key, message, context, given: self.given.clone(), ..*self })
    }

    fn set(&mut self, params: &Params) -> Result<()> {
        if let Some(name) = params.find(c"digest").and_then(Given::text) {
            let hash = if name.is_empty() { None } else { Some(named(name)?) };
            let is_same = hash.map(|hash| hash.digest) == self.hash.map(|hash| hash.digest);
            if self.hashes && !is_same {
                return Err(Failure::unsupported("the message is hashed by another function"));
            }
            if hash.is_some() && self.padding == Padding::None && params.find(c"pad-mode").is_none()
            {
                return Err(Failure::unsupported("without padding no digest is signed"));
            }
            self.hash = hash;
        }
        if let Some(padding) = params.find(c"pad-mode") {
            let padding = Padding::of(padding)?;
            let by_pss_only = self.key.as_ref().is_some_and(|key| key.signs_by_pss_only());
            match padding {
                Padding::Pss => {}
                Padding::Pkcs1 if !by_pss_only => {}
                Padding::None if !by_pss_only && self.hash.is_none() => {}
                _ => return Err(Failure::unsupported("this padding does not sign")),
            }
            self.padding = padding;
            // What libcrypto takes where none is named.
            if padding == Padding::Pss && self.hash.is_none() {
                self.hash = Hash::named("SHA1");
            }
        }
        let (salt, mgf) = (params.find(c"saltlen"), params.find(c"mgf1-digest"));
        let is_rsa = self.key.as_ref().is_some_and(|key| key.is_rsa());
        if is_rsa && self.padding != Padding::Pss && salt.or(mgf).is_some() {
            return Err(Failure::input("only PSS has a salt and a mask"));
        }
        if let Some(salt) = salt {
            self.salt = salt_of(salt)?;
        }
        if let Some(name) = mgf.and_then(Given::text) {
            self.mgf = Some(named(name)?);
        }
        self.set_variant(params)?;
        self.restricted()
    }

    fn answer(&self, name: &[u8], wants_text: bool) -> Option<Answer<'_>> {
        let constant = |hash: &Hash| Answer::Text(hash.names[0].to_owned());
        match name {
            b"algorithm-id" => self.algorithm().map(Answer::Own),
            b"digest" => self.hash.map(constant),
            b"mgf1-digest" => self.mgf.or(self.hash).map(constant),
            b"pad-mode" if wants_text => Some(Answer::Constant(self.padding.shown().1)),
            b"pad-mode" => Some(Answer::Number(self.padding.shown().0)),
            b"saltlen" => {
                let row = SALTS.iter().find(|row| row.0 == self.salt);
                match (row, self.salt) {
                    (Some(row), _) if wants_text => Some(Answer::Text(row.2.to_owned())),
                    (Some(row), _) => Some(Answer::Number(row.1)),
                    (None, Salt::Bytes(length)) if wants_text => {
                        Some(Answer::Text(length.to_string()))
                    }
                    (None, Salt::Bytes(length)) => i64::try_from(length).ok().map(Answer::Number),
                    (None, _) => None,
                }
            }
            _ => None,
        }
    }
}

impl Signature {
    /// What numbers sign otherwise than usual.
    fn set_variant(&mut self, params: &Params) -> Result<()> {
        let number = |name| params.find(name).and_then(Given::number);
        if number(c"nonce-type").is_some_and(|kind| kind != 0)
            || number(c"message-encoding").is_some_and(|form| form != 1)
            || number(c"mu").is_some_and(|is| is != 0)
        {
            return Err(Failure::unsupported("this variant of the signature is not supported"));
        }
        if let Some(context) = params.find(c"context-string").and_then(Given::octets) {
            if context.len() > LONGEST_CONTEXT {
                return Err(Failure::input("a context string has 255 bytes at most"));
            }
            self.context = context.to_vec();
        }
        if let Some(is) = number(c"deterministic") {
            self.deterministic = is != 0;
        }
        if let Some(name) = params.find(c"instance").and_then(Given::text) {
            let found = INSTANCES.iter().find(|instance| instance.0.eq_ignore_ascii_case(name));
            let unknown = || Failure::unsupported(format!("EdDSA has no instance {name}"));
            self.instance = Some(found.ok_or_else(unknown)?);
        }
        if let Some(given) = params.find(c"signature").and_then(Given::octets) {
            self.given = given.to_vec();
        }
        Ok(())
    }

    /// Whether a key signs by its instance of EdDSA with such a context string.
    fn suits(&self, key: &Key) -> Result<()> {
        if key.kind.key_type != CKK_EC_EDWARDS {
            return Ok(());
        }
        let is_usual = |instance: &&Instance| instance.1 == key.kind.text();
        let instance = self.instance.or_else(|| INSTANCES.iter().find(is_usual));
        let length = self.context.len();
        match instance.filter(|instance| is_usual(instance)) {
            Some(instance) if (instance.3..=instance.4).contains(&length) => Ok(()),
            Some(Instance(name, ..)) => {
                let text = format!("{name} has no context string of {length} bytes");
                Err(Failure::input(text))
            }
            None => Err(Failure::input("this instance of EdDSA is that of other keys")),
        }
    }

    /// Whether it is what the key is restricted to.
    fn restricted(&self) -> Result<()> {
        let Some(only) = self.key.as_ref().and_then(|key| key.pss) else { return Ok(()) };
        let is = |given: Option<&Hash>, only: &Hash| {
            given.is_some_and(|given| given.digest == only.digest)
        };
        let salt = match self.salt {
            Salt::Bytes(length) => length,
            Salt::Digest => only.hash.length,
            _ => only.salt,
        };
        if is(self.hash, only.hash) && is(self.mgf, only.mgf) && salt >= only.salt {
            return Ok(());
        }
        Err(Failure::unsupported("the key is restricted to another hash function or a longer salt"))
    }

    /// Begins: with a key, or with the one that it has; `hash` is what the message is hashed by, where the message is what comes.
    pub(crate) fn begin(
        &mut self,
        key: Option<Arc<Key>>,
        hash: Option<Option<&str>>,
        params: &Params,
    ) -> Result<()> {
        if let Some(key) = key {
            let pss = key.signs_by_pss_only();
            self.padding = if pss { Padding::Pss } else { Padding::Pkcs1 };
            (self.salt, self.mgf) = (Salt::Auto, None);
            (self.context, self.instance, self.deterministic) = Default::default();
            if let Some(only) = key.pss {
                (self.salt, self.mgf) = (Salt::Bytes(only.salt), Some(only.mgf));
                self.hash = Some(only.hash);
            }
            self.key = Some(key);
        }
        let is_number = matches!(self.key()?.kind.form, Form::Number(_));
        match hash {
            Some(name) => {
                let name = name.filter(|name| !name.is_empty());
                self.hash = match name.map(named).transpose()? {
                    Some(_) if is_number => {
                        return Err(Failure::unsupported("such a key signs messages, not digests"));
                    }
                    None if !is_number => Some(self.hash.unwrap_or_else(Hash::usual)),
                    found => found,
                };
            }
            None if is_number => {
                return Err(Failure::unsupported("such a key signs messages, not digests"));
            }
            None => {}
        }
        self.hashes = hash.is_some();
        let kept = self.hash.is_none_or(Hash::is_pair);
        self.message = if kept { Message::kept() } else { Message::default() };
        self.set(params)
    }

    /// The same for a message of which the key says how it is signed.
    pub(crate) fn begin_message(&mut self, key: Option<Arc<Key>>, params: &Params) -> Result<()> {
        self.begin(key, Some(None), params)?;
        match self.key()?.kind.form {
            Form::Number(_) => Ok(()),
            _ => Err(Failure::unsupported("no hash function is named")),
        }
    }

    /// Checks the signature that was given before the message.
    pub(crate) fn check_given(&mut self) -> Result<()> {
        let given = std::mem::take(&mut self.given);
        self.check(&given)
    }

    /// What was signed: what is padded, or the digest in it.
    pub(crate) fn recover(&self, signature: &[u8]) -> Result<Vec<u8>> {
        let key = self.key()?;
        let mechanism = match self.padding {
            _ if !key.is_rsa() => 0,
            Padding::Pkcs1 => CKM_RSA_PKCS,
            Padding::None => CKM_RSA_X_509,
            _ => 0,
        };
        if mechanism == 0 {
            return Err(Failure::unsupported("such a signature does not give what was signed"));
        }
        let mechanism = Mechanism::new(mechanism);
        let found = key.with_public("verify", |lease, handle| {
            lease.verify_recover(&mechanism, handle, signature)
        })?;
        let Some(hash) = self.hash else { return Ok(found) };
        let digest = found.len().checked_sub(hash.length).map(|start| &found[start..]);
        let digest = digest.filter(|digest| info(hash, digest) == found);
        digest.map(<[u8]>::to_vec).ok_or_else(|| Failure::input("another digest was signed"))
    }

    fn key(&self) -> Result<&Arc<Key>> {
        key_of(self.key.as_ref())
    }

    fn hash(&self) -> Result<&'static Hash> {
        self.hash.ok_or_else(|| Failure::input("there is no hash function"))
    }

    /// The longest that the signature may be.
    pub(crate) fn length(&self) -> Result<usize> {
        self.key().map(|key| key.answer_length())
    }

    /// One more part of the message.
    pub(crate) fn update(&mut self, part: &[u8]) -> Result<()> {
        let key = Arc::clone(self.key()?);
        let hash = self.hash.unwrap_or_else(Hash::usual);
        self.message.update(part, hash, || key.session())
    }

    /// Signs the message that came.
    pub(crate) fn finish(&mut self) -> Result<Vec<u8>> {
        let whole = deep(|| self.message.finish())?;
        self.sign_whole(&whole)
    }

    /// Checks a signature of it.
    pub(crate) fn check(&mut self, signature: &[u8]) -> Result<()> {
        let whole = self.message.finish()?;
        let digest = self.digest(&whole)?;
        self.verify(&digest, signature)
    }

    /// Signs a whole message, or the rest of one that came in parts.
    pub(crate) fn sign_message(&mut self, message: &[u8]) -> Result<Vec<u8>> {
        if self.message.is_empty() {
            return self.sign_whole(&Whole::Bytes(message.to_vec()));
        }
        deep(|| self.update(message))?;
        self.finish()
    }

    /// Checks a signature of it.
    pub(crate) fn verify_message(&mut self, message: &[u8], signature: &[u8]) -> Result<()> {
        self.update(message)?;
        self.check(signature)
    }

    fn sign_whole(&self, whole: &Whole) -> Result<Vec<u8>> {
        let key = self.key()?;
        self.suits(key)?;
        if let Whole::Bytes(message) = whole {
            let (mechanism, salt) = (self.combined(key), self.salt_length(key));
            let at_once = |token: &Arc<Token>, handle| {
                if !mechanism.is_some_and(|mechanism| token.has(mechanism)) {
                    return Ok(None);
                }
                let mechanism = self.mechanism(mechanism.unwrap_or_default(), salt);
                let made = Signing { key, mechanism: &mechanism, data: message };
                made.run(token, handle).map(Some)
            };
            if let Some(signature) = key.with_token("sign", at_once)? {
                return self.written(key, signature);
            }
        }
        let digest = deep(|| self.digest(whole))?;
        self.sign(&digest)
    }

    /// The mechanism that hashes and signs.
    fn combined(&self, key: &Key) -> Option<CK_MECHANISM_TYPE> {
        let mechanism = match (&key.kind.form, self.hash) {
            (Form::Number(number), _) => match number.does {
                Does::Sign(mechanism) => mechanism,
                _ => 0,
            },
            (_, None) | (Form::Field(_), _) => 0,
            (Form::Ec, Some(hash)) => hash.ecdsa.0,
            (Form::Rsa { .. }, Some(hash)) => match self.padding {
                Padding::Pkcs1 => hash.pkcs1.0,
                Padding::Pss => hash.pss,
                _ => 0,
            },
        };
        Some(mechanism).filter(|mechanism| *mechanism != 0)
    }

    /// The digest of the message; the message itself for EdDSA.
    fn digest(&self, whole: &Whole) -> Result<Vec<u8>> {
        let message = match whole {
            Whole::Digest(digest) => return Ok(digest.clone()),
            Whole::Bytes(message) => message,
        };
        let key = self.key()?;
        if matches!(key.kind.form, Form::Number(_)) {
            return Ok(message.clone());
        }
        let hash = self.hash()?;
        key.with_session("hash", |lease| {
            let mut digest = Vec::new();
            for part in hash.digests() {
                digest.extend(lease.digest(&Mechanism::new(*part), message)?);
            }
            Ok(digest)
        })
    }

    /// Signs a digest, or what is to be padded as it is.
    pub(crate) fn sign(&self, digest: &[u8]) -> Result<Vec<u8>> {
        let key = self.key()?;
        let (mechanism, data) = self.of_digest(key, digest)?;
        let mechanism = self.mechanism(mechanism, self.salt_length(key));
        let made = Signing { key, mechanism: &mechanism, data: &data };
        let signature = key.with_token("sign", |token, handle| made.run(token, handle))?;
        self.written(key, signature)
    }

    /// Checks the signature of a digest.
    pub(crate) fn verify(&self, digest: &[u8], signature: &[u8]) -> Result<()> {
        let key = self.key()?;
        let (number, data) = self.of_digest(key, digest)?;
        let read = self.read(key, signature)?;
        let least = key.pss.map_or(0, |only| only.salt);
        let salts = match (self.padding, self.salt) {
            (Padding::Pss, Salt::Auto | Salt::AutoDigest) => {
                let most = most(key, self.hash()?);
                let usual = [self.hash()?.length, most, SALT_OF_SHA1, 0];
                let others = (0..=most).filter(|salt| !usual.contains(salt));
                usual
                    .into_iter()
                    .filter(|salt| *salt <= most)
                    .chain(others)
                    .filter(|salt| *salt >= least)
                    .collect()
            }
            _ => vec![self.salt_length(key)],
        };
        key.with_public("verify", |lease, handle| {
            let mut last = Ok(());
            for salt in &salts {
                last = lease.verify(&self.mechanism(number, *salt), handle, &data, &read);
                if !last.is_err_and(|error| error.code == Error::SIGNATURE_INVALID) {
                    break;
                }
            }
            last
        })
    }

    /// The mechanism that signs a digest, and what it is given.
    fn of_digest(&self, key: &Key, digest: &[u8]) -> Result<(CK_MECHANISM_TYPE, Vec<u8>)> {
        self.suits(key)?;
        if let Some(hash) = self.hash.filter(|hash| hash.length != digest.len()) {
            let (is, name) = (digest.len(), hash.names[0]);
            return Err(Failure::input(format!("a digest of {is} bytes is none of {name}")));
        }
        Ok(match (&key.kind.form, self.padding) {
            (Form::Number(number), _) => match number.does {
                Does::Sign(mechanism) => (mechanism, digest.to_vec()),
                _ => return Err(Failure::unsupported("such a key does not sign")),
            },
            (Form::Ec, _) => (CKM_ECDSA, number(digest).to_vec()),
            (Form::Field(mechanism), _) if !key.kind.agrees_only() => {
                // FIPS 186-4 §4.6: as many of its first bits as the order has.
                let digest = number(digest);
                let used = key.public.order_length().unwrap_or_default().min(digest.len());
                (*mechanism, digest[..used].to_vec())
            }
            (Form::Field(_), _) => return Err(Failure::unsupported("such a key does not sign")),
            (_, Padding::Pkcs1) => {
                (CKM_RSA_PKCS, self.hash.map_or_else(|| digest.to_vec(), |hash| info(hash, digest)))
            }
            (_, Padding::Pss) => {
                self.hash()?;
                (CKM_RSA_PKCS_PSS, digest.to_vec())
            }
            (_, _) if self.hash.is_some() => {
                return Err(Failure::input("a digest is not signed without padding"));
            }
            (_, _) if digest.len() != key.answer_length() => {
                return Err(Failure::input(
                    "without padding, what is signed is as long as the key",
                ));
            }
            (_, _) => (CKM_RSA_X_509, digest.to_vec()),
        })
    }

    /// A mechanism, with its parameter where it has one.
    fn mechanism(&self, mechanism: CK_MECHANISM_TYPE, salt: usize) -> Mechanism<'_> {
        let context = &*self.context;
        let prehash = self.instance.is_some_and(|instance| instance.2);
        match (self.padding, self.hash) {
            _ if mechanism == CKM_EDDSA && (prehash || !context.is_empty()) => {
                Mechanism::with(mechanism, Parameter::EdDsa { prehash, context })
            }
            _ if matches!(mechanism, CKM_ML_DSA | CKM_SLH_DSA)
                && (self.deterministic || !context.is_empty()) =>
            {
                let sure = self.deterministic;
                let hedge = if sure { CKH_DETERMINISTIC_REQUIRED } else { CKH_HEDGE_PREFERRED };
                Mechanism::with(mechanism, Parameter::SignContext { hedge, context })
            }
            (Padding::Pss, Some(hash)) => {
                let mgf = self.mgf.unwrap_or(hash).mgf;
                let salt_length = salt as CK_ULONG;
                Mechanism::with(mechanism, Parameter::Pss { hash: hash.digest, mgf, salt_length })
            }
            _ => Mechanism::new(mechanism),
        }
    }

    fn salt_length(&self, key: &Key) -> usize {
        let Some(hash) = self.hash else { return 0 };
        match self.salt {
            Salt::Digest => hash.length,
            Salt::Auto | Salt::Most => most(key, hash),
            Salt::AutoDigest => most(key, hash).min(hash.length),
            Salt::Bytes(length) => length,
        }
    }

    /// From the token's form to libcrypto's: of ECDSA a SEQUENCE of two numbers.
    fn written(&self, key: &Key, signature: Vec<u8>) -> Result<Vec<u8>> {
        if key.public.order_length().is_none() {
            return Ok(signature);
        }
        let (r, s) = signature.split_at(signature.len() / 2);
        Ok(Node::Sequence(&[Node::Integer(r), Node::Integer(s)]).to_vec())
    }

    /// From libcrypto's form to the token's.
    fn read(&self, key: &Key, signature: &[u8]) -> Result<Vec<u8>> {
        let Some(half) = key.public.order_length() else { return Ok(signature.to_vec()) };
        let numbers = || {
            let mut numbers = Reader::new(only(signature, tag::SEQUENCE).ok()?);
            let both = [numbers.integer().ok()?, numbers.integer().ok()?];
            numbers.end().ok()?;
            let mut plain = Vec::new();
            for number in both {
                plain.resize(plain.len() + half.checked_sub(number.len())?, 0);
                plain.extend_from_slice(number);
            }
            Some(plain)
        };
        numbers().ok_or_else(|| Failure::input("the signature is not the DER of two numbers"))
    }

    /// The `AlgorithmIdentifier` of such a signature.
    fn algorithm(&self) -> Option<Vec<u8>> {
        let key = self.key.as_ref()?;
        let one = |oid| Node::Sequence(&[Node::Oid(oid)]).to_vec();
        Some(match (&key.kind.form, self.padding) {
            (Form::Number(number), _) => one(number.oid),
            (Form::Ec, _) => one(some(self.hash?.ecdsa.1)?),
            (Form::Field(_), _) => match self.hash?.digest {
                CKM_SHA_1 => one(DSA_SHA1),
                digest => {
                    let place = DSA_HASHES.iter().position(|hash| *hash == digest)?;
                    one(&[DSA, &[u8::try_from(place).ok()? + 1]].concat())
                }
            },
            (_, Padding::Pss) => {
                let hash = self.hash?;
                let (mgf, salt) = (self.mgf.unwrap_or(hash), self.salt_length(key));
                Pss { hash, mgf, salt }.identifier(|nodes| Node::Sequence(nodes).to_vec())
            }
            _ => {
                let oid = self.hash.map_or(RSA, |hash| hash.pkcs1.1);
                Node::Sequence(&[Node::Oid(some(oid)?), Node::Null]).to_vec()
            }
        })
    }
}

/// The longest salt that there is room for (RFC 8017 §9.1.1).
fn most(key: &Key, hash: &Hash) -> usize {
    let bits = usize::try_from(key.public.bits(key.kind)).unwrap_or_default();
    bits.saturating_sub(1).div_ceil(8).saturating_sub(hash.length + 2)
}

/// A digest as the number that ECDSA and DSA sign: no bytes are zero, which tokens want to be told.
const fn number(digest: &[u8]) -> &[u8] {
    if digest.is_empty() { &[0; 20] } else { digest }
}

/// A `DigestInfo` (RFC 8017 §9.2); of a pair of digests nothing but them.
fn info(hash: &Hash, digest: &[u8]) -> Vec<u8> {
    if hash.is_pair() {
        return digest.to_vec();
    }
    let algorithm = [Node::Oid(hash.oid), Node::Null];
    Node::Sequence(&[Node::Sequence(&algorithm), Node::OctetString(digest)]).to_vec()
}

fn some(oid: &[u8]) -> Option<&[u8]> {
    Some(oid).filter(|oid| !oid.is_empty())
}

fn salt_of(given: Given<'_>) -> Result<Salt> {
    let wrong = || Failure::input("this is no length of a salt");
    let text = given.text();
    let number = given.number().or_else(|| text?.parse().ok());
    if let Some(row) = SALTS.iter().find(|row| number == Some(row.1) || text == Some(row.2)) {
        return Ok(row.0);
    }
    number.and_then(|number| usize::try_from(number).ok()).map(Salt::Bytes).ok_or_else(wrong)
}
