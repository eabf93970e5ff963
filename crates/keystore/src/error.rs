// SPDX-License-Identifier: Apache-2.0
//! What can go wrong with a token on disk, in words for a person and in a code for PKCS#11.

use metaslot_ck as ck;
use metaslot_spi::store::Name;
use rustix::io::Errno;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a store could not do what it was asked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Error {
    /// There is no token in this place yet.
    Uninitialized {
        /// The database file.
        path: PathBuf,
    },
    /// A file could not be opened, made or read.
    File {
        /// Which.
        path: PathBuf,
        /// What was tried: `open`, `create`, `lock`, …
        action: &'static str,
        /// What the system said.
        reason: String,
    },
    /// The place is open to people who should not be able to change it.
    Unsafe {
        /// The directory or file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The process was forked while its parent had a database open.
    Inherited {
        /// The database file.
        path: PathBuf,
    },
    /// SQLite refused.
    Database {
        /// The database file.
        path: PathBuf,
        /// What SQLite said.
        reason: String,
    },
    /// The file is no token of ours, or its own row is damaged.
    NotToken {
        /// The database file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A later release wrote this file. It was left as it is.
    NewerFormat {
        /// The database file.
        path: PathBuf,
        /// The version that it has.
        found: i64,
    },
    /// One row does not pass its checks; the others are served.
    Damaged {
        /// The database file.
        path: PathBuf,
        /// The object's row.
        id: u64,
        /// Which check failed.
        reason: &'static str,
    },
    /// What belongs to the token as a whole is not as it was last written.
    Tampered {
        /// The database file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// This process may not write the store.
    WriteProtected {
        /// The file that cannot be written.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The file system is full; nothing was changed.
    Full {
        /// The database file.
        path: PathBuf,
    },
    /// The object is not there any more, or has changed since it was read.
    Gone {
        /// The object's row.
        id: u64,
    },
    /// Sealing, opening or authenticating needs a login.
    NotLoggedIn,
    /// The PIN is wrong.
    PinIncorrect {
        /// How many attempts are left.
        left: u32,
    },
    /// Too many wrong PINs.
    PinLocked,
    /// Too soon after wrong PINs.
    TooSoon {
        /// Seconds since 1970.
        retry_at: u64,
    },
    /// The SO has not set the user's PIN yet.
    PinNotInitialized,
    /// An identity is not there, its PIN is wrong, or locked.
    IdentityRefused,
    /// The officer wants of an identity what cannot be.
    Identity {
        /// Which.
        name: Name,
        /// What is wrong with that.
        reason: &'static str,
    },
    /// The caller ended it.
    Canceled,
    /// The cryptographic library failed.
    Cryptography,
    /// Memory ran out.
    Memory,
}

/// SQLite's codes for a write that the system refused.
const WRITES: [std::ffi::c_int; 5] = [
    rusqlite::ffi::SQLITE_IOERR_WRITE,
    rusqlite::ffi::SQLITE_IOERR_SHMOPEN,
    rusqlite::ffi::SQLITE_IOERR_SHMSIZE,
    rusqlite::ffi::SQLITE_IOERR_FSYNC,
    rusqlite::ffi::SQLITE_IOERR_TRUNCATE,
];

/// What SQLite says where the system neither gives nor takes back a lock.
const LOCKS: [std::ffi::c_int; 5] = [
    rusqlite::ffi::SQLITE_IOERR_CHECKRESERVEDLOCK,
    rusqlite::ffi::SQLITE_IOERR_LOCK,
    rusqlite::ffi::SQLITE_IOERR_RDLOCK,
    rusqlite::ffi::SQLITE_IOERR_SHMLOCK,
    rusqlite::ffi::SQLITE_IOERR_UNLOCK,
];

fn is_full(error: &io::Error) -> bool {
    let full = [Errno::NOSPC, Errno::DQUOT, Errno::FBIG];
    Errno::from_io_error(error).is_some_and(|errno| full.contains(&errno))
}

/// What nearly every function of this crate returns.
pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn file(path: &Path, action: &'static str, reason: impl fmt::Display) -> Self {
        Self::File { path: path.to_owned(), action, reason: plain(&reason.to_string()) }
    }

    /// A failed system call on a file that must be writable.
    pub(crate) fn system(path: &Path, action: &'static str, errno: Errno) -> Self {
        match errno {
            Errno::ACCESS | Errno::PERM | Errno::ROFS => {
                Self::WriteProtected { path: path.to_owned(), reason: plain(&errno.to_string()) }
            }
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Self::Full { path: path.to_owned() },
            Errno::NOMEM => Self::Memory,
            _ => Self::file(path, action, errno),
        }
    }

    /// The same of an error of the standard library.
    pub(crate) fn io(path: &Path, action: &'static str, error: &io::Error) -> Self {
        match Errno::from_io_error(error) {
            Some(errno) => Self::system(path, action, errno),
            None => Self::file(path, action, error),
        }
    }

    /// The same, told of the file `database` where it does not yet name one.
    #[must_use]
    pub fn at(mut self, database: &Path) -> Self {
        if let Self::Database { path, .. }
        | Self::NotToken { path, .. }
        | Self::Damaged { path, .. }
        | Self::Tampered { path, .. }
        | Self::WriteProtected { path, .. }
        | Self::File { path, .. }
        | Self::Full { path } = &mut self
            && path.as_os_str().is_empty()
        {
            database.clone_into(path);
        }
        self
    }

    /// The same, told of another file where it names one that is the token's.
    pub(crate) fn of(mut self, file: &Path) -> Self {
        if let Self::Database { path, .. }
        | Self::NotToken { path, .. }
        | Self::Damaged { path, .. }
        | Self::Tampered { path, .. } = &mut self
        {
            file.clone_into(path);
        }
        self
    }

    /// Whether a lock was not to be had, or not given up.
    pub(crate) fn is_of_a_lock(&self) -> bool {
        matches!(self, Self::File { action: "lock", .. })
    }

    /// A row that fails a check.
    #[must_use]
    pub const fn damaged(id: u64, reason: &'static str) -> Self {
        Self::Damaged { path: PathBuf::new(), id, reason }
    }

    /// A token that was changed from outside.
    #[must_use]
    pub fn tampered(reason: &str) -> Self {
        Self::Tampered { path: PathBuf::new(), reason: reason.to_owned() }
    }

    /// A token whose own row is not as it must be.
    #[must_use]
    pub fn not_token(reason: &str) -> Self {
        Self::NotToken { path: PathBuf::new(), reason: reason.to_owned() }
    }

    /// What SQLite's answer means here.
    fn sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        use rusqlite::ffi::ErrorCode;
        let path = path.to_owned();
        let reason = error.to_string();
        let Some(code) = error.sqlite_error() else { return Self::Database { path, reason } };
        match code.code {
            ErrorCode::OutOfMemory => Self::Memory,
            ErrorCode::DiskFull => Self::Full { path },
            // A file size limit (EFBIG), a quota, and no room for the log's index arrive here and not as "full"; a disk
            // that fails does as well. The system's number is that of the call that failed last.
            _ if WRITES.contains(&code.extended_code) => match io::Error::last_os_error() {
                error if is_full(&error) => Self::Full { path },
                error => Self::file(&path, "write", error),
            },
            // SQLite has a text without a reason, and rusqlite the path once more.
            ErrorCode::CannotOpen => match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(0) => Self::Database { path, reason },
                error => Self::file(&path, "open", error),
            },
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied => {
                Self::WriteProtected { path, reason }
            }
            ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt => Self::NotToken { path, reason },
            ErrorCode::DatabaseBusy | ErrorCode::FileLockingProtocolFailed => {
                Self::file(&path, "lock", reason)
            }
            _ if LOCKS.contains(&code.extended_code) => Self::file(&path, "lock", reason),
            _ => Self::Database { path, reason },
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uninitialized { path } => write!(f, "{}: no token here yet", path.display()),
            Self::File { path, action, reason } => {
                write!(f, "{}: cannot {action}: {reason}", path.display())
            }
            Self::Unsafe { path, reason } => write!(f, "{}: refused: {reason}", path.display()),
            Self::Inherited { path } => write!(
                f,
                "{}: not opened: this process was forked inside a call or without the C library's knowledge, \
                 while a token was open",
                path.display()
            ),
            Self::Database { path, reason } => write!(f, "{}: {reason}", path.display()),
            Self::NotToken { path, reason } => {
                write!(f, "{}: not a token that can be used: {reason}", path.display())
            }
            Self::NewerFormat { path, found } => write!(
                f,
                "{}: format {found} is newer than this release, which knows {}; left untouched",
                path.display(),
                crate::format::IDENTITIES
            ),
            Self::Damaged { path, id, reason } => {
                write!(f, "{}: object {id} is damaged: {reason}", path.display())
            }
            Self::Tampered { path, reason } => write!(
                f,
                "{}: refused: {reason}; 'metaslot token verify' looks at all of it",
                path.display()
            ),
            Self::WriteProtected { path, reason } => {
                write!(f, "{}: may not be written: {reason}", path.display())
            }
            Self::Full { path } => {
                let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
                let why =
                    limit.map_or("", |_| ", or this process's files may not grow (ulimit -f)");
                write!(f, "{}: no space left{why}", path.display())
            }
            Self::Gone { id } => write!(f, "object {id} is gone or was changed"),
            Self::NotLoggedIn => f.write_str("no user is logged in"),
            Self::PinIncorrect { left } => write!(f, "wrong PIN, {left} attempts left"),
            Self::PinLocked => f.write_str("the PIN is locked"),
            Self::TooSoon { retry_at } => {
                write!(f, "no PIN is taken before second {retry_at} of the epoch")
            }
            Self::IdentityRefused => f.write_str(
                "wrong PIN, a PIN that is locked after wrong ones, or no such identity: \
                 'metaslot token identity list' tells it to the officer",
            ),
            Self::Identity { name, reason } => write!(f, "identity {name:?} {reason}"),
            Self::PinNotInitialized => f.write_str("the user has no PIN yet"),
            Self::Canceled => f.write_str("ended by the caller"),
            Self::Cryptography => f.write_str("the cryptographic library failed"),
            Self::Memory => f.write_str("memory ran out"),
        }
    }
}

impl std::error::Error for Error {}

/// Without a path, which [`Error::at`] adds where it is known.
impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::sqlite(Path::new(""), &error)
    }
}

impl From<metaslot_awslc_wrapper::Failed> for Error {
    fn from(_: metaslot_awslc_wrapper::Failed) -> Self {
        Self::Cryptography
    }
}

/// The system's words without their number: an error of the command has a code of its own.
pub(crate) fn plain(reason: &str) -> String {
    let number = reason.split_once(" (os error ").and_then(|(words, rest)| {
        let (_, rest) = rest.split_once(')')?;
        Some(format!("{words}{rest}"))
    });
    number.unwrap_or_else(|| reason.to_owned())
}

impl From<Error> for ck::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Uninitialized { .. }
            | Error::NotToken { .. }
            | Error::NewerFormat { .. }
            | Error::Unsafe { .. } => Self::TOKEN_NOT_RECOGNIZED,
            Error::File { .. }
            | Error::Inherited { .. }
            | Error::Database { .. }
            | Error::Damaged { .. }
            | Error::Tampered { .. }
            | Error::Cryptography => Self::DEVICE_ERROR,
            Error::Canceled => Self::FUNCTION_CANCELED,
            Error::Identity { .. } => Self::ARGUMENTS_BAD,
            Error::WriteProtected { .. } => Self::TOKEN_WRITE_PROTECTED,
            Error::Full { .. } | Error::Memory => Self::DEVICE_MEMORY,
            Error::Gone { .. } => Self::OBJECT_HANDLE_INVALID,
            Error::NotLoggedIn => Self::USER_NOT_LOGGED_IN,
            Error::PinIncorrect { .. } | Error::IdentityRefused => Self::PIN_INCORRECT,
            // C_Login has no code for a pause; PIN_INCORRECT would call a right PIN wrong.
            Error::PinLocked | Error::TooSoon { .. } => Self::PIN_LOCKED,
            Error::PinNotInitialized => Self::USER_PIN_NOT_INITIALIZED,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;
    use std::fs::File;
    use std::io::{Read, Write};

    #[test]
    fn no_reason_ends_with_the_systems_number() {
        let path = Path::new("/a");
        let reason = format!("{}; put it back", Errno::NOENT);
        for (error, words) in [
            (Error::file(path, "open", reason), "; put it back"),
            (Error::system(path, "open", Errno::PERM), "permitted"),
            (Error::file(path, "open", "no such (os error"), "(os error"),
        ] {
            let told = error.to_string();
            assert!(told.ends_with(words) && !told.contains("(os error "), "{told}");
        }
    }

    #[test]
    fn no_room_for_any_of_the_files_is_a_full_disk() {
        for code in [&[ffi::SQLITE_FULL][..], &WRITES].concat() {
            // The system's last word is that there is no room.
            File::options().write(true).open("/dev/full").unwrap().write(b"1").unwrap_err();
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            assert!(matches!(Error::from(error), Error::Full { .. }), "{code}");
        }
    }

    #[test]
    fn a_disk_that_fails_is_not_a_full_one() {
        for code in WRITES {
            // Nothing is mapped at its beginning.
            File::open("/proc/self/mem").unwrap().read(&mut [0]).unwrap_err();
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            let told = Error::from(error).at(Path::new("/a")).to_string();
            assert_eq!(told, "/a: cannot write: Input/output error");
        }
    }
}
