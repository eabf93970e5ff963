// SPDX-License-Identifier: Apache-2.0
//! Everything that maps memory: the protected arena, secrets in it, the fork sentinel, shared pages.
mod secret;

pub use secret::Secret;
