// SPDX-License-Identifier: Apache-2.0
//! Elliptic curves over GF(2^m) (PKCS#11 3.2 §6.3): this provider alone has them, so that it does everything that belongs
//! to their keys, on every processor.

mod ecdh;
mod ecdsa;
mod key;
mod row;

pub(super) use key::{complete, decode, encode};

use metaslot_spi::provider::Algorithm;

/// All rows.
pub(super) fn rows() -> Vec<Algorithm> {
    [key::rows(), ecdsa::rows(), ecdh::rows()].into_iter().flatten().collect()
}
