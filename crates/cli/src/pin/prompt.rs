// SPDX-License-Identifier: Apache-2.0
//! Questions on the terminal. A PIN is typed unseen; whatever happens, the terminal is put back.

use super::source::{LONGEST, too_long};
use crate::encoding::printable;
use crate::failure::{Failure, Result};
use crate::waiting::Question;
use metaslot_memory::Secret;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{self, LocalModes, OptionalActions, Termios};
use signal_hook::consts::SIGTERM;
use signal_hook::flag;
use signal_hook::low_level::emulate_default_handler;
use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Whether there is a terminal to ask on.
pub(crate) fn is_interactive() -> bool {
    io::stderr().is_terminal() && open().is_ok()
}

/// Asks a question whose answer is shown; true for `y` or `yes`.
pub(crate) fn confirm(question: &str) -> Result<bool> {
    let answer = ask(&format!("{question} [y/N] "))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

/// Asks a question, and gives the line that is typed.
pub(crate) fn ask(question: &str) -> Result<String> {
    let mut terminal = open().map_err(cannot)?;
    let _question = Question::begin();
    write!(terminal, "{}", printable(question)).map_err(cannot)?;
    let mut answer = Vec::new();
    let mut byte = [0];
    while terminal.read(&mut byte).map_err(cannot)? == 1 && byte[0] != b'\n' {
        answer.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Asks for something secret.
pub(crate) fn secret(question: &str) -> Result<Secret> {
    let mut terminal = Quiet::new(open().map_err(cannot)?).map_err(cannot)?;
    let _question = Question::begin();
    write!(terminal.file, "{}: ", printable(question)).map_err(cannot)?;
    let typed = terminal.line();
    writeln!(terminal.file).map_err(cannot)?;
    match typed.map_err(cannot)? {
        Some(secret) if !secret.is_empty() => Ok(secret),
        Some(_) => Err(Failure::pin("nothing was typed")),
        None => Err(Failure::pin("cancelled")),
    }
}

fn open() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty")
}

fn cannot(error: io::Error) -> Failure {
    Failure::io("cannot ask on the terminal", &error)
}

/// The terminal while it neither echoes nor edits nor sends signals: an interrupt must reach us,
/// or it would leave the echo off.
struct Quiet {
    file: File,
    before: Termios,
}

impl Quiet {
    fn new(file: File) -> io::Result<Self> {
        let before = termios::tcgetattr(&file)?;
        let mut quiet = before.clone();
        quiet.local_modes &= !(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        let termination = Termination::noticed();
        termination.kills.store(false, Ordering::SeqCst);
        let terminal = Self { file, before };
        termios::tcsetattr(&terminal.file, OptionalActions::Flush, &quiet)?;
        Ok(terminal)
    }

    /// What was typed; `None` when it was interrupted.
    fn line(&mut self) -> io::Result<Option<Secret>> {
        let mut typed = Secret::zeroed(LONGEST);
        let mut length = 0;
        let mut byte = [0];
        while self.is_typed()? && self.file.read(&mut byte)? == 1 {
            match byte[0] {
                b'\r' | b'\n' => break,
                CTRL_C => return Ok(None),
                CTRL_D if length == 0 => return Ok(None),
                BACKSPACE | DELETE => length = erase(&typed.expose()[..length]),
                CTRL_U => length = 0,
                other => {
                    *typed.expose_mut().get_mut(length).ok_or_else(too_long)? = other;
                    length += 1;
                }
            }
        }
        Ok(Some(typed.truncated(length)))
    }

    /// Waits for a key.
    fn is_typed(&self) -> io::Result<bool> {
        loop {
            if Termination::noticed().came.load(Ordering::SeqCst) {
                return Ok(false);
            }
            match poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(&PATIENCE)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return Ok(true),
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        termios::tcsetattr(&self.file, OptionalActions::Flush, &self.before).ok();
        let termination = Termination::noticed();
        termination.kills.store(true, Ordering::SeqCst);
        if termination.came.load(Ordering::SeqCst) {
            emulate_default_handler(SIGTERM).ok();
        }
    }
}

/// The signal that ends a process, which waits until the terminal is put back.
struct Termination {
    came: Arc<AtomicBool>,
    /// Whether nothing is to be put back.
    kills: Arc<AtomicBool>,
}

impl Termination {
    fn noticed() -> &'static Self {
        static SIGNAL: OnceLock<Termination> = OnceLock::new();
        SIGNAL.get_or_init(|| {
            let [came, kills] = [false, true].map(|first| Arc::new(AtomicBool::new(first)));
            flag::register_conditional_default(SIGTERM, Arc::clone(&kills)).ok();
            flag::register(SIGTERM, Arc::clone(&came)).ok();
            Self { came, kills }
        })
    }
}

/// How soon a signal is noticed at the latest.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;
const BACKSPACE: u8 = 8;
const CTRL_U: u8 = 21;
const DELETE: u8 = 127;

/// The length without the last character: a character of UTF-8 goes as a whole.
fn erase(typed: &[u8]) -> usize {
    let is_start = |byte: &u8| byte & 0xc0 != 0x80;
    typed.iter().rposition(is_start).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backspace_takes_a_whole_character() {
        assert_eq!(erase(b""), 0);
        assert_eq!(erase(b"ab"), 1);
        assert_eq!(erase("aé".as_bytes()), 1);
    }
}
