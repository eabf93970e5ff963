// SPDX-License-Identifier: Apache-2.0
//! General-purpose functions.

use crate::caught::caught;
use crate::decode::{Caller, Given};
use crate::enter::enter_library;
use crate::{interface, process};
use metaslot_ck::*;
use metaslot_wiring::text::padded;
use metaslot_wiring::version;
use std::ffi::{CStr, c_void};

/// `C_Initialize` (PKCS#11 3.2 §5.4)
#[unsafe(no_mangle)]
pub extern "C" fn C_Initialize(arguments: Given<'_, c_void>) -> CK_RV {
    let caller = Caller::new();
    caught(|| {
        if !arguments.is_null() {
            accept(&caller.arguments(arguments)?)?;
        }
        process::initialize()
    })
}

/// Whether we can live with how the caller wants to be locked.
fn accept(arguments: &CK_C_INITIALIZE_ARGS) -> Result<()> {
    if !arguments.pReserved.is_null() {
        return Err(Error::ARGUMENTS_BAD);
    }
    let given = [
        arguments.CreateMutex.is_some(),
        arguments.DestroyMutex.is_some(),
        arguments.LockMutex.is_some(),
        arguments.UnlockMutex.is_some(),
    ];
    if given.contains(&true) && given.contains(&false) {
        return Err(Error::ARGUMENTS_BAD);
    }
    // We lock with the system's own primitives, always. Anyone who insists on others cannot have them.
    if given[0] && arguments.flags & CKF_OS_LOCKING_OK == 0 {
        return Err(Error::CANT_LOCK);
    }
    Ok(())
}

/// `C_Finalize` (PKCS#11 3.2 §5.4)
#[unsafe(no_mangle)]
pub extern "C" fn C_Finalize(reserved: Given<'_, c_void>) -> CK_RV {
    caught(|| if reserved.is_null() { process::finalize() } else { Err(Error::ARGUMENTS_BAD) })
}

/// `C_GetInfo` (PKCS#11 3.2 §5.4)
#[unsafe(no_mangle)]
pub extern "C" fn C_GetInfo(info: Given<'_, CK_INFO>) -> CK_RV {
    enter_library(Function::GetInfo, |_, caller| {
        let place = caller.place(info)?;
        place.set(CK_INFO {
            cryptokiVersion: version::V3_2,
            manufacturerID: padded(version::MANUFACTURER),
            flags: 0,
            libraryDescription: padded("Metaslot"),
            libraryVersion: version::LIBRARY,
        });
        Ok(())
    })
}

/// `C_GetFunctionList` (PKCS#11 3.2 §5.4)
#[unsafe(no_mangle)]
pub extern "C" fn C_GetFunctionList(list: Given<'_, *mut CK_FUNCTION_LIST>) -> CK_RV {
    let caller = Caller::new();
    caught(|| {
        caller.place(list)?.set((&raw const interface::LIST_2_40).cast_mut());
        Ok(())
    })
}

/// `C_GetInterfaceList` (PKCS#11 3.2 §5.4)
#[unsafe(no_mangle)]
pub extern "C" fn C_GetInterfaceList(
    interfaces: Given<'_, CK_INTERFACE>,
    count: Given<'_, CK_ULONG>,
) -> CK_RV {
    let caller = Caller::new();
    caught(|| {
        let all: Vec<_> = interface::all().copied().collect();
        caller.list(&all, interfaces, count)
    })
}

/// `C_GetInterface` (PKCS#11 3.2 §5.4)
#[unsafe(no_mangle)]
pub extern "C" fn C_GetInterface(
    name: Given<'_, CK_UTF8CHAR>,
    version: Given<'_, CK_VERSION>,
    interface: Given<'_, *mut CK_INTERFACE>,
    flags: CK_FLAGS,
) -> CK_RV {
    let caller = Caller::new();
    caught(|| {
        let place = caller.place(interface)?;
        let wanted = |known: &CStr| name.is_null() || caller.is_text(&name, known);
        let version = if version.is_null() { None } else { Some(caller.read(version)?) };
        let found = interface::find(wanted, version, flags).ok_or(Error::ARGUMENTS_BAD)?;
        place.set(std::ptr::from_ref(found).cast_mut());
        Ok(())
    })
}
