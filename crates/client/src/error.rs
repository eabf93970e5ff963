// SPDX-License-Identifier: Apache-2.0
//! What can fail: a call, which says its function and its code, or the loading of a library.

use metaslot_ck::{self as ck, CK_RV, Function};
use std::fmt;
use std::path::PathBuf;

/// A C function returned something else than `CKR_OK`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Error {
    /// The function that was called.
    pub function: Function,
    /// What it returned.
    pub code: ck::Error,
}

/// What every call gives.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// `code`, returned by `function`.
    #[must_use]
    pub const fn new(function: Function, code: ck::Error) -> Self {
        Self { function, code }
    }

    #[inline]
    pub(crate) fn check(function: Function, rv: CK_RV) -> Result<()> {
        ck::Error::check(rv).map_err(|code| Self { function, code })
    }

    /// The library has no such function.
    pub(crate) const fn missing(function: Function) -> Self {
        Self { function, code: ck::Error::FUNCTION_NOT_SUPPORTED }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.function.name(), self.code)
    }
}

impl std::error::Error for Error {}

/// A file could not be used as a PKCS#11 module.
#[derive(Debug)]
pub enum LoadError {
    /// The loader refused the file.
    Open {
        /// The file.
        path: PathBuf,
        /// The loader's own words.
        reason: String,
    },
    /// The library has neither `C_GetInterface` nor `C_GetFunctionList`.
    NotAModule {
        /// The file.
        path: PathBuf,
    },
    /// The library would not give its list of functions.
    Refused {
        /// The file.
        path: PathBuf,
        /// What it said.
        error: Error,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Open { path, reason } => {
                write!(f, "cannot load {}: {reason}", path.display())
            }
            Self::NotAModule { path } => write!(
                f,
                "{} is not a PKCS#11 module: it exports neither C_GetInterface nor \
                 C_GetFunctionList",
                path.display()
            ),
            Self::Refused { path, error } => {
                write!(f, "{} gives no function list: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for LoadError {}
