// SPDX-License-Identifier: Apache-2.0
//! Steps with progress and times, and the summary at the end.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How many checks a step made and how many of them failed.
#[derive(Clone, Copy, Default)]
pub(crate) struct Count {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

impl Count {
    /// A step that is one check.
    pub(crate) const ONE: Self = Self { passed: 1, failed: 0 };
}

struct Step {
    name: &'static str,
    count: Count,
    took: Duration,
    error: Option<String>,
}

/// The steps done so far.
pub(crate) struct Report {
    started: Instant,
    steps: Vec<Step>,
}

impl Report {
    pub(crate) fn new() -> Self {
        Self { started: Instant::now(), steps: Vec::new() }
    }

    /// Runs one step; a failure is kept and the next step runs all the same.
    pub(crate) fn step(&mut self, name: &'static str, work: impl FnOnce() -> Result<Count>) {
        println!("==> [{:>4} s] {name}", self.started.elapsed().as_secs());
        let started = Instant::now();
        let (mut count, error) = match work() {
            Ok(count) => (count, None),
            Err(error) => (Count { passed: 0, failed: 1 }, Some(format!("{error:#}"))),
        };
        if let Some(error) = &error {
            println!("    FAILED: {error}");
            count.failed = count.failed.max(1);
        }
        self.steps.push(Step { name, count, took: started.elapsed(), error });
    }

    /// Prints the table of steps and, alone on the last line, the totals.
    pub(crate) fn finish(self, before_totals: impl FnOnce()) -> Result<()> {
        println!("\n{:<44} {:>7} {:>7} {:>9}", "step", "passed", "failed", "time");
        for step in &self.steps {
            println!(
                "{:<44} {:>7} {:>7} {:>7.1} s",
                step.name,
                step.count.passed,
                step.count.failed,
                step.took.as_secs_f64()
            );
        }
        let total = self.started.elapsed().as_secs_f64();
        println!("{:<44} {:>7} {:>7} {total:>7.1} s", "all", "", "");
        before_totals();
        for step in self.steps.iter().filter(|step| step.count.failed > 0) {
            let reason = step.error.as_deref().unwrap_or("see above");
            println!("failed: {}: {reason}", step.name);
        }
        let passed: usize = self.steps.iter().map(|step| step.count.passed).sum();
        let failed: usize = self.steps.iter().map(|step| step.count.failed).sum();
        println!("\n{passed} passed, {failed} failed");
        if failed > 0 {
            bail!("{failed} of {} checks failed", passed + failed);
        }
        Ok(())
    }
}

/// Runs a command whose success is one check.
pub(crate) fn check(command: &mut Command) -> Result<Count> {
    let status = command.status().with_context(|| format!("run {command:?}"))?;
    if !status.success() {
        bail!("{} ended with {status}", shown(command));
    }
    Ok(Count::ONE)
}

/// Runs `cargo test …`, shows its output and adds up its results.
pub(crate) fn tests(command: &mut Command) -> Result<Count> {
    tests_heard(command, |line| println!("    {line}"))
}

/// The same; each line of the output that says something goes to `hear`.
pub(crate) fn tests_heard(command: &mut Command, mut hear: impl FnMut(String)) -> Result<Count> {
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("run {command:?}"))?;
    let output = child.stdout.take().context("no output")?;
    let mut count = Count::default();
    for line in BufReader::new(output).lines() {
        let line = line.context("read the tests' output")?;
        if let Some(result) = result(&line) {
            count.passed += number_before(result, " passed");
            count.failed += number_before(result, " failed");
        }
        if !line.trim().is_empty() && !line.starts_with("running 0 tests") {
            hear(line);
        }
    }
    let status = child.wait().context("wait for the tests")?;
    if !status.success() && count.failed == 0 {
        bail!("{} ended with {status}", shown(command));
    }
    Ok(count)
}

/// The part of a line that has the totals of a program with tests, or of a [`Report`].
fn result(line: &str) -> Option<&str> {
    let of_report = || {
        let (passed, failed) = line.strip_suffix(" failed")?.split_once(" passed, ")?;
        [passed, failed].iter().all(|number| number.parse::<usize>().is_ok()).then_some(line)
    };
    line.strip_prefix("test result: ").or_else(of_report)
}

/// Runs tests of which none may fail.
pub(crate) fn all_pass(command: &mut Command) -> Result<()> {
    let Count { failed, .. } = tests(command)?;
    if failed > 0 {
        bail!("{failed} tests failed: {}", shown(command));
    }
    Ok(())
}

fn number_before(text: &str, word: &str) -> usize {
    text.split_once(word)
        .and_then(|(before, _)| before.rsplit(' ').next())
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

fn shown(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let program = program.rsplit('/').next().unwrap_or_default();
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
    format!("{program} {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_cargo_test_are_read() {
        let line = "ok. 12 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(number_before(line, " passed"), 12);
        assert_eq!(number_before(line, " failed"), 3);
        assert_eq!(result(&format!("test result: {line}")), Some(line));
    }

    #[test]
    fn results_of_a_report_are_read() {
        assert_eq!(result("5 passed, 1 failed"), Some("5 passed, 1 failed"));
        assert_eq!(number_before("5 passed, 1 failed", " failed"), 1);
        assert_eq!(result("failed: installation: see above"), None);
        assert_eq!(result("sect571r1.json: 12 passed, 3 failed"), None);
    }
}
