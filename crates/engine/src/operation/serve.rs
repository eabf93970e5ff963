// SPDX-License-Identifier: Apache-2.0
//! Who does what a call does at once: the provider that takes least for so much data, and another one where it
//! fails.

use super::keyed::Served;
use super::{Active, OperationKind, Streams};
use crate::engine::Engine;
use crate::output::Written;
use metaslot_ck::{Error, Result};
use metaslot_router::{Count, Flight, Job, is_providers, key_bits};

/// Providers that failed at an operation, and the first one's error.
struct Failed {
    error: Error,
    counts: Vec<Count>,
}

impl Engine {
    /// Runs `once`, which takes so many bytes, and may be run again where it fails before the operation has a stream.
    #[inline]
    pub(crate) fn serve<A: Streams + Served + ?Sized>(
        &self,
        kind: OperationKind,
        active: &mut Active<A>,
        bytes: usize,
        mut once: impl FnMut(&mut Active<A>) -> Result<Written>,
    ) -> Result<Written> {
        let _flight = self.settle(kind, active, bytes);
        let mut failed = None;
        // There is one place that runs it, so that it can be a part of this function.
        loop {
            let result = once(active);
            match result {
                Err(error) if is_providers(error) => {
                    if let Some(first) = self.fail_over(kind, active, error, &mut failed) {
                        return Err(first);
                    }
                }
                _ if failed.is_none() => return result,
                _ => {
                    let counts = failed.into_iter().flat_map(|failed| failed.counts);
                    self.routes.failed_over(counts, result.is_ok());
                    return result;
                }
            }
        }
    }

    /// Before the first data: where another provider than the first may take less, compares what each takes.
    #[inline]
    pub(crate) fn settle<A: Streams + Served + ?Sized>(
        &self,
        kind: OperationKind,
        active: &mut Active<A>,
        bytes: usize,
    ) -> Option<Flight<'_>> {
        match active {
            Active::Initialized(chosen) if chosen.count.has_choice() => {
                self.settle_by_cost(kind, active, bytes)
            }
            _ => None,
        }
    }

    #[inline(never)]
    fn settle_by_cost<A: Streams + Served + ?Sized>(
        &self,
        kind: OperationKind,
        active: &mut Active<A>,
        bytes: usize,
    ) -> Option<Flight<'_>> {
        let Active::Initialized(chosen) = active else { return None };
        let (direction, key) = (kind.direction(), chosen.key().ok());
        let (mechanism, operation) = (chosen.mechanism, kind.flag());
        let job = Job { mechanism, operation, key_bits: key.map_or(0, |key| key_bits(key)), bytes };
        let (cheaper, flight) = self.routes.cheaper(chosen.count, job, |row| {
            let able = |able: &&A| key.is_none_or(|key| able.takes(key)) && able.gains(direction);
            A::of(row, kind).filter(able)
        });
        if let Some((count, algorithm)) = cheaper
            && key.is_none_or(|key| algorithm.refuse(direction, key, &chosen.params).is_ok())
        {
            (chosen.count, chosen.algorithm) = (count, algorithm);
        }
        flight
    }

    /// After a failure of the provider: gives the operation to the next one; without one, the error that the caller gets.
    #[cold]
    fn fail_over<A: Streams + Served + ?Sized>(
        &self,
        kind: OperationKind,
        active: &mut Active<A>,
        error: Error,
        failed: &mut Option<Box<Failed>>,
    ) -> Option<Error> {
        let direction = kind.direction();
        let failed = failed.get_or_insert_with(|| Box::new(Failed { error, counts: Vec::new() }));
        let Active::Initialized(chosen) = active else { return Some(failed.error) };
        if chosen.object.as_ref().is_some_and(|object| self.home_of(object).is_some()) {
            // The key is where it is.
            return Some(failed.error);
        }
        failed.counts.push(chosen.count);
        let tried = failed.counts.iter().map(|count| count.provider());
        let key = chosen.key().ok();
        let able = |able: &&A| {
            key.is_none_or(|key| {
                able.takes(key) && able.refuse(direction, key, &chosen.params).is_ok()
            })
        };
        let other =
            self.routes.another(chosen.mechanism, tried, |row| A::of(row, kind).filter(able));
        let Ok((count, algorithm)) = other else { return Some(failed.error) };
        (chosen.count, chosen.algorithm) = (count, algorithm);
        None
    }
}
