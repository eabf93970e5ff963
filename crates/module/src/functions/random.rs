// SPDX-License-Identifier: Apache-2.0
//! Random number generation functions.

use crate::enter::enter;
use metaslot_ck::*;

/// `C_SeedRandom` (PKCS#11 3.2 §5.19)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_SeedRandom(
    session: CK_SESSION_HANDLE,
    seed: *mut CK_BYTE,
    length: CK_ULONG,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::SeedRandom, |engine, caller| {
            let seed = caller.bytes(seed, length)?;
            engine.seed_random(SessionHandle(session), seed)
        })
    }
}

/// `C_GenerateRandom` (PKCS#11 3.2 §5.19)
#[unsafe(no_mangle)]
pub unsafe extern "C" fn C_GenerateRandom(
    session: CK_SESSION_HANDLE,
    out: *mut CK_BYTE,
    length: CK_ULONG,
) -> CK_RV {
    // SAFETY: the pointers are as this function's caller promises: as the standard says.
    unsafe {
        enter(Function::GenerateRandom, |engine, caller| {
            let out = caller.bytes_mut(out, length)?;
            engine.random(SessionHandle(session), out)
        })
    }
}
