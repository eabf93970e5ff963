// SPDX-License-Identifier: Apache-2.0
//! Everything that maps memory: the protected arena, secrets in it, the fork sentinel, shared pages.
mod protected;
mod secret;

pub use protected::Protected;
pub use secret::Secret;

/// What every allocation is aligned to, in bytes.
pub const ALIGNMENT: usize = 16;
