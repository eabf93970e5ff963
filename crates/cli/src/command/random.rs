// SPDX-License-Identifier: Apache-2.0
//! `metaslot random`

use super::arguments::TokenArg;
use super::mechanisms::any_slot;
use super::payload::write_beside;
use crate::app::App;
use crate::encoding::base64;
use crate::failure::Result;
use crate::output::Report;
use clap::ValueEnum;
use metaslot_client::Access;
use metaslot_memory::Secret;
use serde_json::json;
use std::path::PathBuf;

/// Bytes at once: they are held in protected memory.
const MOST: u64 = 64 << 10;

/// Arguments of `random`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// How many bytes, 65536 at most
    #[arg(value_name = "BYTES", default_value_t = 32, value_parser = clap::value_parser!(u64).range(1..=MOST))]
    bytes: u64,
    /// How they are written
    #[arg(long, short, value_enum, default_value_t = Format::Hex)]
    format: Format,
    /// Where they go [default: standard output]
    #[arg(long = "out", short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    token: TokenArg,
}

/// Forms of bytes.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Format {
    /// Two digits a byte, one line
    Hex,
    /// One line
    Base64,
    /// The bytes themselves
    Raw,
}

impl Format {
    fn of(self, bytes: &[u8]) -> Vec<u8> {
        let line = match self {
            Self::Raw => return bytes.to_vec(),
            Self::Hex => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            Self::Base64 => base64(bytes),
        };
        format!("{line}\n").into_bytes()
    }
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let uri = args.token.uri()?;
    let slot = any_slot(app, &uri)?;
    let session = app.host(&uri)?.module().open_session(slot, Access::ReadOnly)?;
    let mut random = Secret::zeroed(usize::try_from(args.bytes).unwrap_or(0));
    session.random(random.expose_mut())?;
    let report = Report {
        json: json!({"bytes": args.bytes, "random": base64(random.expose())}),
        ..Report::default()
    };
    let written = args.format.of(random.expose());
    write_beside(&app.output, args.output.as_deref(), &written, &report)
}
