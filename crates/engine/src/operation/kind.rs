// SPDX-License-Identifier: Apache-2.0
//! The kinds of operations that a session can have, and what the standard calls them elsewhere.

use metaslot_ck::*;
use metaslot_rules::policy::KeyUse;
use metaslot_spi::provider::Direction;

/// One kind; a session has at most one operation of each (PKCS#11 3.2 §5.17).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OperationKind {
    /// `C_Digest…`
    Digest,
    /// `C_Encrypt…`
    Encrypt,
    /// `C_Decrypt…`
    Decrypt,
    /// `C_Sign…`
    Sign,
    /// `C_SignRecover…`
    SignRecover,
    /// `C_Verify…`
    Verify,
    /// `C_VerifyRecover…`
    VerifyRecover,
    /// `C_VerifySignature…`: the signature comes first.
    VerifySignature,
}

impl OperationKind {
    /// Each of them.
    pub const ALL: [Self; 8] = [
        Self::Digest,
        Self::Encrypt,
        Self::Decrypt,
        Self::Sign,
        Self::SignRecover,
        Self::Verify,
        Self::VerifyRecover,
        Self::VerifySignature,
    ];

    /// The flag that names it in `C_SessionCancel` and `CK_MECHANISM_INFO`.
    pub(crate) const fn flag(self) -> u64 {
        match self {
            Self::Digest => CKF_DIGEST,
            Self::Encrypt => CKF_ENCRYPT,
            Self::Decrypt => CKF_DECRYPT,
            Self::Sign => CKF_SIGN,
            Self::SignRecover => CKF_SIGN_RECOVER,
            Self::Verify | Self::VerifySignature => CKF_VERIFY,
            Self::VerifyRecover => CKF_VERIFY_RECOVER,
        }
    }

    /// The attribute of a key that may do it.
    pub(crate) const fn usage(self) -> CK_ATTRIBUTE_TYPE {
        match self {
            // No key has a usage for it.
            Self::Digest => 0,
            Self::Encrypt => CKA_ENCRYPT,
            Self::Decrypt => CKA_DECRYPT,
            Self::Sign => CKA_SIGN,
            Self::SignRecover => CKA_SIGN_RECOVER,
            Self::Verify | Self::VerifySignature => CKA_VERIFY,
            Self::VerifyRecover => CKA_VERIFY_RECOVER,
        }
    }

    /// What it does with its key, as policy calls it.
    pub(crate) const fn key_use(self) -> KeyUse {
        match self {
            Self::Digest => KeyUse::DigestKey,
            Self::Encrypt => KeyUse::Encrypt,
            Self::Decrypt => KeyUse::Decrypt,
            Self::Sign => KeyUse::Sign,
            Self::SignRecover => KeyUse::SignRecover,
            Self::Verify | Self::VerifySignature => KeyUse::Verify,
            Self::VerifyRecover => KeyUse::VerifyRecover,
        }
    }

    /// Whether it makes or opens.
    pub(crate) const fn direction(self) -> Direction {
        match self {
            Self::Digest | Self::Encrypt | Self::Sign | Self::SignRecover => Direction::Forward,
            Self::Decrypt | Self::Verify | Self::VerifyRecover | Self::VerifySignature => {
                Direction::Backward
            }
        }
    }

    /// The kinds that a function of the standard works on; two for the functions of §5.17.
    #[must_use]
    pub const fn of(function: Function) -> &'static [Self] {
        match function {
            Function::DigestInit
            | Function::Digest
            | Function::DigestUpdate
            | Function::DigestKey
            | Function::DigestFinal => &[Self::Digest],
            Function::EncryptInit
            | Function::Encrypt
            | Function::EncryptUpdate
            | Function::EncryptFinal => &[Self::Encrypt],
            Function::DecryptInit
            | Function::Decrypt
            | Function::DecryptUpdate
            | Function::DecryptFinal => &[Self::Decrypt],
            Function::SignInit | Function::Sign | Function::SignUpdate | Function::SignFinal => {
                &[Self::Sign]
            }
            Function::SignRecoverInit | Function::SignRecover => &[Self::SignRecover],
            Function::VerifyInit
            | Function::Verify
            | Function::VerifyUpdate
            | Function::VerifyFinal => &[Self::Verify],
            Function::VerifyRecoverInit | Function::VerifyRecover => &[Self::VerifyRecover],
            Function::VerifySignatureInit
            | Function::VerifySignature
            | Function::VerifySignatureUpdate
            | Function::VerifySignatureFinal => &[Self::VerifySignature],
            Function::DigestEncryptUpdate => &[Self::Digest, Self::Encrypt],
            Function::DecryptDigestUpdate => &[Self::Decrypt, Self::Digest],
            Function::SignEncryptUpdate => &[Self::Sign, Self::Encrypt],
            Function::DecryptVerifyUpdate => &[Self::Decrypt, Self::Verify],
            _ => &[],
        }
    }
}
