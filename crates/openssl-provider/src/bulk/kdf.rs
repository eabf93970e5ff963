// SPDX-License-Identifier: Apache-2.0
//! Key derivation: HKDF, by itself and as TLS 1.3 has it, and PBKDF2. What is derived goes to the program, so that it is readable in the token for a moment.

use super::digest::{self, Row};
use super::key::{Hidden, Key};
use super::mac::Mac;
use super::sessions::Whose as _;
use super::{Owner, Work};
use crate::abi::{Answer, Given, Params};
use crate::failure::{Failure, Result};
use crate::provider::Provider;
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params as Parameter, Session, Template};
use std::ffi::CStr;
use std::sync::Arc;

/// Longest digest.
const LONGEST: usize = 64;

/// The most that PBKDF2 makes in a token at once, and the longest password of which it does.
const LONG: usize = 1024;
const LONG_PASSWORD: usize = 0xffff;

/// Iterations of PBKDF2 where none are said, as in OpenSSL.
const ITERATIONS: i64 = 2048;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Hkdf,
    Tls13,
    Pbkdf2,
}

/// What HKDF does, and libcrypto's number and name of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Step {
    Both,
    Extract,
    Expand,
}

const STEPS: [(Step, &str); 3] = [
    (Step::Both, "EXTRACT_AND_EXPAND"),
    (Step::Extract, "EXTRACT_ONLY"),
    (Step::Expand, "EXPAND_ONLY"),
];

/// The inputs of a derivation.
#[derive(Clone, Debug)]
pub(crate) struct Kdf {
    provider: Owner,
    kind: Kind,
    digest: Option<&'static Row>,
    step: Step,
    key: Option<Hidden>,
    salt: Option<Hidden>,
    /// Of HKDF; of TLS 1.3 the hash of the messages.
    info: Hidden,
    prefix: Vec<u8>,
    label: Vec<u8>,
    iterations: i64,
    /// Whether PBKDF2 has the least of everything that SP 800-132 allows.
    is_bounded: bool,
}

impl Work for Kdf {
    fn provider(&self) -> &Arc<Provider> {
        &self.provider
    }

    fn set(&mut self, params: &Params) -> Result<()> {
        let octets = |name: &CStr| params.find(name).and_then(Given::octets);
        if let Some(name) = params.find(c"digest").and_then(Given::text) {
            self.digest = Some(Row::named(name)?);
        }
        if let Some(mode) = params.find(c"mode") {
            let is = |(place, row): &(usize, &(Step, &str))| {
                mode.text().is_some_and(|text| text.eq_ignore_ascii_case(row.1))
                    || mode.number() == i64::try_from(*place).ok()
            };
            let found = STEPS.iter().enumerate().find(is);
            self.step = found.ok_or_else(|| Failure::input("there is no such mode"))?.1.0;
        }
        if let Some(iterations) = params.find(c"iter").and_then(Given::number) {
            self.iterations = iterations;
        }
        if let Some(pkcs5) = params.find(c"pkcs5").and_then(Given::number) {
            self.is_bounded = pkcs5 == 0;
        }
        let key = if self.kind == Kind::Pbkdf2 { c"pass" } else { c"key" };
        for (name, place) in [(key, &mut self.key), (c"salt", &mut self.salt)] {
            if let Some(bytes) = octets(name) {
                *place = Some(Hidden::of(bytes));
            }
        }
        for (name, place) in [(c"prefix", &mut self.prefix), (c"label", &mut self.label)] {
            if let Some(bytes) = octets(name) {
                *place = bytes.to_vec();
            }
        }
        if let Some(bytes) = octets(c"data") {
            self.info = Hidden::of(bytes);
        }
        let mut parts = params.all(c"info").filter_map(Given::octets).peekable();
        if parts.peek().is_some() {
            self.info = Hidden::default();
            parts.for_each(|part| self.info.push(part));
        }
        Ok(())
    }

    /// How much it gives: as much as is wanted, or a digest. And what HKDF has of the information, to which EVP_PKEY_CTX_add1_hkdf_info(3) adds.
    fn answer(&self, name: &[u8]) -> Option<Answer<'_>> {
        let length = match (name, self.step) {
            (b"info", _) if self.kind == Kind::Hkdf => return Some(Answer::Octets(&self.info)),
            (b"size", Step::Extract) => self.digest?.length,
            (b"size", _) => return Some(Answer::Large(&[0xff; 8])),
            _ => return None,
        };
        Some(Answer::size(length))
    }
}

impl Kdf {
    pub(crate) fn new(provider: Owner, kind: Kind) -> Self {
        let (key, salt, info, prefix, label) = Default::default();
        // As OpenSSL's own PBKDF2.
        let digest = Row::named("SHA1").ok().filter(|_| kind == Kind::Pbkdf2);
        let (step, iterations, is_bounded) = (Step::Both, ITERATIONS, false);
        Self {
            provider,
            kind,
            digest,
            step,
            key,
            salt,
            info,
            prefix,
            label,
            iterations,
            is_bounded,
        }
    }

    pub(crate) fn reset(&mut self) {
        *self = Self::new(self.provider, self.kind);
    }

    pub(crate) fn derive(&self, out: &mut [u8]) -> Result<()> {
        let missing = |what| Failure::input(format!("there is no {what}"));
        let digest = self.digest.ok_or_else(|| missing("hash function"))?;
        if out.is_empty() || self.step == Step::Extract && out.len() != digest.length {
            return Err(Failure::input("this length cannot be derived"));
        }
        if self.kind == Kind::Pbkdf2 {
            return self.stretched(digest, out);
        }
        let zeros = [0; LONGEST];
        let zeros = zeros.get(..digest.length).unwrap_or_default();
        let salt = self.salt.as_deref().unwrap_or_default();
        if self.kind == Kind::Hkdf {
            let key = self.key.as_deref().ok_or_else(|| missing("key"))?;
            return self.hkdf((digest, self.step), (key, salt), &self.info, out);
        }
        match self.step {
            Step::Both => Err(Failure::input("TLS 1.3 does one step at a time")),
            Step::Expand => {
                let key = self.key.as_deref().ok_or_else(|| missing("key"))?;
                let info = self.labelled(&self.label, &self.info, out.len())?;
                self.hkdf((digest, Step::Expand), (key, &[]), &info, out)
            }
            Step::Extract => {
                // RFC 8446 §7.1: the secret before this one, if there is one, is expanded first.
                let mut before = Hidden::default();
                let before = before.room(digest.length);
                if !salt.is_empty() {
                    let mut nothing = [0; LONGEST];
                    let nothing = nothing.get_mut(..digest.length).unwrap_or_default();
                    digest::once(&self.provider, digest, &[], nothing)?;
                    let info = self.labelled(&self.label, nothing, digest.length)?;
                    self.hkdf((digest, Step::Expand), (salt, &[]), &info, before)?;
                }
                let key = self.key.as_deref().unwrap_or(zeros);
                self.hkdf((digest, Step::Extract), (key, before), &[], out)
            }
        }
    }

    /// `HkdfLabel` (RFC 8446 §7.1).
    fn labelled(&self, label: &[u8], data: &[u8], length: usize) -> Result<Vec<u8>> {
        let long = |_| Failure::input("the label is too long");
        let name = u8::try_from(self.prefix.len() + label.len()).map_err(long)?;
        let size = u8::try_from(data.len()).map_err(long)?;
        let length = u16::try_from(length).map_err(long)?.to_be_bytes();
        Ok([&length, &[name][..], &self.prefix, label, &[size], data].concat())
    }

    fn hkdf(
        &self,
        (digest, step): (&'static Row, Step),
        (key, salt): (&[u8], &[u8]),
        info: &[u8],
        out: &mut [u8],
    ) -> Result<()> {
        // No token has an empty key: HMAC takes zeros for it, and of an empty message makes what is extracted.
        if key.is_empty() {
            let mut secret = Hidden::default();
            let secret = secret.room(digest.length);
            if step != Step::Expand {
                Mac::hmac(self.provider, digest, salt)?.once(&[], secret)?;
            }
            if step != Step::Extract {
                return self.hkdf((digest, Step::Expand), (secret, &[]), info, out);
            }
            out.copy_from_slice(secret);
            return Ok(());
        }
        let form: &'static [CK_ATTRIBUTE_TYPE] = &[CKA_DERIVE, CKA_EXTRACTABLE];
        let mut key = Key::new(&self.provider, (CKK_GENERIC_SECRET, form), key);
        let params = Parameter::Hkdf {
            extract: step != Step::Expand,
            expand: step != Step::Extract,
            prf: digest.mechanism,
            salt_type: if salt.is_empty() { CKF_HKDF_SALT_NULL } else { CKF_HKDF_SALT_DATA },
            salt,
            salt_key: ObjectHandle(0),
            info,
        };
        let mechanism = Mechanism::with(CKM_HKDF_DERIVE, params);
        let template = template(out.len());
        let value = key.with("derive", |session, key| {
            read(session, session.derive(&mechanism, key, &template)?)
        })?;
        taken(value, out)
    }

    fn stretched(&self, digest: &'static Row, out: &mut [u8]) -> Result<()> {
        let prf = match digest.mechanism {
            CKM_SHA_1 => CKP_PKCS5_PBKD2_HMAC_SHA1,
            CKM_SHA224 => CKP_PKCS5_PBKD2_HMAC_SHA224,
            CKM_SHA256 => CKP_PKCS5_PBKD2_HMAC_SHA256,
            CKM_SHA384 => CKP_PKCS5_PBKD2_HMAC_SHA384,
            CKM_SHA512 => CKP_PKCS5_PBKD2_HMAC_SHA512,
            CKM_SHA512_224 => CKP_PKCS5_PBKD2_HMAC_SHA512_224,
            CKM_SHA512_256 => CKP_PKCS5_PBKD2_HMAC_SHA512_256,
            _ => 0,
        };
        let (Some(password), Some(salt)) = (&self.key, &self.salt) else {
            return Err(Failure::input("a password or a salt is missing"));
        };
        if self.is_bounded && (out.len() < 14 || salt.len() < 16 || self.iterations < 1000) {
            return Err(Failure::input("SP 800-132 wants more iterations, salt or key"));
        }
        if prf == 0 || out.len() > LONG || password.len() > LONG_PASSWORD {
            return self.stretched_by_hmac(digest, (password, salt), out);
        }
        let iterations = CK_ULONG::try_from(self.iterations).unwrap_or_default();
        let params = Parameter::Pbkd2 { prf, salt, iterations, password };
        let mechanism = Mechanism::with(CKM_PKCS5_PBKD2, params);
        let template = template(out.len());
        let value = self.provider.bulk().with(&self.provider, "derive", |session| {
            read(session, session.generate_key(&mechanism, &template)?)
        })?;
        taken(value, out)
    }

    /// PBKDF2 (RFC 8018 §5.2) that tokens do not do: by their other hash functions, and as much as scrypt wants.
    fn stretched_by_hmac(
        &self,
        digest: &'static Row,
        (password, salt): (&[u8], &[u8]),
        out: &mut [u8],
    ) -> Result<()> {
        if self.iterations < 1 {
            return Err(Failure::input("there is no iteration"));
        }
        let mut mac = Mac::hmac(self.provider, digest, password)?;
        let (mut link, mut next) = (Hidden::default(), Hidden::default());
        for (number, block) in (1_u32..).zip(out.chunks_mut(digest.length)) {
            let first = [salt, &number.to_be_bytes()].concat();
            mac.once(&first, link.room(digest.length))?;
            block.copy_from_slice(&link[..block.len()]);
            for _ in 1..self.iterations {
                mac.once(&link, next.room(digest.length))?;
                std::mem::swap(&mut link, &mut next);
                block.iter_mut().zip(&*link).for_each(|(byte, other)| *byte ^= other);
            }
        }
        Ok(())
    }
}

/// What a secret is to be that is taken out of the token.
fn template(length: usize) -> Template {
    let template = Template::new().class(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET).token(false);
    let template = template.bool(CKA_PRIVATE, false).bool(CKA_SENSITIVE, false);
    template.bool(CKA_EXTRACTABLE, true).ulong(CKA_VALUE_LEN, length as CK_ULONG)
}

/// Its value; it is no longer there then.
fn read(session: &Session, secret: ObjectHandle) -> metaslot_client::Result<Vec<u8>> {
    let value = session.attribute(secret, CKA_VALUE);
    session.destroy(secret).ok();
    value
}

fn taken(value: Vec<u8>, out: &mut [u8]) -> Result<()> {
    let value = Hidden::taken(value);
    if value.len() != out.len() {
        return Err(Failure::unsupported("the module derived another length"));
    }
    out.copy_from_slice(&value);
    Ok(())
}
