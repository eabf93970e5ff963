// SPDX-License-Identifier: Apache-2.0
//! The two directions of an operation.

use metaslot_ck::Error;

/// What a call's data is for, where one type serves both directions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Direction {
    /// Encrypt, sign, wrap or encapsulate.
    Forward,
    /// Decrypt, verify, unwrap or decapsulate.
    Backward,
}

impl Direction {
    /// What a cipher says of data that has the wrong length.
    #[must_use]
    pub const fn length_error(self) -> Error {
        match self {
            Self::Forward => Error::DATA_LEN_RANGE,
            Self::Backward => Error::ENCRYPTED_DATA_LEN_RANGE,
        }
    }
}
