// SPDX-License-Identifier: Apache-2.0
//! One transcript: commands after `$ `, continued after `> `, then what they print on standard
//! output and standard error together, then `? N` when the exit code is not 0.
//!
//! In what is expected, `[..]`, with two dots or more, stands for anything within a line, and a line
//! `...` for any lines. In
//! a page only the blocks marked `console` are read; in a text file, lines that begin with `## ` are
//! remarks.

use crate::sandbox::Sandbox;

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
    pub(crate) fn run(&self, sandbox: &Sandbox) -> Outcome {
        let mut differences = Vec::new();
        let mut text: Vec<String> = Vec::new();
        let mut copied = 0;
        for step in &self.steps {
            let command: Vec<&str> =
                self.lines[step.start..step.output].iter().map(|line| &line[2..]).collect();
            let happened = sandbox.run(&command.join("\n"));
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
