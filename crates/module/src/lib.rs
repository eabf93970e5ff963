// SPDX-License-Identifier: Apache-2.0
//! `libmetaslot.so`: the C interface of PKCS#11 2.40, 3.0 and 3.2.
//!
//! Each function is one [`enter`](enter::enter), one decoding per pointer, and one call of the
//! engine. Nothing here knows what an operation means; nothing below knows pointers.

mod caught;
mod decode;
mod enter;
pub mod functions;
mod hidden;
mod interface;
mod library;
mod process;
mod routing;
mod spare;
mod thread;
mod vendor;
mod wiped;
