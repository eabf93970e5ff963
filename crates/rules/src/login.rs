// SPDX-License-Identifier: Apache-2.0
//! Who is logged in.

/// Who is logged in to a token, in this process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Login {
    /// No user.
    Public,
    /// The user.
    User,
    /// The security officer.
    So,
}
