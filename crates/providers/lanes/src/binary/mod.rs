// SPDX-License-Identifier: Apache-2.0
//! Elliptic curves over GF(2^m): keys, ECDSA, Diffie-Hellman.
//!
//! A request may be alone: one in AVX-512 registers is already faster than scalar code. Up to eight on one curve are computed
//! together, four in each pass of the ladder. On processors without VPCLMULQDQ the same curve code runs one request at a
//! time, with PCLMULQDQ or with none; on all it takes the same time for all secrets.
//!
//! [`form`] says what the curve code needs of a field's arithmetic; `vector`, `clmul` and `single` offer it. Secret
//! numbers lie in [`metaslot_memory::Secret`]; what a computation leaves on the stack is wiped.

mod bytes;
#[cfg(target_arch = "x86_64")]
mod clmul;
mod curve;
mod ecdh;
mod ecdsa;
mod field;
mod form;
mod inverse;
mod key;
mod order;
mod params;
mod point;
#[cfg(target_arch = "x86_64")]
mod product;
mod single;
mod table;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod vector;
#[cfg(target_arch = "x86_64")]
mod vpclmul;

pub use curve::Curve;
pub use ecdh::{Derive, derive};
pub use ecdsa::{Sign, Verify, sign, verify};
pub use key::{PrivateKey, PublicKey, generate, public_keys};

use curve::Kind;
use std::fmt;

/// How many requests are computed together at most.
pub const BATCH: usize = field::LANES;

/// Words of the longest field.
const MAX_WORDS: usize = 9;

/// Whether the requests of a batch are computed side by side on this machine; if not, one after the other.
#[must_use]
pub fn available() -> bool {
    #[cfg(target_arch = "x86_64")]
    return matches!(Kind::best(), Kind::Vector(_));
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// Why there is no result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Error {
    /// The two keys belong to different curves.
    Curve,
    /// The private key is not between 1 and n - 1.
    Key,
    /// The place for the result, or the signature, does not have the curve's length.
    Length,
    /// It is not computed yet.
    Pending,
    /// The bytes are not a point of order n.
    Point,
    /// There are no random numbers.
    Random,
    /// The signature is wrong.
    Signature,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Curve => "the keys belong to different curves",
            Self::Key => "the private key is out of range",
            Self::Length => "the length is not the curve's",
            Self::Pending => "the request is not computed yet",
            Self::Point => "the bytes are no valid point",
            Self::Random => "there are no random numbers",
            Self::Signature => "the signature is wrong",
        })
    }
}

impl std::error::Error for Error {}

/// What belongs to a curve.
trait Request {
    fn curve(&self) -> Curve;
}

/// Calls `run` with up to [`BATCH`] requests of the same curve, until none is left.
fn grouped<R: Request>(mut waiting: Vec<&mut R>, mut run: impl FnMut(Curve, &mut [&mut R])) {
    while let Some(first) = waiting.first() {
        let curve = first.curve();
        let same = waiting.extract_if(.., |request| request.curve() == curve);
        run(curve, &mut same.take(BATCH).collect::<Vec<_>>());
    }
}
