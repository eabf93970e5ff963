// SPDX-License-Identifier: Apache-2.0
//! `metaslot config check`

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::Report;
use crate::places;
use crate::uri::Uri;
use metaslot_client::Module;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

const EXAMPLES: &str = "\
Examples:
  metaslot config check
  metaslot config check new.toml && mv new.toml /etc/metaslot/metaslot.toml
  metaslot config check --load new.toml";

/// Arguments of `config check`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Another file than the one in force, which is only read
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Also load the modules that FILE names, which runs their code
    #[arg(long, requires = "file")]
    load: bool,
    /// Read the one in force only
    #[arg(long, hide = true, conflicts_with = "file")]
    read_only: bool,
}

/// What is wrong, and where.
#[derive(Debug, Eq, PartialEq)]
struct Problem {
    file: String,
    line: Option<u64>,
    reason: String,
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    if let Some(file) = &args.file {
        return of_file(app, file, args.load);
    }
    let file = places::in_force().map(|(file, _)| file.display().to_string());
    let told = if args.read_only { reading(app)? } else { complaint(app)? };
    let problem = told.map(|told| Problem::parse(&told));
    report(app, file.as_deref(), problem)
}

/// What the module says of the configuration, where it does not take it.
pub(super) fn complaint(app: &App) -> Result<Option<String>> {
    let module = app.host(&Uri::default())?.module();
    if !module.is_metaslot() {
        return Err(Failure::failed("the module is not Metaslot's: it has another configuration"));
    }
    // It reads the configuration when it is first asked for something.
    match module.slots(false) {
        Ok(_) => Ok(None),
        Err(error) => Ok(Some(Module::detail(module).unwrap_or_else(|| error.to_string()))),
    }
}

/// The same of the file alone: no module that it names is loaded.
fn reading(app: &App) -> Result<Option<String>> {
    let told = app.host(&Uri::default())?.module().configuration_problem();
    let told = told.ok_or_else(|| {
        Failure::failed("the module cannot read a configuration without what it names")
            .hint("--load tries it: that runs the code of the modules that the file names")
    })?;
    Ok(Some(told).filter(|told| !told.is_empty()))
}

fn report(app: &App, file: Option<&str>, problem: Option<Problem>) -> Result<()> {
    let Some(problem) = problem else {
        let text = match file {
            Some(file) => format!("{file}: nothing is wrong\n"),
            None => String::from("there is no file: every setting is the default\n"),
        };
        let json = json!({"file": file, "sound": true, "problem": null});
        return app.output.print(&Report { text, json, uris: Vec::new() });
    };
    if app.output.json {
        let Problem { file: place, line, reason } = &problem;
        let problem = json!({"file": place, "line": line, "reason": reason});
        let json = json!({"file": file, "sound": false, "problem": problem});
        app.output.line(&format!("{json:#}"))?;
    }
    Err(Failure::failed(problem.to_string())
        .hint("the module does nothing with it: docs/configuration.md has its form"))
}

/// Another file: in a process of its own, which has it in force.
fn of_file(app: &App, file: &Path, load: bool) -> Result<()> {
    let cannot = |error| Failure::io("cannot try the configuration", &error);
    let file = std::path::absolute(file).map_err(cannot)?;
    let mut check = Command::new(std::env::current_exe().map_err(cannot)?);
    check.args(["config", "check", "--json"]).env("METASLOT_CONF", &file);
    if !load {
        check.arg("--read-only");
    }
    if let Some(module) = app.named_module() {
        check.arg("--module").arg(module);
    }
    let checked = check.output().map_err(cannot)?;
    let said: Value = serde_json::from_slice(&checked.stdout).unwrap_or_default();
    let problem = match (said["sound"].as_bool(), &said["problem"]) {
        (Some(true), _) => None,
        (Some(false), problem) => Some(Problem {
            file: problem["file"].as_str().unwrap_or_default().to_owned(),
            line: problem["line"].as_u64(),
            reason: problem["reason"].as_str().unwrap_or_default().to_owned(),
        }),
        (None, _) => {
            let failed: Value = serde_json::from_slice(&checked.stderr).unwrap_or_default();
            let why = failed["error"]["message"].as_str().unwrap_or("it does not say why");
            return Err(Failure::failed(why));
        }
    };
    report(app, file.to_str(), problem)
}

impl Problem {
    /// From the module's words: `FILE: line N: REASON`, or without a line.
    fn parse(told: &str) -> Self {
        let of_line = told.split_once(": line ").and_then(|(file, rest)| {
            let (line, reason) = rest.split_once(": ")?;
            Some((file, Some(line.parse().ok()?), reason))
        });
        let whole = || told.split_once(": ").map(|(file, reason)| (file, None, reason));
        let (file, line, reason) = of_line.or_else(whole).unwrap_or(("", None, told));
        Self { file: file.to_owned(), line, reason: reason.to_owned() }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.file.as_str(), self.line) {
            ("", _) => f.write_str(&self.reason),
            (file, None) => write!(f, "{file}: {}", self.reason),
            (file, Some(line)) => write!(f, "{file}: line {line}: {}", self.reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_module_says_is_taken_apart_and_put_together() {
        for (told, file, line) in [
            ("/a b: c.toml: line 3: a token has no setting \"x: y\"", "/a b: c.toml", Some(3)),
            ("/a.toml: has no [[token]] section", "/a.toml", None),
            ("it is broken", "", None),
        ] {
            let problem = Problem::parse(told);
            assert_eq!((problem.file.as_str(), problem.line), (file, line));
            assert_eq!(problem.to_string(), told);
        }
    }
}
