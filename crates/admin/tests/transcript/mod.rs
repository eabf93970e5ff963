// SPDX-License-Identifier: Apache-2.0
//! One transcript: commands after `$ `, continued after `> `, then what they print on standard
//! output and standard error together, then `? N` when the exit code is not 0.
//!
//! In what is expected, `[..]`, with two dots or more, stands for anything within a line, and a line
//! `...` for any lines. In
//! a page only the blocks marked `console` are read; in a text file, lines that begin with `## ` are
//! remarks.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process};

/// A file's lines, and where the commands are in them.
#[derive(Debug)]
pub(crate) struct Transcript {
    lines: Vec<String>,
    steps: Vec<Step>,
}

/// One command: lines `start..output` are the command, `output..end` what is expected.
#[derive(Clone, Copy, Debug)]
struct Step {
    start: usize,
    output: usize,
    end: usize,
}

/// What happened.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// One for each command that did something else.
    pub(crate) differences: Vec<String>,
    /// The file as it would be right.
    pub(crate) text: String,
}

impl Transcript {
    /// Finds the commands.
    pub(crate) fn parse(text: &str, page: bool) -> Self {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let mut steps: Vec<Step> = Vec::new();
        let mut inside = !page;
        let mut open = false;
        for (at, line) in lines.iter().enumerate() {
            let fence = page && line.starts_with("```");
            if fence {
                inside = line == "```console";
            }
            if fence || !inside || !page && line.starts_with("## ") {
                open = false;
            } else if line.starts_with("$ ") {
                steps.push(Step { start: at, output: at + 1, end: at + 1 });
                open = true;
            } else if let Some(step) = steps.last_mut().filter(|_| open) {
                step.end = at + 1;
                if line.starts_with("> ") && step.output == at {
                    step.output = at + 1;
                }
            }
        }
        Self { lines, steps }
    }

    /// Whether there is no command.
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Runs every command in order; a difference does not stop the rest.
    pub(crate) fn run(&self, place: &Place) -> Outcome {
        let mut differences = Vec::new();
        let mut text: Vec<String> = Vec::new();
        let mut copied = 0;
        for step in &self.steps {
            let command: Vec<&str> =
                self.lines[step.start..step.output].iter().map(|line| &line[2..]).collect();
            let happened = place.run(&command.join("\n"));
            let expected = trimmed(&self.lines[step.output..step.end]);
            text.extend_from_slice(&self.lines[copied..step.output]);
            copied = step.output;
            if matches(expected, &happened) {
                continue;
            }
            differences.push(format!(
                "{}: {}\n--- expected\n{}\n--- happened\n{}\n",
                step.start + 1,
                command.join("\n"),
                expected.join("\n"),
                happened.join("\n")
            ));
            text.extend(happened);
            copied = step.output + expected.len();
        }
        text.extend_from_slice(&self.lines[copied..]);
        Outcome { differences, text: text.join("\n") + "\n" }
    }
}

/// Without the blank lines that only separate commands.
fn trimmed(lines: &[String]) -> &[String] {
    let length = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    &lines[..length]
}

/// Whether the lines are as expected, wildcards allowed.
fn matches(expected: &[String], happened: &[String]) -> bool {
    match (expected.split_first(), happened.split_first()) {
        (None, None) => true,
        (Some((wild, rest)), _) if wild == "..." => {
            (0..=happened.len()).any(|skipped| matches(rest, &happened[skipped..]))
        }
        (Some((wanted, rest)), Some((line, others))) => {
            line_matches(wanted, line) && matches(rest, others)
        }
        _ => false,
    }
}

fn line_matches(wanted: &str, line: &str) -> bool {
    let Some((before, after)) = split_at_wildcard(wanted) else { return wanted == line };
    line.strip_prefix(before).is_some_and(|rest| {
        let mut ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
        ends.any(|at| line_matches(after, &rest[at..]))
    })
}

/// What stands before and after the first `[..]`; it may have more dots, to keep columns aligned.
fn split_at_wildcard(wanted: &str) -> Option<(&str, &str)> {
    let start = wanted.find("[..")?;
    let rest = wanted[start + 1..].trim_start_matches('.');
    let after = rest.strip_prefix(']')?;
    Some((&wanted[..start], after))
}

/// A directory with a configuration that says where the token is to be; removed on drop.
#[derive(Debug)]
pub(crate) struct Place {
    directory: PathBuf,
    module: PathBuf,
}

impl Drop for Place {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.directory).ok();
    }
}

impl Place {
    /// A new one.
    pub(crate) fn make(module: &Path) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("metaslot-transcript-{}-{number}", process::id());
        let directory = env::temp_dir().join(name);
        fs::create_dir_all(directory.join("run/metaslot")).expect("a directory can be made");
        let token = directory.join("token.db");
        let configuration = format!("[[token]]\npath = {token:?}\n");
        fs::write(directory.join("metaslot.toml"), configuration).expect("a file can be written");
        fs::write(directory.join("user.pin"), "1234\n").expect("a file can be written");
        fs::write(directory.join("so.pin"), "12345678\n").expect("a file can be written");
        Self { directory, module: module.to_owned() }
    }

    /// Runs one command line and gives its lines, the exit code last when it is not 0.
    fn run(&self, command: &str) -> Vec<String> {
        let binary = Path::new(env!("CARGO_BIN_EXE_metaslot"));
        let bin = binary.parent().expect("a program is in a directory");
        let mut shell = Command::new("bash");
        shell.args(["-c", &format!("exec 2>&1\n{command}")]).current_dir(&self.directory);
        let path = format!("{}:{}", bin.display(), env::var("PATH").unwrap_or_default());
        shell.env("PATH", path).env("HOME", &self.directory);
        shell.env("METASLOT_MODULE", &self.module);
        shell.env("METASLOT_CONF", self.directory.join("metaslot.toml"));
        shell.env("XDG_RUNTIME_DIR", self.directory.join("run"));
        shell.env("LC_ALL", "C.UTF-8").env("NO_COLOR", "1").env("COLUMNS", "100");
        for unwanted in ["METASLOT_PIN_SOURCE", "METASLOT_SO_PIN_SOURCE", "CREDENTIALS_DIRECTORY"] {
            shell.env_remove(unwanted);
        }
        let output = shell.stdin(process::Stdio::null()).output().expect("bash runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let text = text.replace(&self.directory.display().to_string(), "/home/you");
        let text = text.replace(&self.module.display().to_string(), "/usr/lib/libmetaslot.so");
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        match output.status.code() {
            Some(0) => {}
            Some(code) => lines.push(format!("? {code}")),
            None => lines.push("? killed".to_owned()),
        }
        lines
    }
}

/// The module of the same build; built now if that did not happen yet.
pub(crate) fn module() -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_metaslot"));
    let directory = binary.parent().expect("a program is in a directory");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--package", "metaslot-module"]);
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    if directory.ends_with("release") {
        cargo.arg("--release");
    }
    assert!(cargo.status().expect("cargo runs").success(), "the module does not build");
    directory.join("libmetaslot.so")
}
