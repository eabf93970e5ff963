// SPDX-License-Identifier: Apache-2.0
//! Jobs by the raw library: AWS-LC's C functions with prepared keys.

use super::job::{Curve, Function, Hashing, Job, Key, Parameter, secret_of};
use super::signs::Signs;
use super::team::Maker;
use crate::buffer::Buffer;
use crate::speed::subject::{Loop, Operation, expect};
use crate::{Failure, Result};
use metaslot_bare::{
    self as bench, Cbc, Ctr, Ec, Ed25519, Gcm, ML_DSA_65_SIGNATURE, ML_KEM_768_CIPHERTEXT, MlDsa65,
    MlKem768, Rc4, Rsa, SlhDsa,
};
use metaslot_ck::*;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

/// The raw library, and the pairs that it has made.
#[derive(Default)]
pub(super) struct Raw {
    pairs: Mutex<HashMap<Key, Arc<dyn Signs>>>,
}

/// Why something cannot be done here.
const ABSENT: &str = "not called directly here";

/// What the raw library makes of a message, with a prepared key.
type Apply = Box<dyn Fn(&[u8], &mut [u8]) -> Result<usize>>;

impl Raw {
    /// The pair for a job, whose mechanism the raw library has.
    fn pair(&self, job: &Job) -> Result<Arc<dyn Signs>> {
        if !matches!(job.mechanism, CKM_SHA256_RSA_PKCS | CKM_ECDSA | CKM_EDDSA | CKM_ML_DSA) {
            return Err(Failure::new(ABSENT));
        }
        let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pair) = pairs.get(&job.key) {
            return Ok(Arc::clone(pair));
        }
        let pair: Arc<dyn Signs> = match job.key {
            Key::Rsa(bits) => Arc::new(rsa(bits)?),
            Key::Curve(Curve::P256) => Arc::new(Ec::generate()?),
            Key::Curve(Curve::Ed25519) => Arc::new(Ed25519::generate()),
            Key::MlDsa65 => Arc::new(MlDsa65::generate()?),
            _ => return Err(Failure::new(ABSENT)),
        };
        pairs.insert(job.key, Arc::clone(&pair));
        Ok(pair)
    }

    fn with_pair(&self, job: &Job) -> Result<Box<dyn Operation>> {
        let pair = self.pair(job)?;
        let data = Buffer::input(job.bytes);
        let mut signature = vec![0; job.bytes + job.longer()];
        let used = pair.sign(&data, &mut signature)?;
        let judge = Arc::clone(&pair);
        match job.function {
            Function::Sign => Ok(Loop::boxed(
                (data, signature, used),
                move |(data, out, used)| {
                    *used = pair.sign(data, out)?;
                    Ok(())
                },
                move |(data, out, used)| judge.verify(data, &out[..*used]),
            )),
            Function::Verify => {
                signature.truncate(used);
                Ok(Loop::boxed(
                    (data, signature),
                    move |(data, signature)| pair.verify(data, signature),
                    move |(data, signature)| {
                        signature[9] ^= 1;
                        let refused = judge.verify(data, signature).is_err();
                        signature[9] ^= 1;
                        expect(refused, "a changed signature verifies")
                    },
                ))
            }
            _ => Err(Failure::new(ABSENT)),
        }
    }
}

fn rsa(bits: CK_ULONG) -> Result<Rsa> {
    let bits = i32::try_from(bits).map_err(|_| Failure::new("an RSA key of that size"))?;
    Ok(Rsa::generate(bits)?)
}

/// New keys.
fn generates(key: Key) -> Result<Box<dyn Operation>> {
    match key {
        Key::Rsa(bits) => generates_pairs(move || rsa(bits)),
        Key::Curve(Curve::P256) => generates_pairs(|| Ok(Ec::generate()?)),
        Key::Curve(Curve::Ed25519) => generates_pairs(|| Ok(Ed25519::generate())),
        Key::MlDsa65 => generates_pairs(|| Ok(MlDsa65::generate()?)),
        Key::MlKem768 | Key::SlhDsa(_) => Err(Failure::new(ABSENT)),
        Key::Hss => Ok(grows(|seed: &[u8; 24], id| bench::hss_public(seed, id).to_vec())),
        Key::Xmss => Ok(grows(|secret: &[u8; 32], seed| bench::xmss_public(secret, seed).to_vec())),
        Key::Secret(_, length) => Ok(random(length)),
        Key::None => Err(Failure::new("a job without a key")),
    }
}

/// A tree of one-time keys, of two seeds.
fn grows<const A: usize, const B: usize>(
    root: impl Fn(&[u8; A], &[u8; B]) -> Vec<u8> + 'static,
) -> Box<dyn Operation> {
    Loop::boxed(
        Vec::new(),
        move |made| {
            let (mut first, mut second) = ([0; A], [0; B]);
            bench::random(&mut first)?;
            bench::random(&mut second)?;
            *made = root(&first, &second);
            Ok(())
        },
        |made| expect(made.iter().any(|byte| *byte != 0), "a root of zeros"),
    )
}

/// SLH-DSA with its private key: SK.seed, SK.prf, PK.seed, PK.root.
pub(super) fn slh_dsa(hashing: Hashing) -> Result<(SlhDsa, [u8; 64])> {
    let set = match hashing {
        Hashing::Sha2 => SlhDsa::Sha2,
        Hashing::Shake => SlhDsa::Shake,
    };
    let mut private = secret_of::<64>()?;
    let [secret, _, seed, root] = private.as_chunks_mut().0 else {
        return Err(Failure::new(ABSENT));
    };
    *root = set.root(secret, seed);
    Ok((set, private))
}

fn generates_pairs<K: Signs + 'static>(
    make: impl Fn() -> Result<K> + 'static,
) -> Result<Box<dyn Operation>> {
    Ok(Loop::boxed(
        make()?,
        move |pair| {
            *pair = make()?;
            Ok(())
        },
        |pair| {
            let mut out = [0; ML_DSA_65_SIGNATURE];
            let used = pair.sign(&[1; 32], &mut out)?;
            pair.verify(&[1; 32], &out[..used])
        },
    ))
}

/// Secrets and their ciphertexts, of which the last is opened.
fn encapsulates() -> Result<Box<dyn Operation>> {
    let key = Rc::new(MlKem768::generate()?);
    let same = Rc::clone(&key);
    Ok(Loop::boxed(
        ([0; 32], [0; ML_KEM_768_CIPHERTEXT]),
        move |(secret, ciphertext)| {
            *secret = key.encapsulate(ciphertext)?;
            Ok(())
        },
        move |(secret, ciphertext)| {
            let opened = same.decapsulate(ciphertext)?;
            expect(opened == *secret, "another secret than was encapsulated")
        },
    ))
}

/// The secret that was encapsulated, again and again.
fn decapsulates() -> Result<Box<dyn Operation>> {
    let (key, mut ciphertext) = (MlKem768::generate()?, [0; ML_KEM_768_CIPHERTEXT]);
    let right = key.encapsulate(&mut ciphertext)?;
    Ok(Loop::boxed(
        [0; 32],
        move |secret| {
            *secret = key.decapsulate(&ciphertext)?;
            Ok(())
        },
        move |secret| expect(*secret == right, "another secret than was encapsulated"),
    ))
}

/// Random bytes.
fn random(length: usize) -> Box<dyn Operation> {
    Loop::boxed(
        Buffer::output(length),
        |bytes| Ok(bench::random(bytes)?),
        |bytes| expect(bytes.iter().any(|byte| *byte != 0), "random bytes are zero"),
    )
}

/// What a job makes of a message, if the raw library's door has it.
fn apply(job: &Job) -> Result<Apply> {
    let iv = [0; 16];
    Ok(match (job.mechanism, job.key) {
        (_, Key::Secret(CKK_AES, 32)) if job.parameter == Parameter::Ctr => {
            let key = Ctr::new(&secret_of()?)?;
            Box::new(move |data, out| {
                key.apply(&iv, data, out);
                Ok(data.len())
            })
        }
        (CKM_MD5, _) => Box::new(|data, out| digest(out, |out| bench::md5(data, out))),
        (CKM_SHA_1, _) => Box::new(|data, out| digest(out, |out| bench::sha1(data, out))),
        (CKM_SHA256, _) => Box::new(|data, out| digest(out, |out| bench::sha256(data, out))),
        (CKM_SLH_DSA, Key::SlhDsa(hashing)) => {
            let (set, private) = slh_dsa(hashing)?;
            Box::new(move |data, out| {
                let signature = set.sign(&private, data);
                out[..signature.len()].copy_from_slice(&signature);
                Ok(signature.len())
            })
        }
        (CKM_RC4, Key::Secret(_, 16)) => {
            let key = Rc4::new(&secret_of()?);
            Box::new(move |data, out| {
                key.apply(data, out);
                Ok(data.len())
            })
        }
        (CKM_AES_CBC, Key::Secret(_, 32)) => {
            let key = Cbc::new(&secret_of()?)?;
            Box::new(move |data, out| {
                key.encrypt(&iv, data, &mut out[..data.len()])?;
                Ok(data.len())
            })
        }
        (CKM_AES_GCM, Key::Secret(_, 32)) if job.parameter == Parameter::Gcm => {
            let key = Gcm::new(&secret_of()?)?;
            Box::new(move |data, out| Ok(key.seal(&[0; 12], data, out)?))
        }
        _ => return Err(Failure::new(ABSENT)),
    })
}

/// A digest at the start of the room for results.
fn digest<const N: usize>(out: &mut [u8], make: impl FnOnce(&mut [u8; N])) -> Result<usize> {
    let room = out.first_chunk_mut::<N>().ok_or_else(|| Failure::new("no room for a digest"))?;
    make(room);
    Ok(N)
}

impl Maker for Raw {
    fn make(&self, job: &Job) -> Result<Box<dyn Operation>> {
        match (job.function, job.key) {
            (Function::Session, _) => return Err(Failure::new("a library has no sessions")),
            (Function::Random, _) => return Ok(random(job.bytes)),
            (Function::Generate, key) => return generates(key),
            (Function::Encapsulate, Key::MlKem768) => return encapsulates(),
            (Function::Decapsulate, Key::MlKem768) => return decapsulates(),
            (_, Key::Rsa(_) | Key::Curve(_) | Key::MlDsa65) => return self.with_pair(job),
            _ => {}
        }
        let (data, out) = (Buffer::input(job.bytes), Buffer::output(job.bytes + job.longer()));
        let right = right(job)?;
        let apply = apply(job)?;
        Ok(Loop::boxed(
            (data, out, 0),
            move |(data, out, used)| {
                *used = apply(data, out)?;
                Ok(())
            },
            move |(_, out, used)| expect(out[..*used] == right, "the raw library's result changes"),
        ))
    }

    fn result(&self, job: &Job) -> Result<Option<Vec<u8>>> {
        if job.determined() { right(job).map(Some) } else { Ok(None) }
    }
}

/// What a job gives.
fn right(job: &Job) -> Result<Vec<u8>> {
    let mut out = vec![0; job.bytes + job.longer()];
    let used = apply(job)?(&Buffer::input(job.bytes), &mut out)?;
    out.truncate(used);
    Ok(out)
}
