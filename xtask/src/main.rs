// SPDX-License-Identifier: Apache-2.0
//! The one entrance for everything that is done to this repository: build, test, measure, package.
//!
//! Each task is a file, and a row of `tasks`. Nothing here is needed to build the module itself, and nothing here is
//! installed.
#![forbid(unsafe_code)]

mod bench;
mod binaries;
mod cargo;
mod codegen;
mod connections;
mod cpio;
mod cycles;
mod deb;
mod deny;
mod dist;
mod emulator;
mod first;
mod fleet;
mod floors;
mod fuzz;
mod header;
mod install;
mod kernel;
mod kryoptic;
mod linked;
mod machine;
mod miri;
mod openssls;
mod packages;
mod report;
mod run;
mod search;
mod structure;
mod suites;
mod tasks;
mod test;
mod tree;

use std::process::ExitCode;

use crate::tasks::TASKS;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let help = |word: &String| ["--help", "-h", "help"].contains(&word.as_str());
    let Some((first, rest)) = arguments.split_first() else {
        eprint!("{}", tasks::list());
        return ExitCode::from(2);
    };
    // `help TASK` is `TASK --help`.
    let name = if help(first) { rest.first().unwrap_or(first) } else { first };
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        if help(name) {
            print!("{}", tasks::list());
            return ExitCode::SUCCESS;
        }
        eprint!("xtask: there is no task {name}\n{}", tasks::list());
        return ExitCode::from(2);
    };
    if arguments.iter().any(help) {
        print!("{}", task.help());
        return ExitCode::SUCCESS;
    }
    match task.run(rest) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
