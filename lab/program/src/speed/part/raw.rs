// SPDX-License-Identifier: Apache-2.0
//! Jobs by the raw library: AWS-LC's C functions with prepared keys.

use super::job::{Function, Job, Key, Parameter, secret_of};
use super::team::Maker;
use crate::buffer::Buffer;
use crate::speed::subject::{Loop, Operation, expect};
use crate::{Failure, Result};
use metaslot_bare::{self as bench, Cbc, Ctr, EC_SIGNATURE, Ec, Ed25519, Gcm, Rc4, Rsa};
use metaslot_ck::*;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The raw library, and the pairs that it has made.
#[derive(Debug, Default)]
pub(super) struct Raw {
    rsa: Mutex<HashMap<CK_ULONG, Arc<Rsa>>>,
}

/// Why something cannot be done here.
const ABSENT: &str = "not called directly here";

/// What the raw library makes of a message, with a prepared key.
type Apply = Box<dyn Fn(&[u8], &mut [u8]) -> Result<usize>>;

impl Raw {
    fn rsa(&self, bits: CK_ULONG) -> Result<Arc<Rsa>> {
        let mut pairs = self.rsa.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pair) = pairs.get(&bits) {
            return Ok(Arc::clone(pair));
        }
        let wanted = i32::try_from(bits).map_err(|_| Failure::new("an RSA key of that size"))?;
        let pair = Arc::new(Rsa::generate(wanted)?);
        pairs.insert(bits, Arc::clone(&pair));
        Ok(pair)
    }

    fn on_curve(job: &Job) -> Result<Box<dyn Operation>> {
        let message: [u8; 32] = Buffer::input(job.bytes)
            .first_chunk()
            .copied()
            .ok_or_else(|| Failure::new("only messages of 32 bytes here"))?;
        match (job.mechanism, job.function) {
            (CKM_ECDSA, Function::Sign) => Ok(Loop::boxed(
                (Ec::generate()?, [0; EC_SIGNATURE], 0),
                move |(key, out, used)| {
                    *used = key.sign(&message, out)?;
                    Ok(())
                },
                move |(key, out, used)| Ok(key.verify(&message, &out[..*used])?),
            )),
            (CKM_EDDSA, Function::Sign) => Ok(Loop::boxed(
                (Ed25519::generate(), [0; 64]),
                move |(key, out)| Ok(key.sign(&message, out)?),
                move |(key, out)| Ok(key.verify(&message, out)?),
            )),
            _ => Err(Failure::new(ABSENT)),
        }
    }

    fn pair(&self, job: &Job, bits: CK_ULONG) -> Result<Box<dyn Operation>> {
        let key = self.rsa(bits)?;
        let data = Buffer::input(job.bytes);
        if job.function == Function::Sign {
            let judge = Arc::clone(&key);
            return Ok(Loop::boxed(
                (data, vec![0; 512], 0),
                move |(data, out, used)| {
                    *used = key.sign(data, out)?;
                    Ok(())
                },
                move |(data, out, used)| Ok(judge.verify(data, &out[..*used])?),
            ));
        }
        let mut signature = vec![0; 512];
        let used = key.sign(&data, &mut signature)?;
        signature.truncate(used);
        let judge = Arc::clone(&key);
        Ok(Loop::boxed(
            (data, signature),
            move |(data, signature)| Ok(key.verify(data, signature)?),
            move |(data, signature)| {
                signature[9] ^= 1;
                let refused = judge.verify(data, signature).is_err();
                signature[9] ^= 1;
                expect(refused, "a changed RSA signature verifies")
            },
        ))
    }
}

/// What a job makes of a message, if the raw library's door has it.
fn apply(job: &Job) -> Result<Apply> {
    let iv = [0; 16];
    Ok(match (job.mechanism, job.key) {
        (CKM_MD5, _) => Box::new(|data, out| digest(out, |out| bench::md5(data, out))),
        (CKM_SHA_1, _) => Box::new(|data, out| digest(out, |out| bench::sha1(data, out))),
        (CKM_SHA256, _) => Box::new(|data, out| digest(out, |out| bench::sha256(data, out))),
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
        (CKM_AES_CTR, Key::Secret(_, 32)) => {
            let key = Ctr::new(&secret_of()?)?;
            Box::new(move |data, out| {
                key.apply(&iv, data, out);
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

/// A digest at the begin of the room for results.
fn digest<const N: usize>(out: &mut [u8], make: impl FnOnce(&mut [u8; N])) -> Result<usize> {
    let room = out.first_chunk_mut::<N>().ok_or_else(|| Failure::new("no room for a digest"))?;
    make(room);
    Ok(N)
}

impl Maker for Raw {
    fn make(&self, job: &Job) -> Result<Box<dyn Operation>> {
        if let Key::Rsa(bits) = job.key {
            if job.mechanism != CKM_SHA256_RSA_PKCS {
                return Err(Failure::new(ABSENT));
            }
            return self.pair(job, bits);
        }
        if let Key::Curve(_) = job.key {
            return Self::on_curve(job);
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
