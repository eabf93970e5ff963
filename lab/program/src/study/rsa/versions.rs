// SPDX-License-Identifier: Apache-2.0
//! The versions that are compared, and what is counted of them.

use crate::{Failure, Result};
use metaslot_studies::rsa::{Key, Version};

pub(super) const BITS: &str = "bits";

pub(super) const SIZES: [usize; 2] = [1024, 2048];

pub(super) const ROWS_32: &str = "32-bit rows";

pub(super) const ROWS_64: &str = "64-bit rows";

pub(super) const FUSED: &str = "64-bit fused";

pub(super) const LIBRARY: &str = "AWS-LC";

pub(super) const LANES: &str = "IFMA lanes";

/// The study's own versions by name.
pub(super) const OWN: [(&str, Version); 3] =
    [(ROWS_32, Version::Rows32), (ROWS_64, Version::Rows64), (FUSED, Version::Fused64)];

/// What a counter's name begins with: calls of a function in one operation, and the CPU time of all of
/// them.
pub(super) const CALLS: &str = "calls: ";

pub(super) const TIME: &str = "ns: ";

pub(super) fn key(bits: usize) -> Result<Key> {
    Key::of_bits(bits).ok_or_else(|| Failure::new(format!("no RSA key of {bits} bits")))
}
