// SPDX-License-Identifier: Apache-2.0
//! Hash functions that a message is digested with before it is signed, each with the name that is signed with the digest (FIPS 204
//! §5.4, FIPS 205 §10.2.2).

use crate::Result;
use crate::digest::{Hash, MAX_LENGTH, Stream};
use crate::shake::{self, Shake};

/// A hash function.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Function {
    /// One of a fixed length.
    Hash(Hash),
    /// One of any length, which is fixed here.
    Shake(shake::Function),
}

/// The longest digest, in bytes.
pub const LONGEST: usize = MAX_LENGTH;

impl Function {
    /// Of the digest, in bytes (FIPS 204, algorithm 4).
    #[must_use]
    pub const fn length(self) -> usize {
        match self {
            Self::Hash(hash) => hash.length(),
            Self::Shake(shake::Function::Shake128) => 32,
            Self::Shake(shake::Function::Shake256) => 64,
        }
    }

    /// Its object identifier, below 2.16.840.1.101.3.4.2, as DER; none of a function that NIST does not have there.
    #[must_use]
    pub fn identifier(self) -> Option<[u8; 11]> {
        let last = match self {
            Self::Hash(Hash::Sha256) => 1,
            Self::Hash(Hash::Sha384) => 2,
            Self::Hash(Hash::Sha512) => 3,
            Self::Hash(Hash::Sha224) => 4,
            Self::Hash(Hash::Sha512_224) => 5,
            Self::Hash(Hash::Sha512_256) => 6,
            Self::Hash(Hash::Sha3_224) => 7,
            Self::Hash(Hash::Sha3_256) => 8,
            Self::Hash(Hash::Sha3_384) => 9,
            Self::Hash(Hash::Sha3_512) => 10,
            Self::Shake(shake::Function::Shake128) => 11,
            Self::Shake(shake::Function::Shake256) => 12,
            Self::Hash(Hash::Md5 | Hash::Sha1) => return None,
        };
        Some([0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, last])
    }
}

/// A digest in the middle.
#[derive(Debug)]
pub enum Hashing {
    /// By [`Function::Hash`].
    Hash(Stream),
    /// By [`Function::Shake`].
    Shake(Shake),
}

impl Hashing {
    /// The beginning.
    ///
    /// # Errors
    /// When memory runs out.
    pub fn new(function: Function) -> Result<Self> {
        match function {
            Function::Hash(hash) => Stream::new(hash).map(Self::Hash),
            Function::Shake(function) => Shake::new(function).map(Self::Shake),
        }
    }

    /// More of the message.
    ///
    /// # Errors
    /// When the library fails.
    pub fn update(&mut self, data: &[u8]) -> Result<()> {
        match self {
            Self::Hash(stream) => stream.update(data),
            Self::Shake(stream) => stream.update(data),
        }
    }

    /// The digest, whose length is [`Function::length`].
    ///
    /// # Errors
    /// When the library fails.
    pub fn finish(self, digest: &mut [u8]) -> Result<()> {
        match self {
            Self::Hash(mut stream) => stream.finish(digest),
            Self::Shake(stream) => stream.finish(digest),
        }
    }
}
