// SPDX-License-Identifier: Apache-2.0
//! The program `metaslotd`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    metaslot_daemon::run()
}
