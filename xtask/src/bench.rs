// SPDX-License-Identifier: Apache-2.0
//! The lab with the release build. BENCHMARKING.md says how to read what it prints.

use std::process::Command;

use anyhow::Result;

use crate::cargo::{build, command, module};
use crate::connections;
use crate::packages::{self, FOR_RUN};
use crate::report::check;
use crate::tls;

/// `metaslot lab speed` with the arguments given, or `lab lanes` when the first is `lanes`; `tls` and `connections` measure servers instead.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    match arguments {
        [first, rest @ ..] if first == "tls" => return tls::run(rest),
        [one] if one == "connections" => return connections::run(),
        _ => {}
    }
    let (experiment, arguments) = match arguments {
        [first, rest @ ..] if first == "lanes" => ("lanes", rest),
        all => ("speed", all),
    };
    packages::install(&[FOR_RUN])?;
    build()?;
    check(
        Command::new(command())
            .args(["lab", experiment])
            .args(arguments)
            .env("METASLOT_MODULE", module()),
    )
    .map(|_| ())
}
