// SPDX-License-Identifier: Apache-2.0
//! What the rows of binary curves have in common.

use crate::binary::{self, BATCH, Curve};
use crate::provider::batch::Meeting;
use crate::provider::parts::Size;
use metaslot_ck::*;
use metaslot_spi::provider::Algorithm;

/// Fields that are served, in bits.
const SIZES: (u64, u64) = (163, 571);

/// What `CK_MECHANISM_INFO` says of EC mechanisms (§6.3.1).
const FLAGS: u64 =
    CKF_EC_F_2M | CKF_EC_NAMEDCURVE | CKF_EC_UNCOMPRESS | CKF_EC_COMPRESS | CKF_EC_CURVENAME;

/// A row with what all rows have.
pub(super) const fn row(mechanism: CK_MECHANISM_TYPE) -> Algorithm {
    Algorithm { mechanism, key_sizes: SIZES, extra_flags: FLAGS, ..Algorithm::NONE }
}

/// Works of one kind meet by curve.
pub(super) type Meetings<B> = [Meeting<B>; Curve::ALL.len()];

/// From when on a batch wins. Where there is none, one lane does what there is to do.
pub(super) fn size() -> Size {
    Size::new(BATCH, 2).when(binary::available())
}
