// SPDX-License-Identifier: Apache-2.0
//! RSA by PKCS #1 (PKCS#11 3.2 §6.1): signatures v1.5 and PSS, encryption v1.5 and OAEP. Keys are made, and those that are brought
//! completed, by AWS-LC's provider, which has the bare operation and recovery too.

mod cipher;
mod key;
mod signature;

use metaslot_spi::provider::Algorithm;

/// The tables of the files.
pub(crate) const PARTS: [&[Algorithm]; 2] = [&cipher::ROWS, &signature::ROWS];
