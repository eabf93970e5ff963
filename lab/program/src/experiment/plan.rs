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

impl Factor {
    /// A factor with these levels.
    pub(crate) fn new(name: &str, levels: impl IntoIterator<Item: ToString>) -> Self {
        let levels = levels.into_iter().map(|level| level.to_string()).collect();
        Self { name: name.to_owned(), levels }
    }
}

/// A cell that is not run, or one arm of it, and why.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Skipped {
    /// The cell.
    pub cell: String,
    /// The arm; absent: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<String>,
    /// What is missing, or why it makes no sense.
    pub why: String,
}

/// When it is enough.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// After so many repetitions of each cell, whatever they say; with two arms, after so many pairs.
    Pairs(usize),
}

/// One run: one arm of one repetition of one cell.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Run {
    /// A level of each factor: `name=level`, with blanks between.
    pub cell: String,
    /// The number of the repetition, from 0.
    pub repetition: usize,
    /// Which arm.
    pub arm: String,
}

impl Run {
    /// The cell's level of a factor.
    #[must_use]
    pub fn level(&self, factor: &str) -> Option<&str> {
        level(&self.cell, factor)
    }
}

/// A cell's level of a factor.
#[must_use]
pub fn level<'a>(cell: &'a str, factor: &str) -> Option<&'a str> {
    let mut levels = cell.split(' ').filter_map(|level| level.split_once('='));
    levels.find(|(name, _)| *name == factor).map(|(_, level)| level)
}

/// `plan.json`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Plan {
    /// What is varied; cells are all combinations.
    pub factors: Vec<Factor>,
    /// What is compared. Of two: A, which is judged, and B, which it is compared with.
    pub arms: Vec<String>,
    /// Cells that are not run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<Skipped>,
    /// When it is enough.
    pub stop: Stop,
    /// The seed of the order.
    pub seed: u64,
    /// Every run, in its order.
    pub order: Vec<Run>,
}

impl Plan {
    /// Interleaved: each repetition visits every cell once, in random order, and in each all arms, in
    /// random order as well. So whatever the machine does meanwhile falls on all cells and on all arms
    /// alike.
    ///
    /// # Errors
    /// There is nothing to run: no repetitions, no level of a factor, no arm, or two of one name.
    pub fn interleaved(
        factors: Vec<Factor>,
        arms: &[&str],
        pairs: usize,
        seed: u64,
    ) -> Result<Self> {
        Self::without(Vec::new(), factors, arms, pairs, seed)
    }

    /// The same without some cells.
    ///
    /// # Errors
    /// The same; and that no cell is left.
    pub fn without(
        skipped: Vec<Skipped>,
        factors: Vec<Factor>,
        arms: &[&str],
        pairs: usize,
        seed: u64,
    ) -> Result<Self> {
        let arms: Vec<String> = arms.iter().map(|&arm| arm.to_owned()).collect();
        let twice = (1..arms.len()).any(|at| arms[..at].contains(&arms[at]));
        let mut plan =
            Self { factors, arms, skipped, stop: Stop::Pairs(pairs), seed, order: Vec::new() };
        let mut cells = plan.cells();
        if pairs == 0 || cells.is_empty() || plan.arms.is_empty() || twice {
            return Err(Failure::new(
                "a plan needs repetitions, levels, and arms with names of their own",
            ));
        }
        let mut random = Random::new(seed);
        for repetition in 0..pairs {
            random.shuffle(&mut cells);
            for cell in &cells {
                let mut arms = plan.arms.clone();
                arms.retain(|arm| plan.runs(cell, arm));
                random.shuffle(&mut arms);
                plan.order.extend(arms.into_iter().map(|arm| Run {
                    cell: cell.clone(),
                    repetition,
                    arm,
                }));
            }
        }
        Ok(plan)
    }

    /// The levels of a factor; none where there is no such factor.
    #[must_use]
    pub fn levels(&self, factor: &str) -> &[String] {
        self.factors.iter().find(|other| other.name == factor).map_or(&[], |other| &other.levels)
    }

    /// A cell's name without the levels that all cells have in common, for a heading; what else is in the
    /// name stays.
    #[must_use]
    pub fn short(&self, name: &str) -> String {
        let common = |word: &&str| {
            let level = word.split_once('=');
            level.is_some_and(|(factor, _)| self.levels(factor).len() == 1)
        };
        let words: Vec<&str> = name.split(' ').filter(|word| !common(word)).collect();
        if words.is_empty() { name.to_owned() } else { words.join(" ") }
    }

    /// How often each cell is run.
    #[must_use]
    pub const fn repetitions(&self) -> usize {
        let Stop::Pairs(repetitions) = self.stop;
        repetitions
    }

    /// All cells that are run, in the order of the factors.
    #[must_use]
    pub fn cells(&self) -> Vec<String> {
        let mut cells = cells(&self.factors);
        let whole = |cell: &String| {
            self.skipped.iter().any(|skipped| skipped.arm.is_none() && skipped.cell == *cell)
        };
        cells.retain(|cell| !whole(cell));
        cells
    }

    /// Whether this arm of a cell is run, which is itself not skipped.
    fn runs(&self, cell: &str, arm: &str) -> bool {
        let skips = |skipped: &Skipped| skipped.cell == cell && skipped.arm.as_deref() == Some(arm);
        !self.skipped.iter().any(skips)
    }
}

/// All combinations of levels.
pub(crate) fn cells(factors: &[Factor]) -> Vec<String> {
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
        let plan = Plan::interleaved(factors(), &["a", "b"], 5, 1).unwrap();
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
        let plan = Plan::interleaved(factors(), &["a", "b"], 50, 2).unwrap();
        let mut first = BTreeMap::new();
        for pair in plan.order.chunks(2) {
            assert_eq!((&pair[0].cell, pair[0].repetition), (&pair[1].cell, pair[1].repetition));
            *first.entry(pair[0].arm.as_str()).or_insert(0) += 1;
        }
        assert!(first["a"] > 100 && first["b"] > 100, "{first:?}");
    }

    #[test]
    fn a_short_name_has_only_what_is_varied() {
        let mut factors = factors();
        factors[1].levels.truncate(1);
        let plan = Plan::interleaved(factors, &["a", "b"], 1, 1).unwrap();
        assert_eq!(plan.short("size=1 page=4K a"), "size=1 a");
        assert_eq!(plan.short("page=4K"), "page=4K");
    }

    #[test]
    fn a_seed_repeats_the_order_and_another_one_does_not() {
        let plan = |seed| Plan::interleaved(factors(), &["a", "b"], 5, seed).unwrap().order;
        assert_eq!(plan(3), plan(3));
        assert_ne!(plan(3), plan(4));
    }

    #[test]
    fn more_arms_than_two_take_every_order_and_skipped_cells_do_not_run() {
        let skip = |cell: &str, arm: Option<&str>| Skipped {
            cell: cell.to_owned(),
            arm: arm.map(str::to_owned),
            why: "no".to_owned(),
        };
        let skipped = vec![skip("size=2 page=2M", None)];
        let plan = Plan::without(skipped, factors(), &["a", "b", "c"], 40, 3).unwrap();
        assert_eq!((plan.cells().len(), plan.order.len()), (5, 5 * 40 * 3));
        assert!(plan.order.iter().all(|run| run.cell != "size=2 page=2M"));
        let orders =
            plan.order.chunks(3).map(|runs| runs.iter().map(|run| run.arm.as_str()).collect());
        assert_eq!(orders.collect::<std::collections::BTreeSet<String>>().len(), 6);
        assert_eq!(plan.order[0].level("page"), Some(&plan.order[0].cell[12..]));
        assert_eq!(plan.order[0].level("pages"), None);
        let skipped = vec![skip("size=1 page=4K", Some("b"))];
        let plan = Plan::without(skipped, factors(), &["a", "b"], 3, 3).unwrap();
        assert_eq!((plan.cells().len(), plan.order.len()), (6, (6 * 2 - 1) * 3));
        assert!(!plan.order.iter().any(|run| run.cell == "size=1 page=4K" && run.arm == "b"));
    }

    #[test]
    fn a_plan_of_nothing_is_refused() {
        assert!(Plan::interleaved(factors(), &[], 1, 1).is_err());
        assert!(Plan::interleaved(factors(), &["a", "b"], 0, 1).is_err());
        assert!(Plan::interleaved(factors(), &["a", "a"], 1, 1).is_err());
        let empty = vec![Factor { name: "size".to_owned(), levels: Vec::new() }];
        assert!(Plan::interleaved(empty, &["a", "b"], 1, 1).is_err());
    }
}
