// SPDX-License-Identifier: Apache-2.0
//! A module through its C ABI: token keys, one session per thread, `*Init` and the one-shot call.

use super::cell::{Cell, Work};
use super::subject::{Loop, MESSAGE, Nonce, Operation, Subject, expect};
use crate::buffer::Buffer;
use crate::token::{self, Pair, Token};
use crate::{Failure, Result};
use metaslot_bare as bench;
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params, Session, Template};
use std::path::Path;

/// The token and its keys; a key that the module could not make holds the reason.
pub(crate) struct Tokens {
    pub(crate) token: Token,
    rsa: Result<Pair>,
    ec: Result<Pair>,
    ed: Result<Pair>,
    aes: Result<ObjectHandle>,
}

const RSA: Mechanism<'_> = Mechanism::new(CKM_SHA256_RSA_PKCS);
const ECDSA: Mechanism<'_> = Mechanism::new(CKM_ECDSA);
const EDDSA: Mechanism<'_> = Mechanism::new(CKM_EDDSA);
const SHA256: Mechanism<'_> = Mechanism::new(CKM_SHA256);

impl Tokens {
    /// A fresh token with one key of each kind.
    ///
    /// # Errors
    /// There is no token; keys fail one by one.
    pub(crate) fn new(module: &Path) -> Result<Self> {
        let token = Token::make(module)?;
        let session = &token.session;
        let (rsa, ec) = (token::rsa_2048(session), token::p256(session));
        let (ed, aes) = (token::ed25519(session), token::aes_256(session));
        Ok(Self { rsa, ec, ed, aes, token })
    }

    fn sign<'a>(
        &self,
        mechanism: Mechanism<'static>,
        key: &Result<Pair>,
    ) -> Result<Box<dyn Operation + 'a>> {
        let key = key.clone()?;
        let session = self.token.session()?;
        let public = Public::of(&session, mechanism.number, key.public)?;
        let state = (session, vec![0; 512], 0);
        Ok(Loop::boxed(
            state,
            move |(session, out, used)| {
                session.sign_init(&mechanism, key.private)?;
                *used = session.sign_into(&MESSAGE, out)?;
                Ok(())
            },
            move |(_, out, used)| public.verify(&out[..*used]),
        ))
    }

    fn verify<'a>(
        &self,
        mechanism: Mechanism<'static>,
        key: &Result<Pair>,
    ) -> Result<Box<dyn Operation + 'a>> {
        let key = key.clone()?;
        let session = self.token.session()?;
        let signature = session.sign(&mechanism, key.private, &MESSAGE)?;
        Ok(Loop::boxed(
            (session, signature),
            move |(session, signature)| {
                session.verify_init(&mechanism, key.public)?;
                Ok(session.verify_initialized(&MESSAGE, signature)?)
            },
            move |(session, signature)| {
                signature[9] ^= 1;
                let refused = session.verify(&mechanism, key.public, &MESSAGE, signature).is_err();
                signature[9] ^= 1;
                expect(refused, "a changed signature verifies")
            },
        ))
    }

    fn gcm<'a>(&self, size: usize) -> Result<Box<dyn Operation + 'a>> {
        let key = self.aes.clone()?;
        let state = Cipher::new(self.token.session()?, size, 16);
        Ok(Loop::boxed(
            state,
            move |state| {
                state.last = state.nonce.next();
                state.session.encrypt_init(&gcm(&state.last[..12]), key)?;
                state.session.encrypt_into(&state.data, &mut state.out)?;
                Ok(())
            },
            move |state| {
                let opened = state.session.decrypt(&gcm(&state.last[..12]), key, &state.out)?;
                expect(opened == *state.data, "AES-GCM decrypts to other bytes")
            },
        ))
    }

    fn ctr<'a>(&self, size: usize) -> Result<Box<dyn Operation + 'a>> {
        let key = self.aes.clone()?;
        let state = Cipher::new(self.token.session()?, size, 0);
        Ok(Loop::boxed(
            state,
            move |state| {
                state.last = state.nonce.next();
                state.session.encrypt_init(&ctr(state.last), key)?;
                state.session.encrypt_into(&state.data, &mut state.out)?;
                Ok(())
            },
            move |state| {
                let back = state.session.decrypt(&ctr(state.last), key, &state.out)?;
                expect(back == *state.data, "AES-CTR decrypts to other bytes")
            },
        ))
    }

    fn generate<'a>(&self, work: Work) -> Result<Box<dyn Operation + 'a>> {
        let session = self.token.session()?;
        let check = |_: &mut Session| Ok(());
        Ok(match work {
            Work::GenerateAes => {
                let template = token::aes_template("", false);
                Loop::boxed(
                    session,
                    move |session| {
                        let key = session.generate_key(&CKM_AES_KEY_GEN.into(), &template)?;
                        Ok(session.destroy(key)?)
                    },
                    check,
                )
            }
            Work::GenerateEc => {
                let public = Template::new().token(false).bytes(CKA_EC_PARAMS, token::P256);
                generate_pair(session, CKM_EC_KEY_PAIR_GEN, public)
            }
            _ => {
                let public = Template::new()
                    .token(false)
                    .ulong(CKA_MODULUS_BITS, 2048)
                    .bytes(CKA_PUBLIC_EXPONENT, [1, 0, 1]);
                generate_pair(session, CKM_RSA_PKCS_KEY_PAIR_GEN, public)
            }
        })
    }
}

/// Key pairs as session objects, destroyed at once.
fn generate_pair<'a>(
    session: Session,
    mechanism: CK_MECHANISM_TYPE,
    public: Template,
) -> Box<dyn Operation + 'a> {
    let private = Template::new().token(false).bool(CKA_SIGN, true);
    Loop::boxed(
        session,
        move |session| {
            let (public, private) =
                session.generate_key_pair(&mechanism.into(), &public, &private)?;
            session.destroy(public)?;
            Ok(session.destroy(private)?)
        },
        |_| Ok(()),
    )
}

const fn gcm(iv: &[u8]) -> Mechanism<'_> {
    Mechanism::with(CKM_AES_GCM, Params::Gcm { iv, aad: &[], tag_bits: 128 })
}

const fn ctr(block: [u8; 16]) -> Mechanism<'static> {
    Mechanism::with(CKM_AES_CTR, Params::Ctr { bits: 128, block })
}

/// A session, its buffers and its IVs.
struct Cipher {
    session: Session,
    nonce: Nonce,
    last: [u8; 16],
    data: Buffer,
    out: Buffer,
}

impl Cipher {
    fn new(session: Session, size: usize, tag: usize) -> Self {
        let (data, out) = (Buffer::input(size), Buffer::output(size + tag));
        Self { session, nonce: Nonce::new(), last: [0; 16], data, out }
    }
}

impl Subject for Tokens {
    fn operation<'a>(&'a self, cell: &Cell) -> Result<Box<dyn Operation + 'a>> {
        match cell.work {
            Work::RsaSign => self.sign(RSA, &self.rsa),
            Work::EcSign => self.sign(ECDSA, &self.ec),
            Work::EdSign => self.sign(EDDSA, &self.ed),
            Work::RsaVerify => self.verify(RSA, &self.rsa),
            Work::EcVerify => self.verify(ECDSA, &self.ec),
            Work::EdVerify => self.verify(EDDSA, &self.ed),
            Work::GcmSeal => self.gcm(cell.size),
            Work::Ctr => self.ctr(cell.size),
            Work::Sha256 => Ok(Loop::boxed(
                (self.token.session()?, Buffer::input(cell.size), [0; 32]),
                |(session, data, out)| {
                    session.digest_init(&SHA256)?;
                    session.digest_into(data, out)?;
                    Ok(())
                },
                |(_, data, out)| {
                    let mut right = [0; 32];
                    bench::sha256(data, &mut right);
                    expect(*out == right, "a SHA-256 digest differs from the raw library's")
                },
            )),
            Work::Session => {
                Ok(Loop::boxed(&self.token, |token| token.open_and_close(), |_| Ok(())))
            }
            Work::Random => Ok(Loop::boxed(
                (self.token.session()?, Buffer::output(cell.size)),
                |(session, bytes)| Ok(session.random(bytes)?),
                |(_, bytes)| expect(bytes.iter().any(|byte| *byte != 0), "random bytes are zero"),
            )),
            Work::GenerateAes | Work::GenerateEc | Work::GenerateRsa => self.generate(cell.work),
        }
    }
}

/// A public key as read from the token, for the raw library: it judges the module's signatures.
enum Public {
    Rsa(bench::Rsa),
    Ec(bench::Ec),
    Ed([u8; 32]),
}

impl Public {
    fn of(session: &Session, mechanism: CK_MECHANISM_TYPE, key: ObjectHandle) -> Result<Self> {
        if mechanism == CKM_SHA256_RSA_PKCS {
            let modulus = session.attribute(key, CKA_MODULUS)?;
            let exponent = session.attribute(key, CKA_PUBLIC_EXPONENT)?;
            return Ok(Self::Rsa(bench::Rsa::public(&modulus, &exponent)?));
        }
        let point = session.attribute(key, CKA_EC_POINT)?;
        // A DER OCTET STRING of less than 128 bytes, as both curves have.
        let [4, length, point @ ..] = point.as_slice() else {
            return Err(Failure::new("CKA_EC_POINT is not a DER OCTET STRING"));
        };
        expect(usize::from(*length) == point.len(), "the length of CKA_EC_POINT")?;
        if mechanism == CKM_ECDSA {
            return Ok(Self::Ec(bench::Ec::public(point)?));
        }
        let point = point.try_into().map_err(|_| Failure::new("CKA_EC_POINT is not 32 bytes"))?;
        Ok(Self::Ed(point))
    }

    fn verify(&self, signature: &[u8]) -> Result<()> {
        let verified = match self {
            Self::Rsa(key) => key.verify(&MESSAGE, signature),
            Self::Ec(key) => key.verify(&MESSAGE, &der(signature)),
            Self::Ed(key) => match signature.try_into() {
                Ok(signature) => bench::ed25519_verify(key, &MESSAGE, signature),
                Err(_) => Err(metaslot_bare::Failed),
            },
        };
        expect(verified.is_ok(), "the raw library refuses a signature of the module")
    }
}

/// The standard's `r ‖ s` as the DER that the raw library reads.
fn der(signature: &[u8]) -> Vec<u8> {
    let (r, s) = signature.split_at(signature.len() / 2);
    let body = [integer(r), integer(s)].concat();
    let mut der = vec![0x30, u8::try_from(body.len()).unwrap_or(u8::MAX)];
    der.extend(body);
    der
}

fn integer(bytes: &[u8]) -> Vec<u8> {
    let first =
        bytes.iter().position(|byte| *byte != 0).unwrap_or_else(|| bytes.len().saturating_sub(1));
    let bytes = &bytes[first..];
    let sign = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    let length = bytes.len() + usize::from(sign);
    let mut der = vec![2, u8::try_from(length).unwrap_or(u8::MAX)];
    if sign {
        der.push(0);
    }
    der.extend_from_slice(bytes);
    der
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_signatures_become_der() {
        assert_eq!(der(&[0, 1, 0x80, 2]), [0x30, 8, 2, 1, 1, 2, 3, 0, 0x80, 2]);
    }
}
