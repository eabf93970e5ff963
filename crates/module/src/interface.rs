// SPDX-License-Identifier: Apache-2.0
//! Function lists and interfaces. Each list is the one before plus its own functions, so each
//! function is named once; that the layouts are the standard's is asserted at compile time.

use crate::decode::passed::*;
use crate::functions::*;
use crate::vendor;
use metaslot_ck::*;
use metaslot_wiring::version;
use std::ffi::{CStr, c_void};
use std::mem::offset_of;

/// Has the layout of `CK_FUNCTION_LIST_3_0`.
#[derive(Debug)]
#[repr(C)]
#[expect(non_snake_case, reason = "the standard's names")]
struct List30 {
    v2_40: CK_FUNCTION_LIST,
    C_GetInterfaceList: CK_C_GetInterfaceList,
    C_GetInterface: CK_C_GetInterface,
    C_LoginUser: CK_C_LoginUser,
    C_SessionCancel: CK_C_SessionCancel,
    C_MessageEncryptInit: CK_C_MessageEncryptInit,
    C_EncryptMessage: CK_C_EncryptMessage,
    C_EncryptMessageBegin: CK_C_EncryptMessageBegin,
    C_EncryptMessageNext: CK_C_EncryptMessageNext,
    C_MessageEncryptFinal: CK_C_MessageEncryptFinal,
    C_MessageDecryptInit: CK_C_MessageDecryptInit,
    C_DecryptMessage: CK_C_DecryptMessage,
    C_DecryptMessageBegin: CK_C_DecryptMessageBegin,
    C_DecryptMessageNext: CK_C_DecryptMessageNext,
    C_MessageDecryptFinal: CK_C_MessageDecryptFinal,
    C_MessageSignInit: CK_C_MessageSignInit,
    C_SignMessage: CK_C_SignMessage,
    C_SignMessageBegin: CK_C_SignMessageBegin,
    C_SignMessageNext: CK_C_SignMessageNext,
    C_MessageSignFinal: CK_C_MessageSignFinal,
    C_MessageVerifyInit: CK_C_MessageVerifyInit,
    C_VerifyMessage: CK_C_VerifyMessage,
    C_VerifyMessageBegin: CK_C_VerifyMessageBegin,
    C_VerifyMessageNext: CK_C_VerifyMessageNext,
    C_MessageVerifyFinal: CK_C_MessageVerifyFinal,
}

/// Has the layout of `CK_FUNCTION_LIST_3_2`.
#[derive(Debug)]
#[repr(C)]
#[expect(non_snake_case, reason = "the standard's names")]
struct List32 {
    v3_0: List30,
    C_EncapsulateKey: CK_C_EncapsulateKey,
    C_DecapsulateKey: CK_C_DecapsulateKey,
    C_VerifySignatureInit: CK_C_VerifySignatureInit,
    C_VerifySignature: CK_C_VerifySignature,
    C_VerifySignatureUpdate: CK_C_VerifySignatureUpdate,
    C_VerifySignatureFinal: CK_C_VerifySignatureFinal,
    C_GetSessionValidationFlags: CK_C_GetSessionValidationFlags,
    C_AsyncComplete: CK_C_AsyncComplete,
    C_AsyncGetID: CK_C_AsyncGetID,
    C_AsyncJoin: CK_C_AsyncJoin,
    C_WrapKeyAuthenticated: CK_C_WrapKeyAuthenticated,
    C_UnwrapKeyAuthenticated: CK_C_UnwrapKeyAuthenticated,
}

/// Asserts that fields of two structures lie at the same place.
macro_rules! same_layout {
    ($ours:ident, $theirs:ident: $($field:ident)*) => {
        const _: () = {
            assert!(size_of::<$ours>() == size_of::<$theirs>());
            assert!(align_of::<$ours>() == align_of::<$theirs>());
            $(assert!(offset_of!($ours, $field) == offset_of!($theirs, $field));)*
        };
    };
}

same_layout!(List30, CK_FUNCTION_LIST_3_0: C_GetInterfaceList C_GetInterface C_LoginUser C_SessionCancel C_MessageEncryptInit C_EncryptMessage C_EncryptMessageBegin C_EncryptMessageNext C_MessageEncryptFinal C_MessageDecryptInit C_DecryptMessage C_DecryptMessageBegin C_DecryptMessageNext C_MessageDecryptFinal C_MessageSignInit C_SignMessage C_SignMessageBegin C_SignMessageNext C_MessageSignFinal C_MessageVerifyInit C_VerifyMessage C_VerifyMessageBegin C_VerifyMessageNext C_MessageVerifyFinal);
same_layout!(List32, CK_FUNCTION_LIST_3_2: C_EncapsulateKey C_DecapsulateKey C_VerifySignatureInit C_VerifySignature C_VerifySignatureUpdate C_VerifySignatureFinal C_GetSessionValidationFlags C_AsyncComplete C_AsyncGetID C_AsyncJoin C_WrapKeyAuthenticated C_UnwrapKeyAuthenticated);
/// The first and the last function of a list that is embedded lie where the flat one has them.
const _: () = {
    assert!(
        offset_of!(CK_FUNCTION_LIST, C_Initialize)
            == offset_of!(CK_FUNCTION_LIST_3_2, C_Initialize)
    );
    assert!(
        offset_of!(CK_FUNCTION_LIST, C_WaitForSlotEvent)
            == offset_of!(CK_FUNCTION_LIST_3_2, C_WaitForSlotEvent)
    );
    assert!(
        offset_of!(List30, C_MessageVerifyFinal)
            == offset_of!(CK_FUNCTION_LIST_3_2, C_MessageVerifyFinal)
    );
};
const V2_40: CK_FUNCTION_LIST = CK_FUNCTION_LIST {
    version: version::V2_40,
    C_Initialize: listed_1(C_Initialize),
    C_Finalize: listed_1(C_Finalize),
    C_GetInfo: listed_1(C_GetInfo),
    C_GetFunctionList: listed_1(C_GetFunctionList),
    C_GetSlotList: listed_3(C_GetSlotList),
    C_GetSlotInfo: listed_2(C_GetSlotInfo),
    C_GetTokenInfo: listed_2(C_GetTokenInfo),
    C_GetMechanismList: listed_3(C_GetMechanismList),
    C_GetMechanismInfo: listed_3(C_GetMechanismInfo),
    C_InitToken: listed_4(C_InitToken),
    C_InitPIN: listed_3(C_InitPIN),
    C_SetPIN: listed_5(C_SetPIN),
    C_OpenSession: listed_5(C_OpenSession),
    C_CloseSession: listed_1(C_CloseSession),
    C_CloseAllSessions: listed_1(C_CloseAllSessions),
    C_GetSessionInfo: listed_2(C_GetSessionInfo),
    C_GetOperationState: listed_3(C_GetOperationState),
    C_SetOperationState: listed_5(C_SetOperationState),
    C_Login: listed_4(C_Login),
    C_Logout: listed_1(C_Logout),
    C_CreateObject: listed_4(C_CreateObject),
    C_CopyObject: listed_5(C_CopyObject),
    C_DestroyObject: listed_2(C_DestroyObject),
    C_GetObjectSize: listed_3(C_GetObjectSize),
    C_GetAttributeValue: listed_4(C_GetAttributeValue),
    C_SetAttributeValue: listed_4(C_SetAttributeValue),
    C_FindObjectsInit: listed_3(C_FindObjectsInit),
    C_FindObjects: listed_4(C_FindObjects),
    C_FindObjectsFinal: listed_1(C_FindObjectsFinal),
    C_EncryptInit: listed_3(C_EncryptInit),
    C_Encrypt: listed_5(C_Encrypt),
    C_EncryptUpdate: listed_5(C_EncryptUpdate),
    C_EncryptFinal: listed_3(C_EncryptFinal),
    C_DecryptInit: listed_3(C_DecryptInit),
    C_Decrypt: listed_5(C_Decrypt),
    C_DecryptUpdate: listed_5(C_DecryptUpdate),
    C_DecryptFinal: listed_3(C_DecryptFinal),
    C_DigestInit: listed_2(C_DigestInit),
    C_Digest: listed_5(C_Digest),
    C_DigestUpdate: listed_3(C_DigestUpdate),
    C_DigestKey: listed_2(C_DigestKey),
    C_DigestFinal: listed_3(C_DigestFinal),
    C_SignInit: listed_3(C_SignInit),
    C_Sign: listed_5(C_Sign),
    C_SignUpdate: listed_3(C_SignUpdate),
    C_SignFinal: listed_3(C_SignFinal),
    C_SignRecoverInit: listed_3(C_SignRecoverInit),
    C_SignRecover: listed_5(C_SignRecover),
    C_VerifyInit: listed_3(C_VerifyInit),
    C_Verify: listed_5(C_Verify),
    C_VerifyUpdate: listed_3(C_VerifyUpdate),
    C_VerifyFinal: listed_3(C_VerifyFinal),
    C_VerifyRecoverInit: listed_3(C_VerifyRecoverInit),
    C_VerifyRecover: listed_5(C_VerifyRecover),
    C_DigestEncryptUpdate: listed_5(C_DigestEncryptUpdate),
    C_DecryptDigestUpdate: listed_5(C_DecryptDigestUpdate),
    C_SignEncryptUpdate: listed_5(C_SignEncryptUpdate),
    C_DecryptVerifyUpdate: listed_5(C_DecryptVerifyUpdate),
    C_GenerateKey: listed_5(C_GenerateKey),
    C_GenerateKeyPair: listed_8(C_GenerateKeyPair),
    C_WrapKey: listed_6(C_WrapKey),
    C_UnwrapKey: listed_8(C_UnwrapKey),
    C_DeriveKey: listed_6(C_DeriveKey),
    C_SeedRandom: listed_3(C_SeedRandom),
    C_GenerateRandom: listed_3(C_GenerateRandom),
    C_GetFunctionStatus: listed_1(C_GetFunctionStatus),
    C_CancelFunction: listed_1(C_CancelFunction),
    C_WaitForSlotEvent: listed_3(C_WaitForSlotEvent),
};
const V3_0: List30 = List30 {
    v2_40: CK_FUNCTION_LIST { version: version::V3_0, ..V2_40 },
    C_GetInterfaceList: listed_2(C_GetInterfaceList),
    C_GetInterface: listed_4(C_GetInterface),
    C_LoginUser: listed_6(C_LoginUser),
    C_SessionCancel: listed_2(C_SessionCancel),
    C_MessageEncryptInit: listed_3(C_MessageEncryptInit),
    C_EncryptMessage: listed_9(C_EncryptMessage),
    C_EncryptMessageBegin: listed_5(C_EncryptMessageBegin),
    C_EncryptMessageNext: listed_8(C_EncryptMessageNext),
    C_MessageEncryptFinal: listed_1(C_MessageEncryptFinal),
    C_MessageDecryptInit: listed_3(C_MessageDecryptInit),
    C_DecryptMessage: listed_9(C_DecryptMessage),
    C_DecryptMessageBegin: listed_5(C_DecryptMessageBegin),
    C_DecryptMessageNext: listed_8(C_DecryptMessageNext),
    C_MessageDecryptFinal: listed_1(C_MessageDecryptFinal),
    C_MessageSignInit: listed_3(C_MessageSignInit),
    C_SignMessage: listed_7(C_SignMessage),
    C_SignMessageBegin: listed_3(C_SignMessageBegin),
    C_SignMessageNext: listed_7(C_SignMessageNext),
    C_MessageSignFinal: listed_1(C_MessageSignFinal),
    C_MessageVerifyInit: listed_3(C_MessageVerifyInit),
    C_VerifyMessage: listed_7(C_VerifyMessage),
    C_VerifyMessageBegin: listed_3(C_VerifyMessageBegin),
    C_VerifyMessageNext: listed_7(C_VerifyMessageNext),
    C_MessageVerifyFinal: listed_1(C_MessageVerifyFinal),
};
const V3_2: List32 = List32 {
    v3_0: List30 { v2_40: CK_FUNCTION_LIST { version: version::V3_2, ..V2_40 }, ..V3_0 },
    C_EncapsulateKey: listed_8(C_EncapsulateKey),
    C_DecapsulateKey: listed_8(C_DecapsulateKey),
    C_VerifySignatureInit: listed_5(C_VerifySignatureInit),
    C_VerifySignature: listed_3(C_VerifySignature),
    C_VerifySignatureUpdate: listed_3(C_VerifySignatureUpdate),
    C_VerifySignatureFinal: listed_1(C_VerifySignatureFinal),
    C_GetSessionValidationFlags: listed_3(C_GetSessionValidationFlags),
    C_AsyncComplete: listed_3(C_AsyncComplete),
    C_AsyncGetID: listed_3(C_AsyncGetID),
    C_AsyncJoin: listed_5(C_AsyncJoin),
    C_WrapKeyAuthenticated: listed_8(C_WrapKeyAuthenticated),
    C_UnwrapKeyAuthenticated: listed_10(C_UnwrapKeyAuthenticated),
};

/// What `C_GetFunctionList` gives.
pub(crate) static LIST_2_40: CK_FUNCTION_LIST = V2_40;
static LIST_3_0: List30 = V3_0;
static LIST_3_2: List32 = V3_2;

/// One interface, with its version beside it.
struct Interface {
    c: CK_INTERFACE,
    name: &'static CStr,
    version: CK_VERSION,
}

// SAFETY: the pointers in it point to statics, which are never written.
unsafe impl Sync for Interface {}

const STANDARD: &CStr = c"PKCS 11";

/// The first one is the default. None is fork-safe in the standard's sense: a child must initialise
/// again, so no flag is set.
static INTERFACES: [Interface; 4] = [
    interface(STANDARD, version::V3_2, (&raw const LIST_3_2).cast()),
    interface(STANDARD, version::V3_0, (&raw const LIST_3_0).cast()),
    interface(STANDARD, version::V2_40, (&raw const LIST_2_40).cast()),
    interface(vendor::NAME, vendor::VERSION, (&raw const vendor::LIST).cast()),
];

const fn interface(name: &'static CStr, version: CK_VERSION, list: *const c_void) -> Interface {
    let c = CK_INTERFACE {
        pInterfaceName: name.as_ptr().cast::<CK_UTF8CHAR>().cast_mut(),
        pFunctionList: list.cast_mut(),
        flags: 0,
    };
    Interface { c, name, version }
}

/// All of them, the default first.
pub(crate) fn all() -> impl Iterator<Item = &'static CK_INTERFACE> {
    INTERFACES.iter().map(|interface| &interface.c)
}

/// The first one whose name is wanted, of this version (any, where none is asked for), that has all
/// `flags`.
pub(crate) fn find(
    wanted: impl Fn(&CStr) -> bool,
    version: Option<CK_VERSION>,
    flags: CK_FLAGS,
) -> Option<&'static CK_INTERFACE> {
    let found = INTERFACES.iter().find(|interface| {
        wanted(interface.name)
            && version.is_none_or(|version| {
                (version.major, version.minor) == (interface.version.major, interface.version.minor)
            })
            && interface.c.flags & flags == flags
    });
    found.map(|interface| &interface.c)
}
