// SPDX-License-Identifier: Apache-2.0
//! Who does what a call does at once: the provider that takes least for so much data, and another one where it
//! fails.

use super::keyed::Served;
use super::{Active, OperationKind, Streams};
use crate::engine::Engine;
use crate::output::Written;
use metaslot_ck::{Error, Result};
use metaslot_counters::{Event, Watch};
use metaslot_router::{Flight, Job, key_bits};

type Once<'a, A> = &'a mut dyn FnMut(&mut Active<A>) -> Result<Written>;

impl Engine {
    /// Runs `once`, which does the whole operation on so many bytes and may be run again where it fails.
    #[inline]
    pub(crate) fn serve<A: Streams + Served + ?Sized>(
        &self,
        kind: OperationKind,
        active: &mut Active<A>,
        bytes: usize,
        mut once: impl FnMut(&mut Active<A>) -> Result<Written>,
    ) -> Result<Written> {
        let _flight = self.settle(kind, active, bytes);
        match once(active) {
            Err(error) if is_providers(error) => self.by_another(kind, active, error, &mut once),
            result => result,
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

    /// After a failure of the provider: each of the others, until one does it or says that the caller is wrong.
    #[cold]
    fn by_another<A: Streams + Served + ?Sized>(
        &self,
        kind: OperationKind,
        active: &mut Active<A>,
        error: Error,
        once: Once<'_, A>,
    ) -> Result<Written> {
        let (direction, mut failed) = (kind.direction(), Vec::new());
        loop {
            let Active::Initialized(chosen) = active else { return Err(error) };
            if chosen.object.as_ref().is_some_and(|object| self.home_of(object).is_some()) {
                // The key is where it is.
                return Err(error);
            }
            let key = chosen.key().ok();
            failed.push(chosen.count);
            let tried = failed.iter().map(|count| count.provider());
            let able = |able: &&A| {
                key.is_none_or(|key| {
                    able.takes(key) && able.refuse(direction, key, &chosen.params).is_ok()
                })
            };
            let other =
                self.routes.another(chosen.mechanism, tried, |row| A::of(row, kind).filter(able));
            let Ok((count, algorithm)) = other else { return Err(error) };
            (chosen.count, chosen.algorithm) = (count, algorithm);
            let result = once(active);
            if !result.is_err_and(is_providers) {
                for count in failed {
                    self.routes.failed(count.provider());
                    count.done(0, false, Watch::OFF);
                }
                metaslot_counters::event(Event::Fallback);
                return result;
            }
        }
    }
}

/// Whether an error says that a provider failed, and not that its caller is wrong.
const fn is_providers(error: Error) -> bool {
    matches!(
        error,
        Error::DEVICE_ERROR
            | Error::DEVICE_MEMORY
            | Error::DEVICE_REMOVED
            | Error::FUNCTION_FAILED
            | Error::GENERAL_ERROR
            | Error::TOKEN_NOT_PRESENT
    )
}
