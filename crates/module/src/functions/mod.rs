// SPDX-License-Identifier: Apache-2.0
//! Every `C_…` of the standard, in files named by its chapters.
//!
//! Their safety contract is the standard's, once for all: each pointer is NULL or valid for what
//! the function's description says that it holds, until the function returns.
#![expect(clippy::missing_safety_doc, reason = "the contract is the standard, stated above")]
#![expect(unused_unsafe, reason = "until all take what is given by its type")]

mod asynchronous;
mod call;
mod decryption;
mod digesting;
mod dual;
mod encryption;
mod general;
mod key;
mod message;
mod object;
mod parallel;
mod random;
mod session;
mod signing;
mod slot_token;
mod verifying;

pub use asynchronous::*;
pub use decryption::*;
pub use digesting::*;
pub use dual::*;
pub use encryption::*;
pub use general::*;
pub use key::*;
pub use message::*;
pub use object::*;
pub use parallel::*;
pub use random::*;
pub use session::*;
pub use signing::*;
pub use slot_token::*;
pub use verifying::*;
