// SPDX-License-Identifier: Apache-2.0
//! The error log that `METASLOT_LOG` asks for: what a host's own log cannot say of a call that failed, because a return code is
//! all that it gets. No value of a key, no PIN and no data is ever in a line.

use crate::cancel::Uncancelled;
use crate::environment::variable;
use crate::sink::{Sink, is_plain, now, program};
use metaslot_ck::*;
use metaslot_spi::detail;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Lines of a process in a [`PERIOD`]: a server whose key is gone fails at every connection.
const MOST: u32 = 20;
const PERIOD: Duration = Duration::from_secs(1);

/// How often a thread looks whether another one has counted its line.
const TRIES: u32 = 10_000;

/// What a line is for the journal: a warning.
const WARNING: u8 = 4;

/// Codes that are worth a line although nothing more is known.
const FAILURES: [Error; 9] = [
    Error::DEVICE_ERROR,
    Error::DEVICE_MEMORY,
    Error::DEVICE_REMOVED,
    Error::FUNCTION_FAILED,
    Error::GENERAL_ERROR,
    Error::HOST_MEMORY,
    Error::PIN_INCORRECT,
    Error::PIN_LOCKED,
    Error::TOKEN_NOT_RECOGNIZED,
];

/// A variable, and what is wrong with it.
pub type Wrong = (&'static str, String);

/// Where calls that failed are told.
#[derive(Debug)]
pub struct ErrorLog {
    sink: Sink,
    /// Also of calls that programs make to find out what there is.
    all: bool,
    pace: Mutex<Pace>,
}

/// How many lines there were lately.
#[derive(Debug, Default)]
struct Pace {
    since: Option<Instant>,
    lines: u32,
    left_out: u64,
}

impl ErrorLog {
    /// What the environment wants; `None` where it wants none.
    ///
    /// # Errors
    /// The variable, and what is wrong with it.
    pub fn of_environment() -> std::result::Result<Option<Self>, Wrong> {
        let Some(wanted) = variable(c"METASLOT_LOG") else { return Ok(None) };
        let sink = match wanted.to_str() {
            Some("stderr") => Sink::Stderr,
            Some("journal") => Sink::journal(),
            _ if PathBuf::from(&wanted).is_absolute() => Sink::File(PathBuf::from(&wanted)),
            _ => {
                let wrong = "must be \"stderr\", \"journal\" or the absolute path of a file";
                return Err(("METASLOT_LOG", String::from(wrong)));
            }
        };
        let level = variable(c"METASLOT_LOG_LEVEL");
        let all = match level.as_ref().map(|level| level.to_str()) {
            None | Some(Some("error")) => false,
            Some(Some("all")) => true,
            _ => {
                let wrong = "must be \"error\" or \"all\"";
                return Err(("METASLOT_LOG_LEVEL", String::from(wrong)));
            }
        };
        Ok(Some(Self { sink, all, pace: Mutex::default() }))
    }

    /// A call answered `rv`. A line that cannot be written is lost.
    #[cold]
    pub fn tell(&self, function: Function, rv: CK_RV) {
        let said = detail::with(str::to_owned);
        let worth = self.all || !said.is_empty() || FAILURES.iter().any(|error| error.rv() == rv);
        // Asking for a length is how some functions are used.
        if !worth || rv == CKR_BUFFER_TOO_SMALL {
            return;
        }
        let Some(left_out) = self.step() else { return };
        let _uncancelled = Uncancelled::begin();
        let code = rv_name(rv).map_or_else(|| format!("0x{rv:x}"), str::to_owned);
        let mut line = format!("{} {}[{}]", now(), program(None), std::process::id());
        line += &format!(" {}: {code}", function.name());
        if !said.is_empty() {
            line += &format!(": {said}");
        }
        if left_out > 0 {
            line += &format!(" (and {left_out} calls before it that failed)");
        }
        // Else a label could begin a line, or a field of the journal's.
        let line: String = line.chars().map(|c| if is_plain(c) { c } else { '?' }).collect();
        self.sink.write(&line, WARNING).ok();
    }
}

impl ErrorLog {
    /// [`Pace::step`], now. A signal handler that interrupts it does not wait for its own thread.
    fn step(&self) -> Option<u64> {
        let mut pace = (0..TRIES).find_map(|_| self.pace.try_lock().ok())?;
        pace.step(Instant::now())
    }
}

impl Pace {
    /// How many were left out since the last line, where there may be one now.
    fn step(&mut self, now: Instant) -> Option<u64> {
        if self.since.is_none_or(|since| now - since >= PERIOD) {
            (self.since, self.lines) = (Some(now), 0);
        }
        if self.lines == MOST {
            self.left_out += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_too_often_is_counted() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let told = (0..100).filter(|_| pace.step(start).is_some()).count();
        assert_eq!(told, 20);
        assert_eq!(pace.step(start + PERIOD), Some(80));
        assert_eq!(pace.step(start + PERIOD), Some(0));
    }
}
