// SPDX-License-Identifier: Apache-2.0
//! Who serves a mechanism: the first provider, in the order of the configuration, whose row has the
//! operation.

use crate::Count;
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::{CK_MECHANISM_TYPE, Error, Result};
use metaslot_counters::Subject;
use metaslot_spi::provider::{Algorithm, Provider};
use smallvec::SmallVec;

/// For each mechanism of the vocabulary the rows that serve it, in order.
#[derive(Debug)]
pub struct Routes(Vec<Rows>);

/// The rows of one mechanism, in place: most have one provider or two.
type Rows = SmallVec<[(Subject, &'static Algorithm); 2]>;

impl Routes {
    /// The rows of these providers, in their order.
    #[must_use]
    pub fn new(providers: &[&'static dyn Provider]) -> Self {
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
    pub fn disable(&mut self, provider: usize, mechanism: CK_MECHANISM_TYPE) {
        if let Some(at) = MechanismRow::index(mechanism) {
            self.0[at].retain(|(subject, _)| *subject != Subject::new(provider, at));
        }
    }

    /// Mechanisms that a provider serves, sorted.
    pub fn served(&self) -> impl Iterator<Item = CK_MECHANISM_TYPE> {
        MechanismRow::all()
            .iter()
            .zip(&self.0)
            .filter(|(_, rows)| !rows.is_empty())
            .map(|row| row.0.number)
    }

    /// Smallest and largest key and the flags, over all providers (PKCS#11 3.2 §5.5.6).
    ///
    /// # Errors
    /// `CKR_MECHANISM_INVALID` when no provider serves it.
    pub fn info(&self, mechanism: CK_MECHANISM_TYPE) -> Result<(u64, u64, u64)> {
        let at = MechanismRow::index(mechanism).ok_or(Error::MECHANISM_INVALID)?;
        let rows =
            self.0[at].iter().map(|(_, row)| (row.key_sizes.0, row.key_sizes.1, row.flags()));
        rows.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1), a.2 | b.2)).ok_or(Error::MECHANISM_INVALID)
    }

    /// The first provider's implementation of one operation of a mechanism.
    ///
    /// # Errors
    /// `CKR_MECHANISM_INVALID` when no provider has it.
    pub fn find<T>(
        &self,
        mechanism: CK_MECHANISM_TYPE,
        operation: impl Fn(&'static Algorithm) -> Option<T>,
    ) -> Result<(Count, T)> {
        let at = MechanismRow::index(mechanism).ok_or(Error::MECHANISM_INVALID)?;
        for (subject, row) in &self.0[at] {
            if let Some(found) = operation(row) {
                return Ok((Count::new(*subject), found));
            }
        }
        Err(Error::MECHANISM_INVALID)
    }
}
