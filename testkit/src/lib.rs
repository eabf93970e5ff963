// SPDX-License-Identifier: Apache-2.0
//! Tests through the C ABI: real clients, vectors and attacks, each against a token of its own.
//!
//! The module under test is the one that `METASLOT_MODULE` names, otherwise the release build,
//! otherwise the debug build. Nothing here knows how the module works inside; with SoftHSM's path in
//! the variable the same tests run against SoftHSM, so a failure is known to be ours.
#![forbid(unsafe_code)]

mod apart;
mod go;
mod memory;
mod others;
mod outcome;
mod process;
mod summary;
mod token;

pub use apart::{apart, inside, is_inside, user_session};
pub use go::compile_go;
pub use memory::copies;
pub use outcome::{Outcome, check, left_out, not_run};
pub use process::{Output, Program, Server, find_program, free_port};
pub use token::{SO_PIN, TestToken, USER_PIN, command, module_path, openssl_provider};
