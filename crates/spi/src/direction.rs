// SPDX-License-Identifier: Apache-2.0
//! The two directions of an operation.

/// What a call's data is for, where one type serves both directions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Direction {
    /// Encrypt, sign, wrap or encapsulate.
    Forward,
    /// Decrypt, verify, unwrap or decapsulate.
    Backward,
}
