// SPDX-License-Identifier: Apache-2.0
//! `openssl speed` as a witness: the same work, timed by its own clocks. What it prints is kept as it is,
//! and read from there.

use super::Options;
use super::part::{Function, Job};
use crate::clock::children_cpu;
use crate::{Failure, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// By which clock it divides, and on how many processes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum How {
    /// As it comes: one thread, and its user CPU time.
    Default,
    /// `-elapsed`: one thread, and the wall clock.
    Elapsed,
    /// `-multi` and `-elapsed`: so many processes, and the wall clock.
    Multi(usize),
}

impl How {
    /// A part of a file's name.
    const fn word(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Elapsed => "elapsed",
            Self::Multi(_) => "multi",
        }
    }
}

/// One run of it.
#[derive(Clone, Debug)]
struct Reading {
    arguments: Arguments,
    how: How,
}

/// What it is asked for.
pub(super) type Arguments = &'static [&'static str];

/// The runs that there are to be, and what was printed so far.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    program: PathBuf,
    left: Vec<Reading>,
    done: Vec<(String, Vec<u8>)>,
}

/// The shortest time that it can be told, in seconds.
const SECONDS: usize = 1;

impl Readings {
    /// Everything for these arguments, unless it is left out; and which one is installed, or why there is none.
    ///
    /// # Errors
    /// One was named that does not say what it is.
    pub(super) fn new(
        options: &Options,
        asked: &[Arguments],
        hows: &[How],
    ) -> Result<(Self, String)> {
        if options.no_openssl {
            return Ok((Self::default(), "not asked".to_owned()));
        }
        let program = options.openssl.clone().unwrap_or_else(|| PathBuf::from("openssl"));
        match version(&program) {
            Some(version) => {
                let asked: Vec<_> =
                    asked.iter().copied().filter(|asked| knows(&version, asked)).collect();
                Ok((Self { program, ..Self::of(&asked, hows) }, version))
            }
            None if options.openssl.is_some() => {
                let message = format!("{}: that is no openssl", program.display());
                Err(Failure::new(message).hint("it is to answer 'openssl version'"))
            }
            None => Ok((Self::default(), "not installed".to_owned())),
        }
    }

    /// RSA's two figures come from one run.
    fn of(asked: &[Arguments], hows: &[How]) -> Self {
        let mut asked = asked.to_vec();
        asked.dedup();
        let all = |how: &How| {
            let how = *how;
            asked.clone().into_iter().map(move |arguments| Reading { arguments, how })
        };
        Self { left: hows.iter().flat_map(all).collect(), ..Self::default() }
    }

    /// How long all of it takes, in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        // Both of RSA; a key, and both of the others.
        let tests = |reading: &Reading| match reading.arguments {
            [_] => 2.0,
            [_, _] => 3.0,
            _ => 1.0,
        };
        self.left.iter().map(tests).sum::<f64>() * 1.1 * SECONDS as f64
    }

    /// Runs the next one, if one is left. That it fails is seen in what it has printed.
    pub(crate) fn take(&mut self) -> bool {
        let Some(reading) = self.left.pop() else { return false };
        let mut command = Command::new(&self.program);
        command.args(["speed", "-mr", "-seconds", &SECONDS.to_string()]);
        if reading.how != How::Default {
            command.arg("-elapsed");
        }
        if let How::Multi(processes) = reading.how {
            command.args(["-multi", &processes.to_string()]);
        }
        command.args(reading.arguments).stdin(Stdio::null());
        let (cpu, began) = (children_cpu(), Instant::now());
        let Ok(output) = command.output() else { return true };
        let cpu = children_cpu().saturating_sub(cpu).as_secs_f64();
        let wall = began.elapsed().as_secs_f64();
        let arguments: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        let mut text = format!(
            "# openssl {}\n# all of it: {cpu:.2} s of CPU time, {wall:.2} s by the wall clock\n",
            arguments.join(" ")
        )
        .into_bytes();
        text.extend(output.stdout);
        text.extend(output.stderr);
        self.done.push((file(reading.arguments, reading.how), text));
        true
    }

    /// What was printed, by the files' names.
    pub(crate) fn printed(&mut self) -> Vec<(String, Vec<u8>)> {
        while self.take() {}
        std::mem::take(&mut self.done)
    }
}

/// Whether and which one is installed.
fn version(program: &Path) -> Option<String> {
    let output = Command::new(program).arg("version").output().ok()?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !version.is_empty()).then_some(version)
}

/// Whether a version, as `OpenSSL 3.5.5 27 Jan 2026 (…)`, can be asked for this: the algorithms by name are there since 3.5.
fn knows(version: &str, arguments: Arguments) -> bool {
    let number = version.split(' ').nth(1).unwrap_or_default();
    let mut parts = number.split('.').map_while(|part| part.parse::<u32>().ok());
    let number = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    arguments.len() != 2 || number >= (3, 5)
}

fn file(arguments: &[&str], how: How) -> String {
    let name = match arguments {
        [_, _, _, name, ..] | [.., name] => name,
        [] => "other",
    };
    format!("adapters/openssl-{name}-{}.txt", how.word())
}

/// Operations in a second, from what an experiment has kept; nothing where it kept nothing, or where the tool
/// could not do it.
pub(super) fn rate(directory: &Path, arguments: Arguments, job: &Job, how: How) -> Option<f64> {
    let text = std::fs::read(directory.join(file(arguments, how))).ok()?;
    read(&String::from_utf8_lossy(&text), job)
}

/// `+F:…:name:bytes per second` for bulk work, `+F2:…:bits:signs per second:verifies per second`, and with the rate of keys in the place
/// of the bits for algorithms by name, whose number after the F depends on the version.
fn read(text: &str, job: &Job) -> Option<f64> {
    // The last line of several processes is their sum.
    let line = text.lines().rev().find(|line| line.starts_with("+F"))?;
    let second = matches!(job.function, Function::Verify | Function::Decapsulate);
    let field = if second { 4 } else { 3 };
    let rate = line.split(':').nth(field)?.parse::<f64>().ok()?;
    let rate = if line.starts_with("+F:") { rate / job.bytes as f64 } else { rate };
    (rate > 0.0).then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::super::sun::ROWS;
    use super::*;

    #[test]
    fn the_sum_of_all_processes_is_read() {
        let md5 = &ROWS[3].job;
        let text = "# openssl speed\n+F:25:md5:99.0\nGot: +F:25:md5:8192.00 from 0\n+F:25:md5:1638400.00\n";
        assert_eq!(read(text, md5), Some(200.0));
        assert_eq!(read("+F:12:rc4:0.00\n", &ROWS[2].job), None);
        assert_eq!(read("error\n", md5), None);
    }

    #[test]
    fn signatures_and_verifications_are_told_apart() {
        let text = "+F2:1:1024:3944.0:63059.4\n";
        assert_eq!(read(text, &ROWS[1].job), Some(3944.0));
        assert_eq!(read(text, &ROWS[0].job), Some(63059.4));
    }

    #[test]
    fn algorithms_by_name_are_asked_of_versions_that_know_them() {
        let job = |function| Job { function, ..ROWS[0].job };
        let text = "+F10:0:9174.0:3207.0:9803.0\n";
        assert_eq!(read(text, &job(Function::Sign)), Some(3207.0));
        assert_eq!(read(text, &job(Function::Decapsulate)), Some(9803.0));
        let asked: Arguments = &["-signature-algorithms", "ML-DSA-65"];
        assert!(
            knows("OpenSSL 3.5.5 27 Jan 2026", asked) && knows("OpenSSL 4.0.3 1 Sep 2026", asked)
        );
        assert!(!knows("OpenSSL 3.0.22 25 Aug 2026", asked) && !knows("LibreSSL", asked));
        assert!(knows("OpenSSL 3.0.22 25 Aug 2026", &["rsa2048"]));
        assert_eq!(file(asked, How::Default), "adapters/openssl-ML-DSA-65-default.txt");
    }

    #[test]
    fn both_of_rsa_come_from_one_run() {
        let asked = ROWS.map(|row| row.openssl);
        let readings = |hows: &[How]| Readings::of(&asked, hows).left.len();
        assert_eq!(readings(&[How::Default, How::Elapsed, How::Multi(2)]), 15);
        assert_eq!(readings(&[How::Default, How::Elapsed]), 10);
        assert_eq!(file(ROWS[2].openssl, How::Multi(2)), "adapters/openssl-rc4-multi.txt");
    }
}
