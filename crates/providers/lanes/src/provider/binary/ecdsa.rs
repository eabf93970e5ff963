// SPDX-License-Identifier: Apache-2.0
//! ECDSA (PKCS#11 3.2 §6.3.12, §6.3.13): the signature is r and s, each as long as the order.

use super::key::{curve, private, public};
use super::{Job, Places, Work, row};
use crate::binary::{self, BATCH, Curve, Sign, Verify};
use crate::provider::ecdsa::MECHANISMS;
use crate::provider::{Answer, device_error, kept, put};
use metaslot_awslc_wrapper::digest::{self, Hash};
use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, Direction, Postponed, Signature, SignatureStream};
use metaslot_spi::{Key, Params};
use smallvec::SmallVec;
use std::sync::Arc;

pub(super) fn rows() -> Vec<Algorithm> {
    let algorithm = |(mechanism, hash)| {
        let signing = kept(Signing { hash });
        Algorithm { sign: Some(signing), verify: Some(signing), ..row(mechanism) }
    };
    MECHANISMS.into_iter().map(algorithm).collect()
}

/// The longest signature: two numbers of 570 bits, in bytes.
const MOST: usize = 144;

/// A digest; no more of it counts than what is as long as the order (FIPS 186-5 §6.4.1).
type Digest = SmallVec<[u8; 96]>;

static SIGN: Places<Signed> = Places::new();
static VERIFY: Places<Checked> = Places::new();

/// One row's signatures and verifications.
#[derive(Clone, Copy, Debug)]
struct Signing {
    hash: Option<Hash>,
}

impl Signing {
    fn digest(self, curve: Curve, data: &[u8]) -> Result<Digest> {
        match self.hash {
            Some(hash) => {
                let mut digest = Digest::from_elem(0, hash.length());
                hash.digest(data, &mut digest).map_err(device_error)?;
                Ok(digest)
            }
            None if data.is_empty() => Err(Error::DATA_LEN_RANGE),
            None => Ok(data[..data.len().min(curve.order_length())].into()),
        }
    }
}

fn curve_of(key: &Key) -> Result<Curve> {
    curve(key).ok_or(Error::KEY_TYPE_INCONSISTENT)
}

impl Signature for Signing {
    fn serves(&self, key: &Key) -> bool {
        curve(key).is_some()
    }

    fn check(&self, direction: Direction, key: &Key, _: &Params) -> Result<()> {
        match direction {
            Direction::Forward => private(key).map(drop),
            Direction::Backward => public(key).map(drop),
        }
    }

    fn length(&self, key: &Key, _: &Params) -> usize {
        curve(key).map_or(0, |curve| 2 * curve.order_length())
    }

    fn sign(&self, key: &Key, _: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        let curve = curve_of(key)?;
        sign(curve, key, self.digest(curve, data)?, out)
    }

    fn sign_later(&self, key: &Arc<Key>, _: &Params, data: &[u8]) -> Postponed {
        let curve = curve_of(key)?;
        private(key)?;
        SIGN.submit(curve, key, Signed::new(curve, self.digest(curve, data)?))
    }

    fn verify(&self, key: &Key, _: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        let curve = curve_of(key)?;
        verify(curve, key, self.digest(curve, data)?, signature)
    }

    fn verify_later(&self, key: &Arc<Key>, _: &Params, data: &[u8], signature: &[u8]) -> Postponed {
        let curve = curve_of(key)?;
        public(key)?;
        VERIFY.submit(curve, key, Checked::new(curve, self.digest(curve, data)?, signature)?)
    }

    fn start(&self, _: Direction, key: &Arc<Key>, _: &Params) -> Result<Box<dyn SignatureStream>> {
        let function = self.hash.ok_or(Error::FUNCTION_NOT_SUPPORTED)?;
        let hash = digest::Stream::new(function).map_err(|_| Error::DEVICE_MEMORY)?;
        let (curve, key) = (curve_of(key)?, Arc::clone(key));
        Ok(Box::new(Stream { curve, key, length: function.length(), hash }))
    }
}

fn sign(curve: Curve, key: &Key, digest: Digest, out: &mut [u8]) -> Result<usize> {
    private(key)?;
    SIGN.run(curve, key, Signed::new(curve, digest))?.write(out)
}

fn verify(curve: Curve, key: &Key, digest: Digest, signature: &[u8]) -> Result<()> {
    public(key)?;
    VERIFY.run(curve, key, Checked::new(curve, digest, signature)?).map(drop)
}

/// A multi-part message.
#[derive(Debug)]
struct Stream {
    curve: Curve,
    key: Arc<Key>,
    length: usize,
    hash: digest::Stream,
}

impl Stream {
    fn digest(&mut self) -> Result<Digest> {
        let mut digest = Digest::from_elem(0, self.length);
        self.hash.finish(&mut digest).map_err(device_error)?;
        Ok(digest)
    }
}

impl SignatureStream for Stream {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        self.hash.update(data).map_err(device_error)
    }

    fn sign(&mut self, out: &mut [u8]) -> Result<usize> {
        let digest = self.digest()?;
        sign(self.curve, &self.key, digest, out)
    }

    fn verify(&mut self, signature: &[u8]) -> Result<()> {
        let digest = self.digest()?;
        verify(self.curve, &self.key, digest, signature)
    }
}

/// A signature to be made.
#[derive(Debug)]
struct Signed {
    digest: Digest,
    signature: [u8; MOST],
    length: usize,
}

impl Signed {
    const fn new(curve: Curve, digest: Digest) -> Self {
        Self { digest, signature: [0; MOST], length: 2 * curve.order_length() }
    }

    fn write(&self, out: &mut [u8]) -> Result<usize> {
        put(&self.signature[..self.length], out)
    }
}

impl Answer for Job<'static, Signed> {
    fn answer(self, out: &mut [u8]) -> Result<usize> {
        self.result?;
        self.work.write(out)
    }
}

impl Work for Signed {
    fn compute(jobs: &mut [&mut Job<'_, Self>]) {
        let mut requests = SmallVec::<[Sign<'_>; BATCH]>::new();
        for job in &mut *jobs {
            let Job { key, work: Self { digest, signature, length }, .. } = &mut **job;
            let Ok(key) = private(key) else { break };
            requests.push(Sign::new(key, digest, &mut signature[..*length]));
        }
        binary::sign(&mut requests);
        let answers: SmallVec<[_; BATCH]> = requests.iter().map(|request| request.answer).collect();
        drop(requests);
        for (job, answer) in jobs.iter_mut().zip(answers) {
            job.result = answer.map_err(|_| Error::DEVICE_ERROR);
        }
    }
}

/// A signature to be checked.
#[derive(Debug)]
struct Checked(Signed);

impl Checked {
    /// A signature may come shorter, both numbers without the same number of zero bytes in front
    /// (PKCS#11 3.2 §6.3.1).
    fn new(curve: Curve, digest: Digest, given: &[u8]) -> Result<Self> {
        let mut work = Signed::new(curve, digest);
        if given.is_empty() || given.len() > work.length || !given.len().is_multiple_of(2) {
            return Err(Error::SIGNATURE_LEN_RANGE);
        }
        let halves = work.signature[..work.length].chunks_mut(work.length / 2);
        for (half, given) in halves.zip(given.chunks(given.len() / 2)) {
            let zeros = half.len() - given.len();
            half[zeros..].copy_from_slice(given);
        }
        Ok(Self(work))
    }
}

impl Answer for Job<'static, Checked> {
    fn answer(self, _: &mut [u8]) -> Result<usize> {
        self.result.map(|()| 0)
    }
}

impl Work for Checked {
    fn compute(jobs: &mut [&mut Job<'_, Self>]) {
        let mut requests = SmallVec::<[Verify<'_>; BATCH]>::new();
        for job in jobs.iter() {
            let Job { key, work: Self(Signed { digest, signature, length }), .. } = &**job;
            let Ok(key) = public(key) else { break };
            requests.push(Verify::new(key, digest, &signature[..*length]));
        }
        binary::verify(&mut requests);
        let answers: SmallVec<[_; BATCH]> = requests.iter().map(|request| request.answer).collect();
        drop(requests);
        for (job, answer) in jobs.iter_mut().zip(answers) {
            job.result = answer.map_err(|_| Error::SIGNATURE_INVALID);
        }
    }
}
