// SPDX-License-Identifier: Apache-2.0
//! Parallel function management functions, which the standard keeps for the sake of old callers.

use crate::enter::enter_library;
use metaslot_ck::*;

/// `C_GetFunctionStatus` (PKCS#11 3.2 §5.20)
#[unsafe(no_mangle)]
pub extern "C" fn C_GetFunctionStatus(_session: CK_SESSION_HANDLE) -> CK_RV {
    enter_library(Function::GetFunctionStatus, |_, _| Err(Error::FUNCTION_NOT_PARALLEL))
}

/// `C_CancelFunction` (PKCS#11 3.2 §5.20)
#[unsafe(no_mangle)]
pub extern "C" fn C_CancelFunction(_session: CK_SESSION_HANDLE) -> CK_RV {
    enter_library(Function::CancelFunction, |_, _| Err(Error::FUNCTION_NOT_PARALLEL))
}
