// SPDX-License-Identifier: Apache-2.0
//! What a combiner asks of a kernel, and what it answers.

use std::fmt;

/// What computes the jobs of one combiner.
pub trait Kernel: Sync {
    /// One request with all that it needs and borrows, and the place of its result. A kernel takes jobs of any lifetime, so that it
    /// keeps nothing of what one borrows.
    type Job<'a>: Send;

    /// How many jobs a batch has at most.
    fn lanes(&self) -> usize;

    /// From how many jobs on a batch is hardly better for being larger: so many do not wait for more.
    fn enough(&self) -> usize {
        self.lanes()
    }

    /// From how many jobs on a batch takes less processor time than one job after the other; `usize::MAX` where there are no
    /// batches.
    fn break_even(&self) -> usize;

    /// From how many threads per core on it pays to wait: the break-even with about 6 µs more for each job but the leader's, which
    /// is what two switches of threads cost.
    fn crowd(&self) -> usize {
        self.break_even()
    }

    /// Computes one job.
    fn one(&self, job: &mut Self::Job<'_>);

    /// Computes 2 to [`Self::lanes`] jobs. When it panics, each job is computed again by [`Self::one`], in the
    /// state in which it was left.
    fn many(&self, jobs: &mut [&mut Self::Job<'_>]);
}

/// Why a job has no result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Failure {
    /// Its computation panicked.
    Panicked,
    /// It was submitted before a fork, and this is the child.
    Forked,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Panicked => "the computation panicked",
            Self::Forked => "the job belongs to the parent process",
        })
    }
}

impl std::error::Error for Failure {}

/// What a combiner did since the process began.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Statistics {
    /// Jobs computed one at a time.
    pub singles: u64,
    /// Batches computed.
    pub batches: u64,
    /// Jobs in them.
    pub batched: u64,
    /// Times that leadership was given to a thread that waited.
    pub hand_overs: u64,
    /// Times that a thread waited for its result.
    pub waits: u64,
    /// Times that a thread let others go first.
    pub asides: u64,
}
