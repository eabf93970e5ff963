// SPDX-License-Identifier: Apache-2.0
//! Elliptic curves (PKCS#11 3.2 §6.3): the short ones over prime fields, and Curve25519 and Curve448 in their Edwards and Montgomery
//! forms.

mod ecdh;
mod ecdsa;
mod eddsa;
mod montgomery;
mod number;
mod prime;
mod private_key;

pub(crate) use private_key::{complete, decode, encode};

use metaslot_spi::provider::Algorithm;

/// The tables of the files.
pub(crate) const PARTS: [&[Algorithm]; 5] =
    [&ecdh::ROWS, &ecdsa::ROWS, &eddsa::ROWS, &montgomery::ROWS, &prime::ROWS];
