// SPDX-License-Identifier: Apache-2.0
//! Ed25519 itself (PKCS#11 3.2 §6.3.14); contexts and pre-hashing are the plain provider's. A signature is made faster than
//! threads switch, so only asynchronous sessions batch those; verifications are worth waiting for.

use super::batch::{Batch, Meeting};
use super::over::{Call, Over, Ready, Signing};
use super::parts::{Held, Message, Plain, Size, device_error, kept, put};
use crate::curve25519::{self, KEY_LENGTH, PrivateKey, PublicKey, SignRequest, VerifyRequest};
use metaslot_awslc_wrapper::curve25519::ED25519_SIGNATURE_LENGTH as LENGTH;
use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, Direction, Signature};
use metaslot_spi::{Key, Params, key_info, number_key};

/// Requests in one call of the kernel.
const BATCH: usize = 16;
const SIGN_SIZE: Size = Size { lanes: BATCH, jobs: 2, threads: 5 };
const VERIFY_SIZE: Size = Size { lanes: BATCH, jobs: 2, threads: 3 };

/// The row, where the plain provider has it too.
pub(super) fn rows(plain: Plain) -> Vec<Algorithm> {
    let row = plain.row(CKM_EDDSA).and_then(|plain| {
        let (sign, verify) = (plain.sign?, plain.verify?);
        Some(Algorithm {
            sign: Some(kept(Over(EdDsa { direction: Direction::Forward, plain: sign }))),
            verify: Some(kept(Over(EdDsa { direction: Direction::Backward, plain: verify }))),
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

impl Signing for EdDsa {
    type Sign = Sign;
    type Verify = Verify;

    fn plain(&self) -> &'static dyn Signature {
        self.plain
    }

    fn serves(&self, key: &Key) -> bool {
        curve25519::available() && number_key::is_long(key, KEY_LENGTH)
    }

    fn for_waiting(&self) -> bool {
        self.direction == Direction::Backward
    }

    fn sign<'a>(&self, call: Call<'a, '_>, params: &Params) -> Result<Ready<'a, Sign>> {
        if call.waits() || !matches!(params, Params::None) {
            return Ok(None);
        }
        Ok(Some((&SIGN, self.work(call, [0; LENGTH])?)))
    }

    fn verify<'a>(
        &self,
        call: Call<'a, '_>,
        params: &Params,
        signature: &[u8],
    ) -> Result<Ready<'a, Verify>> {
        match (params, signature.try_into()) {
            (Params::None, Ok(signature)) => Ok(Some((&VERIFY, self.work(call, signature)?))),
            _ => Ok(None),
        }
    }
}

impl EdDsa {
    fn work<'a>(&self, call: Call<'a, '_>, signature: [u8; LENGTH]) -> Result<Signed<'a>> {
        Ok(Signed { plain: self.plain, key: call.held(), message: call.message()?, signature })
    }
}

fn private_form(key: &Key) -> Result<&PrivateKey> {
    key.prepared(|key| {
        let seed = key.secret(CKA_VALUE)?.try_into().map_err(|_| Error::KEY_SIZE_RANGE)?;
        PrivateKey::new(seed).map_err(device_error)
    })
}

fn public_form(key: &Key) -> Result<&PublicKey> {
    key.prepared(|key| {
        let point = key_info::number_point(key.bytes(CKA_EC_POINT)?);
        point.map(PublicKey::new).ok_or(Error::KEY_TYPE_INCONSISTENT)
    })
}

/// A message, and its signature that is made or checked.
struct Signed<'a> {
    plain: &'static dyn Signature,
    key: Held<'a>,
    message: Message<'a>,
    signature: [u8; LENGTH],
}

/// Signing.
#[derive(Debug)]
struct Sign;

/// Checking.
#[derive(Debug)]
struct Verify;

static SIGN: Meeting<Sign> = Meeting::new(Sign);
static VERIFY: Meeting<Verify> = Meeting::new(Verify);

impl Batch for Sign {
    type Work<'a> = Signed<'a>;
    type Request<'r> = SignRequest<'r>;

    fn size(&self) -> Size {
        SIGN_SIZE.when(curve25519::available())
    }

    fn request<'r>(&self, work: &'r mut Signed<'_>) -> Option<SignRequest<'r>> {
        let key = private_form(&work.key).ok()?;
        Some(SignRequest::new(key, &work.message, &mut work.signature))
    }

    fn compute(&self, requests: &mut [SignRequest<'_>]) {
        curve25519::sign(requests);
    }

    fn well(request: &SignRequest<'_>) -> bool {
        request.result.is_ok()
    }

    fn alone(&self, work: &mut Signed<'_>) -> Result<()> {
        work.plain.sign(&work.key, &Params::None, &work.message, &mut work.signature).map(drop)
    }

    fn answer(work: Signed<'_>, out: &mut [u8]) -> Result<usize> {
        put(&work.signature, out)
    }
}

impl Batch for Verify {
    type Work<'a> = Signed<'a>;
    type Request<'r> = VerifyRequest<'r>;

    fn size(&self) -> Size {
        VERIFY_SIZE.when(curve25519::available())
    }

    fn request<'r>(&self, work: &'r mut Signed<'_>) -> Option<VerifyRequest<'r>> {
        let key = public_form(&work.key).ok()?;
        Some(VerifyRequest::new(key, &work.message, &work.signature))
    }

    fn compute(&self, requests: &mut [VerifyRequest<'_>]) {
        curve25519::verify(requests);
    }

    fn well(request: &VerifyRequest<'_>) -> bool {
        request.result.is_ok()
    }

    fn result(_: &Signed<'_>, well: bool) -> Option<Result<()>> {
        Some(if well { Ok(()) } else { Err(Error::SIGNATURE_INVALID) })
    }

    fn alone(&self, work: &mut Signed<'_>) -> Result<()> {
        work.plain.verify(&work.key, &Params::None, &work.message, &work.signature)
    }
}
