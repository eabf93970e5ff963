// SPDX-License-Identifier: Apache-2.0
//! Attempts that a store cannot count, because nobody can write it: its file system is read-only, or full. They are counted
//! in memory, under the same rule: in this process, whatever the token, and for each token in a file that all processes of
//! this user have until the next boot, where there is a directory for it.

use crate::crypto::Serial;
use crate::error::{Error, Result};
use crate::files;
use crate::limit::{MAX_FAILURES, may_try};
use crate::lock::Lock;
use crate::schema::{PinRow, now};
use crate::volatile::{Numbers, Volatile, is_own};
use metaslot_memory::PerProcess;
use metaslot_spi::store::Role;
use rustix::fs::Mode;
use rustix::process::{Resource, getrlimit};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Wrong PINs of this process, and when the last was. A forked child goes on from there.
static WRONG: AtomicU32 = AtomicU32::new(0);
static WRONG_AT: AtomicU64 = AtomicU64::new(0);

/// One attempt at a time.
static TURN: PerProcess<Mutex<()>> = PerProcess::new(|_| Mutex::default());

/// Failures and when the last was, of the SO and the user.
type Counts = [u64; 4];

/// Whether nobody can count an attempt in the store of this database, and not merely this user. A program with more rights than
/// its user does without, and so does one whose files may not grow: its user chose that, and would guess without a count.
pub(crate) fn is_needed(database: &Path, error: &Error) -> bool {
    is_own()
        && match error {
            Error::WriteProtected { .. } => files::is_read_only(database),
            Error::Full { .. } => getrlimit(Resource::Fsize).current.is_none(),
            _ => false,
        }
}

/// Counts an attempt and makes it; a right one, which gives something, is no failure. `row` has what the store has counted.
pub(crate) fn attempt<R>(
    bases: &[PathBuf],
    serial: &Serial,
    role: Role,
    row: &PinRow,
    open: impl FnOnce() -> Result<Option<R>>,
) -> Result<R> {
    let _turn = TURN.get().lock().unwrap_or_else(PoisonError::into_inner);
    let shared = Shared::make(bases, serial)?;
    let _held = shared.as_ref().map(|shared| shared.lock.hold()).transpose()?;
    let mut counts = shared.as_ref().map_or([0; 4], |shared| shared.numbers.read());
    let (at, now) = (2 * role as usize, now());
    let failures = row.failures.saturating_add(u32::try_from(counts[at]).unwrap_or(u32::MAX));
    let wrong = (WRONG.load(Ordering::Relaxed), WRONG_AT.load(Ordering::Relaxed));
    may_try(failures, row.failed_at.max(counts[at + 1]), now)?;
    may_try(wrong.0, wrong.1, now)?;
    // A place that is full as well leaves the count of this process.
    let write = |counts: Counts| {
        if let Some(shared) = &shared {
            shared.numbers.write(counts).unwrap_or_default();
        }
    };
    (counts[at], counts[at + 1]) = (counts[at].saturating_add(1), now);
    write(counts);
    WRONG.store(wrong.0 + 1, Ordering::Relaxed);
    WRONG_AT.store(now, Ordering::Relaxed);
    let Some(opened) = open()? else {
        let failures = failures.max(wrong.0).saturating_add(1);
        return Err(Error::PinIncorrect { left: MAX_FAILURES.saturating_sub(failures) });
    };
    WRONG.store(wrong.0, Ordering::Relaxed);
    WRONG_AT.store(wrong.1, Ordering::Relaxed);
    (counts[at], counts[at + 1]) = (0, 0);
    write(counts);
    Ok(opened)
}

/// What was counted of a token that may not be written.
pub(crate) fn failures(bases: &[PathBuf], serial: &Serial) -> Counts {
    let place = Volatile::find(bases);
    let numbers = place.and_then(|place| place.numbers(&Shared::name(serial)).ok());
    numbers.map_or([0; 4], |numbers: Numbers<4>| numbers.read())
}

/// What all processes of this user count of a token.
struct Shared {
    numbers: Numbers<4>,
    lock: Arc<Lock>,
}

impl Shared {
    fn name(serial: &Serial) -> String {
        format!("{:016x}.attempts", u64::from_be_bytes(*serial))
    }

    /// `None` where there is no place for it.
    fn make(bases: &[PathBuf], serial: &Serial) -> Result<Option<Self>> {
        let Ok(place) = Volatile::make(bases) else { return Ok(None) };
        let name = Self::name(serial);
        // A lock ends when any descriptor of its file is closed: it has one of its own.
        let lock = place.path.join(format!("{name}.lock"));
        let numbers = place.numbers(&name);
        match (Lock::open(&lock, Mode::RUSR | Mode::WUSR), numbers) {
            (Ok(lock), Ok(numbers)) => Ok(Some(Self { numbers, lock })),
            // It is full as well.
            (Err(Error::Full { .. }), _) | (_, Err(_)) => Ok(None),
            (Err(error), _) => Err(error),
        }
    }
}
