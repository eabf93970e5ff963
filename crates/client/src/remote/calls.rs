// SPDX-License-Identifier: Apache-2.0
//! Table of the calls of p11-kit's protocol: one row for each, with its number and what its request and its answer consist of.
//!
//! In the signatures, `u` is a number of the standard, `y` a byte, `s` a text padded with blanks, `z` one that is not, `v` a
//! version, `M` a mechanism, `A` an attribute, `P` what a mechanism's parameter has become; `a` before one of them says an
//! array, `f` the room for one.

use super::version::OWN;
use metaslot_ck::Function;

/// What p11-kit's client says first.
pub const GREETING: &[u8] = b"PRIVATE-GNOME-KEYRING-PKCS11-PROTOCOL-V-1";

/// One call.
#[derive(Debug)]
pub struct Call {
    /// Which function of the standard it is.
    pub function: Function,
    /// How the protocol numbers it.
    pub number: u32,
    /// What its request consists of.
    pub request: &'static str,
    /// What its answer consists of.
    pub answer: &'static str,
}

impl Call {
    /// The call of this number.
    #[must_use]
    pub fn numbered(number: u32) -> Option<&'static Self> {
        Self::all().find(|call| call.number == number)
    }

    /// Each of them.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        ASKED.iter().chain(OTHERS).chain(OURS)
    }

    /// Whether p11-kit's protocol does not have it.
    #[must_use]
    pub const fn is_ours(&self) -> bool {
        self.number > OURS_FROM
    }

    /// The call of this function that our client asks for in this version of the protocol.
    pub(super) fn asked(function: Function, version: u8) -> Option<&'static Self> {
        let others = if version >= OWN { (OTHERS, OURS) } else { (&[][..], &[][..]) };
        let mut all = ASKED.iter().chain(others.0).chain(others.1);
        all.find(|call| call.function == function)
    }
}

const fn call(
    function: Function,
    number: u32,
    request: &'static str,
    answer: &'static str,
) -> Call {
    Call { function, number, request, answer }
}

/// Those that our client asks for: every version of p11-kit's has them, but `C_LoginUser`, which came with the second one.
pub(super) const ASKED: &[Call] = &[
    call(Function::Initialize, 1, "ayyay", ""),
    call(Function::Finalize, 2, "", ""),
    call(Function::GetSlotList, 4, "yfu", "au"),
    call(Function::GetSlotInfo, 5, "u", "ssuvv"),
    call(Function::GetTokenInfo, 6, "u", "ssssuuuuuuuuuuuvvs"),
    call(Function::GetMechanismList, 7, "ufu", "au"),
    call(Function::GetMechanismInfo, 8, "uu", "uuu"),
    call(Function::InitToken, 9, "uayz", ""),
    call(Function::OpenSession, 10, "uu", "u"),
    call(Function::CloseSession, 11, "u", ""),
    call(Function::GetSessionInfo, 13, "u", "uuuu"),
    call(Function::InitPIN, 14, "uay", ""),
    call(Function::SetPIN, 15, "uayay", ""),
    call(Function::Login, 18, "uuay", ""),
    call(Function::Logout, 19, "u", ""),
    call(Function::CreateObject, 20, "uaA", "u"),
    call(Function::CopyObject, 21, "uuaA", "u"),
    call(Function::DestroyObject, 22, "uu", ""),
    call(Function::GetAttributeValue, 24, "uufA", "aAu"),
    call(Function::SetAttributeValue, 25, "uuaA", ""),
    call(Function::FindObjectsInit, 26, "uaA", ""),
    call(Function::FindObjects, 27, "ufu", "au"),
    call(Function::FindObjectsFinal, 28, "u", ""),
    call(Function::EncryptInit, 29, "uMu", ""),
    call(Function::Encrypt, 30, "uayfy", "ay"),
    call(Function::EncryptUpdate, 31, "uayfy", "ay"),
    call(Function::EncryptFinal, 32, "ufy", "ay"),
    call(Function::DecryptInit, 33, "uMu", ""),
    call(Function::Decrypt, 34, "uayfy", "ay"),
    call(Function::DecryptUpdate, 35, "uayfy", "ay"),
    call(Function::DecryptFinal, 36, "ufy", "ay"),
    call(Function::DigestInit, 37, "uM", ""),
    call(Function::Digest, 38, "uayfy", "ay"),
    call(Function::DigestUpdate, 39, "uay", ""),
    call(Function::DigestFinal, 41, "ufy", "ay"),
    call(Function::SignInit, 42, "uMu", ""),
    call(Function::Sign, 43, "uayfy", "ay"),
    call(Function::SignUpdate, 44, "uay", ""),
    call(Function::SignFinal, 45, "ufy", "ay"),
    call(Function::VerifyInit, 48, "uMu", ""),
    call(Function::Verify, 49, "uayay", ""),
    call(Function::VerifyUpdate, 50, "uay", ""),
    call(Function::VerifyFinal, 51, "uay", ""),
    call(Function::GenerateKey, 58, "uMaA", "u"),
    call(Function::GenerateKeyPair, 59, "uMaAaA", "uu"),
    call(Function::SeedRandom, 63, "uay", ""),
    call(Function::GenerateRandom, 64, "ufy", "ay"),
    call(Function::LoginUser, 66, "uuayay", ""),
];

/// The others, of which those from 66 on came later.
const OTHERS: &[Call] = &[
    call(Function::GetInfo, 3, "", "vsusv"),
    call(Function::CloseAllSessions, 12, "u", ""),
    call(Function::GetOperationState, 16, "ufy", "ay"),
    call(Function::SetOperationState, 17, "uayuu", ""),
    call(Function::GetObjectSize, 23, "uu", "u"),
    call(Function::DigestKey, 40, "uu", ""),
    call(Function::SignRecoverInit, 46, "uMu", ""),
    call(Function::SignRecover, 47, "uayfy", "ay"),
    call(Function::VerifyRecoverInit, 52, "uMu", ""),
    call(Function::VerifyRecover, 53, "uayfy", "ay"),
    call(Function::DigestEncryptUpdate, 54, "uayfy", "ay"),
    call(Function::DecryptDigestUpdate, 55, "uayfy", "ay"),
    call(Function::SignEncryptUpdate, 56, "uayfy", "ay"),
    call(Function::DecryptVerifyUpdate, 57, "uayfy", "ay"),
    call(Function::WrapKey, 60, "uMuufy", "ay"),
    call(Function::UnwrapKey, 61, "uMuayaA", "u"),
    call(Function::DeriveKey, 62, "uMuaA", "u"),
    call(Function::WaitForSlotEvent, 65, "u", "u"),
    call(Function::SessionCancel, 67, "uu", ""),
    call(Function::MessageEncryptInit, 68, "uMu", ""),
    call(Function::EncryptMessage, 69, "uayayayfy", "ay"),
    call(Function::EncryptMessageBegin, 70, "uayay", ""),
    call(Function::EncryptMessageNext, 71, "uayayfyu", "ay"),
    call(Function::MessageEncryptFinal, 72, "u", ""),
    call(Function::MessageDecryptInit, 73, "uMu", ""),
    call(Function::DecryptMessage, 74, "uayayayfy", "ay"),
    call(Function::DecryptMessageBegin, 75, "uayay", ""),
    call(Function::DecryptMessageNext, 76, "uayayfyu", "ay"),
    call(Function::MessageDecryptFinal, 77, "u", ""),
    call(Function::MessageSignInit, 78, "uMu", ""),
    call(Function::SignMessage, 79, "uayayfy", "ay"),
    call(Function::SignMessageBegin, 80, "uay", ""),
    call(Function::SignMessageNext, 81, "uayayyfy", "ay"),
    call(Function::MessageSignFinal, 82, "u", ""),
    call(Function::MessageVerifyInit, 83, "uMu", ""),
    call(Function::VerifyMessage, 84, "uayayay", ""),
    call(Function::VerifyMessageBegin, 85, "uay", ""),
    call(Function::VerifyMessageNext, 86, "uayayay", ""),
    call(Function::MessageVerifyFinal, 87, "u", ""),
    call(Function::InitToken, 88, "uays", ""),
    call(Function::DeriveKey, 89, "uMuaA", "uPu"),
];

/// The numbers of ours are far above those that p11-kit may come to have: "MS" in their upper half.
const OURS_FROM: u32 = 0x4d53_0000;

/// What p11-kit's protocol does not have, by the version that is our own.
const OURS: &[Call] = &[
    call(Function::EncapsulateKey, OURS_FROM + 1, "uMuaAfy", "ayu"),
    call(Function::DecapsulateKey, OURS_FROM + 2, "uMuayaA", "u"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_has_one_call() {
        let mut numbers: Vec<_> = Call::all().map(|call| call.number).collect();
        numbers.sort_unstable();
        let (theirs, ours) = numbers.split_at(89);
        assert_eq!(theirs, (1..=89).collect::<Vec<_>>());
        assert!(ours.iter().zip(1..).all(|(number, at)| *number == OURS_FROM + at));
        assert!(Call::all().all(|call| call.is_ours() == (call.number > 89)));
    }

    #[test]
    fn verification_has_the_numbers_behind_signatures_that_recover() {
        let number = |function| ASKED.iter().find(|call| call.function == function);
        let verification =
            [Function::VerifyInit, Function::Verify, Function::VerifyUpdate, Function::VerifyFinal];
        let numbers = verification.map(|function| number(function).map(|call| call.number));
        // C_SignRecoverInit is 46, and C_VerifyRecoverInit 52.
        assert_eq!(numbers, [48, 49, 50, 51].map(Some));
    }
}
