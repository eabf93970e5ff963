// SPDX-License-Identifier: Apache-2.0
//! Table: the policy as data: what can be refused, which purpose a use of a key needs, and what the
//! mechanisms that give and take keys are worth. `docs/policy.md` shows these rows.

use super::refusal::Refusal;
use crate::purpose::Purposes;
use metaslot_ck::mechanism::{APPROVED, OLD_CIPHERS};
use metaslot_ck::*;

/// One thing that can be refused.
#[derive(Debug)]
pub(super) struct RefusalRow {
    pub(super) refusal: Refusal,
    /// Re-opens it in `allow`.
    pub(super) name: &'static str,
    /// What was tried, for a person.
    pub(super) sentence: &'static str,
}

const fn refusal(refusal: Refusal, name: &'static str, sentence: &'static str) -> RefusalRow {
    RefusalRow { refusal, name, sentence }
}

#[rustfmt::skip]
pub(super) const REFUSALS: &[RefusalRow] = &[
    refusal(Refusal::BeyondPurpose, "beyond-purpose", "the key was made for another purpose"),
    refusal(Refusal::RoleChanges, "role-changes", "a usage is switched on after the key was made"),
    refusal(Refusal::WrapUntrusted, "wrap-untrusted", "the wrapping key may be known outside: it was not made here as sensitive and unextractable, and the officer has not marked it as trusted"),
    refusal(Refusal::LostRestrictions, "lost-restrictions", "the wrapped form cannot carry the key's purpose and restrictions"),
    refusal(Refusal::WrapMechanisms, "wrap-mechanisms", "keys are wrapped and unwrapped by mechanisms without a padding oracle, by GCM under an IV that the token chooses, and by CKM_RSA_AES_KEY_WRAP where OAEP does not open the AES key alone"),
    refusal(Refusal::WeakWrappingKeys, "weak-wrapping-keys", "the wrapping key is weaker than the key that it wraps"),
    refusal(Refusal::UnwrapNonSensitive, "unwrap-non-sensitive", "an unwrapped key would be readable"),
    refusal(Refusal::LessPrivate, "less-private", "the key would be visible without a login, and what it is made from is not"),
    refusal(Refusal::KeyPieces, "key-pieces", "a piece of a wrapped key, or a private key's encoding, would become a secret key"),
    refusal(Refusal::DeriveNonSensitive, "derive-non-sensitive", "a key derived from a protected one would be readable"),
    refusal(Refusal::RelatedKeys, "related-keys", "the derivation would show how keys of a protected key are related"),
    refusal(Refusal::Unauthenticated, "unauthenticated", "the key wants the PIN for each use, and this function cannot ask for it"),
    refusal(Refusal::ShortTags, "short-tags", "a tag of GCM is shorter than 96 bits, or another tag or MAC shorter than 64"),
    refusal(Refusal::ShortKeys, "short-keys", "a secret key is shorter than 112 bits"),
    refusal(Refusal::WeakRsa, "weak-rsa", "an RSA key is shorter than 2048 bits"),
    refusal(Refusal::WeakCurves, "weak-curves", "a curve has less than 112 bits of security"),
    refusal(Refusal::WeakGroups, "weak-groups", "Diffie-Hellman is in a group that is none of RFC 3526 or RFC 7919 of 2048 bits or more, or by an exponent shorter than 224 bits"),
    refusal(Refusal::WeakExponents, "weak-exponents", "a public exponent is 1 or even, or, of a key that is made here, below 65537"),
    refusal(Refusal::Md5Signatures, "md5-signatures", "a signature would be over an MD2, an MD5 or a RIPEMD, or a key be made by MD2, MD5 or HMAC-MD5"),
    refusal(Refusal::Dsa, "dsa", "DSA verifies what was signed and signs nothing new"),
    refusal(Refusal::OldTls, "old-tls", "TLS 1.0, TLS 1.1 and SSL 3.0 are forbidden by RFC 8996 and RFC 7568"),
    refusal(Refusal::WeakCiphers, "weak-ciphers", "old and national ciphers (such as triple DES, RC4 and Camellia), CBC-MAC, Poly1305 alone, ANSI X9.31, MD2 and RIPEMD open old data and make nothing new"),
    refusal(Refusal::DesParity, "des-parity", "a byte of a DES key has even parity"),
    refusal(Refusal::NotApproved, "not-approved", "FIPS 140-3 does not approve of the mechanism, or not for this"),
];

const _: () = {
    let mut at = 0;
    while at < REFUSALS.len() {
        assert!(REFUSALS[at].refusal as usize == at, "refusals are not in the order of their enum");
        at += 1;
    }
};

/// What is done with a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeyUse {
    /// `C_Encrypt`
    Encrypt,
    /// `C_Decrypt`
    Decrypt,
    /// `C_Sign`
    Sign,
    /// `C_Verify`
    Verify,
    /// `C_SignRecover`
    SignRecover,
    /// `C_VerifyRecover`
    VerifyRecover,
    /// `C_DigestKey`
    DigestKey,
    /// `C_DeriveKey` with a private key.
    Agree,
    /// `C_DecapsulateKey`
    Decapsulate,
    /// `C_DeriveKey` with a secret key.
    Derive,
    /// `C_WrapKey`
    Wrap,
    /// `C_UnwrapKey`
    Unwrap,
}

/// One use of a key.
#[derive(Debug)]
struct UseRow {
    what: KeyUse,
    /// As the standard calls it.
    shown: &'static str,
    /// One of these must be the key's.
    purposes: Purposes,
    /// Whether a context-specific login can come between the beginning and the use.
    asks_for_login: bool,
    error: Error,
}

const fn row(
    what: KeyUse,
    shown: &'static str,
    purposes: Purposes,
    asks_for_login: bool,
    error: Error,
) -> UseRow {
    UseRow { what, shown, purposes, asks_for_login, error }
}

const NOT_PERMITTED: Error = Error::KEY_FUNCTION_NOT_PERMITTED;

#[rustfmt::skip]
const USES: &[UseRow] = &[
    row(KeyUse::Encrypt, "C_Encrypt", Purposes::DATA, true, NOT_PERMITTED),
    row(KeyUse::Decrypt, "C_Decrypt", Purposes::DATA, true, NOT_PERMITTED),
    row(KeyUse::Sign, "C_Sign", Purposes::AUTHENTICATION, true, NOT_PERMITTED),
    row(KeyUse::Verify, "C_Verify", Purposes::AUTHENTICATION, true, NOT_PERMITTED),
    row(KeyUse::SignRecover, "C_SignRecover", Purposes::AUTHENTICATION, true, NOT_PERMITTED),
    row(KeyUse::VerifyRecover, "C_VerifyRecover", Purposes::AUTHENTICATION, true, NOT_PERMITTED),
    row(KeyUse::DigestKey, "C_DigestKey", Purposes::USE, false, Error::KEY_INDIGESTIBLE),
    row(KeyUse::Agree, "C_DeriveKey with a private key", Purposes::AGREEMENT, false, NOT_PERMITTED),
    row(KeyUse::Decapsulate, "C_DecapsulateKey", Purposes::AGREEMENT, false, NOT_PERMITTED),
    row(KeyUse::Derive, "C_DeriveKey with a secret key", Purposes::DERIVATION, false, NOT_PERMITTED),
    row(KeyUse::Wrap, "C_WrapKey", Purposes::WRAPPING, false, Error::KEY_NOT_WRAPPABLE),
    row(KeyUse::Unwrap, "C_UnwrapKey", Purposes::UNWRAPPING, false, NOT_PERMITTED),
];

const _: () = {
    let mut at = 0;
    while at < USES.len() {
        assert!(USES[at].what as usize == at, "uses are not in the order of their enum");
        at += 1;
    }
};

impl KeyUse {
    const fn row(self) -> &'static UseRow {
        &USES[self as usize]
    }

    pub(super) const fn purposes(self) -> Purposes {
        self.row().purposes
    }

    pub(super) const fn asks_for_login(self) -> bool {
        self.row().asks_for_login
    }

    pub(super) const fn error(self) -> Error {
        self.row().error
    }
}

/// What the wrapped form of a key is worth.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WrapForm {
    /// Authenticated, and says what the key is: it comes back as no more.
    Bound,
    /// Authenticated or without an oracle, and says nothing of the key: only a key without
    /// restrictions may leave so, and what comes so is one.
    Bare,
    /// Can be changed, or tells whether its padding is right, or repeats its key stream.
    Unsafe,
}

/// Mechanisms that wrap safely; every other is [`WrapForm::Unsafe`].
pub(super) const WRAPS: &[(CK_MECHANISM_TYPE, WrapForm)] = &[
    (CKM_AES_KEY_WRAP, WrapForm::Bare),
    (CKM_AES_KEY_WRAP_KWP, WrapForm::Bare),
    (CKM_RSA_PKCS_OAEP, WrapForm::Bare),
    (CKM_RSA_AES_KEY_WRAP, WrapForm::Bare),
    (CKM_ECDH_AES_KEY_WRAP, WrapForm::Bare),
    (CKM_ECDH_COF_AES_KEY_WRAP, WrapForm::Bare),
    (CKM_ECDH_X_AES_KEY_WRAP, WrapForm::Bare),
    (CKM_AES_GCM, WrapForm::Bound),
    (CKM_AES_CCM, WrapForm::Bare),
];

/// Mechanisms whose results say nothing of each other or of the key; every other is refused for a
/// protected secret key.
pub(super) const DERIVES: &[CK_MECHANISM_TYPE] = &[
    CKM_HKDF_DERIVE,
    CKM_SP800_108_COUNTER_KDF,
    CKM_SP800_108_FEEDBACK_KDF,
    CKM_SP800_108_DOUBLE_PIPELINE_KDF,
];

/// The rows as tables for people.
pub(super) fn markdown() -> String {
    let mut out = String::from(
        "| use | data | authentication | agreement | derivation | wrapping | unwrapping |\n|---|---|---|---|---|---|---|\n",
    );
    let columns = [
        Purposes::DATA,
        Purposes::AUTHENTICATION,
        Purposes::AGREEMENT,
        Purposes::DERIVATION,
        Purposes::WRAPPING,
        Purposes::UNWRAPPING,
    ];
    for row in USES {
        let cells = columns.map(|purpose| if row.purposes.has(purpose) { "yes" } else { "" });
        out.push_str(&format!("| `{}` | {} |\n", row.shown, cells.join(" | ")));
    }
    out.push_str("\n| mechanism | wrapped form |\n|---|---|\n");
    for (mechanism, form) in WRAPS {
        let form = match form {
            WrapForm::Bound => "bound: says what the key is, and comes back as no more",
            WrapForm::Bare => "bare: for keys without restrictions, and comes back as one",
            WrapForm::Unsafe => "",
        };
        out.push_str(&format!("| `{}` | {form} |\n", mechanism_name(*mechanism).unwrap_or("?")));
    }
    out.push_str("| any other | by readable keys only |\n");
    out.push_str("\n| mechanism | derives from a protected secret key |\n|---|---|\n");
    for mechanism in DERIVES {
        out.push_str(&format!("| `{}` | yes |\n", mechanism_name(*mechanism).unwrap_or("?")));
    }
    out.push_str("| any other | no |\n\n| mechanism | approved for |\n|---|---|\n");
    for (mechanism, _, shown) in APPROVED {
        out.push_str(&format!("| `{}` | {shown} |\n", mechanism_name(*mechanism).unwrap_or("?")));
    }
    for key_type in OLD_CIPHERS {
        let name = key_type_name(*key_type).unwrap_or("?");
        out.push_str(&format!("| any other of `{name}` keys | nothing |\n"));
    }
    out.push_str("| any other | everything |\n\n| `allow` | what is refused |\n|---|---|\n");
    for row in REFUSALS {
        out.push_str(&format!("| `{}` | {} |\n", row.name, row.sentence));
    }
    out
}
