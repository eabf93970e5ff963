// SPDX-License-Identifier: Apache-2.0
//! `metaslot`: the command that makes tokens, keeps keys in them and shows what they do.
//!
//! It speaks to the module through the C ABI, like any other program, and works with any PKCS#11
//! module for that reason.
#![forbid(unsafe_code)]

mod app;
mod cli;
mod command;
mod encoding;
mod failure;
mod host;
mod key;
mod output;
mod pin;
mod scheme;
mod uri;

use app::App;
use clap::{CommandFactory, Parser};
use cli::{Cli, Command};
use std::process::ExitCode;

fn main() -> ExitCode {
    if std::env::args_os().len() < 2 {
        return help();
    }
    let cli = Cli::parse();
    let app = App::new(cli.common);
    let result = match cli.command {
        Command::Token(command) => command::token::run(&app, command),
        Command::Key(command) => command::key::run(&app, command),
        Command::Sign(args) => command::sign::run(&app, &args),
        Command::Verify(args) => command::verify::run(&app, &args),
        Command::Mechanisms(args) => command::mechanisms::run(&app, &args),
        Command::Stat(args) => command::stat::run(&app, &args),
        Command::Lab(command) => command::lab::run(&app, command),
        Command::Completions(args) => command::pages::completions(&args),
        Command::Man(args) => command::pages::man(&args),
        Command::Version => command::pages::version(&app),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => app.report(&failure),
    }
}

/// Nothing was asked for.
fn help() -> ExitCode {
    match Cli::command().print_help() {
        Ok(()) => ExitCode::from(failure::Exit::Usage as u8),
        Err(_) => ExitCode::FAILURE,
    }
}
