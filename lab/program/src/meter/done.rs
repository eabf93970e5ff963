// SPDX-License-Identifier: Apache-2.0
//! Work of another process, which has timed it itself.

use super::CONTAMINATED;
use crate::experiment::Measured;
use serde::{Deserialize, Serialize};

/// What a stretch of work took, all threads together; the wall time is that of the longest.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Done {
    pub(crate) operations: f64,
    pub(crate) cpu_ns: f64,
    pub(crate) wall_ns: f64,
}

impl Done {
    /// As a sample, from a window on this process: what this process used meanwhile is the lab's own
    /// work, and what the other one used is no stranger's.
    pub(crate) fn sample(&self, mut measured: Measured) -> Measured {
        measured.counters.insert("lab_ns".to_owned(), measured.cpu_ns);
        besides(&mut measured, self.cpu_ns);
        // Without the way there and back.
        (measured.cpu_ns, measured.wall_ns) = (self.cpu_ns, self.wall_ns);
        measured
    }
}

/// So much of what others used was no stranger's.
pub(crate) fn besides(measured: &mut Measured, cpu_ns: f64) {
    if let Some(foreign) = &mut measured.foreign_cpu {
        *foreign = (*foreign - cpu_ns / measured.wall_ns).max(0.0);
        if *foreign <= CONTAMINATED {
            measured.flags.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_workers_time_is_the_samples_and_no_strangers() {
        let measured = |foreign| Measured {
            window_ns: [0, 1000],
            work: 5.0,
            cpu_ns: 30.0,
            wall_ns: 1000.0,
            foreign_cpu: Some(foreign),
            counters: BTreeMap::new(),
            flags: vec!["contaminated".to_owned()],
        };
        let done = Done { operations: 5.0, cpu_ns: 900.0, wall_ns: 950.0 };
        let quiet = done.sample(measured(1.0));
        assert_eq!((quiet.cpu_ns, quiet.wall_ns, quiet.counters["lab_ns"]), (900.0, 950.0, 30.0));
        assert!(quiet.flags.is_empty() && quiet.foreign_cpu.unwrap() < 0.11);
        assert_eq!(done.sample(measured(1.5)).flags, ["contaminated"]);
    }
}
