// SPDX-License-Identifier: Apache-2.0
//! The lifecycle of an operation, once for all kinds (PKCS#11 3.2 §5.9–§5.16).

pub(crate) mod cipher;
pub(crate) mod digest;
pub(crate) mod dual;
pub(crate) mod later;
pub(crate) mod recover;
pub(crate) mod signature;
pub(crate) mod state;

use crate::output::Written;
use later::Later;
use metaslot_ck::{Error, Result};

/// One operation of one kind in one session: `T` is what `*Init` chose, `S` what a multi-part
/// operation keeps between its calls.
#[derive(Debug, Default)]
pub(crate) enum Active<T, S> {
    #[default]
    Idle,
    Initialized(T),
    MultiPart(T, S),
    /// The one call that does everything has returned and the work goes on.
    Pending(T, Later),
}

impl<T, S> Active<T, S> {
    /// `*Init` may begin only where nothing is active.
    pub(crate) const fn free(&self) -> Result<()> {
        match self {
            Self::Idle => Ok(()),
            _ => Err(Error::OPERATION_ACTIVE),
        }
    }

    /// What `*Init` chose, for a call that does everything at once.
    pub(crate) const fn single(&self) -> Result<&T> {
        match self {
            Self::Idle => Err(Error::OPERATION_NOT_INITIALIZED),
            Self::Initialized(chosen) => Ok(chosen),
            Self::MultiPart(..) | Self::Pending(..) => Err(Error::OPERATION_ACTIVE),
        }
    }

    /// The work goes on after the call.
    pub(crate) fn postpone(&mut self, later: Later) {
        match std::mem::take(self) {
            Self::Initialized(chosen) => *self = Self::Pending(chosen, later),
            other => *self = other,
        }
    }

    pub(crate) const fn is_pending(&self) -> bool {
        matches!(self, Self::Pending(..))
    }

    /// What `*Init` chose, in any state.
    pub(crate) const fn chosen(&self) -> Result<&T> {
        match self {
            Self::Idle => Err(Error::OPERATION_NOT_INITIALIZED),
            Self::Initialized(chosen) | Self::MultiPart(chosen, _) | Self::Pending(chosen, _) => {
                Ok(chosen)
            }
        }
    }

    /// The stream of a multi-part operation; `start` makes it at the first data.
    pub(crate) fn stream(
        &mut self,
        start: impl FnOnce(&T) -> Result<S>,
    ) -> Result<(&mut T, &mut S)> {
        if let Self::Initialized(chosen) = self {
            let stream = start(chosen)?;
            let Self::Initialized(chosen) = std::mem::take(self) else {
                return Err(Error::GENERAL_ERROR);
            };
            *self = Self::MultiPart(chosen, stream);
        }
        match self {
            Self::MultiPart(chosen, stream) => Ok((chosen, stream)),
            Self::Pending(..) => Err(Error::OPERATION_ACTIVE),
            _ => Err(Error::OPERATION_NOT_INITIALIZED),
        }
    }

    /// Ends the operation; gives back what `*Init` chose.
    #[inline]
    pub(crate) fn end(&mut self) -> Option<T> {
        if !self.is_active() {
            return None;
        }
        match std::mem::take(self) {
            Self::Idle => None,
            Self::Initialized(chosen) | Self::MultiPart(chosen, _) | Self::Pending(chosen, _) => {
                Some(chosen)
            }
        }
    }

    pub(crate) const fn is_active(&self) -> bool {
        !matches!(self, Self::Idle)
    }
}

/// Whether a closing call (`C_Sign`, `C_SignFinal`, …) ends its operation: every result does but a
/// question for the length, a short buffer, and a call that came out of turn (§5.2).
pub(crate) fn ends(result: Result<Written>) -> bool {
    !matches!(
        result,
        Ok(Written::Asked)
            | Err(Error::BUFFER_TOO_SMALL
                | Error::OPERATION_NOT_INITIALIZED
                | Error::OPERATION_ACTIVE
                | Error::PENDING
                | Error::USER_NOT_LOGGED_IN)
    )
}

/// Whether an `*Update` call ends its operation: only a failure does.
pub(crate) fn fails(result: Result<Written>) -> bool {
    result.is_err() && ends(result)
}
