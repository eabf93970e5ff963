// SPDX-License-Identifier: Apache-2.0
//! The program `metaslot`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    metaslot_cli::run()
}
