// SPDX-License-Identifier: Apache-2.0
//! ECDSA on P-256 and P-384 (PKCS#11 3.2 §6.3.12, §6.3.13).

use super::prime::{
    self, BATCH, FLAGS, Lanes, P256Kernel, P384Kernel, SIZES, Size, plain_form, private_form,
    public_form,
};
use super::{Answer, Held, Plain, WIDTH, batch, device_error, kept, later, no_result, put};
use crate::combiner::{Combiner, Kernel};
use crate::weierstrass::{PrivateKey, PublicKey, SignRequest, VerifyRequest};
use metaslot_awslc_wrapper::digest::{self, Hash, MAX_LENGTH};
use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, Direction, Postponed, Signature, SignatureStream};
use metaslot_spi::{Key, Params};
use smallvec::SmallVec;
use std::any::Any;
use std::sync::Arc;

pub(super) const MECHANISMS: [(CK_MECHANISM_TYPE, Option<Hash>); 10] = [
    (CKM_ECDSA, None),
    (CKM_ECDSA_SHA1, Some(Hash::Sha1)),
    (CKM_ECDSA_SHA224, Some(Hash::Sha224)),
    (CKM_ECDSA_SHA256, Some(Hash::Sha256)),
    (CKM_ECDSA_SHA384, Some(Hash::Sha384)),
    (CKM_ECDSA_SHA512, Some(Hash::Sha512)),
    (CKM_ECDSA_SHA3_224, Some(Hash::Sha3_224)),
    (CKM_ECDSA_SHA3_256, Some(Hash::Sha3_256)),
    (CKM_ECDSA_SHA3_384, Some(Hash::Sha3_384)),
    (CKM_ECDSA_SHA3_512, Some(Hash::Sha3_512)),
];

/// A row for each mechanism that the plain provider has too.
pub(super) fn rows(plain: Plain) -> Vec<Algorithm> {
    let row = |(mechanism, hash): (CK_MECHANISM_TYPE, Option<Hash>)| {
        let beneath = plain.row(mechanism)?;
        let signing = kept(Signing { hash, plain: beneath.sign? });
        Some(Algorithm {
            mechanism,
            key_sizes: SIZES,
            sign: Some(signing),
            verify: Some(signing),
            extra_flags: FLAGS,
            ..Algorithm::NONE
        })
    };
    MECHANISMS.into_iter().filter_map(row).collect()
}

/// One row's signatures and verifications.
#[derive(Debug)]
struct Signing {
    hash: Option<Hash>,
    plain: &'static dyn Signature,
}

impl Signature for Signing {
    fn serves(&self, key: &Key) -> bool {
        prime::serves(key)
    }

    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        self.plain.check(direction, key, params)
    }

    fn length(&self, key: &Key, params: &Params) -> usize {
        self.plain.length(key, params)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        let (Some(size), Some(digest)) = (Size::of(key), self.digest(data)?) else {
            return self.plain.sign(key, params, data, out);
        };
        let mut job = SignJob::new(Held::Borrowed(key), digest);
        size.run_sign(&mut job)?;
        job.write(out)
    }

    fn sign_later(&self, key: &Arc<Key>, _: &Params, data: &[u8]) -> Postponed {
        let (Some(size), Some(digest)) = (Size::of(key), self.digest(data)?) else {
            return Ok(None);
        };
        size.sign_later(SignJob::new(Held::Shared(Arc::clone(key)), digest))
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        let (Some(size), Some(digest)) = (Size::of(key), self.digest(data)?) else {
            return self.plain.verify(key, params, data, signature);
        };
        let Some(mut job) = VerifyJob::new(Held::Borrowed(key), digest, size, signature) else {
            return self.plain.verify(key, params, data, signature);
        };
        size.run_verify(&mut job)?;
        job.result
    }

    fn verify_later(&self, key: &Arc<Key>, _: &Params, data: &[u8], signature: &[u8]) -> Postponed {
        let (Some(size), Some(digest)) = (Size::of(key), self.digest(data)?) else {
            return Ok(None);
        };
        match VerifyJob::new(Held::Shared(Arc::clone(key)), digest, size, signature) {
            Some(job) => size.verify_later(job),
            None => Ok(None),
        }
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        let (Some(hash), Some(size)) = (self.hash, Size::of(key)) else {
            return self.plain.start(direction, key, params);
        };
        if direction == Direction::Backward {
            return self.plain.start(direction, key, params);
        }
        let hash = digest::Stream::new(hash).map_err(|_| Error::DEVICE_MEMORY)?;
        Ok(Box::new(Stream { size, length: self.digest_length(), key: Arc::clone(key), hash }))
    }
}

impl Signing {
    fn digest_length(&self) -> usize {
        self.hash.map_or(0, Hash::length)
    }

    /// What is signed: the digest, of which no more than 64 bytes ever count here. `None` for data that the
    /// plain provider has an error for.
    fn digest(&self, data: &[u8]) -> Result<Option<Digest>> {
        let mut digest = Digest::new();
        match self.hash {
            Some(hash) => {
                digest.resize(hash.length(), 0);
                hash.digest(data, &mut digest).map_err(device_error)?;
            }
            None if data.is_empty() => return Ok(None),
            None => digest.extend_from_slice(&data[..data.len().min(MAX_LENGTH)]),
        }
        Ok(Some(digest))
    }
}

type Digest = SmallVec<[u8; MAX_LENGTH]>;

/// The combiners of a curve.
impl Size {
    fn run_sign(self, job: &mut SignJob<'_>) -> Result<()> {
        match self {
            Self::P256 => SIGN_256.run(job),
            Self::P384 => SIGN_384.run(job),
        }
        .map_err(no_result)
    }

    fn run_verify(self, job: &mut VerifyJob<'_>) -> Result<()> {
        match self {
            Self::P256 => VERIFY_256.run(job),
            Self::P384 => VERIFY_384.run(job),
        }
        .map_err(no_result)
    }

    fn sign_later(self, job: SignJob<'static>) -> Postponed {
        match self {
            Self::P256 => later(SIGN_256.submit(job)),
            Self::P384 => later(SIGN_384.submit(job)),
        }
    }

    fn verify_later(self, job: VerifyJob<'static>) -> Postponed {
        match self {
            Self::P256 => later(VERIFY_256.submit(job)),
            Self::P384 => later(VERIFY_384.submit(job)),
        }
    }
}

static SIGN_256: Combiner<Sign<P256Kernel, 5>> = Combiner::new(Sign(P256Kernel));
static SIGN_384: Combiner<Sign<P384Kernel, 8>> = Combiner::new(Sign(P384Kernel));
static VERIFY_256: Combiner<Verify<P256Kernel, 5>> = Combiner::new(Verify(P256Kernel));
static VERIFY_384: Combiner<Verify<P384Kernel, 8>> = Combiner::new(Verify(P384Kernel));

/// The longest signature, in bytes.
const MOST: usize = 96;

/// A signature over a multi-part message.
#[derive(Debug)]
struct Stream {
    size: Size,
    length: usize,
    key: Arc<Key>,
    hash: digest::Stream,
}

impl SignatureStream for Stream {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        self.hash.update(data).map_err(device_error)
    }

    fn sign(&mut self, out: &mut [u8]) -> Result<usize> {
        let mut digest = Digest::from_elem(0, self.length);
        self.hash.finish(&mut digest).map_err(device_error)?;
        let mut job = SignJob::new(Held::Shared(Arc::clone(&self.key)), digest);
        self.size.run_sign(&mut job)?;
        job.write(out)
    }

    fn verify(&mut self, _: &[u8]) -> Result<()> {
        Err(Error::GENERAL_ERROR)
    }
}

/// A digest to be signed.
#[derive(Debug)]
struct SignJob<'a> {
    key: Held<'a>,
    digest: Digest,
    signature: [u8; MOST],
    result: Result<usize>,
}

impl<'a> SignJob<'a> {
    const fn new(key: Held<'a>, digest: Digest) -> Self {
        Self { key, digest, signature: [0; MOST], result: Err(Error::DEVICE_ERROR) }
    }

    fn write(&self, out: &mut [u8]) -> Result<usize> {
        put(&self.signature[..self.result?], out)
    }
}

impl Answer for SignJob<'static> {
    fn answer(self, out: &mut [u8]) -> Result<usize> {
        self.write(out)
    }
}

/// Signatures of one curve's keys.
#[derive(Debug)]
struct Sign<L, const N: usize>(L);

impl<L: Lanes<N>, const N: usize> Kernel for Sign<L, N>
where
    PrivateKey<N>: Any + Send + Sync,
{
    type Job<'a> = SignJob<'a>;

    fn lanes(&self) -> usize {
        BATCH
    }

    fn enough(&self) -> usize {
        WIDTH
    }

    fn break_even(&self) -> usize {
        L::SIGN.when(L::available()).jobs
    }

    fn crowd(&self) -> usize {
        L::SIGN.when(L::available()).threads
    }

    fn one(&self, job: &mut Self::Job<'_>) {
        if L::SIGN_ALONE && L::available() && lanes_sign::<L, N>(job) {
            return;
        }
        job.result = plain_form(&job.key).and_then(|key| {
            let length = 2 * key.curve().length();
            key.sign(&job.digest, &mut job.signature[..length]).map_err(device_error)?;
            Ok(length)
        });
    }

    fn many(&self, jobs: &mut [&mut Self::Job<'_>]) {
        batch(jobs.len());
        let mut requests = SmallVec::<[SignRequest<'_, N>; BATCH]>::new();
        for job in &mut *jobs {
            let SignJob { key, digest, signature, .. } = &mut **job;
            let (Ok(plain), Ok(key)) = (plain_form(key), private_form::<L, N>(key)) else { break };
            let length = 2 * plain.curve().length();
            requests.push(SignRequest::new(key, digest, &mut signature[..length]));
        }
        L::sign(&mut requests);
        let results: SmallVec<[_; BATCH]> = requests
            .iter()
            .map(|request| request.result.map(|()| request.signature.len()))
            .collect();
        drop(requests);
        for (at, job) in jobs.iter_mut().enumerate() {
            match results.get(at) {
                Some(Ok(length)) => job.result = Ok(*length),
                _ => self.one(job),
            }
        }
    }
}

/// One signature by the kernel; false where it cannot.
fn lanes_sign<L: Lanes<N>, const N: usize>(job: &mut SignJob<'_>) -> bool
where
    PrivateKey<N>: Any + Send + Sync,
{
    let SignJob { key, digest, signature, result } = job;
    let (Ok(plain), Ok(key)) = (plain_form(key), private_form::<L, N>(key)) else { return false };
    let length = 2 * plain.curve().length();
    let mut requests = [SignRequest::new(key, digest, &mut signature[..length])];
    L::sign(&mut requests);
    let [request] = requests;
    let signed = request.result.is_ok();
    *result = request.result.map(|()| length).map_err(device_error);
    signed
}

/// A signature to be checked.
#[derive(Debug)]
struct VerifyJob<'a> {
    key: Held<'a>,
    digest: Digest,
    signature: [u8; MOST],
    length: usize,
    result: Result<()>,
}

impl<'a> VerifyJob<'a> {
    /// `None` for a signature of another length: the plain provider knows what to do with it.
    fn new(key: Held<'a>, digest: Digest, size: Size, given: &[u8]) -> Option<Self> {
        let length = 2 * size.length();
        let mut signature = [0; MOST];
        signature[..length].copy_from_slice((given.len() == length).then_some(given)?);
        Some(Self { key, digest, signature, length, result: Err(Error::DEVICE_ERROR) })
    }
}

impl Answer for VerifyJob<'static> {
    fn answer(self, _: &mut [u8]) -> Result<usize> {
        self.result.map(|()| 0)
    }
}

/// Verifications for one curve's keys.
#[derive(Debug)]
struct Verify<L, const N: usize>(L);

impl<L: Lanes<N>, const N: usize> Kernel for Verify<L, N>
where
    PublicKey<N>: Any + Send + Sync,
{
    type Job<'a> = VerifyJob<'a>;

    fn lanes(&self) -> usize {
        BATCH
    }

    fn enough(&self) -> usize {
        WIDTH
    }

    fn break_even(&self) -> usize {
        L::VERIFY.when(L::available()).jobs
    }

    fn crowd(&self) -> usize {
        L::VERIFY.when(L::available()).threads
    }

    fn one(&self, job: &mut Self::Job<'_>) {
        let signature = &job.signature[..job.length];
        job.result = plain_form(&job.key).and_then(|key| {
            key.verify(&job.digest, signature).map_err(|_| Error::SIGNATURE_INVALID)
        });
    }

    fn many(&self, jobs: &mut [&mut Self::Job<'_>]) {
        batch(jobs.len());
        let mut requests = SmallVec::<[VerifyRequest<'_, N>; BATCH]>::new();
        for job in jobs.iter() {
            let Ok(key) = public_form::<L, N>(&job.key) else { break };
            requests.push(VerifyRequest::new(key, &job.digest, &job.signature[..job.length]));
        }
        L::verify(&mut requests);
        let results: SmallVec<[_; BATCH]> = requests.iter().map(|request| request.result).collect();
        drop(requests);
        for (at, job) in jobs.iter_mut().enumerate() {
            match results.get(at) {
                Some(result) => job.result = result.map_err(|_| Error::SIGNATURE_INVALID),
                None => self.one(job),
            }
        }
    }
}
