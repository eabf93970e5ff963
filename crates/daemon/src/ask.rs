// SPDX-License-Identifier: Apache-2.0
//! PINs and passwords, from where the configuration says that they are: a file, a credential, or the terminal on which the daemon was started.

use crate::manager::say;
use metaslot_ck::{Error, Result};
use metaslot_memory::Secret;
use metaslot_spi::detail;
use metaslot_wiring::config::PinSource;
use metaslot_wiring::text::words;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::SIGTERM;
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The longest PIN, in bytes.
const LONGEST: usize = 255;
/// How soon a signal is noticed at the latest.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// What it says; `what` it is for, for the question.
///
/// # Errors
/// `CKR_PIN_INCORRECT` where there is none; the detail says why.
pub(crate) fn secret(source: &PinSource, what: &str) -> Result<Secret> {
    match source {
        PinSource::Ask => typed(what).map_err(|error| {
            detail::set(format_args!("it cannot be asked for on a terminal: {}", words(&error)));
            Error::PIN_INCORRECT
        }),
        PinSource::File(file) => {
            if is_open_to_others(file) {
                let hint = "others may read or write it (chmod o= helps)";
                say(&format!("{}: {hint}", file.display()));
            }
            source.read()
        }
        PinSource::Credential(_) => source.read(),
    }
}

/// From now on SIGTERM only goes to `_signals`, whatever was asked. These have to exist before: a signal that comes in between would
/// neither end the process nor be told to anything.
pub(crate) fn leave_sigterm_to(_signals: &Signals) {
    if let Some(termination) = TERMINATION.get() {
        termination.kills.store(false, Ordering::SeqCst);
    }
}

fn is_open_to_others(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|found| found.is_file() && found.mode() & 0o006 != 0)
}

fn typed(what: &str) -> io::Result<Secret> {
    let file = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    let mut terminal = Quiet::new(file)?;
    let what: String = what.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    write!(terminal.file, "metaslotd: {what}: ")?;
    let typed = terminal.line();
    writeln!(terminal.file)?;
    typed
}

/// The terminal while it shows nothing of what is typed. Nor does it send signals: an interrupt has to come here, or nothing would be
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

    fn line(&mut self) -> io::Result<Secret> {
        let mut typed = Secret::zeroed(LONGEST);
        let (mut length, mut byte) = (0, [0]);
        loop {
            if !self.is_typed()? || self.file.read(&mut byte)? == 0 {
                return Err(io::Error::other("cancelled"));
            }
            match byte[0] {
                b'\r' | b'\n' if length == 0 => return Err(io::Error::other("nothing was typed")),
                b'\r' | b'\n' => break,
                CTRL_C | CTRL_D => return Err(io::Error::other("cancelled")),
                BACKSPACE | DELETE => length = without_the_last(&typed.expose()[..length]),
                CTRL_U => length = 0,
                other => {
                    let room = typed.expose_mut().get_mut(length);
                    *room.ok_or_else(|| io::Error::other("it is longer than 255 bytes"))? = other;
                    length += 1;
                }
            }
        }
        Ok(typed.truncated(length))
    }

    /// Waits for a key, or for the end.
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

const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;
const BACKSPACE: u8 = 8;
const CTRL_U: u8 = 21;
const DELETE: u8 = 127;

/// How much stays: of UTF-8 a whole character goes.
fn without_the_last(typed: &[u8]) -> usize {
    typed.iter().rposition(|byte| byte & 0xc0 != 0x80).unwrap_or(0)
}
