// SPDX-License-Identifier: Apache-2.0
//! What will be run, in which order, and when it is enough: decided before the first sample, so that
//! no sample can have a say in it.

use crate::random::Random;
use crate::{Failure, Result};
use serde::{Deserialize, Serialize};

/// Something that is varied.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// The values that it takes.
    pub levels: Vec<String>,
}

/// When it is enough.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// After so many pairs of each cell, whatever they say.
    Pairs(usize),
}

/// One run: one arm of one pair of one cell.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Run {
    /// A level of each factor: `name=level`, with blanks between.
    pub cell: String,
    /// The number of the pair, from 0.
    pub repetition: usize,
    /// Which arm.
    pub arm: String,
}

/// `plan.json`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Plan {
    /// What is varied; cells are all combinations.
    pub factors: Vec<Factor>,
    /// What is compared: A, judged, and B, which it is compared with.
    pub arms: [String; 2],
    /// When it is enough.
    pub stop: Stop,
    /// The seed of the order.
    pub seed: u64,
    /// Every run, in its order.
    pub order: Vec<Run>,
}

impl Plan {
    /// Pairs, interleaved: each repetition visits every cell once, in random order, and in each a
    /// coin says which arm goes first. So whatever the machine does meanwhile falls on all cells and
    /// on both arms alike.
    ///
    /// # Errors
    /// There is nothing to compare: no pairs, no level of a factor, or two arms of one name.
    pub fn interleaved(
        factors: Vec<Factor>,
        arms: [&str; 2],
        pairs: usize,
        seed: u64,
    ) -> Result<Self> {
        let mut cells = cells(&factors);
        if pairs == 0 || cells.is_empty() || arms[0] == arms[1] {
            return Err(Failure::new("a plan needs pairs, levels, and two arms with names"));
        }
        let (mut random, mut order) = (Random::new(seed), Vec::new());
        for repetition in 0..pairs {
            random.shuffle(&mut cells);
            for cell in &cells {
                let first = usize::from(random.below(2) == 1);
                for arm in [arms[first], arms[1 - first]] {
                    order.push(Run { cell: cell.clone(), repetition, arm: arm.to_owned() });
                }
            }
        }
        let arms = arms.map(str::to_owned);
        Ok(Self { factors, arms, stop: Stop::Pairs(pairs), seed, order })
    }

    /// All cells, in the order of the factors.
    #[must_use]
    pub fn cells(&self) -> Vec<String> {
        cells(&self.factors)
    }
}

fn cells(factors: &[Factor]) -> Vec<String> {
    factors.iter().fold(vec![String::new()], |cells, factor| {
        let with = |cell: &String, level: &String| {
            let blank = if cell.is_empty() { "" } else { " " };
            format!("{cell}{blank}{}={level}", factor.name)
        };
        let levels = |cell: &String| -> Vec<String> {
            factor.levels.iter().map(|level| with(cell, level)).collect()
        };
        cells.iter().flat_map(levels).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn factors() -> Vec<Factor> {
        let factor = |name: &str, levels: &[&str]| Factor {
            name: name.to_owned(),
            levels: levels.iter().map(|&level| level.to_owned()).collect(),
        };
        vec![factor("size", &["1", "2", "3"]), factor("page", &["4K", "2M"])]
    }

    #[test]
    fn every_arm_of_every_cell_runs_once_a_repetition() {
        let plan = Plan::interleaved(factors(), ["a", "b"], 5, 1).unwrap();
        assert_eq!(plan.cells().len(), 6);
        assert_eq!(plan.cells()[1], "size=1 page=2M");
        let mut seen = BTreeMap::new();
        for run in &plan.order {
            *seen.entry((&run.cell, run.repetition, &run.arm)).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 6 * 5 * 2);
        assert!(seen.values().all(|times| *times == 1));
    }

    #[test]
    fn the_arms_of_a_pair_run_one_after_the_other_in_either_order() {
        let plan = Plan::interleaved(factors(), ["a", "b"], 50, 2).unwrap();
        let mut first = BTreeMap::new();
        for pair in plan.order.chunks(2) {
            assert_eq!((&pair[0].cell, pair[0].repetition), (&pair[1].cell, pair[1].repetition));
            *first.entry(pair[0].arm.as_str()).or_insert(0) += 1;
        }
        assert!(first["a"] > 100 && first["b"] > 100, "{first:?}");
    }

    #[test]
    fn a_seed_repeats_the_order_and_another_one_does_not() {
        let plan = |seed| Plan::interleaved(factors(), ["a", "b"], 5, seed).unwrap().order;
        assert_eq!(plan(3), plan(3));
        assert_ne!(plan(3), plan(4));
    }

    #[test]
    fn a_plan_of_nothing_is_refused() {
        assert!(Plan::interleaved(factors(), ["a", "b"], 0, 1).is_err());
        assert!(Plan::interleaved(factors(), ["a", "a"], 1, 1).is_err());
        let empty = vec![Factor { name: "size".to_owned(), levels: Vec::new() }];
        assert!(Plan::interleaved(empty, ["a", "b"], 1, 1).is_err());
    }
}
