// SPDX-License-Identifier: Apache-2.0
//! The two directions of an operation.

use metaslot_ck::{CK_OBJECT_CLASS, CKO_PRIVATE_KEY, CKO_PUBLIC_KEY, Error};

/// What a call's data is for, where one type serves both directions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Direction {
    /// Encrypt, sign, wrap or encapsulate.
    Forward,
    /// Decrypt, verify, unwrap or decapsulate.
    Backward,
}

impl Direction {
    /// Which half of a key pair signs, or verifies.
    #[must_use]
    pub const fn signature_class(self) -> CK_OBJECT_CLASS {
        match self {
            Self::Forward => CKO_PRIVATE_KEY,
            Self::Backward => CKO_PUBLIC_KEY,
        }
    }

    /// Which half of a key pair encrypts, wraps and encapsulates, or does the reverse.
    #[must_use]
    pub const fn cipher_class(self) -> CK_OBJECT_CLASS {
        match self {
            Self::Forward => CKO_PUBLIC_KEY,
            Self::Backward => CKO_PRIVATE_KEY,
        }
    }

    /// What a cipher says of data that has the wrong length.
    #[must_use]
    pub const fn length_error(self) -> Error {
        match self {
            Self::Forward => Error::DATA_LEN_RANGE,
            Self::Backward => Error::ENCRYPTED_DATA_LEN_RANGE,
        }
    }
}
