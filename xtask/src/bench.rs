// SPDX-License-Identifier: Apache-2.0
//! The lab with the release build. BENCHMARKING.md says how to read what it prints.

use std::process::Command;

use anyhow::Result;

use crate::cargo::{build, command, module};
use crate::connections;
use crate::packages::{self, FOR_RUN, FOR_TESTS};
use crate::report::check;

/// `metaslot lab speed` with the arguments given, or `lab lanes` and `lab tls` when the first says so; `connections` counts those of a daemon.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (experiment, packages, arguments) = match arguments {
        [one] if one == "connections" => return connections::run(),
        [first, rest @ ..] if first == "tls" => ("tls", &[FOR_RUN, FOR_TESTS][..], rest),
        [first, rest @ ..] if first == "lanes" => ("lanes", &[FOR_RUN][..], rest),
        all => ("speed", &[FOR_RUN][..], all),
    };
    packages::install(packages)?;
    build()?;
    check(
        Command::new(command())
            .args(["lab", experiment])
            .args(arguments)
            .env("METASLOT_MODULE", module()),
    )
    .map(|_| ())
}
