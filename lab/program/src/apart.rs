// SPDX-License-Identifier: Apache-2.0
//! How far two runs of the same code lie apart.
//!
//! Runs of one experiment are interleaved, so whatever the machine does falls on all arms alike. Two
//! experiments are not: buffers have grown otherwise, pages lie elsewhere, the host is busy. Therefore every
//! experiment ends with an A/A of its own: cells' first arms once more, started afresh. By what they differ
//! from the planned runs, an interval between two experiments is widened.

use crate::experiment::{Experiment, Sample};
use crate::statistics::median;
use std::collections::BTreeMap;

/// Logarithms of the cost started afresh over the planned runs', one for each cell, by experiment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Apart {
    runs: Vec<Vec<f64>>,
}

impl Apart {
    /// Of one experiment, by what a sample costs.
    pub(crate) fn of(experiment: &Experiment, cost: impl Fn(&Sample) -> f64) -> Self {
        let mut again: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
        for sample in &experiment.again {
            let cell = (sample.run.cell.as_str(), sample.run.arm.as_str());
            again.entry(cell).or_default().push(cost(sample));
        }
        let log = |((cell, arm), again): ((&str, &str), Vec<f64>)| {
            let planned: Vec<f64> = experiment.of(cell, arm).map(&cost).collect();
            (median(&again) / median(&planned)).ln()
        };
        let logs: Vec<f64> = again.into_iter().map(log).filter(|log| log.is_finite()).collect();
        Self { runs: Some(logs).filter(|logs| !logs.is_empty()).into_iter().collect() }
    }

    /// Of two experiments together.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.runs.extend(other.runs);
        self
    }

    /// The largest difference that was seen, on the scale of logarithms; `None` where nothing was measured.
    pub(crate) fn largest(&self) -> Option<f64> {
        self.runs.iter().flatten().map(|log| log.abs()).reduce(f64::max)
    }

    /// How far one more run of the same code may lie apart, on the scale of logarithms, 19 times in 20: the
    /// differences' size, times Student's quantile for so few of them. `None` where nothing was measured.
    ///
    /// Cells of one experiment are started afresh once, together: what that does to all of them alike was seen
    /// once for each experiment, however many cells there are, and what it does to each cell as often as there
    /// are cells. How few both are together say F. E. Satterthwaite, Biometrics Bulletin 2 (1946), and
    /// B. L. Welch, Biometrika 34 (1947).
    pub(crate) fn reach(&self) -> Option<f64> {
        let cells = self.runs.iter().flatten().count() as f64;
        let means = self.runs.iter().map(|logs| logs.iter().sum::<f64>() / logs.len() as f64);
        let alike = self.runs.iter().zip(means.clone());
        let alike: f64 = alike.map(|(logs, mean)| logs.len() as f64 * mean * mean).sum();
        let own = self
            .runs
            .iter()
            .zip(means)
            .flat_map(|(logs, mean)| logs.iter().map(move |log| (log - mean) * (log - mean)));
        let own: f64 = own.sum();
        let runs = self.runs.len() as f64;
        let few = alike * alike / runs + if own > 0.0 { own * own / (cells - runs) } else { 0.0 };
        let freedom = if few > 0.0 { (alike + own) * (alike + own) / few } else { cells };
        (cells > 0.0).then(|| student(freedom) * ((alike + own) / cells).sqrt())
    }
}

/// Student's t, 97.5 %, by degrees of freedom (W. S. Gosset, Biometrika 6, 1908); of others that of the next
/// smaller number in the table, which errs on the side of "unresolved".
fn student(freedom: f64) -> f64 {
    const TABLE: [(f64, f64); 13] = [
        (60.0, 2.0),
        (20.0, 2.09),
        (12.0, 2.18),
        (11.0, 2.20),
        (10.0, 2.23),
        (9.0, 2.26),
        (8.0, 2.31),
        (7.0, 2.36),
        (6.0, 2.45),
        (5.0, 2.57),
        (4.0, 2.78),
        (3.0, 3.18),
        (2.0, 4.30),
    ];
    // Two that are as few as they can be are not fewer for rounding.
    let row = TABLE.iter().find(|(least, _)| freedom + 1e-9 >= *least);
    row.map_or(12.71, |(_, quantile)| *quantile)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn apart(runs: &[&[f64]]) -> Apart {
        Apart { runs: runs.iter().map(|logs| logs.to_vec()).collect() }
    }

    #[test]
    fn few_differences_reach_further_than_many_of_the_same_size() {
        assert_eq!(apart(&[]).reach(), None);
        assert!((apart(&[&[0.1]]).reach().unwrap() - 1.271).abs() < 1e-9);
        // Of twelve cells that do not move together.
        let twelve = [0.1, -0.1].repeat(6);
        assert!((apart(&[&twelve]).reach().unwrap() - 0.220).abs() < 1e-9);
        // All cells of a run moved by one cause, which was seen once, and then twice.
        assert!((apart(&[&[0.1; 12]]).reach().unwrap() - 1.271).abs() < 1e-9);
        assert!((apart(&[&[0.1; 12], &[-0.1; 12]]).reach().unwrap() - 0.430).abs() < 1e-9);
        assert_eq!(apart(&[&[0.0; 12]]).reach(), Some(0.0));
        let both = apart(&[&[0.01]]).and(apart(&[&[-0.2]]));
        assert_eq!(both.largest(), Some(0.2));
    }

    /// About normal: the sum of twelve.
    fn noise(random: &mut Random) -> f64 {
        (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
    }

    #[test]
    fn two_runs_of_the_same_code_are_as_near_as_is_said_nineteen_times_in_twenty() {
        let mut random = Random::new(11);
        for (shared, own) in [(0.0, 1.0), (1.0, 0.0), (1.0, 1.0), (1.0, 3.0)] {
            let mut run = |cells: usize| -> Vec<f64> {
                let all = shared * noise(&mut random);
                (0..cells).map(|_| all + own * noise(&mut random)).collect()
            };
            let near = (0..4000).filter(|_| {
                let seen = Apart { runs: vec![run(12), run(12)] };
                run(1)[0].abs() <= seen.reach().unwrap()
            });
            let share = near.count() as f64 / 4000.0;
            assert!(share > 0.93, "{share} with {shared} shared and {own} of each cell's own");
        }
    }
}
