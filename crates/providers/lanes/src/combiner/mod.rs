// SPDX-License-Identifier: Apache-2.0
//! Threads of one process that come with independent jobs meet here, and one of them computes a whole batch.
//! There are no threads of its own and no timers: the leader is one of the callers.
//!
//! [`Combiner::run`] is the door for threads that wait. With few of them inside, each computes its own job at once,
//! for the price of three atomic additions (8 ns). From [`Kernel::crowd`] threads per core on, they queue their
//! jobs and sleep, except at most one leader per core: it takes the oldest jobs with its own, computes one batch,
//! wakes each owner alone and leaves; one of those that still wait is made the next leader. A leader that finds fewer
//! jobs than make a batch computes only its own.
//!
//! While a batch would have less than [`Kernel::enough`], threads go first that were woken with their results and have no core yet: they
//! can run, and most come back with more. Without this rule the thread that leads would always be the first to come
//! back, and compute alone while those that it just woke wait for its core. It delays no thread by more than these threads'
//! turn on the processor, which is long only where some of them have a much lower priority than others.
//!
//! Jobs are taken oldest first and leadership goes to the oldest waiter: only a leader's own job overtakes others.
//!
//! Threads that serve other processes ([`Company`]) sleep between two requests, outside. Where so many of them are that they may be a
//! crowd, one that would compute alone, or lead less than is enough, first lets those go that have a request and no core; less often
//! where that was in vain.
//!
//! [`Combiner::submit`] is the door for a thread with many jobs in flight: it queues them and gets [`Ticket`]s;
//! a thread that comes back for one leads the batch, which costs no switch of threads.
//!
//! **Panics.** When [`Kernel::many`] panics the leader computes each job of the batch with [`Kernel::one`]; a job
//! that panics there is answered [`Failure::Panicked`] to its own owner. No panic leaves the combiner.
//!
//! **Forks.** The combiner's numbers and its lock are in memory that a forked child finds zero, so the child finds an
//! idle combiner without jobs, no matter what the parent's threads were doing. The parent's tickets are answered
//! [`Failure::Forked`] there if they were not computed. A child must not return into a call under which it was forked.
//!
//! **Ends of threads.** A thread does not leave [`Combiner::run`] while another thread has a pointer to its job, and
//! sleeps in no call at which threads are cancelled (`pthread_cancel`). Kernels must not make such calls either, nor call the combiner.
//!
//! Waiting threads do not spin first: they wait only when there are more threads than cores, so they would spin on a
//! core that a leader needs. All threads write to one cache line of the combiner; on a machine with dozens of cores
//! several combiners serve a kernel of a few microseconds better than one.

mod company;
mod core;
mod kernel;
mod platform;
mod queue;
mod state;
mod ticket;

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::Ordering;

pub use self::company::Company;
pub use self::kernel::{Failure, Kernel, Statistics};

use self::core::Core;
use self::platform::Native;
use self::ticket::CoreTicket;

/// The meeting place of one kernel's jobs; see the module.
pub struct Combiner<K: Kernel> {
    core: Core<K, Native>,
    eager: bool,
}

impl<K: Kernel> Combiner<K> {
    /// For a static. Nothing is allocated before the first use.
    pub const fn new(kernel: K) -> Self {
        Self { core: Core::new(kernel, Native::new()), eager: false }
    }

    /// As [`Self::new`], but a submission that makes a batch full computes it.
    pub const fn eager(kernel: K) -> Self {
        Self { core: Core::new(kernel, Native::new()), eager: true }
    }

    /// The kernel.
    pub const fn kernel(&self) -> &K {
        &self.core.kernel
    }

    /// How many threads may lead at the same time; 0, as at first, for one per core.
    pub fn set_leaders(&self, leaders: usize) {
        self.core.leaders.store(leaders, Ordering::Relaxed);
    }

    /// Computes the job, here or on another thread, alone or in a batch.
    ///
    /// # Errors
    /// [`Failure::Panicked`] when the kernel panicked over this job.
    #[inline]
    pub fn run(&self, job: &mut K::Job<'_>) -> Result<(), Failure> {
        self.core.run(job)
    }

    /// Queues a job for the next leader, or for the first thread that comes back for a ticket.
    pub fn submit(&self, job: K::Job<'static>) -> Ticket<'_, K>
    where
        K::Job<'static>: 'static,
    {
        Ticket(CoreTicket::submit(&self.core, job, self.eager))
    }

    /// What happened so far.
    pub fn statistics(&self) -> Statistics {
        self.core.statistics()
    }

    /// To be called in a forked child before its first use of the combiner, where Linux is older than 4.14. Harmless
    /// elsewhere, as long as the child has only this thread.
    pub fn forked(&self) {
        self.core.platform.forget();
    }
}

impl<K: Kernel> fmt::Debug for Combiner<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Combiner").field("statistics", &self.statistics()).finish_non_exhaustive()
    }
}

/// A job that was submitted. Dropping it cancels the job, or waits until its batch is over.
#[must_use = "a ticket that is dropped cancels its job"]
pub struct Ticket<'a, K: Kernel>(CoreTicket<'a, K, Native>);

impl<K: Kernel> Ticket<'_, K> {
    /// Whether the job has its answer, so that [`Self::complete`] returns at once. Leads when no thread has the job yet
    /// and there is room; false when it is in another thread's batch, or when as many threads lead as may.
    pub fn poll(&mut self) -> bool {
        self.0.poll()
    }

    /// The job with its result, as soon as there is one; leads when no thread has the job yet and there is room.
    ///
    /// # Errors
    /// Why there is no result.
    pub fn complete(self) -> Result<K::Job<'static>, Failure> {
        self.0.complete()
    }
}

impl<K: Kernel> fmt::Debug for Ticket<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").finish_non_exhaustive()
    }
}
