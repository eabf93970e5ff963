// SPDX-License-Identifier: Apache-2.0
//! `metaslot-lab`: the performance lab, which `metaslot lab` starts. A program of its own, so that the
//! token's package needs nothing of what the lab needs.
#![forbid(unsafe_code)]

mod pages;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use metaslot_lab::{Failure, tell};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

/// Measure the cost of secure data movement: the cipher, the copy, the socket, the disk
///
/// Costs are CPU time of the experiment alone; arms are run in random order, side by side; a verdict is
/// faster, slower, same, or how many more pairs it would take. Experiments are directories with every
/// sample, which can be printed, compared and made into a page later.
#[derive(Debug, Parser)]
#[command(name = "metaslot-lab", bin_name = "metaslot lab", version, max_term_width = 100)]
#[command(
    disable_help_subcommand = true,
    subcommand_required = true,
    arg_required_else_help = true
)]
struct Cli {
    /// The PKCS#11 module [default: $METASLOT_MODULE, or libmetaslot.so beside this command or
    /// installed]
    #[arg(long, global = true, value_name = "PATH", help_heading = "Common options")]
    module: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Lab(Box<metaslot_lab::Command>),
    /// Print the completions for a shell
    #[command(hide = true)]
    Completions(pages::Completions),
    /// Write the man pages
    #[command(hide = true)]
    Man(pages::Man),
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return misread(&error),
    };
    let result = match cli.command {
        Command::Lab(mut command) => {
            if let Some(module) = cli.module {
                command.use_module(module);
            }
            metaslot_lab::run(&command)
        }
        Command::Completions(args) => pages::completions(&args, &mut Cli::command()),
        Command::Man(args) => pages::man(&args, Cli::command()),
    };
    exit(result)
}

fn exit(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => report(&failure, 1),
    }
}

/// Help that was asked for, or a command line that makes no sense.
fn misread(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        return exit(metaslot_lab::write_out(&error.render().to_string()));
    }
    let text = error.render().to_string();
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        tell(text.trim_end());
        return ExitCode::from(2);
    }
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let (message, rest) = text.split_once("\n\n").unwrap_or((text, ""));
    let words: Vec<&str> = message.split_whitespace().collect();
    let usage = rest.lines().find_map(|line| line.strip_prefix("Usage: "));
    // How an unknown option is passed as an argument is not what was wanted.
    let tip = rest.lines().find_map(|line| line.trim().strip_prefix("tip: "));
    let tip = tip.filter(|tip| !tip.starts_with("to pass '")).map(str::to_owned);
    let hint = tip.or_else(|| usage.map(|usage| format!("usage: {usage}")));
    report(&Failure { message: words.join(" "), hint }, 2)
}

/// An error with its exit code, as JSON when the results are.
fn report(failure: &Failure, exit: u8) -> ExitCode {
    match wants_json() {
        true => tell(format_args!("{:#}", document(failure, exit))),
        false => tell(format_args!("error: {failure}")),
    }
    ExitCode::from(exit)
}

fn wants_json() -> bool {
    std::env::args_os().any(|argument| argument == "--json")
}

/// As every command of `metaslot` has it.
fn document(failure: &Failure, exit: u8) -> Value {
    json!({"error": {
        "message": failure.message,
        "detail": null,
        "hint": failure.hint,
        "function": null,
        "code": null,
        "exit": exit,
    }})
}
