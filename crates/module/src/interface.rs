// SPDX-License-Identifier: Apache-2.0
//! Function lists and interfaces. Each list is the one before plus its own functions, so each
//! function is named once; that the layouts are the standard's is asserted at compile time.

use crate::functions::*;
use crate::{vendor, version};
use metaslot_ck::*;
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
    C_Initialize: Some(C_Initialize),
    C_Finalize: Some(C_Finalize),
    C_GetInfo: Some(C_GetInfo),
    C_GetFunctionList: Some(C_GetFunctionList),
    C_GetSlotList: Some(C_GetSlotList),
    C_GetSlotInfo: Some(C_GetSlotInfo),
    C_GetTokenInfo: Some(C_GetTokenInfo),
    C_GetMechanismList: Some(C_GetMechanismList),
    C_GetMechanismInfo: Some(C_GetMechanismInfo),
    C_InitToken: Some(C_InitToken),
    C_InitPIN: Some(C_InitPIN),
    C_SetPIN: Some(C_SetPIN),
    C_OpenSession: Some(C_OpenSession),
    C_CloseSession: Some(C_CloseSession),
    C_CloseAllSessions: Some(C_CloseAllSessions),
    C_GetSessionInfo: Some(C_GetSessionInfo),
    C_GetOperationState: Some(C_GetOperationState),
    C_SetOperationState: Some(C_SetOperationState),
    C_Login: Some(C_Login),
    C_Logout: Some(C_Logout),
    C_CreateObject: Some(C_CreateObject),
    C_CopyObject: Some(C_CopyObject),
    C_DestroyObject: Some(C_DestroyObject),
    C_GetObjectSize: Some(C_GetObjectSize),
    C_GetAttributeValue: Some(C_GetAttributeValue),
    C_SetAttributeValue: Some(C_SetAttributeValue),
    C_FindObjectsInit: Some(C_FindObjectsInit),
    C_FindObjects: Some(C_FindObjects),
    C_FindObjectsFinal: Some(C_FindObjectsFinal),
    C_EncryptInit: Some(C_EncryptInit),
    C_Encrypt: Some(C_Encrypt),
    C_EncryptUpdate: Some(C_EncryptUpdate),
    C_EncryptFinal: Some(C_EncryptFinal),
    C_DecryptInit: Some(C_DecryptInit),
    C_Decrypt: Some(C_Decrypt),
    C_DecryptUpdate: Some(C_DecryptUpdate),
    C_DecryptFinal: Some(C_DecryptFinal),
    C_DigestInit: Some(C_DigestInit),
    C_Digest: Some(C_Digest),
    C_DigestUpdate: Some(C_DigestUpdate),
    C_DigestKey: Some(C_DigestKey),
    C_DigestFinal: Some(C_DigestFinal),
    C_SignInit: Some(C_SignInit),
    C_Sign: Some(C_Sign),
    C_SignUpdate: Some(C_SignUpdate),
    C_SignFinal: Some(C_SignFinal),
    C_SignRecoverInit: Some(C_SignRecoverInit),
    C_SignRecover: Some(C_SignRecover),
    C_VerifyInit: Some(C_VerifyInit),
    C_Verify: Some(C_Verify),
    C_VerifyUpdate: Some(C_VerifyUpdate),
    C_VerifyFinal: Some(C_VerifyFinal),
    C_VerifyRecoverInit: Some(C_VerifyRecoverInit),
    C_VerifyRecover: Some(C_VerifyRecover),
    C_DigestEncryptUpdate: Some(C_DigestEncryptUpdate),
    C_DecryptDigestUpdate: Some(C_DecryptDigestUpdate),
    C_SignEncryptUpdate: Some(C_SignEncryptUpdate),
    C_DecryptVerifyUpdate: Some(C_DecryptVerifyUpdate),
    C_GenerateKey: Some(C_GenerateKey),
    C_GenerateKeyPair: Some(C_GenerateKeyPair),
    C_WrapKey: Some(C_WrapKey),
    C_UnwrapKey: Some(C_UnwrapKey),
    C_DeriveKey: Some(C_DeriveKey),
    C_SeedRandom: Some(C_SeedRandom),
    C_GenerateRandom: Some(C_GenerateRandom),
    C_GetFunctionStatus: Some(C_GetFunctionStatus),
    C_CancelFunction: Some(C_CancelFunction),
    C_WaitForSlotEvent: Some(C_WaitForSlotEvent),
};
const V3_0: List30 = List30 {
    v2_40: CK_FUNCTION_LIST { version: version::V3_0, ..V2_40 },
    C_GetInterfaceList: Some(C_GetInterfaceList),
    C_GetInterface: Some(C_GetInterface),
    C_LoginUser: Some(C_LoginUser),
    C_SessionCancel: Some(C_SessionCancel),
    C_MessageEncryptInit: Some(C_MessageEncryptInit),
    C_EncryptMessage: Some(C_EncryptMessage),
    C_EncryptMessageBegin: Some(C_EncryptMessageBegin),
    C_EncryptMessageNext: Some(C_EncryptMessageNext),
    C_MessageEncryptFinal: Some(C_MessageEncryptFinal),
    C_MessageDecryptInit: Some(C_MessageDecryptInit),
    C_DecryptMessage: Some(C_DecryptMessage),
    C_DecryptMessageBegin: Some(C_DecryptMessageBegin),
    C_DecryptMessageNext: Some(C_DecryptMessageNext),
    C_MessageDecryptFinal: Some(C_MessageDecryptFinal),
    C_MessageSignInit: Some(C_MessageSignInit),
    C_SignMessage: Some(C_SignMessage),
    C_SignMessageBegin: Some(C_SignMessageBegin),
    C_SignMessageNext: Some(C_SignMessageNext),
    C_MessageSignFinal: Some(C_MessageSignFinal),
    C_MessageVerifyInit: Some(C_MessageVerifyInit),
    C_VerifyMessage: Some(C_VerifyMessage),
    C_VerifyMessageBegin: Some(C_VerifyMessageBegin),
    C_VerifyMessageNext: Some(C_VerifyMessageNext),
    C_MessageVerifyFinal: Some(C_MessageVerifyFinal),
};
const V3_2: List32 = List32 {
    v3_0: List30 { v2_40: CK_FUNCTION_LIST { version: version::V3_2, ..V2_40 }, ..V3_0 },
    C_EncapsulateKey: Some(C_EncapsulateKey),
    C_DecapsulateKey: Some(C_DecapsulateKey),
    C_VerifySignatureInit: Some(C_VerifySignatureInit),
    C_VerifySignature: Some(C_VerifySignature),
    C_VerifySignatureUpdate: Some(C_VerifySignatureUpdate),
    C_VerifySignatureFinal: Some(C_VerifySignatureFinal),
    C_GetSessionValidationFlags: Some(C_GetSessionValidationFlags),
    C_AsyncComplete: Some(C_AsyncComplete),
    C_AsyncGetID: Some(C_AsyncGetID),
    C_AsyncJoin: Some(C_AsyncJoin),
    C_WrapKeyAuthenticated: Some(C_WrapKeyAuthenticated),
    C_UnwrapKeyAuthenticated: Some(C_UnwrapKeyAuthenticated),
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
