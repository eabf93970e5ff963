// SPDX-License-Identifier: Apache-2.0
//! Numbers that the committee has given out for the version after 3.2. `cargo xtask codegen` reads this file after the bindings,
//! so each is one line, in decimal.

use crate::CK_MECHANISM_TYPE;

/// ML-DSA of a µ that was computed elsewhere (FIPS 204, algorithm 7, line 6), of 64 bytes, in one part. Its optional parameter is
/// `CK_SIGN_ADDITIONAL_CONTEXT` with an empty context: µ has it already.
pub const CKM_ML_DSA_EXTERNAL_MU: CK_MECHANISM_TYPE = 16444;
