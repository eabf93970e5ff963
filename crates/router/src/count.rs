// SPDX-License-Identifier: Apache-2.0
//! Under which provider and mechanism an operation is counted.

use metaslot_counters::{Subject, Watch};

/// What one operation is counted under.
#[derive(Clone, Copy, Debug)]
pub struct Count {
    /// What a multi-part operation took so far.
    bytes: usize,
    subject: Subject,
    /// Whether another provider may be the cheaper one for some sizes of data.
    choice: bool,
}

impl Count {
    /// Nothing yet.
    #[must_use]
    pub(crate) const fn new(subject: Subject, choice: bool) -> Self {
        Self { bytes: 0, subject, choice }
    }

    /// The provider's place in the list of them.
    #[must_use]
    pub const fn provider(&self) -> usize {
        self.subject.provider()
    }

    /// Whether costs are to be compared when the size of the data is known.
    #[must_use]
    pub const fn has_choice(&self) -> bool {
        self.choice
    }

    /// More data of a multi-part operation.
    pub const fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Another operation of the same begins.
    pub const fn next(&mut self) {
        self.bytes = 0;
    }

    /// An operation ended; `bytes` are those not yet told by [`Self::add`]. One of several calls is
    /// not timed: the time between them is its caller's.
    pub fn done(self, bytes: usize, ok: bool, watch: Watch) {
        let watch = if self.bytes == 0 { watch } else { Watch::OFF };
        let bytes = self.bytes.saturating_add(bytes);
        metaslot_counters::operation(self.subject, bytes, ok, watch);
    }

    /// The provider failed, and another one has `done` the operation, or none.
    pub(crate) fn failed_over(self, done: bool) {
        self.done(0, false, Watch::OFF);
        metaslot_counters::failed_over(self.subject, done);
    }
}
