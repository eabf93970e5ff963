// SPDX-License-Identifier: Apache-2.0
//! ECDH with one key pair a side on P-256 and P-384 (PKCS#11 3.2 §6.3.17, §6.3.18), whose cofactor is 1: both mechanisms are one.

use super::agree::{self, Agreed, Agreeing};
use super::batch::{Batch, Meeting};
use super::parts::{Plain, Size};
use super::prime::{self, FLAGS, Lanes, P256Kernel, P384Kernel, private_form};
use crate::weierstrass::DeriveRequest;
use metaslot_ck::*;
use metaslot_spi::provider::Algorithm;
use metaslot_spi::{Key, key_info};

/// Rows for each of the two mechanisms that the plain provider has too.
pub(super) fn rows(plain: Plain) -> Vec<Algorithm> {
    let rows = |mechanism| {
        [
            agree::row(plain, mechanism, FLAGS, &DERIVE_256),
            agree::row(plain, mechanism, FLAGS, &DERIVE_384),
        ]
    };
    [CKM_ECDH1_DERIVE, CKM_ECDH1_COFACTOR_DERIVE].into_iter().flat_map(rows).flatten().collect()
}

static DERIVE_256: Meeting<Derive<P256Kernel, 5>> = Meeting::new(Derive(P256Kernel));
static DERIVE_384: Meeting<Derive<P384Kernel, 8>> = Meeting::new(Derive(P384Kernel));

/// Agreements with one curve's keys.
#[derive(Debug)]
struct Derive<L, const N: usize>(L);

impl<L: Lanes<N>, const N: usize> Agreeing for Derive<L, N> {
    const LENGTH: usize = L::LENGTH;

    fn serves(key: &Key) -> bool {
        prime::serves::<L, N>(key)
    }
}

impl<L: Lanes<N>, const N: usize> Batch for Derive<L, N> {
    type Work<'a> = Agreed<'a>;
    type Request<'r> = DeriveRequest<'r, N>;

    fn size(&self) -> Size {
        L::DERIVE.when(L::available())
    }

    fn request<'r>(&self, work: &'r mut Agreed<'_>) -> Option<DeriveRequest<'r, N>> {
        let (key, peer, secret) = work.asked();
        let key = private_form::<L, N>(key).ok()?;
        Some(DeriveRequest::new(key, key_info::ec_point(L::LENGTH, peer), secret))
    }

    fn compute(&self, requests: &mut [DeriveRequest<'_, N>]) {
        L::derive(requests);
    }

    fn well(request: &DeriveRequest<'_, N>) -> bool {
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
    fn a_point_off_p256_fails_alone() {
        let derive = Derive(P256Kernel);
        bad_points_fail_alone(derive, CKM_EC_KEY_PAIR_GEN, CKK_EC, P256Kernel::OID);
    }

    #[test]
    fn a_point_off_p384_fails_alone() {
        let derive = Derive(P384Kernel);
        bad_points_fail_alone(derive, CKM_EC_KEY_PAIR_GEN, CKK_EC, P384Kernel::OID);
    }
}
