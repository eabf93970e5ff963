// SPDX-License-Identifier: Apache-2.0
//! How far the reader's processor was. A host moves the processors of a virtual machine: now they are two
//! threads of one core, now they share a cache, now they share nothing; and copies for another core
//! differ by more than all kernels do. So their samples are told apart by the way of a cache line.

use crate::experiment::{Experiment, Sample};

/// Values that differ by more are not the same distance seen twice.
const NEAR: f64 = 1.1;
/// A value with fewer like it is an accident.
const RARE: f64 = 0.1;

/// Distances that are one, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Distance {
    low: f64,
    high: f64,
}

impl Distance {
    /// Whether a sample was taken at this distance.
    pub(super) fn holds(self, sample: &Sample) -> bool {
        of(sample).is_some_and(|distance| (self.low..=self.high).contains(&distance))
    }

    /// What it is called: the middle, in nanoseconds.
    pub(super) fn words(self) -> String {
        format!("{:.0} ns", (self.low * self.high).sqrt())
    }
}

/// A cache line's way to the reader and back; absent where no other thread read.
fn of(sample: &Sample) -> Option<f64> {
    sample.measured.counters.get("latency_line_ns").copied().filter(|line| *line > 0.0)
}

/// All distances of an experiment, the shortest first.
pub(super) fn distances(experiment: &Experiment) -> Vec<Distance> {
    apart(experiment.samples.iter().filter_map(of).collect())
}

/// Groups of values that are often, with gaps between them.
fn apart(mut values: Vec<f64>) -> Vec<Distance> {
    values.sort_by(f64::total_cmp);
    let below = |limit: f64| values.partition_point(|value| *value < limit);
    let alike = |value: f64| (below(value * NEAR) - below(value / NEAR)) as f64;
    let rare = RARE * values.len() as f64;
    let often: Vec<f64> = values.iter().copied().filter(|value| alike(*value) >= rare).collect();
    let groups = often.chunk_by(|one, next| next / one <= NEAR * NEAR);
    groups
        .filter_map(|group| Some(Distance { low: *group.first()?, high: *group.last()? }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_told_apart_by_gaps_and_accidents_left_out() {
        let near = (0..50).map(|at| 60.0 + f64::from(at % 10));
        let far = (0..40).map(|at| 400.0 + f64::from(at) * 2.0);
        let found = apart(far.chain(near).chain([50.0, 85.0, 120.0, 9000.0]).collect());
        assert_eq!(
            found,
            [Distance { low: 60.0, high: 69.0 }, Distance { low: 400.0, high: 478.0 }]
        );
        assert_eq!(found[0].words(), "64 ns");
        assert!(apart(Vec::new()).is_empty());
    }
}
