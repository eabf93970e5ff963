// SPDX-License-Identifier: Apache-2.0
//! Who does what a call does at once: the provider that takes least for so much data, and another one where it
//! fails.

use super::keyed::Served;
use super::{Active, Chosen, OperationKind, Streams};
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
            A::of(row, kind).filter(|able| able.gains(direction) && does(*able, kind, chosen))
        });
        if let Some((count, algorithm)) = cheaper {
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
        let failed = failed.get_or_insert_with(|| Box::new(Failed { error, counts: Vec::new() }));
        let Active::Initialized(chosen) = active else { return Some(failed.error) };
        failed.counts.push(chosen.count);
        self.another(kind, chosen, &failed.counts, failed.error).err()
    }

    /// Chooses the next provider that takes the key and the parameters, of those that were not tried.
    ///
    /// # Errors
    /// `error` where there is none.
    #[cold]
    pub(crate) fn another<A: Served + ?Sized>(
        &self,
        kind: OperationKind,
        chosen: &mut Chosen<A>,
        tried: &[Count],
        error: Error,
    ) -> Result<()> {
        if chosen.object.as_ref().is_some_and(|object| self.home_of(object).is_some()) {
            // The key is where it is.
            return Err(error);
        }
        let able = |row| A::of(row, kind).filter(|able| does(*able, kind, chosen));
        let tried = tried.iter().map(Count::provider);
        let other = self.routes.another(chosen.mechanism, tried, able).map_err(|_| error)?;
        (chosen.count, chosen.algorithm) = other;
        Ok(())
    }
}

/// Whether a provider takes the key and these parameters.
fn does<A: Served + ?Sized>(by: &A, kind: OperationKind, chosen: &Chosen<A>) -> bool {
    let refuse = |key| by.refuse(kind.direction(), key, &chosen.params);
    chosen.key().map_or(true, |key| by.takes(key) && refuse(key).is_ok())
}
