// SPDX-License-Identifier: Apache-2.0
//! Who logs in.

use metaslot_ck::*;

/// Who logs in (PKCS#11 3.2 §5.6.6).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum User {
    /// The security officer.
    SecurityOfficer,
    /// The ordinary user.
    User,
    /// The user again, for one operation with a `CKA_ALWAYS_AUTHENTICATE` key.
    ContextSpecific,
}

impl User {
    pub(crate) const fn number(self) -> CK_USER_TYPE {
        match self {
            Self::SecurityOfficer => CKU_SO,
            Self::User => CKU_USER,
            Self::ContextSpecific => CKU_CONTEXT_SPECIFIC,
        }
    }
}
