// SPDX-License-Identifier: Apache-2.0
//! `lab tls`: what a full handshake of TLS 1.3 costs a server, with its key in a file, in a token, and in a token with signatures
//! that pause OpenSSL's jobs.

mod counted;
mod load;
mod options;
mod place;
mod print;
mod rows;
mod scenario;
mod server;
mod view;
mod words;

pub use options::{Options, Server as ServerKind};
pub(crate) use print::{json, text};

use crate::Result;
use crate::scenario::{Made, RunOptions, make};

/// Measures.
pub(crate) fn run(options: &Options) -> Result<Made> {
    let mut scenario = scenario::Handshakes::new(options)?;
    let run = RunOptions::of(&options.token);
    let seconds = options.seconds.or(Some(scenario::SECONDS));
    make(&mut scenario, &RunOptions { seconds, repetitions: options.repetitions, ..run })
}
