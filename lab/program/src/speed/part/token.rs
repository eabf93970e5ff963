// SPDX-License-Identifier: Apache-2.0
//! Jobs by a module: keys in a fresh token, one session for each thread, `C_…Init` and the one-shot call.

use super::job::{Curve, Function, Hashing, Job, Key, secret};
use super::raw::slh_dsa;
use super::signs::judge;
use super::team::Maker;
use crate::buffer::Buffer;
use crate::speed::subject::{Loop, Nonce, Operation, expect};
use crate::token::{self, Pair, Token};
use crate::{Failure, Result};
use metaslot_ck::*;
use metaslot_client::{Access, Mechanism, Session, Template, Value};
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// A module with a token, and the keys that were needed so far. A secret key is both halves of a pair.
pub(super) struct Tokens {
    pub(super) token: Token,
    keys: Mutex<HashMap<Key, Pair>>,
}

/// A session with everything that an operation needs.
struct State {
    session: Session,
    nonce: Nonce,
    iv: [u8; 16],
    data: Buffer,
    out: Buffer,
    used: usize,
}

impl State {
    /// The next IV, where one must not come twice.
    fn turn(&mut self, job: &Job) {
        if job.fresh() {
            self.iv = self.nonce.next();
        }
    }

    fn result(&self) -> &[u8] {
        &self.out[..self.used]
    }
}

impl Tokens {
    /// A fresh token.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn new(module: &Path) -> Result<Self> {
        Ok(Self { token: Token::make(module)?, keys: Mutex::default() })
    }

    /// The failure of a call, with the module's own words where it has any.
    fn said(&self, mut failure: Failure) -> Failure {
        if let Some(detail) = self.token.module.detail() {
            failure.message = format!("{}: {detail}", failure.message);
        }
        failure
    }

    fn state(&self, job: &Job) -> Result<State> {
        Ok(State {
            session: self.token.session()?,
            nonce: Nonce::new(),
            iv: [0; 16],
            data: Buffer::input(job.bytes),
            out: Buffer::output(job.bytes + job.longer()),
            used: 0,
        })
    }

    /// The key that a job needs, made when it is needed for the first time.
    fn pair(&self, job: &Job) -> Result<Pair> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pair) = keys.get(&job.key) {
            return Ok(*pair);
        }
        let pair = made(&self.token.session, job.key)?;
        keys.insert(job.key, pair);
        Ok(pair)
    }

    fn made(&self, job: Job) -> Result<Box<dyn Operation>> {
        match job.function {
            Function::Digest => self.digests(job),
            Function::Encrypt => self.encrypts(job, self.pair(&job)?),
            Function::Sign => self.signs(job, self.pair(&job)?),
            Function::Verify => self.verifies(job, self.pair(&job)?),
            Function::Encapsulate => self.encapsulates(job, self.pair(&job)?),
            Function::Decapsulate => self.decapsulates(job, self.pair(&job)?),
            Function::Random => self.randomizes(job),
            Function::Generate => generates(self.token.session()?, job),
            Function::Session => Ok(Loop::boxed(
                (self.token.module.clone(), self.token.slot),
                |(module, slot)| Ok(module.open_and_close(*slot, Access::ReadWrite)?),
                |_| Ok(()),
            )),
        }
    }

    fn randomizes(&self, job: Job) -> Result<Box<dyn Operation>> {
        Ok(Loop::boxed(
            self.state(&job)?,
            move |state| {
                state.used = job.bytes;
                Ok(state.session.random(&mut state.out[..job.bytes])?)
            },
            |state| expect(state.result().iter().any(|byte| *byte != 0), "random bytes are zero"),
        ))
    }

    fn digests(&self, job: Job) -> Result<Box<dyn Operation>> {
        let state = self.state(&job)?;
        let right = state.session.digest(&job.with(&[0; 16]), &state.data)?;
        let mechanism = Mechanism::new(job.mechanism);
        Ok(Loop::boxed(
            state,
            move |state| {
                state.session.digest_init(&mechanism)?;
                state.used = state.session.digest_into(&state.data, &mut state.out)?;
                Ok(())
            },
            move |state| expect(state.result() == right, "a digest changes"),
        ))
    }

    fn encrypts(&self, job: Job, key: Pair) -> Result<Box<dyn Operation>> {
        Ok(Loop::boxed(
            self.state(&job)?,
            move |state| {
                state.turn(&job);
                state.session.encrypt_init(&job.with(&state.iv), key.public)?;
                state.used = state.session.encrypt_into(&state.data, &mut state.out)?;
                Ok(())
            },
            move |state| {
                let mechanism = job.with(&state.iv);
                let back = state.session.decrypt(&mechanism, key.private, state.result())?;
                // Raw RSA gives the whole number back, zeros first.
                expect(back.ends_with(&state.data), "what was encrypted decrypts to other bytes")
            },
        ))
    }

    fn signs(&self, job: Job, key: Pair) -> Result<Box<dyn Operation>> {
        let state = self.state(&job)?;
        let judge = judge(&state.session, &job, key)?;
        Ok(Loop::boxed(
            state,
            move |state| {
                state.turn(&job);
                state.session.sign_init(&job.with(&state.iv), key.private)?;
                state.used = state.session.sign_into(&state.data, &mut state.out)?;
                Ok(())
            },
            move |state| match &judge {
                Some(judge) => judge.verify(&state.data, state.result()),
                None => {
                    let (mechanism, data) = (job.with(&state.iv), &state.data);
                    Ok(state.session.verify(&mechanism, key.public, data, state.result())?)
                }
            },
        ))
    }

    fn encapsulates(&self, job: Job, key: Pair) -> Result<Box<dyn Operation>> {
        let (session, mechanism) = (self.token.session()?, Mechanism::new(job.mechanism));
        let template = readable_secret();
        let again = template.clone();
        Ok(Loop::boxed(
            session,
            move |session| {
                let (_, made) = session.encapsulate(&mechanism, key.public, &template)?;
                Ok(session.destroy(made)?)
            },
            move |session| {
                let (sealed, made) = session.encapsulate(&mechanism, key.public, &again)?;
                let opened = session.decapsulate(&mechanism, key.private, &sealed, &again)?;
                let values = [made, opened].map(|key| session.attribute(key, CKA_VALUE));
                session.destroy(made)?;
                session.destroy(opened)?;
                let [value, right] = values;
                expect(value? == right?, "another secret than was encapsulated")
            },
        ))
    }

    fn decapsulates(&self, job: Job, key: Pair) -> Result<Box<dyn Operation>> {
        let (session, mechanism) = (self.token.session()?, Mechanism::new(job.mechanism));
        let template = readable_secret();
        let (ciphertext, made) = session.encapsulate(&mechanism, key.public, &template)?;
        let right = session.attribute(made, CKA_VALUE)?;
        let (again, ciphertext_, template_) = (mechanism, ciphertext.clone(), template.clone());
        Ok(Loop::boxed(
            session,
            move |session| {
                let made = session.decapsulate(&mechanism, key.private, &ciphertext, &template)?;
                Ok(session.destroy(made)?)
            },
            move |session| {
                let made = session.decapsulate(&again, key.private, &ciphertext_, &template_)?;
                let value = session.attribute(made, CKA_VALUE)?;
                session.destroy(made)?;
                expect(value == right, "another secret than was encapsulated")
            },
        ))
    }

    fn verifies(&self, job: Job, key: Pair) -> Result<Box<dyn Operation>> {
        let state = self.state(&job)?;
        let iv = [0; 16];
        let signature = state.session.sign(&job.with(&iv), key.private, &state.data)?;
        Ok(Loop::boxed(
            (state, signature),
            move |(state, signature)| {
                state.session.verify_init(&job.with(&iv), key.public)?;
                Ok(state.session.verify_initialized(&state.data, signature)?)
            },
            move |(state, signature)| {
                let (mechanism, data) = (job.with(&iv), &state.data);
                signature[0] ^= 1;
                let refused =
                    state.session.verify(&mechanism, key.public, data, signature).is_err();
                signature[0] ^= 1;
                expect(refused, "a changed signature verifies")
            },
        ))
    }
}

impl Maker for Tokens {
    fn make(&self, job: &Job) -> Result<Box<dyn Operation>> {
        self.made(*job).map_err(|failure| self.said(failure))
    }

    fn result(&self, job: &Job) -> Result<Option<Vec<u8>>> {
        if !job.determined() {
            return Ok(None);
        }
        let (session, iv, data) = (&self.token.session, [0; 16], Buffer::input(job.bytes));
        let mechanism = job.with(&iv);
        let result = match job.function {
            Function::Digest => session.digest(&mechanism, &data),
            Function::Encrypt => session.encrypt(&mechanism, self.pair(job)?.public, &data),
            _ => session.sign(&mechanism, self.pair(job)?.private, &data),
        };
        result.map(Some).map_err(|error| self.said(error.into()))
    }
}

/// What an agreed secret is, so that it can be compared.
fn readable_secret() -> Template {
    let template = Template::new().class(CKO_SECRET_KEY).key_type(CKK_GENERIC_SECRET);
    template.token(false).bool(CKA_SENSITIVE, false).bool(CKA_EXTRACTABLE, true)
}

/// Keys as session objects, or as token objects where they have to be, destroyed at once.
fn generates(session: Session, job: Job) -> Result<Box<dyn Operation>> {
    let mechanism = Mechanism::new(job.mechanism);
    let public = Template::new().token(false);
    let public = match job.key {
        Key::Secret(CKK_AES, _) => {
            let template = token::aes_template("", false);
            return Ok(Loop::boxed(
                session,
                move |session| {
                    let key = session.generate_key(&mechanism, &template)?;
                    Ok(session.destroy(key)?)
                },
                |_| Ok(()),
            ));
        }
        Key::Rsa(bits) => {
            public.ulong(CKA_MODULUS_BITS, bits).bytes(CKA_PUBLIC_EXPONENT, [1, 0, 1])
        }
        Key::Curve(Curve::P256) => public.bytes(CKA_EC_PARAMS, token::P256),
        Key::Xmss => public.ulong(CKA_PARAMETER_SET, XMSS_SHA2_10_256),
        Key::Hss => public,
        _ => return Err(Failure::new("keys of this type are not generated here")),
    };
    // One-time keys live in tokens only.
    let kept = matches!(job.key, Key::Hss | Key::Xmss);
    let mut private = Template::new().token(kept).bool(CKA_SIGN, true);
    if job.key == Key::Hss {
        for (attribute, kind) in HSS_H10_W8 {
            private.push(attribute, Value::Mechanisms(vec![kind; 2]));
        }
    }
    Ok(Loop::boxed(
        session,
        move |session| {
            let (public, private) = session.generate_key_pair(&mechanism, &public, &private)?;
            session.destroy(public)?;
            Ok(session.destroy(private)?)
        },
        |_| Ok(()),
    ))
}

/// A token key.
fn made(session: &Session, key: Key) -> Result<Pair> {
    let (name, private) = ("speed", Template::new().token(true).bool(CKA_PRIVATE, true));
    let private = private.bool(CKA_SENSITIVE, true).bool(CKA_SIGN, true).label(name);
    let public = Template::new().token(true).bool(CKA_VERIFY, true).label(name);
    let (public, private) = match key {
        Key::None => return Err(Failure::new("a job without a key")),
        Key::Secret(kind, length) => {
            let key = session.create(&secret_key(kind, &secret(length)))?;
            return Ok(Pair { public: key, private: key });
        }
        Key::MlDsa65 => return token::ml_dsa_65(session),
        Key::MlKem768 => return token::ml_kem_768(session),
        Key::SlhDsa(hashing) => return imported(session, hashing),
        Key::Hss | Key::Xmss => return Err(Failure::new("a pair of this type is only generated")),
        Key::Curve(Curve::P256) => return token::p256(session),
        Key::Curve(Curve::Ed25519) => return token::ed25519(session),
        Key::Rsa(bits) => {
            let public = public.ulong(CKA_MODULUS_BITS, bits).bool(CKA_ENCRYPT, true);
            let public = public.bytes(CKA_PUBLIC_EXPONENT, [1, 0, 1]);
            (public, private.bool(CKA_DECRYPT, true))
        }
    };
    let mechanism = Mechanism::new(CKM_RSA_PKCS_KEY_PAIR_GEN);
    let (public, private) = session.generate_key_pair(&mechanism, &public, &private)?;
    Ok(Pair { public, private })
}

/// IANA's number of the parameter set.
const XMSS_SHA2_10_256: CK_ULONG = 1;
/// `LMS_SHA256_M24_H10` and `LMOTS_SHA256_N24_W8`.
const HSS_H10_W8: [(CK_ATTRIBUTE_TYPE, CK_ULONG); 2] =
    [(CKA_HSS_LMS_TYPES, 11), (CKA_HSS_LMOTS_TYPES, 8)];

/// The pair of SLH-DSA that everybody has.
fn imported(session: &Session, hashing: Hashing) -> Result<Pair> {
    let (_, private) = slh_dsa(hashing)?;
    let set = match hashing {
        Hashing::Sha2 => CKP_SLH_DSA_SHA2_128S,
        Hashing::Shake => CKP_SLH_DSA_SHAKE_128S,
    };
    let key = || Template::new().key_type(CKK_SLH_DSA).token(true).ulong(CKA_PARAMETER_SET, set);
    let public = key().class(CKO_PUBLIC_KEY).bool(CKA_VERIFY, true);
    let own = key().class(CKO_PRIVATE_KEY).bool(CKA_PRIVATE, true).bool(CKA_SIGN, true);
    Ok(Pair {
        public: session.create(&public.bytes(CKA_VALUE, &private[32..]))?,
        private: session.create(&own.bytes(CKA_VALUE, private))?,
    })
}

/// A secret key for whatever its type is good for: ciphers encrypt, the others sign.
fn secret_key(kind: CK_KEY_TYPE, value: &[u8]) -> Template {
    let ciphers = [CKK_AES, CKK_AES_XTS, CKK_RC4, CKK_DES3, CKK_CHACHA20];
    let key = Template::new().class(CKO_SECRET_KEY).key_type(kind).token(true);
    let key = key.bool(CKA_PRIVATE, true).bytes(CKA_VALUE, value).label("speed");
    let signs = !ciphers.contains(&kind) || matches!(kind, CKK_AES | CKK_DES3);
    let key = key.bool(CKA_SIGN, signs).bool(CKA_VERIFY, signs);
    let cipher = ciphers.contains(&kind);
    key.bool(CKA_ENCRYPT, cipher).bool(CKA_DECRYPT, cipher)
}
