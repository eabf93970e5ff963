// SPDX-License-Identifier: Apache-2.0
//! What one check found.

use crate::failure::Failure;
use std::fmt::Display;
use std::io;
use std::path::Path;

/// How bad it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Level {
    /// As it should be.
    Ok,
    /// Works, and is weaker or less than it could be.
    Warning,
    /// Something does not work, or protects nothing.
    Error,
}

impl Level {
    /// As the table and the JSON call it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One line of the report.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) level: Level,
    pub(super) found: String,
    /// What to do.
    pub(super) fix: Option<String>,
}

impl Finding {
    pub(super) fn ok(found: impl Display) -> Self {
        Self { level: Level::Ok, found: found.to_string(), fix: None }
    }

    pub(super) fn warning(found: impl Display, fix: impl Display) -> Self {
        Self { level: Level::Warning, found: found.to_string(), fix: Some(fix.to_string()) }
    }

    pub(super) fn error(found: impl Display, fix: impl Display) -> Self {
        Self { level: Level::Error, found: found.to_string(), fix: Some(fix.to_string()) }
    }
}

/// What the system refused.
pub(super) fn cannot(path: &Path, error: &io::Error) -> String {
    Failure::io(path.display(), error).message().to_owned()
}
