// SPDX-License-Identifier: Apache-2.0
//! Many cells at once: among a hundred comparisons of nothing with nothing, five would differ.
//!
//! S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
//! Statistics 6 (1979): the chance of even one false claim in a family stays below the level,
//! whatever the cells have to do with each other.

use super::{Comparison, Margin, Verdict};
use crate::ranks::CONFIDENCE;

/// The p-values adjusted for being a family, in the order given: a claim holds in the family when its
/// adjusted value is at most the level.
#[must_use]
pub fn holm(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|left, right| values[*left].total_cmp(&values[*right]));
    let mut adjusted = vec![1.0; values.len()];
    let mut highest = 0.0_f64;
    for (place, at) in order.iter().enumerate() {
        highest = highest.max(values[*at] * (values.len() - place) as f64).min(1.0);
        adjusted[*at] = highest;
    }
    adjusted
}

/// The cells of one experiment, each compared.
#[derive(Clone, Debug)]
pub struct Family {
    cells: Vec<(String, Comparison)>,
    margin: Margin,
}

/// In how many cells what holds, with all cells in view.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Headline {
    /// Cells in the family.
    pub cells: usize,
    /// Where A costs less.
    pub faster: usize,
    /// Where A costs more.
    pub slower: usize,
    /// Where the arms are alike.
    pub same: usize,
}

impl Family {
    /// Cells by name, judged with one margin.
    #[must_use]
    pub const fn new(cells: Vec<(String, Comparison)>, margin: Margin) -> Self {
        Self { cells, margin }
    }

    /// The cells and each one's own verdict, by its own interval.
    pub fn cells(&self) -> impl Iterator<Item = (&str, &Comparison, Verdict)> {
        self.cells
            .iter()
            .map(|(name, comparison)| (name.as_str(), comparison, comparison.verdict(self.margin)))
    }

    /// The verdicts that hold with all cells in view, in the cells' order: what every table, mark and
    /// headline shows. Differences are one family of claims and equalities another: each has its own
    /// chance of 5 % to hold a false one.
    #[must_use]
    pub fn verdicts(&self) -> Vec<Verdict> {
        let adjusted = |p: fn(&Comparison, Margin) -> f64| {
            holm(&self.cells.iter().map(|(_, cell)| p(cell, self.margin)).collect::<Vec<_>>())
        };
        let different = adjusted(Comparison::p_different);
        let same = adjusted(Comparison::p_same);
        let adjusted = different.into_iter().zip(same);
        let held =
            |((_, comparison, verdict), (different, same)): ((_, &Comparison, Verdict), _)| {
                match verdict {
                    Verdict::Faster | Verdict::Slower if different > LEVEL => {
                        self.open(comparison, comparison.p_different(self.margin))
                    }
                    Verdict::Same if same > LEVEL => {
                        self.open(comparison, comparison.p_same(self.margin))
                    }
                    verdict => verdict,
                }
            };
        self.cells().zip(adjusted).map(held).collect()
    }

    /// A cell that is clear by itself and not in this family. The chance of a false claim falls by about
    /// the same factor with each pair.
    fn open(&self, comparison: &Comparison, chance: f64) -> Verdict {
        let (pairs, cells) = (comparison.pairs(), self.cells.len());
        let wanted = (LEVEL / cells as f64).ln() / chance.max(f64::MIN_POSITIVE).ln();
        let more = (fewest(cells)..=MAX_ADVICE)
            .find(|count| *count > pairs && (*count as f64 - 1.0) >= (pairs as f64 - 1.0) * wanted);
        let more = more.map(|count| count - pairs).filter(|_| !comparison.is_widened());
        Verdict::Unresolved { more }
    }

    /// In how many cells what holds.
    #[must_use]
    pub fn headline(&self) -> Headline {
        let verdicts = self.verdicts();
        let count = |wanted| verdicts.iter().filter(|verdict| **verdict == wanted).count();
        Headline {
            cells: verdicts.len(),
            faster: count(Verdict::Faster),
            slower: count(Verdict::Slower),
            same: count(Verdict::Same),
        }
    }
}

/// Fewer pairs than this cannot decide a cell with so many in view, however clear they are: the least chance
/// that signs can have, 2 of 2^pairs, times the cells.
#[must_use]
pub fn fewest(cells: usize) -> usize {
    let chances = std::iter::successors(Some(cells.max(1) as f64), |chance| Some(chance / 2.0));
    1 + chances.take_while(|chance| *chance > LEVEL).count()
}

/// More pairs are not advised.
const MAX_ADVICE: usize = 1000;

/// 0.05, less what the subtraction leaves: no p-value of signed ranks is that near.
const LEVEL: f64 = 1.0 - CONFIDENCE;

#[cfg(test)]
mod tests {
    use super::super::Pairs;
    use super::*;
    use crate::random::Random;

    fn cell(name: &str, log: f64, pairs: usize) -> (String, Comparison) {
        let logs = (0..pairs).map(|at| log + at as f64 * 1e-5).collect();
        (name.to_owned(), Comparison::of(&Pairs::of_logs(logs)).unwrap())
    }

    #[test]
    fn holms_values_are_those_of_the_definition() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        let expected = [0.03, 0.06, 0.06, 0.02];
        for (value, expected) in adjusted.iter().zip(expected) {
            assert!((value - expected).abs() < 1e-12, "{adjusted:?}");
        }
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn adjusting_never_helps_and_keeps_the_order() {
        let mut random = Random::new(5);
        for count in 1..40 {
            let values: Vec<f64> = (0..count).map(|_| random.unit().powi(4)).collect();
            let adjusted = holm(&values);
            for (at, value) in values.iter().enumerate() {
                assert!(adjusted[at] >= *value && adjusted[at] <= 1.0);
                for (other, least) in values.iter().enumerate() {
                    assert!(value > least || adjusted[at] <= adjusted[other]);
                }
            }
        }
    }

    #[test]
    fn a_family_asks_for_more_than_a_cell_alone() {
        // Six clear pairs are just enough alone: 2 of 64 sign patterns.
        let alone = Family::new(vec![cell("x", 0.1, 6)], Margin::new(None));
        assert_eq!(alone.headline().slower, 1);
        let cells = vec![cell("x", 0.1, 6), cell("y", 0.0, 6), cell("z", -0.1, 6)];
        let family = Family::new(cells, Margin::new(None));
        assert!(family.cells().all(|(_, _, verdict)| verdict.is_resolved()));
        assert_eq!(family.verdicts(), [Verdict::Unresolved { more: Some(1) }; 3]);
        assert_eq!(family.headline(), Headline { cells: 3, ..Headline::default() });
        let cells = vec![cell("x", 0.1, 12), cell("y", 0.0, 12), cell("z", -0.1, 12)];
        let expected = Headline { cells: 3, faster: 1, slower: 1, same: 1 };
        assert_eq!(Family::new(cells, Margin::new(None)).headline(), expected);
    }

    #[test]
    fn as_many_pairs_as_are_fewest_decide_every_cell_and_one_less_decides_none() {
        assert_eq!([1, 2, 12, 84].map(fewest), [6, 7, 9, 12]);
        for cells in [1, 2, 12, 84] {
            let family = |pairs: usize| {
                let cells = (0..cells).map(|at| cell(&at.to_string(), 0.1, pairs)).collect();
                Family::new(cells, Margin::new(None)).headline().slower
            };
            assert_eq!((family(fewest(cells)), family(fewest(cells) - 1)), (cells, 0));
        }
    }
}
