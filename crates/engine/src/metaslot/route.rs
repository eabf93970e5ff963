// SPDX-License-Identifier: Apache-2.0
//! Who serves a mechanism: the first provider, in the order of the configuration, whose row has the
//! operation.

use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::{CK_MECHANISM_TYPE, Error, Result};
use metaslot_counters::{Subject, Watch};
use metaslot_spi::provider::{Algorithm, Provider};
use metaslot_spi::store::Home;
use smallvec::SmallVec;

/// For each mechanism of the vocabulary the rows that serve it, in order.
#[derive(Debug)]
pub(crate) struct Routes(Vec<Rows>);

/// The rows of one mechanism, in place: most have one provider or two.
type Rows = SmallVec<[(Subject, &'static Algorithm); 2]>;

/// What one operation is counted under.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Count {
    subject: Subject,
    /// What a multi-part operation took so far.
    bytes: usize,
}

impl Count {
    /// More data of a multi-part operation.
    pub(crate) const fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// An operation ended; `bytes` are those not yet told by [`Self::add`]. One of several calls is
    /// not timed: the time between them is its caller's.
    pub(crate) fn done(self, bytes: usize, ok: bool, watch: Watch) {
        let watch = if self.bytes == 0 { watch } else { Watch::OFF };
        let bytes = self.bytes.saturating_add(bytes);
        metaslot_counters::operation(self.subject, bytes, ok, watch);
    }
}

impl Routes {
    pub(crate) fn new(providers: &[&'static dyn Provider]) -> Self {
        let mut rows = vec![Rows::new(); MechanismRow::all().len()];
        for (number, provider) in providers.iter().enumerate() {
            for row in provider.algorithms() {
                if let Some(at) = MechanismRow::index(row.mechanism) {
                    rows[at].push((Subject::new(number, at), row));
                }
            }
        }
        Self(rows)
    }

    /// Takes a mechanism from a provider, by its place in the list of them.
    pub(crate) fn disable(&mut self, provider: usize, mechanism: CK_MECHANISM_TYPE) {
        if let Some(at) = MechanismRow::index(mechanism) {
            self.0[at].retain(|(subject, _)| *subject != Subject::new(provider, at));
        }
    }

    /// Mechanisms that a provider serves, sorted.
    pub(crate) fn served(&self) -> impl Iterator<Item = CK_MECHANISM_TYPE> {
        MechanismRow::all()
            .iter()
            .zip(&self.0)
            .filter(|(_, rows)| !rows.is_empty())
            .map(|row| row.0.number)
    }

    /// Smallest and largest key and the flags, over all providers (PKCS#11 3.2 §5.5.6).
    pub(crate) fn info(&self, mechanism: CK_MECHANISM_TYPE) -> Result<(u64, u64, u64)> {
        let at = MechanismRow::index(mechanism).ok_or(Error::MECHANISM_INVALID)?;
        let rows =
            self.0[at].iter().map(|(_, row)| (row.key_sizes.0, row.key_sizes.1, row.flags()));
        rows.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1), a.2 | b.2)).ok_or(Error::MECHANISM_INVALID)
    }

    /// The first provider's implementation of one operation of a mechanism.
    pub(crate) fn find<T>(
        &self,
        mechanism: CK_MECHANISM_TYPE,
        operation: impl Fn(&'static Algorithm) -> Option<T>,
    ) -> Result<(Count, T)> {
        let at = MechanismRow::index(mechanism).ok_or(Error::MECHANISM_INVALID)?;
        for (subject, row) in &self.0[at] {
            if let Some(found) = operation(row) {
                return Ok((Count { subject: *subject, bytes: 0 }, found));
            }
        }
        Err(Error::MECHANISM_INVALID)
    }
}

/// What serves the keys of a token that keeps them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HomeRoute {
    provider: usize,
    pub(crate) home: &'static dyn Home,
}

impl HomeRoute {
    /// `provider`: its number in the counters.
    pub(crate) const fn new(provider: usize, home: &'static dyn Home) -> Self {
        Self { provider, home }
    }

    /// Its mechanisms, sorted.
    pub(crate) fn served(&self) -> impl Iterator<Item = CK_MECHANISM_TYPE> + use<> {
        self.home.algorithms().iter().map(|row| row.mechanism)
    }

    pub(crate) fn row(&self, mechanism: CK_MECHANISM_TYPE) -> Option<&'static Algorithm> {
        let rows = self.home.algorithms();
        let at = rows.binary_search_by_key(&mechanism, |row| row.mechanism).ok()?;
        Some(&rows[at])
    }

    /// As [`Routes::find`].
    pub(crate) fn find<T>(
        &self,
        mechanism: CK_MECHANISM_TYPE,
        operation: impl Fn(&'static Algorithm) -> Option<T>,
    ) -> Result<(Count, T)> {
        let at = MechanismRow::index(mechanism).ok_or(Error::MECHANISM_INVALID)?;
        let found = self.row(mechanism).and_then(operation).ok_or(Error::MECHANISM_INVALID)?;
        Ok((Count { subject: Subject::new(self.provider, at), bytes: 0 }, found))
    }
}

/// A provider that serves a mechanism, or could.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Candidate {
    /// Its name.
    pub provider: String,
    /// `CKF_…` of the operations that it has.
    pub flags: u64,
    /// What stands in its way; empty when nothing does.
    pub remark: String,
}
