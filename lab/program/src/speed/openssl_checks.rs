// SPDX-License-Identifier: Apache-2.0
//! The raw figures checked against `openssl speed` in the same run.
//!
//! By default that tool divides by its user CPU time, and with `-elapsed` by the wall clock: each
//! is compared with our figure by the same clock.

use super::cell::{CELLS, Cell};
use super::measure::{self, Plan};
use super::report::{Check, RAW};
use super::subject::Subject;
use crate::random::Random;
use crate::statistics::median;
use crate::{Failure, Result};
use std::process::Command;

impl Check {
    /// Raw over OpenSSL.
    pub(crate) fn ratio(&self) -> f64 {
        self.raw_per_second / self.openssl_per_second
    }

    /// What the ratio means for anyone who trusts the raw figures: a raw library that is slower than
    /// it should be would flatter the module.
    pub(crate) fn verdict(&self) -> &'static str {
        match self.ratio() {
            ratio if ratio < 0.95 => "MORE THAN 5 % SLOWER",
            ratio if ratio > 1.05 => "more than 5 % faster",
            _ => "within 5 %",
        }
    }
}

/// The cells that both measure alike, and what the tool calls them.
const COMPARED: [(&str, &[&str]); 2] =
    [("sha256-8k", &["-bytes", "8192", "-evp", "sha256"]), ("rsa2048-sign", &["rsa2048"])];

/// Runs the tool between two measurements of the raw library; nothing where it is not installed.
///
/// # Errors
/// The raw library failed, or the tool printed what cannot be read.
pub(crate) fn checks(raw: &dyn Subject, plan: &Plan, random: &mut Random) -> Result<Vec<Check>> {
    let Some(version) = version() else {
        return Ok(Vec::new());
    };
    let mut checks = Vec::new();
    for (name, arguments) in COMPARED {
        let Some(cell) = CELLS.iter().find(|cell| cell.name == name) else { continue };
        for (clock, elapsed) in [("cpu", false), ("wall", true)] {
            let before = raw_rate(cell, raw, plan, random, clock)?;
            let openssl = speed(arguments, elapsed, cell.size)?;
            let after = raw_rate(cell, raw, plan, random, clock)?;
            checks.push(Check {
                cell: name.to_owned(),
                version: version.clone(),
                clock: clock.to_owned(),
                raw_per_second: f64::midpoint(before, after),
                openssl_per_second: openssl,
            });
        }
    }
    Ok(checks)
}

fn raw_rate(
    cell: &Cell,
    raw: &dyn Subject,
    plan: &Plan,
    random: &mut Random,
    clock: &str,
) -> Result<f64> {
    let plan = Plan { rounds: 5, threads: vec![1], ..plan.clone() };
    let result = measure::cell(cell, &[(RAW, raw)], &plan, random)?;
    let arm = result.arm(RAW, 1).ok_or_else(|| Failure::new("the raw library gave no sample"))?;
    let samples = if clock == "cpu" { &arm.cpu_ns } else { &arm.wall_ns };
    Ok(1e9 / median(samples))
}

fn version() -> Option<String> {
    let output = Command::new("openssl").arg("version").output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Operations per second, from the tool's machine-readable lines.
fn speed(arguments: &[&str], elapsed: bool, size: usize) -> Result<f64> {
    let mut command = Command::new("openssl");
    command.args(["speed", "-mr", "-seconds", "1"]);
    if elapsed {
        command.arg("-elapsed");
    }
    let output = command.args(arguments).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    rate(&text, size).ok_or_else(|| {
        Failure::new(format!("openssl speed {} printed no rate", arguments.join(" ")))
    })
}

/// `+F:…:name:bytes per second` for bulk work, `+F2:…:bits:sign per second:verify per second`.
fn rate(text: &str, size: usize) -> Option<f64> {
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        match fields.next()? {
            "+F" => Some(fields.nth(2)?.parse::<f64>().ok()? / size as f64),
            "+F2" => fields.nth(2)?.parse().ok(),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_lines_are_read() {
        assert_eq!(rate("+H:8192\n+F:25:sha256:1638400.00\n", 8192), Some(200.0));
        assert_eq!(rate("+F2:2:2048:3247.5:48305.6\n", 32), Some(3247.5));
        assert_eq!(rate("nothing", 32), None);
    }
}
