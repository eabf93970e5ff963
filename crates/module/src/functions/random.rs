// SPDX-License-Identifier: Apache-2.0
//! Random number generation functions.

use crate::decode::Given;
use crate::enter::enter_session;
use metaslot_ck::*;

/// `C_SeedRandom` (PKCS#11 3.2 §5.19)
#[unsafe(no_mangle)]
pub extern "C" fn C_SeedRandom(
    session: CK_SESSION_HANDLE,
    seed: Given<'_, CK_BYTE>,
    length: CK_ULONG,
) -> CK_RV {
    enter_session(Function::SeedRandom, session, |engine, caller, session| {
        let seed = caller.bytes(seed, length)?;
        engine.seed_random(session, seed)
    })
}

/// `C_GenerateRandom` (PKCS#11 3.2 §5.19)
#[unsafe(no_mangle)]
pub extern "C" fn C_GenerateRandom(
    session: CK_SESSION_HANDLE,
    out: Given<'_, CK_BYTE>,
    length: CK_ULONG,
) -> CK_RV {
    enter_session(Function::GenerateRandom, session, |engine, caller, session| {
        let out = caller.bytes_mut(out, length)?;
        engine.random(session, out)
    })
}
