// SPDX-License-Identifier: Apache-2.0
//! What became of the objects that a command moves into a token.

use crate::failure::{Failure, Result};

/// What became of one.
#[derive(Debug)]
pub(super) enum Fate {
    Moved,
    WouldBe,
    /// It was there before.
    There,
    Not(String),
}

impl Fate {
    /// What came of making it, or of trying whether it can be made.
    pub(super) fn of<T>(made: std::result::Result<T, String>, dry_run: bool) -> Self {
        match made {
            Ok(_) if dry_run => Self::WouldBe,
            Ok(_) => Self::Moved,
            Err(reason) => Self::Not(reason),
        }
    }

    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Moved => "moved",
            Self::WouldBe => "would be moved",
            Self::There => "already there",
            Self::Not(_) => "not moved",
        }
    }

    /// Why it was not moved.
    pub(super) fn reason(&self) -> Option<&str> {
        match self {
            Self::Not(reason) => Some(reason),
            _ => None,
        }
    }

    /// Both, for people.
    pub(super) fn words(&self) -> String {
        let reason = self.reason().map(|reason| format!(": {reason}"));
        format!("{}{}", self.name(), reason.unwrap_or_default())
    }

    pub(super) const fn is_here(&self) -> bool {
        !matches!(self, Self::Not(_))
    }
}

/// Why the token does not take an object.
pub(super) fn refusal(why: impl Into<Failure>) -> String {
    let failure = why.into();
    let said = [Some(failure.message()), failure.advice()];
    said.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Whether all of them are in the token.
pub(super) fn check<'a>(fates: impl Iterator<Item = &'a Fate>) -> Result<()> {
    let all: Vec<bool> = fates.map(Fate::is_here).collect();
    match all.iter().filter(|is_here| !**is_here).count() {
        0 => Ok(()),
        left => Err(Failure::partly(format!("not moved: {left} of {} objects", all.len()))),
    }
}
