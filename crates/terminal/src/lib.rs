// SPDX-License-Identifier: Apache-2.0
//! PINs and passwords typed on the terminal of a program: unseen, and whatever happens, the terminal is put back.
#![forbid(unsafe_code)]

use metaslot_memory::Secret;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::SIGTERM;
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// How soon a signal is noticed at the latest.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;
const BACKSPACE: u8 = 8;
const CTRL_U: u8 = 21;
const DELETE: u8 = 127;

/// The terminal that the process was started on.
///
/// # Errors
/// There is none.
pub fn open() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty")
}

/// What is typed behind `question`, of `longest` bytes at most; `None` where it was cancelled, or the terminal is gone.
///
/// # Errors
/// The terminal cannot be used, or more was typed.
pub fn secret(terminal: File, question: &str, longest: usize) -> io::Result<Option<Secret>> {
    let mut quiet = Quiet::new(terminal)?;
    write!(quiet.file, "{question}: ")?;
    let typed = quiet.line(longest);
    writeln!(quiet.file)?;
    typed
}

/// From now on SIGTERM only goes to `_signals`, whatever was asked. These have to exist before: a signal that comes in between would
/// neither end the process nor be told to anything.
pub fn leave_sigterm_to(_signals: &Signals) {
    if let Some(termination) = TERMINATION.get() {
        termination.kills.store(false, Ordering::SeqCst);
    }
}

/// The terminal while it neither echoes nor edits nor sends signals: an interrupt has to come here, or nothing that is typed would be
/// shown on it afterwards either.
struct Quiet {
    file: File,
    before: Termios,
}

impl Quiet {
    fn new(file: File) -> io::Result<Self> {
        let before = tcgetattr(&file)?;
        let mut quiet = before.clone();
        quiet.local_modes &= !(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        Termination::handled().kills.store(false, Ordering::SeqCst);
        let terminal = Self { file, before };
        tcsetattr(&terminal.file, OptionalActions::Flush, &quiet)?;
        Ok(terminal)
    }

    fn line(&mut self, longest: usize) -> io::Result<Option<Secret>> {
        let mut typed = Secret::zeroed(longest);
        let (mut length, mut byte) = (0, [0]);
        while self.is_typed()? && self.file.read(&mut byte)? == 1 {
            match byte[0] {
                b'\r' | b'\n' => return Ok(Some(typed.truncated(length))),
                CTRL_C | CTRL_D => break,
                BACKSPACE | DELETE => length = without_the_last(&typed.expose()[..length]),
                CTRL_U => length = 0,
                other => {
                    let room = typed.expose_mut().get_mut(length);
                    *room.ok_or_else(|| too_long(longest))? = other;
                    length += 1;
                }
            }
        }
        Ok(None)
    }

    /// Waits for a key; false when the process is to end.
    fn is_typed(&self) -> io::Result<bool> {
        loop {
            if Termination::handled().came.load(Ordering::SeqCst) {
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
        tcsetattr(&self.file, OptionalActions::Flush, &self.before).ok();
        let termination = Termination::handled();
        termination.kills.store(true, Ordering::SeqCst);
        if termination.came.load(Ordering::SeqCst) {
            emulate_default_handler(SIGTERM).ok();
        }
    }
}

/// SIGTERM, which waits until the terminal is put back.
#[derive(Debug)]
struct Termination {
    came: Arc<AtomicBool>,
    /// Whether nothing is to be put back, and nothing else is done by it.
    kills: Arc<AtomicBool>,
}

static TERMINATION: OnceLock<Termination> = OnceLock::new();

impl Termination {
    /// Registers what takes it, once.
    fn handled() -> &'static Self {
        TERMINATION.get_or_init(|| {
            let [came, kills] = [false, true].map(|first| Arc::new(AtomicBool::new(first)));
            flag::register_conditional_default(SIGTERM, Arc::clone(&kills)).ok();
            flag::register(SIGTERM, Arc::clone(&came)).ok();
            Self { came, kills }
        })
    }
}

fn too_long(longest: usize) -> io::Error {
    io::Error::other(format!("it is longer than {longest} bytes"))
}

/// How much stays: of UTF-8 a whole character goes.
fn without_the_last(typed: &[u8]) -> usize {
    typed.iter().rposition(|byte| byte & 0xc0 != 0x80).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backspace_takes_a_whole_character() {
        assert_eq!(without_the_last(b""), 0);
        assert_eq!(without_the_last(b"ab"), 1);
        assert_eq!(without_the_last("aé".as_bytes()), 1);
    }
}
