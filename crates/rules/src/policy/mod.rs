// SPDX-License-Identifier: Apache-2.0
//! What is refused although it would work: the attacks on the interface itself, and cryptography
//! that is broken. `legacy` re-opens everything, `allow` one thing by its name.

mod derivation;
mod refusal;
mod table;
mod transport;
mod weak;

pub use derivation::imposed_purposes;
pub use refusal::Refusal;
pub use table::{KeyUse, WrapForm};
pub use transport::{NonceBy, described, makes_other, said_purposes, seal_as, wrap_form};

use crate::facts::Facts;
use metaslot_ck::*;
use metaslot_spi::detail;
use std::sync::atomic::{AtomicU32, Ordering};
use table::REFUSALS;

/// One set of refusals.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Policy(u32);

impl Policy {
    /// Leaves no way from a sensitive key to its value, and makes nothing new with broken cryptography.
    pub const DEFAULT: Self = Self(Self::FIPS.0 & !bit(Refusal::NotApproved));
    /// Refuses everything that can be refused.
    pub const FIPS: Self = Self((1 << REFUSALS.len()) - 1);

    /// Refuses only what the standard refuses.
    #[must_use]
    pub const fn legacy() -> Self {
        Self(0)
    }

    /// Re-opens one thing by its name; `false` when there is no such name.
    pub fn allow(&mut self, name: &str) -> bool {
        let found = REFUSALS.iter().find(|row| row.name == name);
        found.map(|row| self.0 &= !bit(row.refusal)).is_some()
    }

    /// Every name that [`Self::allow`] knows.
    pub fn names() -> impl Iterator<Item = &'static str> {
        REFUSALS.iter().map(|row| row.name)
    }

    /// Everything that a policy can refuse: its name, what is refused, and whether this one does.
    pub fn rules(self) -> impl Iterator<Item = (&'static str, &'static str, bool)> {
        REFUSALS.iter().map(move |row| (row.name, row.sentence, self.refuses(row.refusal)))
    }

    /// The tables of this policy, as `docs/policy.md` shows them.
    #[must_use]
    pub fn tables() -> String {
        table::markdown()
    }

    /// Whether this is refused.
    #[must_use]
    pub const fn refuses(self, refusal: Refusal) -> bool {
        self.0 & bit(refusal) != 0
    }

    /// `error`, with a sentence that names what re-opens it, where this is refused and `found`.
    pub fn refuse(self, refusal: Refusal, found: bool, error: Error) -> Result<()> {
        if !found || !self.refuses(refusal) {
            return Ok(());
        }
        let row = &REFUSALS[refusal as usize];
        detail::refuse(format_args!(
            "refused by the token's policy: {} (allow = [\"{}\"] re-opens it)",
            row.sentence, row.name
        ));
        Err(error)
    }

    /// May a key be used so? A key whose value can be read anyway may be used for anything, a public
    /// key by every user, except to wrap; and a key that decrypts may unwrap, which is the same.
    pub fn using_key(self, what: KeyUse, key: &Facts) -> Result<()> {
        let free = key.readable
            || match what {
                KeyUse::Wrap => false,
                KeyUse::Unwrap => key.decrypts(),
                _ => key.class == CKO_PUBLIC_KEY,
            };
        let beyond = !free && !key.purposes.has(what.purposes());
        self.refuse(Refusal::BeyondPurpose, beyond, what.error())?;
        let unasked = key.always_authenticate && !what.asks_for_login();
        self.refuse(Refusal::Unauthenticated, unasked, Error::USER_NOT_LOGGED_IN)
    }

    /// May a usage of this key be switched on after it was made?
    pub fn adding_usage(self, key: &Facts) -> Result<()> {
        self.refuse(Refusal::RoleChanges, !key.readable, Error::ATTRIBUTE_READ_ONLY)
    }
}

/// The policy of a token, until it is another one.
#[derive(Debug)]
pub struct CurrentPolicy(AtomicU32);

impl CurrentPolicy {
    /// Begins with this one.
    #[must_use]
    pub const fn new(Policy(refusals): Policy) -> Self {
        Self(AtomicU32::new(refusals))
    }

    /// The one in force.
    pub fn get(&self) -> Policy {
        Policy(self.0.load(Ordering::Relaxed))
    }

    /// Another one from now on.
    pub fn set(&self, Policy(refusals): Policy) {
        self.0.store(refusals, Ordering::Relaxed);
    }
}

const fn bit(refusal: Refusal) -> u32 {
    1 << refusal as u32
}
