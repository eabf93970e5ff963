// SPDX-License-Identifier: Apache-2.0
//! Who decides where a sequence could go on in several ways: chance, or a counter that takes every
//! combination of the usual ways in turn.

use metaslot_models::chance::Chance;

#[derive(Debug)]
pub(crate) enum Chooser {
    Chance(Chance),
    Every(Odometer),
}

/// Rows of this weight are usual ways.
const HEAVY: u64 = 3;

/// The decisions of one sequence after another: the last one that has another way left takes it.
#[derive(Debug, Default)]
pub(crate) struct Odometer {
    /// What was taken, and of how many.
    taken: Vec<(usize, usize)>,
    at: usize,
}

impl Odometer {
    fn choose(&mut self, count: usize) -> usize {
        if self.at == self.taken.len() {
            self.taken.push((0, count));
        }
        self.at += 1;
        self.taken[self.at - 1].0
    }

    /// Which part of the sequences lies behind.
    #[expect(clippy::cast_precision_loss, reason = "shown in whole hundredths")]
    pub(crate) fn done(&self) -> f64 {
        let mut share = 1.0;
        let parts = self.taken.iter().map(|(taken, count)| {
            share /= *count as f64;
            *taken as f64 * share
        });
        parts.sum()
    }

    /// To the next sequence; false after the last one.
    pub(crate) fn turn(&mut self) -> bool {
        self.at = 0;
        while let Some((taken, count)) = self.taken.pop() {
            if taken + 1 < count {
                self.taken.push((taken + 1, count));
                return true;
            }
        }
        false
    }
}

impl Chooser {
    /// A number below `count`, which is not 0.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        match self {
            Self::Chance(chance) => chance.index(count),
            Self::Every(odometer) => odometer.choose(count),
        }
    }

    /// One of `all`, if there are any.
    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        if all.is_empty() { None } else { Some(all[self.below(all.len())]) }
    }

    /// One of the rows, by their weights; where every usual way is taken, one of the heavy ones.
    pub(crate) fn weighted<T: Copy>(&mut self, rows: &[(u64, T)]) -> T {
        let Self::Chance(chance) = self else {
            let heavy: Vec<T> = rows.iter().filter(|row| row.0 >= HEAVY).map(|row| row.1).collect();
            return self.one_of(&heavy).unwrap_or(rows[0].1);
        };
        let mut at = chance.below(rows.iter().map(|row| row.0).sum());
        let row = rows.iter().find(|row| {
            let here = at < row.0;
            at = at.saturating_sub(row.0);
            here
        });
        row.expect("the weights are summed up").1
    }

    /// Whether every usual way is taken in turn.
    pub(crate) const fn takes_every(&self) -> bool {
        matches!(self, Self::Every(_))
    }

    /// True in `part` of a hundred cases; what is unusual never, where every usual way is taken.
    pub(crate) fn rarely(&mut self, part: u64) -> bool {
        match self {
            Self::Chance(chance) => chance.is(part, 100),
            Self::Every(_) => false,
        }
    }
}
