// SPDX-License-Identifier: Apache-2.0
//! `libmetaslot.so`: the C interface of PKCS#11 2.40, 3.0 and 3.2.
//!
//! Each function is one [`enter`](enter::enter), one decoding per pointer, and one call of the
//! engine. Nothing here knows what an operation means; nothing below knows pointers.

mod audit;
mod cancel;
mod caught;
mod config;
mod decode;
mod enter;
mod environment;
mod error_log;
pub mod functions;
mod hidden;
mod interface;
mod library;
mod outside;
#[cfg(feature = "panicking-provider")]
mod panicking;
mod process;
mod providers;
mod reload;
mod routing;
mod signal;
mod sink;
mod slots;
mod spare;
mod text;
mod thread;
mod vendor;
mod version;
mod wiped;
