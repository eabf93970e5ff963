// SPDX-License-Identifier: Apache-2.0
//! Everything that maps memory: the protected arena, secrets in it, the fork sentinel, shared pages.
mod protected;
mod secret;
mod shared;

pub use protected::Protected;
pub use secret::Secret;
pub use shared::{SharedWords, WIPED_WORDS, wiped_on_fork};

/// What every allocation is aligned to, in bytes.
pub const ALIGNMENT: usize = 16;
