// SPDX-License-Identifier: Apache-2.0
//! Secrets that the kernel keeps for a user: in no file, gone after a time, and with the next boot.
//!
//! They lie in the user's keyring (`@u`, keyrings(7)), which every process of the same user and user
//! namespace has. Containers often deny the system calls; then there is nothing here.

use crate::Secret;
use std::ffi::{CStr, c_long};
use std::io;

const PROCESS_KEYRING: c_long = libc::KEY_SPEC_PROCESS_KEYRING as c_long;
const USER_KEYRING: c_long = libc::KEY_SPEC_USER_KEYRING as c_long;
const TYPE: &CStr = c"user";

/// The possessor may do everything; the user may view, read and find, also in a session whose
/// keyring does not lead to the user's (a service of systemd's).
const PERMISSIONS: c_long = 0x3f0b_0000;

/// The secret of this name and exactly this length; `None` when there is none, or none any more.
///
/// # Errors
/// What the kernel says; [`io::ErrorKind::PermissionDenied`] in a program with more rights than its
/// user, whose keyring is not its own.
pub fn find(name: &CStr, length: usize) -> io::Result<Option<Secret>> {
    own()?;
    let found = match search(name) {
        Ok(found) => found,
        Err(error) => {
            let gone = [libc::ENOKEY, libc::EKEYEXPIRED, libc::EKEYREVOKED];
            let gone = error.raw_os_error().is_some_and(|code| gone.contains(&code));
            return if gone { Ok(None) } else { Err(error) };
        }
    };
    let mut secret = Secret::zeroed(length);
    let read = read(found, secret.expose_mut())?;
    Ok((read == length).then_some(secret))
}

/// Keeps a secret for so many seconds, in the place of an older one of this name.
///
/// # Errors
/// As [`find`].
pub fn keep(name: &CStr, secret: &Secret, seconds: u32) -> io::Result<()> {
    own()?;
    let bytes = secret.expose();
    // SAFETY: reads two strings that end with a zero, and the bytes.
    let key = unsafe {
        libc::syscall(
            libc::SYS_add_key,
            TYPE.as_ptr(),
            name.as_ptr(),
            bytes.as_ptr(),
            bytes.len(),
            PROCESS_KEYRING,
        )
    };
    if key < 0 {
        return Err(io::Error::last_os_error());
    }
    // Others see it when it is as it shall be, and this process's own keyring lets go of it.
    let shared = change(Change::Permissions, key, PERMISSIONS)
        .and_then(|()| change(Change::Timeout, key, c_long::from(seconds)))
        .and_then(|()| change(Change::Link, key, USER_KEYRING));
    let let_go = change(Change::Unlink, key, PROCESS_KEYRING);
    shared.and(let_go)
}

/// Takes a secret away, where there is one.
///
/// # Errors
/// As [`find`].
pub fn forget(name: &CStr) -> io::Result<()> {
    own()?;
    change(Change::Unlink, search(name)?, USER_KEYRING)
}

/// The user's keyring is the real user's, who is not always the one whose rights a program has.
fn own() -> io::Result<()> {
    if is_own() { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
}

/// Whether this process has no other user's rights, cannot take them back, and has none that its file gave it: setuid, setgid,
/// capabilities.
#[must_use]
pub fn is_own() -> bool {
    let [mut real, mut effective, mut saved] = [0; 3];
    // SAFETY: writes three numbers.
    unsafe { libc::getresuid(&raw mut real, &raw mut effective, &raw mut saved) };
    // SAFETY: asks for a number.
    let secure = unsafe { libc::getauxval(libc::AT_SECURE) };
    real == effective && saved == effective && secure == 0
}

/// What takes a key and a number.
#[derive(Clone, Copy, Debug)]
enum Change {
    Permissions = libc::KEYCTL_SETPERM as isize,
    Timeout = libc::KEYCTL_SET_TIMEOUT as isize,
    Link = libc::KEYCTL_LINK as isize,
    Unlink = libc::KEYCTL_UNLINK as isize,
}

fn change(change: Change, key: c_long, number: c_long) -> io::Result<()> {
    // SAFETY: none of these operations takes an address.
    unsafe { keyctl(change as c_long, [key, number, 0, 0]) }.map(drop)
}

/// The key of this name in the user's keyring.
fn search(name: &CStr) -> io::Result<c_long> {
    let arguments = [USER_KEYRING, TYPE.as_ptr() as c_long, name.as_ptr() as c_long, 0];
    // SAFETY: reads two strings that end with a zero.
    unsafe { keyctl(c_long::from(libc::KEYCTL_SEARCH), arguments) }
}

/// Fills `out`; gives the length of what there is.
fn read(key: c_long, out: &mut [u8]) -> io::Result<usize> {
    let room = c_long::try_from(out.len()).unwrap_or(c_long::MAX);
    let arguments = [key, out.as_mut_ptr() as c_long, room, 0];
    // SAFETY: writes no more than `room` bytes, which are ours.
    let length = unsafe { keyctl(c_long::from(libc::KEYCTL_READ), arguments) }?;
    usize::try_from(length).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// # Safety
/// Where the operation takes addresses, they are of strings that end with a zero, or of memory of the length
/// that is given beside them.
unsafe fn keyctl(operation: c_long, [a, b, c, d]: [c_long; 4]) -> io::Result<c_long> {
    // SAFETY: the caller's.
    let result = unsafe { libc::syscall(libc::SYS_keyctl, operation, a, b, c, d) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_kept_replaced_and_forgotten() {
        let name = std::ffi::CString::new(format!("metaslot:test:{}", std::process::id()));
        let name = name.expect("no zero in it");
        if let Err(error) = keep(&name, &Secret::copy_of(&[1; 32]), 60) {
            let what = "secrets that the kernel keeps";
            return metaslot_testkit::not_run("memory", what, &error.to_string());
        }
        let found = |length| find(&name, length).expect("the kernel answers");
        assert_eq!(found(32).map(|secret| secret.expose().to_vec()), Some(vec![1; 32]));
        assert!(found(16).is_none() && found(64).is_none(), "another length is another secret");
        keep(&name, &Secret::copy_of(&[2; 32]), 60).expect("it is replaced");
        // Another thread, as another process, finds it too.
        let other = std::thread::scope(|scope| scope.spawn(|| found(32)).join());
        let other = other.expect("the thread ends");
        assert_eq!(other.map(|secret| secret.expose().to_vec()), Some(vec![2; 32]));
        forget(&name).expect("it goes");
        assert!(found(32).is_none());
    }
}
