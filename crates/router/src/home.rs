// SPDX-License-Identifier: Apache-2.0
//! Who serves the keys that a token keeps: the token's module alone.

use crate::Count;
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::{CK_MECHANISM_TYPE, Error, Result};
use metaslot_counters::Subject;
use metaslot_spi::provider::Algorithm;
use metaslot_spi::store::Home;

/// What serves the keys of a token that keeps them.
#[derive(Clone, Copy, Debug)]
pub struct HomeRoute {
    provider: usize,
    /// Its keys' module.
    pub home: &'static dyn Home,
}

impl HomeRoute {
    /// `provider`: its number in the counters.
    #[must_use]
    pub const fn new(provider: usize, home: &'static dyn Home) -> Self {
        Self { provider, home }
    }

    /// Its mechanisms, sorted.
    pub fn served(&self) -> impl Iterator<Item = CK_MECHANISM_TYPE> + use<> {
        self.home.algorithms().iter().map(|row| row.mechanism)
    }

    /// What it does by a mechanism.
    #[must_use]
    pub fn row(&self, mechanism: CK_MECHANISM_TYPE) -> Option<&'static Algorithm> {
        let rows = self.home.algorithms();
        let at = rows.binary_search_by_key(&mechanism, |row| row.mechanism).ok()?;
        Some(&rows[at])
    }

    /// Smallest and largest key of a mechanism, and flags.
    #[must_use]
    pub fn info(&self, mechanism: CK_MECHANISM_TYPE) -> Option<(u64, u64, u64)> {
        self.row(mechanism).map(|row| (row.key_sizes.0, row.key_sizes.1, row.flags()))
    }

    /// As [`Routes::find`](crate::Routes::find).
    ///
    /// # Errors
    /// `CKR_MECHANISM_INVALID`
    pub fn find<T>(
        &self,
        mechanism: CK_MECHANISM_TYPE,
        operation: impl Fn(&'static Algorithm) -> Option<T>,
    ) -> Result<(Count, T)> {
        let at = MechanismRow::index(mechanism).ok_or(Error::MECHANISM_INVALID)?;
        let found = self.row(mechanism).and_then(operation).ok_or(Error::MECHANISM_INVALID)?;
        Ok((Count::new(Subject::new(self.provider, at), false), found))
    }
}
