// SPDX-License-Identifier: Apache-2.0
//! How far two runs of the same code lie apart.
//!
//! Runs of one experiment are interleaved, so whatever the machine does falls on all arms alike. Two
//! experiments are not: buffers have grown otherwise, pages lie elsewhere, the host is busy. Therefore every
//! experiment ends with an A/A of its own: cells' first arms once more, started afresh. By what they differ
//! from the planned runs, an interval between two experiments is widened.

use crate::experiment::{Experiment, Sample};
use crate::statistics::median;

/// Logarithms of the cost started afresh over the planned runs', one for each cell.
#[derive(Clone, Debug, Default)]
pub(crate) struct Apart {
    logs: Vec<f64>,
}

impl Apart {
    /// Of one experiment, by what a sample costs.
    pub(crate) fn of(experiment: &Experiment, cost: impl Fn(&Sample) -> f64) -> Self {
        let mut cells: Vec<(&str, &str)> = Vec::new();
        for sample in &experiment.again {
            let cell = (sample.run.cell.as_str(), sample.run.arm.as_str());
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        }
        let log = |(cell, arm): (&str, &str)| {
            let planned: Vec<f64> = experiment.of(cell, arm).map(&cost).collect();
            let again = experiment.again.iter();
            let again = again.filter(|sample| {
                (sample.run.cell.as_str(), sample.run.arm.as_str()) == (cell, arm)
            });
            (median(&again.map(&cost).collect::<Vec<_>>()) / median(&planned)).ln()
        };
        Self { logs: cells.into_iter().map(log).filter(|log| log.is_finite()).collect() }
    }

    /// Of two experiments together.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.logs.extend(other.logs);
        self
    }

    /// The largest difference that was seen, on the scale of logarithms; `None` where nothing was measured.
    pub(crate) fn largest(&self) -> Option<f64> {
        self.logs.iter().map(|log| log.abs()).reduce(f64::max)
    }

    /// How far one more run of the same code may lie apart, on the scale of logarithms, 19 times in 20: the
    /// differences' size, times Student's quantile for so few of them. `None` where nothing was measured.
    pub(crate) fn reach(&self) -> Option<f64> {
        let squares: f64 = self.logs.iter().map(|log| log * log).sum();
        let count = self.logs.len();
        (count > 0).then(|| student(count) * (squares / count as f64).sqrt())
    }
}

/// Student's t, 97.5 %, by degrees of freedom (W. S. Gosset, Biometrika 6, 1908); of more than twelve that
/// of the next smaller number in the table, which errs on the side of "unresolved".
fn student(freedom: usize) -> f64 {
    const FEW: [f64; 12] =
        [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18];
    match freedom {
        1..=12 => FEW[freedom - 1],
        13..20 => 2.18,
        20..60 => 2.09,
        _ => 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_differences_reach_further_than_many_of_the_same_size() {
        let reach = |count: usize| Apart { logs: vec![0.1; count] }.reach();
        assert_eq!(reach(0), None);
        assert!((reach(1).unwrap() - 1.271).abs() < 1e-9);
        assert!((reach(12).unwrap() - 0.218).abs() < 1e-9);
        let reaches: Vec<f64> = (1..70).map(|count| reach(count).unwrap()).collect();
        assert!(reaches.windows(2).all(|pair| pair[1] <= pair[0] + 1e-9));
        let both = Apart { logs: vec![0.01] }.and(Apart { logs: vec![-0.2] });
        assert_eq!(both.largest(), Some(0.2));
    }
}
