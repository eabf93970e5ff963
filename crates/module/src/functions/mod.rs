// SPDX-License-Identifier: Apache-2.0
//! Every `C_…` of the standard, in files named by its chapters.
//!
//! What they ask of their callers is the standard's, and stands in the type of their arguments:
//! [`Given`](crate::decode::Given).

mod asynchronous;
mod call;
mod decryption;
mod digesting;
mod dual;
mod encryption;
mod general;
mod key;
mod message;
mod message_cipher;
mod object;
mod parallel;
mod random;
mod session;
mod signing;
mod slot_token;
mod verifying;
mod whole;

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
pub(crate) use whole::whole;
