// SPDX-License-Identifier: Apache-2.0
//! Routes as people see them.

/// A provider that serves a mechanism, or could.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Candidate {
    /// Its name.
    pub provider: String,
    /// `CKF_…` of the operations that it has.
    pub flags: u64,
    /// What stands in its way; empty when nothing does.
    pub remark: String,
}
