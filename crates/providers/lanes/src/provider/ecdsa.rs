// SPDX-License-Identifier: Apache-2.0
//! ECDSA on P-256 and P-384 (PKCS#11 3.2 §6.3.12, §6.3.13).

use super::batch::{Batch, Meeting};
use super::hashed::{self, Digest, DigestScheme, digest_of};
use super::over::{Call, Over, Ready, Signing};
use super::parts::{Held, Plain, Size, kept, put};
use super::prime::{self, FLAGS, Lanes, P256Kernel, P384Kernel, private_form, public_form};
use crate::weierstrass::{SignRequest, VerifyRequest};
use metaslot_awslc_wrapper::digest::{Hash, MAX_LENGTH};
use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, Direction, Signature, SignatureStream};
use metaslot_spi::{Key, Params};
use smallvec::SmallVec;
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

/// Rows for each mechanism that the plain provider has too, over its row for digests as well.
pub(super) fn rows(plain: Plain) -> Vec<Algorithm> {
    let mut rows = of_curve(plain, &SIGN_256, &VERIFY_256);
    rows.extend(of_curve(plain, &SIGN_384, &VERIFY_384));
    rows
}

fn of_curve<L: Lanes<N>, const N: usize>(
    plain: Plain,
    sign: &'static Meeting<Sign<L, N>>,
    verify: &'static Meeting<Verify<L, N>>,
) -> Vec<Algorithm> {
    let row = |(mechanism, hash): (CK_MECHANISM_TYPE, Option<Hash>)| {
        let (plain, bare) = (plain.row(mechanism)?.sign?, plain.row(CKM_ECDSA)?.sign?);
        let row = kept(Over(Ecdsa { hash, plain, bare, sign, verify }));
        let bits = 8 * L::LENGTH as u64;
        Some(Algorithm { extra_flags: FLAGS, ..Algorithm::signature(mechanism, (bits, bits), row) })
    };
    MECHANISMS.into_iter().filter_map(row).collect()
}

/// One row's signatures and verifications with keys of one curve.
#[derive(Debug)]
struct Ecdsa<L: Lanes<N>, const N: usize> {
    hash: Option<Hash>,
    plain: &'static dyn Signature,
    /// The plain provider's for a digest.
    bare: &'static dyn Signature,
    sign: &'static Meeting<Sign<L, N>>,
    verify: &'static Meeting<Verify<L, N>>,
}

impl<L: Lanes<N>, const N: usize> Signing for Ecdsa<L, N> {
    type Sign = Sign<L, N>;
    type Verify = Verify<L, N>;

    fn plain(&self) -> &'static dyn Signature {
        self.plain
    }

    fn serves(&self, key: &Key) -> bool {
        prime::serves::<L, N>(key)
    }

    fn sign<'a>(&self, call: Call<'a, '_>, _: &Params) -> Result<Ready<'a, Sign<L, N>>> {
        let Some(digest) = self.digest(call.data())? else { return Ok(None) };
        Ok(Some((self.sign, Signed::new::<L, N>(self.bare, call.held(), digest))))
    }

    fn verify<'a>(
        &self,
        call: Call<'a, '_>,
        _: &Params,
        signature: &[u8],
    ) -> Result<Ready<'a, Verify<L, N>>> {
        // The plain provider knows what to do with a signature of another length.
        if signature.len() != 2 * L::LENGTH {
            return Ok(None);
        }
        let Some(digest) = self.digest(call.data())? else { return Ok(None) };
        let signature = SmallVec::from_slice(signature);
        Ok(Some((self.verify, Signed { bare: self.bare, key: call.held(), digest, signature })))
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        _: &Params,
    ) -> Result<Option<Box<dyn SignatureStream>>> {
        let (Direction::Forward, Some(hash)) = (direction, self.hash) else { return Ok(None) };
        hashed::start(Multipart { bare: self.bare, sign: self.sign }, hash, key).map(Some)
    }
}

impl<L: Lanes<N>, const N: usize> Ecdsa<L, N> {
    /// What is signed: the digest, of which no more than 64 bytes ever count here. `None` for data that the
    /// plain provider has an error for.
    fn digest(&self, data: &[u8]) -> Result<Option<Digest>> {
        match self.hash {
            Some(hash) => digest_of(hash, data).map(Some),
            None if data.is_empty() => Ok(None),
            None => Ok(Some(Digest::from_slice(&data[..data.len().min(MAX_LENGTH)]))),
        }
    }
}

/// A signature over a multi-part message.
#[derive(Debug)]
struct Multipart<L: Lanes<N>, const N: usize> {
    bare: &'static dyn Signature,
    sign: &'static Meeting<Sign<L, N>>,
}

impl<L: Lanes<N>, const N: usize> DigestScheme for Multipart<L, N> {
    fn sign_digest(&self, key: &Key, digest: Digest, out: &mut [u8]) -> Result<usize> {
        let work = Signed::new::<L, N>(self.bare, Held::Borrowed(key), digest);
        Sign::<L, N>::answer(self.sign.run(work)?, out)
    }
}

static SIGN_256: Meeting<Sign<P256Kernel, 5>> = Meeting::new(Sign(P256Kernel));
static SIGN_384: Meeting<Sign<P384Kernel, 8>> = Meeting::new(Sign(P384Kernel));
static VERIFY_256: Meeting<Verify<P256Kernel, 5>> = Meeting::new(Verify(P256Kernel));
static VERIFY_384: Meeting<Verify<P384Kernel, 8>> = Meeting::new(Verify(P384Kernel));

/// A digest, and its signature that is made or checked.
struct Signed<'a> {
    bare: &'static dyn Signature,
    key: Held<'a>,
    digest: Digest,
    signature: SmallVec<[u8; 96]>,
}

impl<'a> Signed<'a> {
    fn new<L: Lanes<N>, const N: usize>(
        bare: &'static dyn Signature,
        key: Held<'a>,
        digest: Digest,
    ) -> Self {
        Self { bare, key, digest, signature: SmallVec::from_elem(0, 2 * L::LENGTH) }
    }
}

/// Signatures of one curve's keys.
#[derive(Debug)]
struct Sign<L, const N: usize>(L);

impl<L: Lanes<N>, const N: usize> Batch for Sign<L, N> {
    type Work<'a> = Signed<'a>;
    type Request<'r> = SignRequest<'r, N>;

    const ONE_IN_A_LANE: bool = L::SIGN_ALONE;

    fn size(&self) -> Size {
        L::SIGN.when(L::available())
    }

    fn request<'r>(&self, work: &'r mut Signed<'_>) -> Option<SignRequest<'r, N>> {
        let key = private_form::<L, N>(&work.key).ok()?;
        Some(SignRequest::new(key, &work.digest, &mut work.signature))
    }

    fn compute(&self, requests: &mut [SignRequest<'_, N>]) {
        L::sign(requests);
    }

    fn well(request: &SignRequest<'_, N>) -> bool {
        request.result.is_ok()
    }

    fn alone(&self, work: &mut Signed<'_>) -> Result<()> {
        work.bare.sign(&work.key, &Params::None, &work.digest, &mut work.signature).map(drop)
    }

    fn answer(work: Signed<'_>, out: &mut [u8]) -> Result<usize> {
        put(&work.signature, out)
    }
}

/// Verifications for one curve's keys.
#[derive(Debug)]
struct Verify<L, const N: usize>(L);

impl<L: Lanes<N>, const N: usize> Batch for Verify<L, N> {
    type Work<'a> = Signed<'a>;
    type Request<'r> = VerifyRequest<'r, N>;

    fn size(&self) -> Size {
        L::VERIFY.when(L::available())
    }

    fn request<'r>(&self, work: &'r mut Signed<'_>) -> Option<VerifyRequest<'r, N>> {
        let key = public_form::<L, N>(&work.key).ok()?;
        Some(VerifyRequest::new(key, &work.digest, &work.signature))
    }

    fn compute(&self, requests: &mut [VerifyRequest<'_, N>]) {
        L::verify(requests);
    }

    fn well(request: &VerifyRequest<'_, N>) -> bool {
        request.result.is_ok()
    }

    fn result(_: &Signed<'_>, well: bool) -> Option<Result<()>> {
        Some(if well { Ok(()) } else { Err(Error::SIGNATURE_INVALID) })
    }

    fn alone(&self, work: &mut Signed<'_>) -> Result<()> {
        work.bare.verify(&work.key, &Params::None, &work.digest, &work.signature)
    }
}
