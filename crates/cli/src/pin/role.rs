// SPDX-License-Identifier: Apache-2.0
//! The two PINs of a token.

use metaslot_client::{PinCost, PinStatus, TokenCost, TokenStatus};
use std::env;
use std::path::Path;

/// Whose PIN it is: names options, variables and prompts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    /// The user, who uses keys.
    User,
    /// The security officer, who sets the user's PIN.
    So,
}

impl Role {
    /// As prompts and messages say it.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::User => "user PIN",
            Self::So => "SO PIN",
        }
    }

    /// The part of a token's status that is about this PIN.
    pub(crate) const fn of(self, status: &TokenStatus) -> PinStatus {
        match self {
            Self::User => status.user,
            Self::So => status.so,
        }
    }

    /// The part of a token's cost that is about this PIN.
    pub(crate) const fn cost(self, cost: &TokenCost) -> PinCost {
        match self {
            Self::User => cost.user,
            Self::So => cost.so,
        }
    }

    pub(super) const fn option(self) -> &'static str {
        match self {
            Self::User => "--pin-source",
            Self::So => "--so-pin-source",
        }
    }

    /// The file of the credential, when there is one.
    pub(super) fn credential(self) -> Option<String> {
        let name = match self {
            Self::User => "metaslot.pin",
            Self::So => "metaslot.so-pin",
        };
        let file = Path::new(&env::var_os("CREDENTIALS_DIRECTORY")?).join(name);
        file.exists().then(|| file.into_os_string().into_string().ok())?
    }

    pub(crate) const fn variable(self) -> &'static str {
        match self {
            Self::User => "METASLOT_PIN_SOURCE",
            Self::So => "METASLOT_SO_PIN_SOURCE",
        }
    }
}
