// SPDX-License-Identifier: Apache-2.0
//! Threads on CPUs of their own. Left to itself a busy system may run two threads of some milliseconds
//! one after the other on the same CPU, and no scaling could be seen.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The CPUs that this thread may use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cpus(Option<CpuSet>);

impl Cpus {
    /// Those of now.
    pub(super) fn allowed() -> Self {
        Self(sched_getaffinity(None).ok())
    }

    /// Puts the calling thread on the CPU with this number among those that are allowed, from the
    /// beginning again where there are not so many. What the system refuses is left as it is: then the
    /// thread runs where it may.
    pub(super) fn pin(self, number: usize) {
        let Some(set) = self.0 else { return };
        let allowed: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect();
        let mut one = CpuSet::new();
        if let Some(cpu) = allowed.iter().cycle().nth(number) {
            one.set(*cpu);
            sched_setaffinity(None, &one).ok();
        }
    }

    /// Lets the calling thread use all of them again.
    pub(super) fn release(self) {
        if let Some(set) = self.0 {
            sched_setaffinity(None, &set).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_pinned_and_released() {
        let count = || sched_getaffinity(None).unwrap().count();
        let (cpus, before) = (Cpus::allowed(), count());
        for number in 0..5 {
            cpus.pin(number);
            assert_eq!(count(), 1);
        }
        cpus.release();
        assert_eq!(count(), before);
    }
}
