// SPDX-License-Identifier: Apache-2.0
//! How a token's file says what it is.

/// The format that this release writes, in `PRAGMA user_version`, while the token has no identities.
pub(crate) const FORMAT: i64 = 2;
/// The format of a token that has, or had, identities: the newest that is opened.
pub(crate) const IDENTITIES: i64 = 3;
/// The oldest that is opened. A login makes it the current one.
pub(crate) const OLDEST: i64 = 1;
/// "MSLT", in `PRAGMA application_id`.
pub(crate) const APPLICATION: i64 = 0x4d53_4c54;
