// SPDX-License-Identifier: Apache-2.0
//! Agreement with X25519 (PKCS#11 3.2 §6.3.17; RFC 7748).

use super::agree::{self, Agreed, Agreeing};
use super::batch::{Batch, Meeting};
use super::parts::{Plain, Size};
use crate::curve25519::{self, KEY_LENGTH, X25519Key, X25519Request};
use metaslot_ck::*;
use metaslot_spi::provider::Algorithm;
use metaslot_spi::{Key, key_info, number_key};

/// Requests in one call of the kernel, which share an inversion.
const BATCH: usize = 32;
const SIZE: Size = Size { lanes: BATCH, jobs: 3, threads: 4 };

/// The row, where the plain provider has it too.
pub(super) fn rows(plain: Plain) -> Vec<Algorithm> {
    let flags = CKF_EC_F_P | CKF_EC_NAMEDCURVE | CKF_EC_CURVENAME;
    agree::row(plain, CKM_ECDH1_DERIVE, flags, &AGREE).into_iter().collect()
}

static AGREE: Meeting<X25519> = Meeting::new(X25519);

/// Agreements.
#[derive(Debug)]
struct X25519;

impl Agreeing for X25519 {
    const LENGTH: usize = KEY_LENGTH;

    fn serves(key: &Key) -> bool {
        key.key_type() == CKK_EC_MONTGOMERY
            && curve25519::available()
            && number_key::is_long(key, KEY_LENGTH)
    }
}

fn private_form(key: &Key) -> Result<&X25519Key> {
    key.prepared(|key| {
        let private =
            key.secret(CKA_VALUE)?.try_into().map_err(|_| Error::KEY_TYPE_INCONSISTENT)?;
        Ok(X25519Key::new(private))
    })
}

impl Batch for X25519 {
    type Work<'a> = Agreed<'a>;
    type Request<'r> = X25519Request<'r>;

    fn size(&self) -> Size {
        SIZE.when(curve25519::available())
    }

    fn request<'r>(&self, work: &'r mut Agreed<'_>) -> Option<X25519Request<'r>> {
        let (key, peer, secret) = work.asked();
        let (key, peer) = (private_form(key).ok()?, key_info::number_point(peer)?);
        Some(X25519Request::new(key, peer, secret.try_into().ok()?))
    }

    fn compute(&self, requests: &mut [X25519Request<'_>]) {
        curve25519::x25519(requests);
    }

    fn well(request: &X25519Request<'_>) -> bool {
        request.result.is_ok()
    }

    fn alone(&self, work: &mut Agreed<'_>) -> Result<()> {
        work.alone()
    }

    fn answer(work: Agreed<'_>, out: &mut [u8]) -> Result<usize> {
        work.answer(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::agree::bad_points_fail_alone;

    #[test]
    fn a_point_of_small_order_fails_alone() {
        let oid = [0x06, 0x03, 0x2b, 0x65, 0x6e];
        bad_points_fail_alone(X25519, CKM_EC_MONTGOMERY_KEY_PAIR_GEN, CKK_EC_MONTGOMERY, &oid);
    }
}
