// SPDX-License-Identifier: Apache-2.0
//! Which hash functions there are.

use std::ffi::CStr;

/// A hash function.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(missing_docs, reason = "names of functions")]
pub enum Hash {
    Md5,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
    Sha512_224,
    Sha512_256,
    Sha3_224,
    Sha3_256,
    Sha3_384,
    Sha3_512,
}

/// The longest digest, in bytes.
pub const MAX_LENGTH: usize = 64;

impl Hash {
    /// All of them; each stands at its own number.
    pub const ALL: [Self; 12] = [
        Self::Md5,
        Self::Sha1,
        Self::Sha224,
        Self::Sha256,
        Self::Sha384,
        Self::Sha512,
        Self::Sha512_224,
        Self::Sha512_256,
        Self::Sha3_224,
        Self::Sha3_256,
        Self::Sha3_384,
        Self::Sha3_512,
    ];

    /// Length of the digest, in bytes.
    #[must_use]
    pub const fn length(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha224 | Self::Sha512_224 | Self::Sha3_224 => 28,
            Self::Sha256 | Self::Sha512_256 | Self::Sha3_256 => 32,
            Self::Sha384 | Self::Sha3_384 => 48,
            Self::Sha512 | Self::Sha3_512 => 64,
        }
    }

    /// What OpenSSL calls it.
    pub(crate) const fn name(self) -> &'static CStr {
        match self {
            Self::Md5 => c"MD5",
            Self::Sha1 => c"SHA1",
            Self::Sha224 => c"SHA2-224",
            Self::Sha256 => c"SHA2-256",
            Self::Sha384 => c"SHA2-384",
            Self::Sha512 => c"SHA2-512",
            Self::Sha512_224 => c"SHA2-512/224",
            Self::Sha512_256 => c"SHA2-512/256",
            Self::Sha3_224 => c"SHA3-224",
            Self::Sha3_256 => c"SHA3-256",
            Self::Sha3_384 => c"SHA3-384",
            Self::Sha3_512 => c"SHA3-512",
        }
    }
}
