// SPDX-License-Identifier: Apache-2.0
//! RSA signatures: PKCS #1 v1.5, PSS and the bare operation (PKCS#11 3.2 §6.1), of private keys of 1024, 2048, 3072 and 4096
//! bits. Verification is faster than a switch of threads, so only asynchronous sessions batch it.

use super::digest::function;
use super::{Answer, Held, Plain, batch, device_error, kept, later, no_result, put};
use crate::combiner::{Combiner, Kernel};
use crate::rsa::{self, PrivateKey, PrivateRequest, PublicKey, PublicRequest, WIDTH};
use metaslot_awslc_wrapper::digest::{self, Hash, MAX_LENGTH};
use metaslot_awslc_wrapper::rsa::{Pss, Rsa, RsaNumbers, RsaPadding, digest_info};
use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, Direction, Postponed, Signature, SignatureStream};
use metaslot_spi::{Key, Params, der, hashes};
use smallvec::SmallVec;
use std::sync::Arc;

/// The longest block, in bytes.
const MOST: usize = 512;

/// How a message becomes a block; a hash where the mechanism has one.
#[derive(Clone, Copy, Debug)]
enum Scheme {
    Bare,
    Pkcs1(Option<Hash>),
    Pss(Option<Hash>),
}

const SCHEMES: [(CK_MECHANISM_TYPE, Scheme); 22] = [
    (CKM_RSA_PKCS, Scheme::Pkcs1(None)),
    (CKM_RSA_X_509, Scheme::Bare),
    (CKM_MD5_RSA_PKCS, Scheme::Pkcs1(Some(Hash::Md5))),
    (CKM_SHA1_RSA_PKCS, Scheme::Pkcs1(Some(Hash::Sha1))),
    (CKM_SHA224_RSA_PKCS, Scheme::Pkcs1(Some(Hash::Sha224))),
    (CKM_SHA256_RSA_PKCS, Scheme::Pkcs1(Some(Hash::Sha256))),
    (CKM_SHA384_RSA_PKCS, Scheme::Pkcs1(Some(Hash::Sha384))),
    (CKM_SHA512_RSA_PKCS, Scheme::Pkcs1(Some(Hash::Sha512))),
    (CKM_SHA3_224_RSA_PKCS, Scheme::Pkcs1(Some(Hash::Sha3_224))),
    (CKM_SHA3_256_RSA_PKCS, Scheme::Pkcs1(Some(Hash::Sha3_256))),
    (CKM_SHA3_384_RSA_PKCS, Scheme::Pkcs1(Some(Hash::Sha3_384))),
    (CKM_SHA3_512_RSA_PKCS, Scheme::Pkcs1(Some(Hash::Sha3_512))),
    (CKM_RSA_PKCS_PSS, Scheme::Pss(None)),
    (CKM_SHA1_RSA_PKCS_PSS, Scheme::Pss(Some(Hash::Sha1))),
    (CKM_SHA224_RSA_PKCS_PSS, Scheme::Pss(Some(Hash::Sha224))),
    (CKM_SHA256_RSA_PKCS_PSS, Scheme::Pss(Some(Hash::Sha256))),
    (CKM_SHA384_RSA_PKCS_PSS, Scheme::Pss(Some(Hash::Sha384))),
    (CKM_SHA512_RSA_PKCS_PSS, Scheme::Pss(Some(Hash::Sha512))),
    (CKM_SHA3_224_RSA_PKCS_PSS, Scheme::Pss(Some(Hash::Sha3_224))),
    (CKM_SHA3_256_RSA_PKCS_PSS, Scheme::Pss(Some(Hash::Sha3_256))),
    (CKM_SHA3_384_RSA_PKCS_PSS, Scheme::Pss(Some(Hash::Sha3_384))),
    (CKM_SHA3_512_RSA_PKCS_PSS, Scheme::Pss(Some(Hash::Sha3_512))),
];

/// A row for each scheme that the plain provider has too.
pub(super) fn rows(plain: Plain) -> Vec<Algorithm> {
    let row = |(mechanism, scheme): (CK_MECHANISM_TYPE, Scheme)| {
        let beneath = plain.row(mechanism)?;
        let (sign, verify) = (beneath.sign?, beneath.verify?);
        Some(Algorithm {
            mechanism,
            key_sizes: (1024, 4096),
            sign: Some(kept(Signing { scheme, plain: sign, direction: Direction::Forward })),
            verify: Some(kept(Signing { scheme, plain: verify, direction: Direction::Backward })),
            ..Algorithm::NONE
        })
    };
    SCHEMES.into_iter().filter_map(row).collect()
}

/// One row's signatures and verifications.
#[derive(Debug)]
struct Signing {
    scheme: Scheme,
    plain: &'static dyn Signature,
    direction: Direction,
}

impl Signature for Signing {
    fn serves(&self, key: &Key) -> bool {
        let size = key.bytes(CKA_MODULUS).map_or(0, <[u8]>::len);
        rsa::available() && matches!(size, 128 | 256 | 384 | 512)
    }

    fn for_waiting(&self) -> bool {
        self.direction == Direction::Forward
    }

    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        self.plain.check(direction, key, params)
    }

    fn length(&self, key: &Key, params: &Params) -> usize {
        self.plain.length(key, params)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        let Some(combiner) = self.combiner(key, data) else {
            return self.plain.sign(key, params, data, out);
        };
        let mut job = self.job(Held::Borrowed(key), params, data)?;
        combiner.run(&mut job).map_err(no_result)?;
        job.write(out)
    }

    fn sign_later(&self, key: &Arc<Key>, params: &Params, data: &[u8]) -> Postponed {
        let Some(combiner) = self.combiner(key, data) else { return Ok(None) };
        later(combiner.submit(self.job(Held::Shared(Arc::clone(key)), params, data)?))
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        self.plain.verify(key, params, data, signature)
    }

    fn verify_later(
        &self,
        key: &Arc<Key>,
        params: &Params,
        data: &[u8],
        signature: &[u8],
    ) -> Postponed {
        // What a PSS signature must look like is known only when it is open; the library sees to that.
        let (Scheme::Pkcs1(_), Some(combiner)) = (self.scheme, public_combiner(key)) else {
            return Ok(None);
        };
        let key = Held::Shared(Arc::clone(key));
        let size = plain_form(&key)?.size();
        if signature.len() != size {
            return Err(Error::SIGNATURE_LEN_RANGE);
        }
        let expected = self.job(key, params, data)?;
        let mut given = [0; MOST];
        given[..size].copy_from_slice(signature);
        later(combiner.submit(Check { expected, given }))
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        let (Direction::Forward, Some(combiner), Some(hash)) =
            (direction, private_combiner(key), self.scheme.hash())
        else {
            return self.plain.start(direction, key, params);
        };
        let pss = self.scheme.pss(params)?;
        let hash = digest::Stream::new(hash).map_err(|_| Error::DEVICE_MEMORY)?;
        Ok(Box::new(Stream { scheme: self.scheme, pss, key: Arc::clone(key), hash, combiner }))
    }
}

impl Signing {
    /// Where `data` is signed; `None` where that is for the plain provider.
    fn combiner(&self, key: &Key, data: &[u8]) -> Option<&'static Combiner<Private>> {
        if matches!(self.scheme, Scheme::Bare) && !is_blinded(key.bytes(CKA_MODULUS).ok()?, data) {
            return None;
        }
        private_combiner(key)
    }

    /// Hashes and encodes.
    fn job<'a>(&self, key: Held<'a>, params: &Params, data: &[u8]) -> Result<Job<'a>> {
        let pss = self.scheme.pss(params)?;
        match self.scheme.hash() {
            Some(hash) => {
                let mut digest = [0; MAX_LENGTH];
                let digest = &mut digest[..hash.length()];
                hash.digest(data, digest).map_err(device_error)?;
                self.scheme.encode(key, pss, digest)
            }
            None => self.scheme.encode(key, pss, data),
        }
    }
}

impl Scheme {
    const fn hash(self) -> Option<Hash> {
        match self {
            Self::Bare => None,
            Self::Pkcs1(hash) | Self::Pss(hash) => hash,
        }
    }

    /// The parameters of PSS, which `check` has seen before.
    fn pss(self, params: &Params) -> Result<Option<Pss>> {
        let (Self::Pss(_), Params::Pss { hash, mgf, salt_length }) = (self, params) else {
            return Ok(None);
        };
        let known = |hash: Option<Hash>| hash.ok_or(Error::MECHANISM_PARAM_INVALID);
        Ok(Some(Pss {
            hash: known(function(*hash))?,
            mgf: known(hashes::of_mgf(*mgf).and_then(function))?,
            salt_length: usize::try_from(*salt_length)
                .map_err(|_| Error::MECHANISM_PARAM_INVALID)?,
        }))
    }

    /// The block for a digest, or for a message of the caller's.
    fn encode<'a>(self, key: Held<'a>, pss: Option<Pss>, data: &[u8]) -> Result<Job<'a>> {
        let rsa = plain_form(&key)?;
        let size = rsa.size();
        let mut block = [0; MOST];
        let place = &mut block[..size];
        match (self, pss) {
            (Self::Pkcs1(Some(hash)), _) => {
                let (info, length) = digest_info(hash, data);
                rsa.encode_pkcs1(&info[..length], place)
            }
            (Self::Pkcs1(None), _) => rsa.encode_pkcs1(data, place),
            (_, Some(pss)) => rsa.encode_pss(pss, data, place),
            _ => {
                let start = size.checked_sub(data.len()).ok_or(Error::DATA_LEN_RANGE)?;
                place[start..].copy_from_slice(data);
                Ok(())
            }
        }
        .map_err(|_| Error::DATA_LEN_RANGE)?;
        Ok(Job { key, size, block, result: Err(Error::DEVICE_ERROR) })
    }
}

/// A signature over a multi-part message.
#[derive(Debug)]
struct Stream {
    scheme: Scheme,
    pss: Option<Pss>,
    key: Arc<Key>,
    hash: digest::Stream,
    combiner: &'static Combiner<Private>,
}

impl SignatureStream for Stream {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        self.hash.update(data).map_err(device_error)
    }

    fn sign(&mut self, out: &mut [u8]) -> Result<usize> {
        let mut digest = [0; MAX_LENGTH];
        let digest = &mut digest[..self.scheme.hash().map_or(0, Hash::length)];
        self.hash.finish(digest).map_err(device_error)?;
        let mut job = self.scheme.encode(Held::Shared(Arc::clone(&self.key)), self.pss, digest)?;
        self.combiner.run(&mut job).map_err(no_result)?;
        job.write(out)
    }

    fn verify(&mut self, _: &[u8]) -> Result<()> {
        Err(Error::GENERAL_ERROR)
    }
}

/// Whether a number is below n and none of 0, 1 and n−1, which are their own powers: those no blinding
/// hides, and the library refuses them.
fn is_blinded(modulus: &[u8], number: &[u8]) -> bool {
    let mut last = modulus.to_vec();
    if let Some(byte) = last.last_mut() {
        // The modulus is odd.
        *byte &= !1;
    }
    let number = der::without_zeros(number);
    !matches!(number, [] | [1]) && (number.len(), number) < (last.len(), &last[..])
}

/// The library's form of the key, which the plain provider has prepared.
fn plain_form(key: &Key) -> Result<&Rsa> {
    key.prepared(|_| Err(Error::KEY_TYPE_INCONSISTENT))
}

fn private_form(key: &Key) -> Result<&PrivateKey> {
    key.prepared(|key| {
        let numbers = RsaNumbers {
            modulus: key.bytes(CKA_MODULUS)?,
            public_exponent: key.bytes(CKA_PUBLIC_EXPONENT)?,
            private_exponent: &[],
            prime_1: key.secret(CKA_PRIME_1)?,
            prime_2: key.secret(CKA_PRIME_2)?,
            exponent_1: key.secret(CKA_EXPONENT_1)?,
            exponent_2: key.secret(CKA_EXPONENT_2)?,
            coefficient: key.secret(CKA_COEFFICIENT)?,
        };
        PrivateKey::new(&numbers).map_err(|_| Error::KEY_TYPE_INCONSISTENT)
    })
}

fn public_form(key: &Key) -> Result<&PublicKey> {
    key.prepared(|key| {
        PublicKey::new(key.bytes(CKA_MODULUS)?, key.bytes(CKA_PUBLIC_EXPONENT)?)
            .map_err(|_| Error::KEY_TYPE_INCONSISTENT)
    })
}

/// A block to be raised to the private exponent, in place.
#[derive(Debug)]
struct Job<'a> {
    key: Held<'a>,
    size: usize,
    block: [u8; MOST],
    result: Result<()>,
}

impl Job<'_> {
    fn write(&self, out: &mut [u8]) -> Result<usize> {
        self.result?;
        put(&self.block[..self.size], out)
    }
}

impl Answer for Job<'static> {
    fn answer(self, out: &mut [u8]) -> Result<usize> {
        self.write(out)
    }
}

/// The private operation, for keys of one size.
#[derive(Debug)]
struct Private {
    break_even: usize,
}

static PRIVATE: [Combiner<Private>; 4] = [
    Combiner::new(Private { break_even: 2 }),
    Combiner::new(Private { break_even: 3 }),
    Combiner::new(Private { break_even: 3 }),
    Combiner::new(Private { break_even: 3 }),
];

/// The combiner of a key's size; `None` for a key that no kernel takes.
fn private_combiner(key: &Key) -> Option<&'static Combiner<Private>> {
    let combiner = PRIVATE.get(size_class(key)?)?;
    private_form(key).ok().map(|_| combiner)
}

fn size_class(key: &Key) -> Option<usize> {
    (key.bytes(CKA_MODULUS).ok()?.len() / 128).checked_sub(1)
}

impl Kernel for Private {
    type Job<'a> = Job<'a>;

    fn lanes(&self) -> usize {
        WIDTH
    }

    fn break_even(&self) -> usize {
        if rsa::available() { self.break_even } else { usize::MAX }
    }

    fn one(&self, job: &mut Self::Job<'_>) {
        let mut raised = [0; MOST];
        let raised = &mut raised[..job.size];
        let block = &mut job.block[..job.size];
        job.result = plain_form(&job.key)
            .and_then(|rsa| rsa.sign_raw(RsaPadding::None, block, raised).map_err(device_error));
        block.copy_from_slice(raised);
    }

    fn many(&self, jobs: &mut [&mut Self::Job<'_>]) {
        batch(jobs.len());
        let mut raised = [[0; MOST]; WIDTH];
        let mut requests = SmallVec::<[PrivateRequest<'_>; WIDTH]>::new();
        for (job, output) in jobs.iter().zip(&mut raised) {
            let Ok(key) = private_form(&job.key) else { break };
            let (input, output) = (&job.block[..job.size], &mut output[..job.size]);
            requests.push(PrivateRequest { key, input, output, result: Err(rsa::Failed) });
        }
        rsa::private(&mut requests);
        let results: SmallVec<[_; WIDTH]> = requests.iter().map(|request| request.result).collect();
        drop(requests);
        for (at, job) in jobs.iter_mut().enumerate() {
            match results.get(at) {
                Some(Ok(())) => {
                    job.block = raised[at];
                    job.result = Ok(());
                }
                // What went wrong in a lane may go right alone.
                _ => self.one(job),
            }
        }
    }
}

/// A signature to be opened and compared with the block that it must give (RFC 8017 §8.2.2).
#[derive(Debug)]
struct Check {
    expected: Job<'static>,
    given: [u8; MOST],
}

impl Answer for Check {
    fn answer(self, _: &mut [u8]) -> Result<usize> {
        self.expected.result.map(|()| 0)
    }
}

impl Check {
    fn judge(&mut self, opened: &[u8]) {
        let good = opened == &self.expected.block[..self.expected.size];
        self.expected.result = if good { Ok(()) } else { Err(Error::SIGNATURE_INVALID) };
    }
}

/// The public operation, for keys of one size.
#[derive(Debug)]
struct Public;

static PUBLIC: [Combiner<Public>; 4] = [const { Combiner::new(Public) }; 4];

fn public_combiner(key: &Key) -> Option<&'static Combiner<Public>> {
    let combiner = PUBLIC.get(size_class(key)?)?;
    public_form(key).ok().map(|_| combiner)
}

impl Kernel for Public {
    type Job<'a> = Check;

    fn lanes(&self) -> usize {
        WIDTH
    }

    fn break_even(&self) -> usize {
        if rsa::available() { 3 } else { usize::MAX }
    }

    fn one(&self, job: &mut Check) {
        let mut opened = [0; MOST];
        let size = job.expected.size;
        let opening = plain_form(&job.expected.key).and_then(|rsa| {
            rsa.verify_raw(RsaPadding::None, &job.given[..size], &mut opened[..size])
                .map_err(|_| Error::SIGNATURE_INVALID)
        });
        match opening {
            Ok(_) => job.judge(&opened[..size]),
            Err(error) => job.expected.result = Err(error),
        }
    }

    fn many(&self, jobs: &mut [&mut Check]) {
        batch(jobs.len());
        let mut opened = [[0; MOST]; WIDTH];
        let mut requests = SmallVec::<[PublicRequest<'_>; WIDTH]>::new();
        for (job, output) in jobs.iter().zip(&mut opened) {
            let Ok(key) = public_form(&job.expected.key) else { break };
            let size = job.expected.size;
            let (input, output) = (&job.given[..size], &mut output[..size]);
            requests.push(PublicRequest { key, input, output, result: Err(rsa::Failed) });
        }
        rsa::public(&mut requests);
        let results: SmallVec<[_; WIDTH]> = requests.iter().map(|request| request.result).collect();
        drop(requests);
        for (at, job) in jobs.iter_mut().enumerate() {
            match results.get(at) {
                Some(Ok(())) => {
                    let size = job.expected.size;
                    job.judge(&opened[at][..size]);
                }
                _ => self.one(job),
            }
        }
    }
}
