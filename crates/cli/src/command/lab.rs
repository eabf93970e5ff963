// SPDX-License-Identifier: Apache-2.0
//! `metaslot lab`: the lab is a program of its own, `metaslot-lab`, and a package of its own.

use crate::app::App;
use crate::failure::{Failure, Result};
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const PROGRAM: &str = "metaslot-lab";

/// What the lab is to do; it reads its own arguments.
#[derive(clap::Args, Debug)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// The lab's command and its options; metaslot lab --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    arguments: Vec<OsString>,
}

/// Becomes the lab.
pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let mut lab = Command::new(program());
    if let Some(module) = app.named_module() {
        lab.arg("--module").arg(module);
    }
    lab.args(&args.arguments);
    if app.output.json {
        lab.arg("--json");
    }
    let error = lab.exec();
    Err(Failure::io("cannot start metaslot-lab", &error)
        .hint("install the lab's package, or put metaslot-lab beside metaslot or on the PATH"))
}

/// Its commands, as its help lists them.
pub(super) fn commands() -> Vec<String> {
    let said = Command::new(program()).arg("--help").stderr(Stdio::null()).output();
    let text = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned());
    let text = text.unwrap_or_default();
    let list = text.lines().skip_while(|line| *line != "Commands:").skip(1);
    let rows = list.take_while(|line| !line.is_empty());
    rows.filter_map(|row| row.strip_prefix("  ")?.split(' ').next())
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Beside this command, or wherever the shell would find it.
fn program() -> PathBuf {
    let own = std::env::current_exe().ok();
    let beside = own.and_then(|own| Some(own.parent()?.join(PROGRAM)));
    beside.filter(|path| path.exists()).unwrap_or_else(|| PROGRAM.into())
}
