// SPDX-License-Identifier: Apache-2.0
//! Ed25519 itself (PKCS#11 3.2 §6.3.15); contexts and pre-hashing are the plain provider's. A signature is made faster than
//! threads switch, so only asynchronous sessions batch those; verifications are worth waiting for.

use super::{
    Answer, Held, Message, Plain, WIDTH, Wins, batch, device_error, kept, later, no_result,
};
use crate::combiner::{Combiner, Kernel};
use crate::curve25519::{self, PrivateKey, PublicKey, SignRequest, VerifyRequest};
use metaslot_awslc_wrapper::curve25519::{
    ED25519_SIGNATURE_LENGTH as LENGTH, Ed25519, Ed25519Key, KEY_LENGTH, ed25519_verify,
};
use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, Direction, Postponed, Signature, SignatureStream};
use metaslot_spi::{Key, Params, key_info};
use smallvec::SmallVec;
use std::sync::Arc;

/// Requests in one call of the kernel.
const BATCH: usize = 16;
const SIGN_WINS: Wins = Wins { jobs: 2, threads: 5 };
const VERIFY_WINS: Wins = Wins { jobs: 2, threads: 3 };

/// The row, where the plain provider has it too.
pub(super) fn rows(plain: Plain) -> Vec<Algorithm> {
    let row = plain.row(CKM_EDDSA).and_then(|plain| {
        let (sign, verify) = (plain.sign?, plain.verify?);
        Some(Algorithm {
            sign: Some(kept(EdDsa { direction: Direction::Forward, plain: sign })),
            verify: Some(kept(EdDsa { direction: Direction::Backward, plain: verify })),
            mechanism: CKM_EDDSA,
            key_sizes: plain.key_sizes,
            extra_flags: plain.extra_flags,
            ..Algorithm::NONE
        })
    });
    row.into_iter().collect()
}

/// Signatures, or verifications.
#[derive(Debug)]
struct EdDsa {
    direction: Direction,
    plain: &'static dyn Signature,
}

impl Signature for EdDsa {
    fn serves(&self, _: &Key) -> bool {
        curve25519::available()
    }

    fn for_waiting(&self) -> bool {
        self.direction == Direction::Backward
    }

    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        self.plain.check(direction, key, params)
    }

    fn length(&self, key: &Key, params: &Params) -> usize {
        self.plain.length(key, params)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        self.plain.sign(key, params, data, out)
    }

    fn sign_later(&self, key: &Arc<Key>, params: &Params, data: &[u8]) -> Postponed {
        let (Params::None, Ok(_)) = (params, private_form(key)) else { return Ok(None) };
        let key = Held::Shared(Arc::clone(key));
        later(SIGN.submit(Job::new(key, Message::copy(data)?)))
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        let (Params::None, Ok(_), Ok(signature)) =
            (params, public_form(key), <[u8; LENGTH]>::try_from(signature))
        else {
            return self.plain.verify(key, params, data, signature);
        };
        let mut job = Job { signature, ..Job::new(Held::Borrowed(key), Message::Borrowed(data)) };
        VERIFY.run(&mut job).map_err(no_result)?;
        job.result.map(drop)
    }

    fn verify_later(
        &self,
        key: &Arc<Key>,
        params: &Params,
        data: &[u8],
        signature: &[u8],
    ) -> Postponed {
        let (Params::None, Ok(_), Ok(signature)) =
            (params, public_form(key), <[u8; LENGTH]>::try_from(signature))
        else {
            return Ok(None);
        };
        let key = Held::Shared(Arc::clone(key));
        later(VERIFY.submit(Job { signature, ..Job::new(key, Message::copy(data)?) }))
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        self.plain.start(direction, key, params)
    }
}

fn private_form(key: &Key) -> Result<&PrivateKey> {
    key.prepared(|key| {
        let seed = key.secret(CKA_VALUE)?.try_into().map_err(|_| Error::KEY_SIZE_RANGE)?;
        PrivateKey::new(seed).map_err(device_error)
    })
}

fn point(key: &Key) -> Result<&[u8; KEY_LENGTH]> {
    key_info::number_point(key.bytes(CKA_EC_POINT)?).ok_or(Error::KEY_TYPE_INCONSISTENT)
}

fn public_form(key: &Key) -> Result<&PublicKey> {
    key.prepared(|key| Ok(PublicKey::new(point(key)?)))
}

/// A message, and the signature that is made or checked.
#[derive(Debug)]
struct Job<'a> {
    key: Held<'a>,
    message: Message<'a>,
    signature: [u8; LENGTH],
    result: Result<usize>,
}

impl<'a> Job<'a> {
    const fn new(key: Held<'a>, message: Message<'a>) -> Self {
        Self { key, message, signature: [0; LENGTH], result: Err(Error::DEVICE_ERROR) }
    }
}

impl Answer for Job<'static> {
    /// A verification has no room for the signature, and needs none.
    fn answer(self, out: &mut [u8]) -> Result<usize> {
        let length = self.result?;
        if let Some(out) = out.get_mut(..length) {
            out.copy_from_slice(&self.signature[..length]);
        }
        Ok(length)
    }
}

/// Signing.
#[derive(Debug)]
struct Sign;

/// Checking.
#[derive(Debug)]
struct Verify;

static SIGN: Combiner<Sign> = Combiner::new(Sign);
static VERIFY: Combiner<Verify> = Combiner::new(Verify);

impl Kernel for Sign {
    type Job<'a> = Job<'a>;

    fn lanes(&self) -> usize {
        BATCH
    }

    fn enough(&self) -> usize {
        WIDTH
    }

    fn break_even(&self) -> usize {
        SIGN_WINS.when(curve25519::available()).jobs
    }

    fn crowd(&self) -> usize {
        SIGN_WINS.when(curve25519::available()).threads
    }

    fn one(&self, job: &mut Self::Job<'_>) {
        let key = job.key.prepared::<Ed25519Key>(|_| Err(Error::KEY_TYPE_INCONSISTENT));
        job.result = key.and_then(|key| {
            key.sign(Ed25519::Plain, &job.message, &mut job.signature).map_err(device_error)?;
            Ok(LENGTH)
        });
    }

    fn many(&self, jobs: &mut [&mut Self::Job<'_>]) {
        batch(jobs.len());
        let mut requests = SmallVec::<[SignRequest<'_>; BATCH]>::new();
        for job in &mut *jobs {
            let Job { key, message, signature, .. } = &mut **job;
            let Ok(key) = private_form(key) else { break };
            requests.push(SignRequest::new(key, message, signature));
        }
        curve25519::sign(&mut requests);
        let results: SmallVec<[_; BATCH]> = requests.iter().map(|request| request.result).collect();
        drop(requests);
        for (at, job) in jobs.iter_mut().enumerate() {
            match results.get(at) {
                Some(Ok(())) => job.result = Ok(LENGTH),
                _ => self.one(job),
            }
        }
    }
}

impl Kernel for Verify {
    type Job<'a> = Job<'a>;

    fn lanes(&self) -> usize {
        BATCH
    }

    fn enough(&self) -> usize {
        WIDTH
    }

    fn break_even(&self) -> usize {
        VERIFY_WINS.when(curve25519::available()).jobs
    }

    fn crowd(&self) -> usize {
        VERIFY_WINS.when(curve25519::available()).threads
    }

    fn one(&self, job: &mut Self::Job<'_>) {
        job.result = point(&job.key).and_then(|key| {
            ed25519_verify(Ed25519::Plain, key, &job.message, &job.signature)
                .map(|()| 0)
                .map_err(|_| Error::SIGNATURE_INVALID)
        });
    }

    fn many(&self, jobs: &mut [&mut Self::Job<'_>]) {
        batch(jobs.len());
        let mut requests = SmallVec::<[VerifyRequest<'_>; BATCH]>::new();
        for job in jobs.iter() {
            let Ok(key) = public_form(&job.key) else { break };
            requests.push(VerifyRequest::new(key, &job.message, &job.signature));
        }
        curve25519::verify(&mut requests);
        let results: SmallVec<[_; BATCH]> = requests.iter().map(|request| request.result).collect();
        drop(requests);
        for (at, job) in jobs.iter_mut().enumerate() {
            match results.get(at) {
                Some(result) => {
                    job.result = result.map(|()| 0).map_err(|_| Error::SIGNATURE_INVALID);
                }
                None => self.one(job),
            }
        }
    }
}
