// SPDX-License-Identifier: Apache-2.0
//! The pepper: a file of this machine that every PIN is mixed with, where the configuration names one.

use crate::error::{Error, Result};
use metaslot_memory::Secret;
use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The longest pepper that is read, and the shortest that is taken, in bytes.
const LONGEST: u64 = 4096;
const SHORTEST: usize = 16;

/// The file belongs to this user or to root, who alone may write it; its group may read it.
pub(crate) fn read(path: &Path) -> Result<Secret> {
    let refuse =
        |reason: &str| Err(Error::Unsafe { path: path.to_owned(), reason: reason.to_owned() });
    let cannot = |action, reason: &str| {
        let what = "every PIN of the token is mixed with this file (pepper)";
        let help = "put it back, or for a token that is still to be made: head -c 32 /dev/urandom";
        Error::file(path, action, format!("{reason}; {what}: {help}"))
    };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match fs::open(path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::LOOP) => return refuse("the pepper is a link"),
        Err(errno) => return Err(cannot("open", &errno.to_string())),
    };
    let stat = fs::fstat(&file).map_err(|errno| cannot("open", &errno.to_string()))?;
    let mode = Mode::from_raw_mode(stat.st_mode);
    if stat.st_uid != rustix::process::geteuid().as_raw() && stat.st_uid != 0 {
        return refuse("the pepper belongs to another user");
    }
    if mode.intersects(Mode::RWXO | Mode::WGRP) {
        return refuse("others may read the pepper, or its group may write it: chmod 600");
    }
    let length = u64::try_from(stat.st_size).unwrap_or(0).min(LONGEST);
    let mut secret = Secret::zeroed(usize::try_from(length).unwrap_or(0));
    let mut reader: &File = &file;
    reader.read_exact(secret.expose_mut()).map_err(|error| cannot("read", &error.to_string()))?;
    if secret.len() < SHORTEST {
        return refuse(&format!(
            "the pepper is shorter than {SHORTEST} bytes: head -c 32 /dev/urandom makes one"
        ));
    }
    Ok(secret)
}
