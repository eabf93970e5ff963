// SPDX-License-Identifier: Apache-2.0
//! What the module counted meanwhile.

use super::rows::{BATCHED, BATCHES, MECHANISMS};
use crate::experiment::Measured;
use metaslot_counters::{Event, read};
use std::path::Path;

/// What the module counted: signatures, batches, signatures in batches.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    pub(super) signatures: f64,
    batches: f64,
    batched: f64,
}

impl Counted {
    /// What all processes counted so far that count there.
    pub(super) fn of(counters: &Path) -> Self {
        let mut counted = Self::default();
        for process in read::processes(&[counters.to_owned()]) {
            let operations = process.operations.iter();
            let own = operations.filter(|(kind, _)| MECHANISMS.contains(&kind.mechanism));
            counted.signatures += own.map(|(_, cell)| cell.operations as f64).sum::<f64>();
            for (event, count) in process.events {
                match event {
                    Event::LaneBatch => counted.batches += count as f64,
                    Event::LaneBatched => counted.batched += count as f64,
                    _ => {}
                }
            }
        }
        counted
    }

    pub(super) fn since(self, before: Self) -> Self {
        Self {
            signatures: self.signatures - before.signatures,
            batches: self.batches - before.batches,
            batched: self.batched - before.batched,
        }
    }

    /// Beside the sample.
    pub(super) fn into_sample(self, measured: &mut Measured) {
        let Self { signatures, batches, batched } = self;
        let all = [("signatures", signatures), (BATCHES, batches), (BATCHED, batched)];
        measured.counters.extend(all.map(|(name, value)| (name.to_owned(), value)));
    }
}
