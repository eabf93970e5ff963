// SPDX-License-Identifier: Apache-2.0
//! Elliptic curves over GF(2^m) (PKCS#11 3.2 §6.3): this provider alone has them, so that it does everything that belongs
//! to their keys, on every processor.

mod ecdh;
mod ecdsa;
mod key;

pub(super) use key::{complete, decode, encode};

use super::Wins;
use super::batch::{Batch, Meeting};
use crate::binary::{self, Curve};
use metaslot_ck::*;
use metaslot_spi::provider::Algorithm;

/// Fields that are served, in bits.
const SIZES: (u64, u64) = (163, 571);

/// What `CK_MECHANISM_INFO` says of EC mechanisms (§6.3.1).
const FLAGS: u64 =
    CKF_EC_F_2M | CKF_EC_NAMEDCURVE | CKF_EC_UNCOMPRESS | CKF_EC_COMPRESS | CKF_EC_CURVENAME;

/// A row with what all rows have.
const fn row(mechanism: CK_MECHANISM_TYPE) -> Algorithm {
    Algorithm { mechanism, key_sizes: SIZES, extra_flags: FLAGS, ..Algorithm::NONE }
}

/// All rows.
pub(super) fn rows() -> Vec<Algorithm> {
    [key::rows(), ecdsa::rows(), ecdh::rows()].into_iter().flatten().collect()
}

/// Works of one kind meet by curve.
type Meetings<B> = [Meeting<B>; Curve::ALL.len()];

/// From when on a batch wins. Where there is none, one lane does what there is to do.
fn wins() -> Wins {
    Wins::from(2).when(binary::available())
}
