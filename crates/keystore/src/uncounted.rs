// SPDX-License-Identifier: Apache-2.0
//! Attempts that a store cannot count, because nobody can write it: its file system is read-only, or full. They are counted
//! in memory, under the same rule: for each token in a file that all processes of this user have until it goes or, where
//! no directory is in memory, in this process, whatever the token.

use crate::crypto::Serial;
use crate::error::{Error, Result};
use crate::files;
use crate::limit::{MAX_FAILURES, may_try};
use crate::lock::Lock;
use crate::schema::{PinRow, now};
use crate::state;
use crate::volatile::{Numbers, Unfit, Volatile, is_own};
use crate::wrap::role_byte;
use metaslot_memory::PerProcess;
use metaslot_spi::store::Role;
use rustix::fs::Mode;
use rustix::process::{Resource, getrlimit};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Wrong PINs of this process, and when the last was. A forked child goes on from there.
static WRONG: AtomicU64 = AtomicU64::new(0);
static WRONG_AT: AtomicU64 = AtomicU64::new(0);

/// One attempt at a time.
static TURN: PerProcess<Mutex<()>> = PerProcess::new(|_| Mutex::default());

/// How many were wrong, and when the last was.
type Counts = Numbers<2>;

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

/// What became of an attempt that was made before the store has counted it.
#[derive(Debug)]
pub(crate) enum First<R> {
    Right(R),
    /// It is counted here.
    Wrong,
    /// It is not counted anywhere.
    NotMade,
}

impl<R> First<R> {
    pub(crate) fn is_wrong(&self) -> bool {
        matches!(self, Self::Wrong)
    }
}

/// Makes an attempt that costs no more than to count it here, if nothing is counted here yet: what is wrong, or ends half
/// way because its process is killed, is the last one until a right PIN was counted in the store.
pub(crate) fn first<R>(
    bases: &[PathBuf],
    serial: &Serial,
    role: Role,
    row: &PinRow,
    open: impl FnOnce() -> Result<Option<R>>,
) -> First<R> {
    let _turn = TURN.get().lock().unwrap_or_else(PoisonError::into_inner);
    let Ok(place @ Place::Shared { lock, .. }) = &Place::of(bases, serial, role, row) else {
        return First::NotMade;
    };
    let Ok(_held) = lock.hold() else { return First::NotMade };
    if place.read().0 > 0 || place.write((1, now())).is_err() {
        return First::NotMade;
    }
    match open() {
        Ok(Some(opened)) => {
            // What has been written once has its space.
            place.write((0, 0)).unwrap_or_default();
            First::Right(opened)
        }
        _ => First::Wrong,
    }
}

/// Counts an attempt and makes it; a right one, which gives something, is no failure. `row` has what the store has counted;
/// whether this attempt is counted here already, and whether a PIN was tried even where it ends with an error.
pub(crate) fn attempt<R>(
    bases: &[PathBuf],
    serial: &Serial,
    role: Role,
    row: &PinRow,
    (is_counted, is_tried): (bool, bool),
    open: impl FnOnce() -> Result<Option<R>>,
) -> Result<R> {
    let _turn = TURN.get().lock().unwrap_or_else(PoisonError::into_inner);
    let place = Place::of(bases, serial, role, row)?;
    let _held = match &place {
        Place::Shared { lock, .. } => Some(lock.hold()?),
        Place::Process => None,
    };
    let (mut before, now) = (place.read(), now());
    // This attempt is none before it.
    before.0 = before.0.saturating_sub(u64::from(is_counted));
    if before.1 > now {
        // The clock was set back: the pause would begin anew with each attempt.
        before.1 = now;
        place.write(before)?;
    }
    // So would that of a failure in the store, where nobody can write when it was.
    let failed_at = if row.failed_at > now { 0 } else { row.failed_at };
    let failures = row.failures.saturating_add(u32::try_from(before.0).unwrap_or(u32::MAX));
    may_try(failures, failed_at.max(before.1), now)?;
    place.write((before.0.saturating_add(1), now))?;
    let opened = open().inspect_err(|_| {
        // Where no PIN was tried. What has been written once has its space.
        if !is_tried {
            place.write(before).unwrap_or_default();
        }
    })?;
    let Some(opened) = opened else {
        return Err(Error::PinIncorrect { left: MAX_FAILURES.saturating_sub(failures + 1) });
    };
    // What has been written once has its space.
    let after = if matches!(place, Place::Process) { before } else { (0, 0) };
    place.write(after).unwrap_or_default();
    Ok(opened)
}

/// What was counted of a token that may not be written: failures and when the last was.
pub(crate) fn failures(bases: &[PathBuf], serial: &Serial, role: Role, row: &PinRow) -> (u64, u64) {
    let name = name(serial, role, row);
    let numbers = Volatile::find(bases).and_then(|place| place.numbers(&name, false).ok());
    numbers.map_or((0, 0), |numbers| of(&numbers))
}

/// What was counted in all of these directories, under the login's lock: a process may have another of them as its first. One may
/// have several names here: the runtime directory can be `/dev/shm`.
pub(crate) fn everywhere(
    bases: &[PathBuf],
    serial: &Serial,
    role: Role,
    row: &PinRow,
) -> (u64, u64) {
    let name = name(serial, role, row);
    let (mut seen, mut wrong, mut wrong_at) = (Vec::new(), 0_u64, 0);
    for place in bases.iter().filter_map(|base| Volatile::find(std::slice::from_ref(base))) {
        let Ok(inode) = place.inode() else { continue };
        if let Ok(numbers) = place.numbers(&name, false)
            && !seen.contains(&inode)
        {
            let (more, at) = of(&numbers);
            (wrong, wrong_at) = (wrong.saturating_add(more), at.max(wrong_at));
        }
        seen.push(inode);
    }
    // Where the clock was set back since, the pause is not one of then.
    (wrong, if wrong_at > now() { 0 } else { wrong_at })
}

/// Takes what was counted away, after the store has counted it.
pub(crate) fn forget(bases: &[PathBuf], serial: &Serial, role: Role, row: &PinRow) {
    let name = name(serial, role, row);
    for base in bases {
        let place = Volatile::find(std::slice::from_ref(base));
        let numbers = place.and_then(|place| place.numbers(&name, false).ok());
        let forget = |numbers: Counts| numbers.write(0, [0, 0]);
        numbers.map_or(Ok(()), forget).unwrap_or_default();
    }
}

/// Takes the files themselves away, of a token that is no more. What is counted there stays: a copy with these PINs has the same.
pub(crate) fn remove(bases: &[PathBuf], serial: &Serial, role: Role, row: &PinRow) {
    let name = name(serial, role, row);
    for base in bases {
        let Some(place) = Volatile::find(std::slice::from_ref(base)) else { continue };
        if place.numbers(&name, false).is_ok_and(|numbers| of(&numbers).0 == 0) {
            place.forget(&name);
            place.forget(&lock_name(&name));
        }
    }
}

/// A lock ends when any descriptor of its file is closed: it has one of its own.
fn lock_name(name: &str) -> String {
    format!("{name}.lock")
}

/// With the name of the wrap that a PIN is tried at: with a new PIN it is another one. Copies of a token have one serial number,
/// and each its own PINs in time.
fn name(serial: &Serial, role: Role, row: &PinRow) -> String {
    let wrap = state::name(row.wrap.as_deref());
    let (serial, wrap) = (u64::from_be_bytes(*serial), u128::from_be_bytes(wrap));
    format!("{serial:016x}-{}-{wrap:032x}.attempts", role_byte(role))
}

fn of(numbers: &Counts) -> (u64, u64) {
    let [wrong, wrong_at] = numbers.read();
    (wrong, wrong_at)
}

/// Where attempts are counted.
enum Place {
    /// Where all processes of this user count those at a token.
    Shared { path: PathBuf, numbers: Counts, lock: Arc<Lock> },
    /// In this process, for all tokens: only where no directory is in memory.
    Process,
}

impl Place {
    /// # Errors
    /// Where there is a place and it cannot be used: a stranger who takes its name, or fills it, would switch the count off.
    fn of(bases: &[PathBuf], serial: &Serial, role: Role, row: &PinRow) -> Result<Self> {
        let place = match Volatile::make(bases) {
            Ok(place) => place,
            Err(Unfit { blocked: Some(path), reason }) => {
                return Err(Error::file(&path, "count attempts there", reason));
            }
            Err(_) => return Ok(Self::Process),
        };
        let name = name(serial, role, row);
        let path = place.path.join(&name);
        let lock = place.path.join(lock_name(&name));
        let lock = Lock::open(&lock, Mode::RUSR | Mode::WUSR)?;
        let numbers = place.numbers(&name, true);
        let numbers = numbers.map_err(|errno| Error::system(&path, "open", errno))?;
        Ok(Self::Shared { path, numbers, lock })
    }

    /// How many were wrong, and when the last was.
    fn read(&self) -> (u64, u64) {
        match self {
            Self::Shared { numbers, .. } => of(numbers),
            Self::Process => (WRONG.load(Ordering::Relaxed), WRONG_AT.load(Ordering::Relaxed)),
        }
    }

    fn write(&self, (wrong, wrong_at): (u64, u64)) -> Result<()> {
        match self {
            Self::Shared { path, numbers, .. } => {
                let written = numbers.write(0, [wrong, wrong_at]);
                written.map_err(|errno| Error::system(path, "write", errno))
            }
            Self::Process => {
                WRONG.store(wrong, Ordering::Relaxed);
                WRONG_AT.store(wrong_at, Ordering::Relaxed);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    const SERIAL: Serial = [7; 8];
    /// What the store has counted.
    const NONE: PinRow = PinRow { wrap: None, failures: 0, failed_at: 0 };

    fn attempt_at(bases: &[PathBuf], is_counted: bool, is_right: bool) -> Result<()> {
        let open = || Ok(is_right.then_some(()));
        attempt(bases, &SERIAL, Role::User, &NONE, (is_counted, false), open)
    }

    fn first_at(bases: &[PathBuf], is_right: Option<bool>) -> First<()> {
        first(bases, &SERIAL, Role::User, &NONE, || {
            // `None` for a process that is killed within it: nothing is done afterwards either.
            is_right.map(|is_right| is_right.then_some(())).ok_or(Error::NotLoggedIn)
        })
    }

    #[test]
    fn an_attempt_before_its_count_is_counted_if_it_is_wrong_and_is_the_last() {
        let base = PathBuf::from(format!("/dev/shm/metaslot-uncounted-{}", std::process::id()));
        fs::create_dir(&base).unwrap();
        fs::set_permissions(&base, fs::Permissions::from_mode(0o700)).unwrap();
        let bases = [base.clone()];
        let counted = || failures(&bases, &SERIAL, Role::User, &NONE).0;
        let files = || -> Vec<PathBuf> {
            let place = Volatile::find(&bases).unwrap().path;
            fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()).collect()
        };
        for ends in [Some(false), None] {
            assert!(matches!(first_at(&bases, Some(true)), First::Right(())));
            assert_eq!(counted(), 0);
            assert!(first_at(&bases, ends).is_wrong());
            assert_eq!(counted(), 1, "{ends:?}");
            assert!(matches!(first_at(&bases, Some(true)), First::NotMade));
            // The same attempt goes on, and is one.
            assert!(attempt_at(&bases, true, false).is_err());
            assert_eq!(counted(), 1);
            assert!(attempt_at(&bases, false, false).is_err());
            assert_eq!(counted(), 2);
            // A copy of a token that is no more may have the same PINs.
            remove(&bases, &SERIAL, Role::User, &NONE);
            assert_eq!(counted(), 2);
            forget(&bases, &SERIAL, Role::User, &NONE);
            assert_eq!(files().len(), 2);
            remove(&bases, &SERIAL, Role::User, &NONE);
            assert_eq!(files(), Vec::<PathBuf>::new());
        }
        fs::remove_dir_all(&base).unwrap();
        assert!(matches!(first_at(&[], Some(true)), First::NotMade), "no place in memory");
    }
    #[test]
    fn attempts_at_a_copy_with_another_pin_take_none_from_the_count() {
        let base = PathBuf::from(format!("/dev/shm/metaslot-copies-{}", std::process::id()));
        fs::create_dir(&base).unwrap();
        fs::set_permissions(&base, fs::Permissions::from_mode(0o700)).unwrap();
        let bases = [base.clone()];
        let copies = [1, 2].map(|pin| PinRow { wrap: Some(vec![pin; 40]), ..NONE });
        for round in 1..=2 {
            for copy in &copies {
                let open = || Ok(None::<()>);
                let tried = attempt(&bases, &SERIAL, Role::User, copy, (false, true), open);
                assert!(matches!(tried, Err(Error::PinIncorrect { .. })), "{tried:?}");
                assert_eq!(failures(&bases, &SERIAL, Role::User, copy).0, round);
            }
        }
        forget(&bases, &SERIAL, Role::User, &copies[0]);
        let counted = copies.each_ref().map(|copy| failures(&bases, &SERIAL, Role::User, copy).0);
        fs::remove_dir_all(&base).unwrap();
        assert_eq!(counted, [0, 2]);
    }
}
