// SPDX-License-Identifier: Apache-2.0
//! `metaslot`: the command that makes tokens, keeps keys in them and shows what they do. A library, so that `fuzz` reads files
//! of keys as it does.
//!
//! It speaks to the module through the C ABI, like any other program, and works with any PKCS#11
//! module for that reason.
#![forbid(unsafe_code)]

mod app;
mod certificate;
mod cli;
mod command;
mod configured;
mod draft;
mod encoding;
mod failure;
mod find;
mod host;
mod inputs;
mod issuer;
mod key;
mod keyfile;
mod output;
mod personality;
mod pin;
mod places;
mod scheme;
mod settings;
mod waiting;
mod x509;

use app::App;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use cli::{Cli, Command};
use failure::{Exit, Failure};
pub use keyfile::tried;
use metaslot_client::uri;
use output::Output;
use std::ffi::OsString;
use std::process::ExitCode;

/// The whole command, with this process's arguments.
#[must_use]
pub fn run() -> ExitCode {
    command::complete::answer(Cli::command);
    let mut arguments: Vec<OsString> = personality::expanded(std::env::args_os().collect());
    match arguments.get(1) {
        None => return help(),
        // `metaslot help key list` is `metaslot key list --help`.
        Some(first) if first == "help" => {
            arguments.remove(1);
            arguments.push("--help".into());
        }
        Some(_) => {}
    }
    let cli = match Cli::try_parse_from(&arguments) {
        Ok(cli) => cli,
        Err(error) => return misread(&error, arguments.get(1)),
    };
    let app = App::new(cli.common);
    let result = match cli.command {
        Command::Token(command) => command::token::run(&app, command),
        Command::Cert(command) => command::cert::run(&app, command),
        Command::Data(command) => command::data::run(&app, command),
        Command::Key(command) => command::key::run(&app, command),
        Command::ImportSofttoken(args) => command::import::run(&app, &args),
        Command::Sign(args) => command::sign::run(&app, &args),
        Command::Verify(args) => command::verify::run(&app, &args),
        Command::Wrap(args) => command::wrap::run(&app, &args),
        Command::Unwrap(args) => command::wrap::open::run(&app, &args),
        Command::Derive(args) => command::derive::run(&app, &args),
        Command::Encapsulate(args) => command::encapsulate::run(&app, &args),
        Command::Decapsulate(args) => command::encapsulate::open(&app, &args),
        Command::Digest(args) => personality::digest(&app, &args),
        Command::Mac(args) => personality::mac(&app, &args),
        Command::Encrypt(args) => personality::encrypt(&app, &args),
        Command::Decrypt(args) => personality::decrypt(&app, &args),
        Command::Cryptoadm(args) => personality::cryptoadm(&app, &args),
        Command::Ksslcfg(args) => personality::ksslcfg(&app, &args),
        Command::Pktool(args) => personality::pktool(&app, &args),
        Command::Provider(command) => command::provider::run(&app, &command),
        Command::Policy(command) => command::policy::run(&app, &command),
        Command::Explain(args) => command::explain::run(&app, &args),
        Command::Tune(args) => command::tune::run(&app, &args),
        Command::Random(args) => command::random::run(&app, &args),
        Command::Setup(args) => command::setup::run(&app, &args),
        Command::Mechanisms(args) => command::mechanisms::run(&app, &args),
        Command::Uri2pem(args) => command::uri2pem::run(&app, &args),
        Command::Config(command) => command::config::run(&app, &command),
        Command::Doctor(args) => command::doctor::run(&app, &args),
        Command::Stat(args) => command::stat::run(&app, &args),
        Command::Top(args) => command::top::run(&app, &args),
        Command::Lab(args) => command::lab::run(&app, &args),
        Command::Completions(args) => command::pages::completions(&app, &args),
        Command::Man(args) => command::pages::man(&app, &args, Cli::command()),
        Command::Version => command::pages::version(&app),
    };
    match result {
        Ok(()) => {
            // A command whose result is bytes has printed none.
            output::print_warnings();
            ExitCode::SUCCESS
        }
        Err(failure) => app.report(&failure),
    }
}

/// Nothing was asked for.
fn help() -> ExitCode {
    match shown(&Cli::command().render_help().to_string(), false) {
        ExitCode::SUCCESS => ExitCode::from(Exit::Usage as u8),
        failed => failed,
    }
}

/// Prints help.
fn shown(help: &str, json: bool) -> ExitCode {
    match output::write_out(help.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            Output { json, quiet: false }.failure(&failure);
            failure.exit()
        }
    }
}

/// Help that was asked for, or a command line that makes no sense.
fn misread(error: &clap::Error, subcommand: Option<&OsString>) -> ExitCode {
    let json = std::env::args_os().any(|argument| argument == "--json");
    if !error.use_stderr() {
        return shown(&error.render().to_string(), json);
    }
    let failure = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            incomplete(std::env::args_os())
        }
        _ => usage(&error.render().to_string()),
    };
    let failure = personality::misread(subcommand.map(OsString::as_os_str), failure);
    Output { json, quiet: false }.failure(&failure);
    failure.exit()
}

/// A noun without a verb, for example `metaslot key`.
fn incomplete(arguments: impl Iterator<Item = OsString>) -> Failure {
    let mut name = String::from("metaslot");
    let mut command = Cli::command();
    for argument in arguments.skip(1) {
        if let Some(next) = command.find_subcommand(&argument).cloned() {
            name = format!("{name} {}", next.get_name());
            command = next;
        }
    }
    let verbs: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    Failure::usage(format!("'{name}' needs a command: {}", verbs.join(", ")))
        .hint(format!("'{name} --help' says what each does"))
}

/// Clap's message in the form of all others: what it says, then what it advises, or how the command
/// is used.
fn usage(rendered: &str) -> Failure {
    let text = rendered.strip_prefix("error: ").unwrap_or(rendered);
    let (message, rest) = text.split_once("\n\n").unwrap_or((text, ""));
    let words: Vec<&str> = message.split_whitespace().collect();
    let failure = Failure::usage(words.join(" "));
    // How an unknown option is passed as an argument is not what was wanted.
    let tip = rest.lines().find_map(|line| line.trim().strip_prefix("tip: "));
    let tip = tip.filter(|tip| !tip.starts_with("to pass '"));
    let usage = rest.lines().find_map(|line| line.strip_prefix("Usage: "));
    match (tip, usage) {
        (Some(tip), _) => failure.hint(tip),
        // Of an unknown command the usage would say no more than that it is one.
        (None, Some(usage)) if usage.ends_with(" <COMMAND>") => {
            let name = usage.split(" [").next().unwrap_or(usage);
            failure.hint(format!("'{name} --help' lists the commands"))
        }
        (None, Some(usage)) => failure.hint(format!("usage: {usage}")),
        (None, None) => failure,
    }
}
