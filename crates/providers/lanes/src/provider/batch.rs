// SPDX-License-Identifier: Apache-2.0
//! What becomes of works that meet: once for all kernels. A work that a lane cannot take, and one that failed in its lane, is done
//! alone, as the plain provider does it.

use super::parts::{Size, WIDTH};
use crate::combiner::{Combiner, Failure, Kernel, Ticket};
use metaslot_ck::{Error, Result};
use metaslot_counters::Event;
use metaslot_spi::provider::{Pending, Postponed};
use smallvec::SmallVec;
use std::fmt::{self, Debug};

/// Requests that need no allocation.
const INLINE_REQUESTS: usize = 32;

/// What one kernel does with works of one kind.
pub(super) trait Batch: Sync + 'static {
    /// A request with all that it needs, and the buffer of its result.
    type Work<'a>: Send + 'a;

    /// The same, as the kernel takes it.
    type Request<'r>;

    /// Whether a lane does one work as well as anything else.
    const ONE_IN_A_LANE: bool = false;

    /// How many works make a batch.
    fn size(&self) -> Size;

    /// From how many works on a batch is hardly better for being larger.
    fn enough(&self) -> usize {
        self.size().lanes.min(WIDTH)
    }

    /// `None` for a work that is to be done alone.
    fn request<'r>(&self, work: &'r mut Self::Work<'_>) -> Option<Self::Request<'r>>;

    /// Computes so many requests side by side.
    fn compute(&self, requests: &mut [Self::Request<'_>]);

    /// Whether it went well in its lane.
    fn well(_: &Self::Request<'_>) -> bool {
        true
    }

    /// What that means; `None` where the work is to be done alone: what went wrong in a lane may go right there, and if not, its
    /// word counts.
    fn result(_: &Self::Work<'_>, well: bool) -> Option<Result<()>> {
        well.then_some(Ok(()))
    }

    /// Does one work without the kernel. By default nothing else does it.
    fn alone(&self, _: &mut Self::Work<'_>) -> Result<()> {
        Err(Error::DEVICE_ERROR)
    }

    /// Writes what came out. By default nothing does.
    fn answer(_: Self::Work<'_>, _: &mut [u8]) -> Result<usize> {
        Ok(0)
    }
}

/// A work in a combiner.
#[derive(Debug)]
pub(super) struct Job<W> {
    work: W,
    result: Result<()>,
}

impl<W> Job<W> {
    const fn new(work: W) -> Self {
        Self { work, result: Err(Error::DEVICE_ERROR) }
    }

    fn done(self) -> Result<W> {
        self.result.map(|()| self.work)
    }
}

/// A batch as the combiner's kernel.
pub(super) struct Lanes<B>(B);

impl<B: Batch> Kernel for Lanes<B> {
    type Job<'a> = Job<B::Work<'a>>;

    fn lanes(&self) -> usize {
        self.0.size().lanes
    }

    fn enough(&self) -> usize {
        self.0.enough()
    }

    fn break_even(&self) -> usize {
        self.0.size().jobs
    }

    fn crowd(&self) -> usize {
        self.0.size().threads
    }

    fn one(&self, job: &mut Self::Job<'_>) {
        if B::ONE_IN_A_LANE {
            self.side_by_side(&mut [job]);
        } else {
            job.result = self.0.alone(&mut job.work);
        }
    }

    fn many(&self, jobs: &mut [&mut Self::Job<'_>]) {
        metaslot_counters::event(Event::LaneBatch);
        metaslot_counters::events(Event::LaneBatched, jobs.len() as u64);
        self.side_by_side(jobs);
    }
}

impl<B: Batch> Lanes<B> {
    #[inline(never)]
    fn side_by_side(&self, jobs: &mut [&mut Job<B::Work<'_>>]) {
        let mut requests = SmallVec::<[B::Request<'_>; INLINE_REQUESTS]>::new();
        let mut taken = SmallVec::<[bool; INLINE_REQUESTS]>::new();
        for job in &mut *jobs {
            let request = self.0.request(&mut job.work);
            taken.push(request.is_some());
            requests.extend(request);
        }
        self.0.compute(&mut requests);
        let well: SmallVec<[bool; INLINE_REQUESTS]> = requests.iter().map(B::well).collect();
        drop(requests);
        let mut well = well.into_iter();
        for (job, taken) in jobs.iter_mut().zip(taken) {
            let well = if taken { well.next() } else { None };
            let result = well.and_then(|well| B::result(&job.work, well));
            job.result = result.unwrap_or_else(|| self.0.alone(&mut job.work));
        }
    }
}

/// Where the works for one kernel meet.
pub(super) struct Meeting<B: Batch>(Combiner<Lanes<B>>);

impl<B: Batch> Meeting<B> {
    /// For a static.
    pub(super) const fn new(batch: B) -> Self {
        Self(Combiner::new(Lanes(batch)))
    }

    /// Does a work, here or on another thread, alone or in a batch, and gives it back done.
    pub(super) fn run<'a>(&self, work: B::Work<'a>) -> Result<B::Work<'a>> {
        let mut job = Job::new(work);
        self.0.run(&mut job).map_err(no_result)?;
        job.done()
    }

    /// Does it when the caller comes for the result.
    pub(super) fn later(&'static self, work: B::Work<'static>) -> Postponed {
        Ok(Some(Box::new(Waiting(self.0.submit(Job::new(work))))))
    }
}

impl<B: Batch> Debug for Meeting<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Meeting").field(&self.0).finish()
    }
}

/// A work in a combiner, as the engine holds it.
struct Waiting<B: Batch>(Ticket<'static, Lanes<B>>);

impl<B: Batch> Debug for Waiting<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Waiting").field(&self.0).finish()
    }
}

impl<B: Batch> Pending for Waiting<B> {
    fn poll(&mut self) -> bool {
        self.0.poll()
    }

    fn finish(self: Box<Self>, out: &mut [u8]) -> Result<usize> {
        B::answer(self.0.complete().map_err(no_result)?.done()?, out)
    }
}

/// A panic of a kernel, or a parent's job in a forked child.
fn no_result(failure: Failure) -> Error {
    match failure {
        Failure::Panicked => Error::GENERAL_ERROR,
        Failure::Forked => Error::OPERATION_NOT_INITIALIZED,
    }
}

/// What becomes of works that meet in one batch.
#[cfg(test)]
pub(super) fn together<B: Batch>(batch: B, works: Vec<B::Work<'_>>) -> Vec<Result<B::Work<'_>>> {
    let mut jobs: Vec<_> = works.into_iter().map(Job::new).collect();
    Lanes(batch).many(&mut jobs.iter_mut().collect::<Vec<_>>());
    jobs.into_iter().map(Job::done).collect()
}
