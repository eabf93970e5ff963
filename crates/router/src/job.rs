// SPDX-License-Identifier: Apache-2.0
//! What costs are asked for.

use metaslot_ck::{CK_MECHANISM_TYPE, CKM_ML_DSA_EXTERNAL_MU};

/// What is to be done, for who compares costs.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// `CKM_…`
    pub mechanism: CK_MECHANISM_TYPE,
    /// `CKF_…`
    pub operation: u64,
    /// Bits of an asymmetric key, otherwise 0.
    pub key_bits: u32,
    /// Bytes of data.
    pub bytes: usize,
}

impl Job {
    /// How much data it is tried with: a µ has one length.
    pub(crate) const fn data_length(self) -> usize {
        if self.mechanism == CKM_ML_DSA_EXTERNAL_MU { 64 } else { self.bytes }
    }
}

/// Beside the operation of a job that is measured: as many threads as [`crowd`](crate::cost::crowd) says ask for this at once.
pub const CROWD: u64 = 1 << 32;
