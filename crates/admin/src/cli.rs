// SPDX-License-Identifier: Apache-2.0
//! The command line as clap sees it: help, man pages and completions are made from these types.

use crate::command::{key, mechanisms, pages, sign, stat, token, verify};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Keys in an encrypted token, behind one PKCS#11 module
///
/// Tokens and keys are named by PKCS#11 URIs (RFC 7512). PINs are asked for on the terminal or read
/// from a file or a command; they are never arguments.
#[derive(Debug, Parser)]
#[command(name = "metaslot", version, max_term_width = 100)]
#[command(
    disable_help_subcommand = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
#[command(
    after_help = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 no such module, token or key \
(or several), 4 PIN wrong, locked or missing, 5 signature not valid"
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command takes.
#[derive(Args, Debug)]
#[command(next_help_heading = "Common options")]
pub(crate) struct Common {
    /// The PKCS#11 module [default: libmetaslot.so beside this command, or installed]
    #[arg(long, global = true, value_name = "PATH", env = "METASLOT_MODULE")]
    #[arg(hide_env_values = true)]
    pub(crate) module: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long, global = true, conflicts_with = "quiet")]
    pub(crate) json: bool,
    /// Print URIs only
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

/// The commands, a noun each where there are several verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make, list and re-key tokens
    #[command(subcommand)]
    Token(token::Command),
    /// Generate, list, export and delete keys
    #[command(subcommand)]
    Key(key::Command),
    /// Sign a file with a key of the token
    Sign(sign::Args),
    /// Check the signature of a file with a key of the token
    Verify(verify::Args),
    /// List the mechanisms of a token
    Mechanisms(mechanisms::Args),
    /// Show what the module did, by function and by mechanism
    Stat(stat::Args),
    /// Print the completions for a shell
    Completions(pages::Completions),
    /// Write the man pages
    Man(pages::Man),
    /// Print the versions of the command and of the module
    Version,
}
