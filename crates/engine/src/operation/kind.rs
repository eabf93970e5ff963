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
    /// `C_MessageEncrypt…`, `C_EncryptMessage…`: several messages under one key.
    MessageEncrypt,
    /// `C_MessageDecrypt…`, `C_DecryptMessage…`
    MessageDecrypt,
    /// `C_MessageSign…`, `C_SignMessage…`
    MessageSign,
    /// `C_MessageVerify…`, `C_VerifyMessage…`
    MessageVerify,
    /// `C_DeriveKey`, while it is pending.
    Derive,
}

impl OperationKind {
    /// Each of them.
    pub const ALL: [Self; 13] = [
        Self::Digest,
        Self::Encrypt,
        Self::Decrypt,
        Self::Sign,
        Self::SignRecover,
        Self::Verify,
        Self::VerifyRecover,
        Self::VerifySignature,
        Self::MessageEncrypt,
        Self::MessageDecrypt,
        Self::MessageSign,
        Self::MessageVerify,
        Self::Derive,
    ];

    /// What one message of several is: the kind that does the same for one.
    const fn of_one(self) -> Self {
        match self {
            Self::MessageEncrypt => Self::Encrypt,
            Self::MessageDecrypt => Self::Decrypt,
            Self::MessageSign => Self::Sign,
            Self::MessageVerify | Self::VerifySignature => Self::Verify,
            kind => kind,
        }
    }

    /// The flag that names it in `C_SessionCancel`.
    pub(crate) const fn cancel_flag(self) -> u64 {
        match self {
            Self::MessageEncrypt => CKF_MESSAGE_ENCRYPT,
            Self::MessageDecrypt => CKF_MESSAGE_DECRYPT,
            Self::MessageSign => CKF_MESSAGE_SIGN,
            Self::MessageVerify => CKF_MESSAGE_VERIFY,
            kind => kind.flag(),
        }
    }

    /// Whether it goes on after a message of it has failed.
    pub(crate) const fn has_messages(self) -> bool {
        self.cancel_flag() != self.flag()
    }

    /// The flag of `CK_MECHANISM_INFO` of what serves it.
    pub(crate) const fn flag(self) -> u64 {
        match self.of_one() {
            Self::Digest => CKF_DIGEST,
            Self::Encrypt => CKF_ENCRYPT,
            Self::Decrypt => CKF_DECRYPT,
            Self::Sign => CKF_SIGN,
            Self::SignRecover => CKF_SIGN_RECOVER,
            Self::VerifyRecover => CKF_VERIFY_RECOVER,
            Self::Derive => CKF_DERIVE,
            _ => CKF_VERIFY,
        }
    }

    /// The attribute of a key that may do it.
    pub(crate) const fn usage(self) -> CK_ATTRIBUTE_TYPE {
        match self.of_one() {
            // No key has a usage for it.
            Self::Digest => 0,
            Self::Encrypt => CKA_ENCRYPT,
            Self::Decrypt => CKA_DECRYPT,
            Self::Sign => CKA_SIGN,
            Self::SignRecover => CKA_SIGN_RECOVER,
            Self::VerifyRecover => CKA_VERIFY_RECOVER,
            Self::Derive => CKA_DERIVE,
            _ => CKA_VERIFY,
        }
    }

    /// What it does with its key, as policy calls it.
    pub(crate) const fn key_use(self) -> KeyUse {
        match self.of_one() {
            Self::Digest => KeyUse::DigestKey,
            Self::Encrypt => KeyUse::Encrypt,
            Self::Decrypt => KeyUse::Decrypt,
            Self::Sign => KeyUse::Sign,
            Self::SignRecover => KeyUse::SignRecover,
            Self::VerifyRecover => KeyUse::VerifyRecover,
            Self::Derive => KeyUse::Derive,
            _ => KeyUse::Verify,
        }
    }

    /// Whether it makes or opens.
    pub(crate) const fn direction(self) -> Direction {
        match self.of_one() {
            Self::Digest | Self::Encrypt | Self::Sign | Self::SignRecover | Self::Derive => {
                Direction::Forward
            }
            _ => Direction::Backward,
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
            Function::MessageEncryptInit
            | Function::EncryptMessage
            | Function::EncryptMessageBegin
            | Function::EncryptMessageNext => &[Self::MessageEncrypt],
            Function::MessageDecryptInit
            | Function::DecryptMessage
            | Function::DecryptMessageBegin
            | Function::DecryptMessageNext => &[Self::MessageDecrypt],
            Function::MessageSignInit
            | Function::SignMessage
            | Function::SignMessageBegin
            | Function::SignMessageNext => &[Self::MessageSign],
            Function::MessageVerifyInit
            | Function::VerifyMessage
            | Function::VerifyMessageBegin
            | Function::VerifyMessageNext => &[Self::MessageVerify],
            Function::DeriveKey => &[Self::Derive],
            Function::DigestEncryptUpdate => &[Self::Digest, Self::Encrypt],
            Function::DecryptDigestUpdate => &[Self::Decrypt, Self::Digest],
            Function::SignEncryptUpdate => &[Self::Sign, Self::Encrypt],
            Function::DecryptVerifyUpdate => &[Self::Decrypt, Self::Verify],
            _ => &[],
        }
    }
}
