// SPDX-License-Identifier: Apache-2.0
//! The lab without the `metaslot` command around it.

use clap::Parser;

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: metaslot_lab::Command,
}

fn main() -> std::process::ExitCode {
    match metaslot_lab::run(&Arguments::parse().command) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            std::process::ExitCode::FAILURE
        }
    }
}
