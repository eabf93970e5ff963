// SPDX-License-Identifier: Apache-2.0
//! Variables of the environment, as far as they may be believed: not in a program that has more
//! rights than its user.

use std::ffi::{CStr, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

unsafe extern "C" {
    fn secure_getenv(name: *const libc::c_char) -> *const libc::c_char;
}

/// What variables said when they were asked for last. A forked child inherits it: servers clear their environment, and their
/// workers mean the same configuration all the same.
static SAID: Mutex<Vec<(&CStr, OsString)>> = Mutex::new(Vec::new());

/// Whether this process was forked from one that may have asked.
static FORKED: AtomicBool = AtomicBool::new(false);

/// In a forked child that begins anew.
pub fn forked() {
    FORKED.store(true, Ordering::Relaxed);
}

/// The value of `name`, in a forked child also what it was before; `None` when it is not set, is empty, or must not be believed.
pub fn variable(name: &'static CStr) -> Option<OsString> {
    let now = here(name);
    // A thread that asked at the fork has left it locked for ever.
    let Ok(mut said) = SAID.try_lock() else { return now };
    if now.is_none() && FORKED.load(Ordering::Relaxed) {
        return said.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
    }
    said.retain(|(known, _)| *known != name);
    said.extend(now.clone().map(|value| (name, value)));
    now
}

fn here(name: &CStr) -> Option<OsString> {
    // SAFETY: the name ends with a zero. What it points to is copied at once; a host that changes
    // its environment in one thread and calls us in another breaks the C library's own rules.
    let value = unsafe { secure_getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: a string of the environment ends with a zero.
    let value = unsafe { CStr::from_ptr(value) };
    let value = OsStr::from_bytes(value.to_bytes());
    (!value.is_empty()).then(|| value.to_owned())
}

/// The directory that `name` names, when it is an absolute path as the XDG specification demands.
pub fn directory(name: &'static CStr) -> Option<PathBuf> {
    variable(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Where things live that do not survive a reboot. They are used where they are, never made.
pub fn runtime_directories() -> impl Iterator<Item = PathBuf> {
    let own = directory(c"XDG_RUNTIME_DIR").map(|own| own.join("metaslot"));
    own.into_iter().chain([PathBuf::from("/run/metaslot")])
}

/// In which of them a directory of this user's may be made, where they are in memory.
pub fn volatile_directories() -> impl Iterator<Item = PathBuf> {
    let own = directory(c"XDG_RUNTIME_DIR");
    own.into_iter().chain(["/run/metaslot", "/dev/shm"].map(PathBuf::from))
}
