// SPDX-License-Identifier: Apache-2.0
//! PINs, and where they are.

use crate::failure::{Failure, Reason, Result};
use metaslot_memory::PerProcess;
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Longest PIN with its end of line.
const LONGEST: usize = 1024;

/// A PIN, zeroised in the end. It is not in the protected arena, which is wiped in a forked child: a server's workers log in with
/// the PIN that their master read before it gave up its rights.
#[derive(Clone, Eq)]
pub(crate) struct Pin(Vec<u8>);

impl Pin {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// Takes it over, without a copy.
    pub(crate) fn taken(text: String) -> Self {
        Self(text.into_bytes())
    }

    pub(crate) fn expose(&self) -> &[u8] {
        &self.0
    }

    /// What `pin-source` names: a file, as a path or as `file:` and a path; the PIN is its first line.
    pub(crate) fn read(source: &str) -> Result<Self> {
        let failure = |text: String| Failure::new(Reason::Pin, text);
        if source.starts_with('|') {
            return Err(failure("a pin-source with a command is not run: name a file".into()));
        }
        let path = match source.strip_prefix("file:") {
            // RFC 8089: an authority, if there is one, must be this machine.
            Some(rest) => match rest.strip_prefix("//") {
                Some(rest) => rest.strip_prefix("localhost").unwrap_or(rest),
                None => rest,
            },
            None => source,
        };
        let cannot = |error| failure(format!("cannot read the PIN file {path}: {error}"));
        let mut bytes = Self(Vec::with_capacity(LONGEST));
        let file = File::open(path).map_err(cannot)?;
        file.take(LONGEST as u64).read_to_end(&mut bytes.0).map_err(cannot)?;
        let line = bytes.0.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() || line.len() == LONGEST {
            return Err(failure(format!("the first line of {path} is no PIN")));
        }
        Ok(Self::new(line))
    }
}

/// PINs by the serial number and the label of the token that each is for.
#[derive(Debug, Default)]
pub(crate) struct Pins(Vec<(Whose, Pin)>);

pub(crate) type Whose = (String, String);

/// Those that a token refused, for the whole program and its children: they are not tried again, for tokens count.
static REFUSED: PerProcess<Mutex<Pins>> = PerProcess::new(Pins::after);

/// How many are kept.
const MOST: usize = 64;

impl Pins {
    /// What a process begins with: those of the one that it was forked from.
    pub(crate) fn after(parent: Option<&'static Mutex<Self>>) -> Mutex<Self> {
        let parent = parent.and_then(|parent| parent.try_lock().ok());
        Mutex::new(Self(parent.map(|parent| parent.0.clone()).unwrap_or_default()))
    }

    pub(crate) fn get(&self, whose: &Whose) -> Option<&Pin> {
        self.0.iter().rev().find(|row| row.0 == *whose).map(|row| &row.1)
    }

    pub(crate) fn add(&mut self, whose: Whose, pin: Pin) {
        if self.0.len() == MOST {
            self.0.remove(0);
        }
        self.0.push((whose, pin));
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

fn refused() -> MutexGuard<'static, Pins> {
    REFUSED.get().lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether the token refused this PIN.
pub(crate) fn is_refused(whose: &Whose, pin: &Pin) -> bool {
    refused().0.iter().any(|row| row.0 == *whose && row.1 == *pin)
}

/// The token refused it.
pub(crate) fn refuse(whose: Whose, pin: Pin) {
    refused().add(whose, pin);
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.0.fill(0);
        // Or the compiler could leave out what nothing reads.
        std::hint::black_box(&mut self.0[..]);
    }
}

impl PartialEq for Pin {
    /// In the same time for all PINs of one length.
    fn eq(&self, other: &Self) -> bool {
        let pairs = self.0.iter().zip(&other.0);
        self.0.len() == other.0.len() && pairs.fold(0, |sum, (a, b)| sum | a ^ b) == 0
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pin")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pin_that_was_refused_is_known_and_of_its_token_only() {
        let whose = |label: &str| ("serial".to_owned(), label.to_owned());
        for pin in [b"1111", b"2222"] {
            refuse(whose("one"), Pin::new(pin));
        }
        for pin in [b"1111", b"2222"] {
            assert!(is_refused(&whose("one"), &Pin::new(pin)));
            assert!(!is_refused(&whose("other"), &Pin::new(pin)));
        }
        assert!(!is_refused(&whose("one"), &Pin::new(b"3333")));
    }

    #[test]
    fn a_child_has_its_parents_pins_and_waits_for_no_lock() {
        let whose = || ("serial".to_owned(), "label".to_owned());
        let parent: &'static Mutex<Pins> = Box::leak(Box::default());
        parent.lock().expect("no panic").add(whose(), Pin::new(b"1234"));
        let child = |parent| Pins::after(Some(parent)).into_inner().expect("no panic");
        assert_eq!(child(parent).get(&whose()), Some(&Pin::new(b"1234")));
        let locked = parent.lock().expect("no panic");
        assert_eq!(child(parent).get(&whose()), None);
        drop(locked);
    }

    #[test]
    fn a_command_is_not_run_and_a_missing_file_is_named() {
        assert!(Pin::read("|echo 1234").is_err());
        let failure = Pin::read("file:/nowhere/pin").expect_err("no such file");
        assert!(failure.text.contains("/nowhere/pin"), "{failure}");
    }
}
