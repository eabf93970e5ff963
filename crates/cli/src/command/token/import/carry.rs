// SPDX-License-Identifier: Apache-2.0
//! Secret values on their way: read where the other token shows them, otherwise encrypted there by a key of this run
//! only, and decrypted here.

use super::object::Object;
use super::source::Source;
use crate::encoding::der;
use crate::failure::{Failure, Result};
use crate::key;
use crate::keyfile;
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params, Session, Template, Value};
use metaslot_memory::Secret;

/// What is decrypted here, and how.
#[derive(Clone, Copy, Debug)]
enum Opening {
    /// By one of these mechanisms, which refuse what was not made by them.
    Unwrap(&'static [CK_MECHANISM_TYPE]),
    /// As data.
    Decrypt,
}

/// By which mechanism the other token encrypts, in the order of preference: what is not authenticated comes last.
/// `CKM_AES_KEY_WRAP_PAD` has been two things (PKCS#11 3.2 §6.16.3).
const WAYS: &[(CK_MECHANISM_TYPE, Opening)] = &[
    (CKM_AES_KEY_WRAP_KWP, Opening::Unwrap(&[CKM_AES_KEY_WRAP_KWP])),
    (
        CKM_AES_KEY_WRAP_PAD,
        Opening::Unwrap(&[CKM_AES_KEY_WRAP_KWP, CKM_AES_KEY_WRAP_PKCS7, CKM_AES_KEY_WRAP_PAD]),
    ),
    (CKM_AES_KEY_WRAP_PKCS7, Opening::Unwrap(&[CKM_AES_KEY_WRAP_PKCS7])),
    (CKM_AES_KEY_WRAP, Opening::Unwrap(&[CKM_AES_KEY_WRAP])),
    (CKM_AES_CBC_PAD, Opening::Decrypt),
];

/// Both tokens, and the key that they share for the length of this run.
pub(super) struct Carrier<'a> {
    ours: &'a Session,
    source: &'a Source,
    keys: Option<Keys>,
}

/// The key, as an object of a session each.
struct Keys {
    theirs: ObjectHandle,
    unwrapping: ObjectHandle,
    decrypting: ObjectHandle,
}

/// Why a value cannot be had, in words.
type Had<T> = std::result::Result<T, String>;

impl<'a> Carrier<'a> {
    pub(super) const fn new(ours: &'a Session, source: &'a Source) -> Self {
        Self { ours, source, keys: None }
    }

    /// The secret values of a key, and whether they came encrypted.
    pub(super) fn secrets(&mut self, object: &Object) -> Had<(Template, bool)> {
        if object.extractable == Some(false) {
            return Err(String::from("it is unextractable: it cannot leave its token"));
        }
        if object.sensitive == Some(false)
            && let Some(values) = self.read(object)
        {
            return Ok((values, false));
        }
        if object.only_under_trusted {
            return Err(String::from(
                "it leaves its token only under a key that the officer trusts",
            ));
        }
        let value = self.wrapped(object)?;
        if object.class == CKO_SECRET_KEY {
            return Ok((Template::new().bytes(CKA_VALUE, value.expose()), true));
        }
        let pair = keyfile::pkcs8(unpadded(value.expose()))
            .map_err(|refused| format!("it came as no key that is known here: {refused}"))?;
        let values = pair.private.ok_or("it came without its value")?;
        match (object.modulus(), values.find(CKA_MODULUS)) {
            (Some(said), Some(Value::Bytes(came))) if said != came.as_slice() => {
                Err(String::from("what came is another key"))
            }
            _ => Ok((values, true)),
        }
    }

    fn read(&self, object: &Object) -> Option<Template> {
        let asked = object.secret_attributes();
        let told = self.source.session().ok()?.attributes(object.handle, &asked).ok()?;
        let there = asked.into_iter().zip(told).filter_map(|(attribute, value)| {
            Some((attribute, Value::Bytes(value.filter(|value| !value.is_empty())?)))
        });
        Some(there.collect()).filter(|values: &Template| !values.is_empty())
    }

    /// What the other token encrypts of it: PKCS #8 of a private key, the value of a secret one.
    fn wrapped(&mut self, object: &Object) -> Had<Secret> {
        let ways = WAYS.iter().filter(|(mechanism, _)| self.source.offers(*mechanism, CKF_WRAP));
        let ways: Vec<_> = ways.collect();
        if ways.is_empty() {
            return Err(String::from(
                "it is sensitive, and the other module wraps by no mechanism that is known here",
            ));
        }
        let mut reason = String::new();
        for (mechanism, opening) in ways {
            let way = self.by(object, *mechanism, *opening);
            match way {
                Ok(value) => return Ok(value),
                Err(failure) if reason.is_empty() => {
                    let code = failure.code().map(|code| code.to_string());
                    reason = code.unwrap_or_else(|| failure.message().to_owned());
                }
                Err(_) => {}
            }
        }
        Err(format!("it is sensitive, and the other module does not wrap it ({reason})"))
    }

    fn by(
        &mut self,
        object: &Object,
        number: CK_MECHANISM_TYPE,
        opening: Opening,
    ) -> Result<Secret> {
        let (ours, theirs) = (self.ours, self.source.session()?);
        let keys = self.keys()?;
        let mut iv = [0; 16];
        ours.random(&mut iv)?;
        let mechanism = match opening {
            Opening::Decrypt => Mechanism::with(number, Params::Bytes(&iv)),
            Opening::Unwrap(_) => Mechanism::new(number),
        };
        let wrapped = theirs.wrap(&mechanism, keys.theirs, object.handle)?;
        match opening {
            Opening::Decrypt => decrypted(ours, keys.decrypting, &iv, &wrapped),
            Opening::Unwrap(ways) => {
                // Zeros follow what is no multiple of 8 bytes; those behind a private key are taken away later.
                let length = match (number == CKM_AES_KEY_WRAP, object.class) {
                    (false, _) => None,
                    (true, CKO_SECRET_KEY) => object.length,
                    (true, _) => Some(wrapped.len().saturating_sub(8) as CK_ULONG),
                };
                unwrapped(ours, keys.unwrapping, ways, (&wrapped, length))
            }
        }
    }

    /// Made when the first value needs it.
    fn keys(&mut self) -> Result<&Keys> {
        if self.keys.is_none() {
            self.keys = Some(Keys::make(self.ours, self.source.session()?)?);
        }
        self.keys.as_ref().ok_or_else(|| Failure::failed("there is no key"))
    }
}

impl Keys {
    fn make(ours: &Session, theirs: &Session) -> Result<Self> {
        let mut value = Secret::zeroed(32);
        ours.random(value.expose_mut())?;
        let of = |session: &Session, usages: &[CK_ATTRIBUTE_TYPE]| {
            let template = Template::new().class(CKO_SECRET_KEY).key_type(CKK_AES).token(false);
            let template = template.bool(CKA_SENSITIVE, false).bool(CKA_EXTRACTABLE, true);
            // A key is for what is said only.
            let template = [CKA_ENCRYPT, CKA_DECRYPT, CKA_WRAP, CKA_UNWRAP]
                .into_iter()
                .fold(template, |all, usage| all.bool(usage, usages.contains(&usage)));
            session.create(&template.bytes(CKA_VALUE, value.expose()))
        };
        Ok(Self {
            theirs: of(theirs, &[CKA_WRAP])?,
            unwrapping: of(ours, &[CKA_UNWRAP])?,
            decrypting: of(ours, &[CKA_DECRYPT])?,
        })
    }
}

fn decrypted(ours: &Session, key: ObjectHandle, iv: &[u8], wrapped: &[u8]) -> Result<Secret> {
    ours.decrypt_init(&Mechanism::with(CKM_AES_CBC_PAD, Params::Bytes(iv)), key)?;
    let mut value = Secret::zeroed(wrapped.len());
    let length = ours.decrypt_into(wrapped, value.expose_mut())?;
    Ok(value.truncated(length.min(wrapped.len())))
}

/// Without zeros behind the key: SoftHSM fills it up to blocks before it wraps it.
fn unpadded(value: &[u8]) -> &[u8] {
    let mut rest = value;
    match der::next(&mut rest) {
        Some(key) if rest.len() < 16 && rest.iter().all(|byte| *byte == 0) => key.whole,
        _ => value,
    }
}

/// As a secret that can be read, which a key that can be read itself may unwrap; of a length that is said where zeros may
/// follow it.
fn unwrapped(
    ours: &Session,
    key: ObjectHandle,
    ways: &[CK_MECHANISM_TYPE],
    (wrapped, length): (&[u8], Option<CK_ULONG>),
) -> Result<Secret> {
    let mut template = Template::new()
        .class(CKO_SECRET_KEY)
        .key_type(CKK_GENERIC_SECRET)
        .token(false)
        .bool(CKA_SENSITIVE, false)
        .bool(CKA_EXTRACTABLE, true);
    if let Some(length) = length {
        template = template.ulong(CKA_VALUE_LEN, length);
    }
    let mut refused = None;
    for way in ways {
        match ours.unwrap(&Mechanism::new(*way), key, wrapped, &template) {
            Ok(handle) => {
                let value = key::value(ours, handle);
                ours.destroy(handle)?;
                return value;
            }
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    Err(refused.map_or_else(|| Failure::failed("there is no way to open it"), Failure::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_zeros_behind_a_key_are_taken_away() {
        let key = der::element(der::SEQUENCE, &[7; 9]);
        let with = |more: &[u8]| [&key[..], more].concat();
        for zeros in [0, 1, 15] {
            assert_eq!(unpadded(&with(&vec![0; zeros])), key);
        }
        for more in [vec![0; 16], vec![0, 1], vec![1]] {
            assert_eq!(unpadded(&with(&more)), with(&more));
        }
        assert_eq!(unpadded(&[0x30, 9, 0]), [0x30, 9, 0]);
    }
}
