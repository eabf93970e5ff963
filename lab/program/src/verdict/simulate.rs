// SPDX-License-Identifier: Apache-2.0
//! Pairs out of thin air, to see how often a verdict is wrong: the truth is known, and the noise is of
//! the kinds that machines make.

use super::{Comparer, Comparison, Margin, Pairs, Ranks, Verdict};
use crate::random::Random;
use std::sync::Arc;

/// What disturbs the samples. Each is on the scale of logarithms, in units of the spread.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Noise {
    /// Normally distributed.
    Normal,
    /// Student's t with two degrees of freedom: its variance is infinite.
    HeavyTailed,
    /// Normal, on a level that wanders from sample to sample, and the second sample of a pair costs a
    /// whole spread more than the first.
    Drifting,
    /// Normal, and every tenth sample costs ten spreads more on average.
    Spiky,
}

impl Noise {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Normal, Self::HeavyTailed, Self::Drifting, Self::Spiky];

    /// The word for it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::HeavyTailed => "heavy-tailed",
            Self::Drifting => "drifting",
            Self::Spiky => "spiky",
        }
    }
}

/// A machine and two arms.
#[derive(Clone, Copy, Debug)]
pub struct World {
    /// What disturbs.
    pub noise: Noise,
    /// The spread of one sample, as a logarithm: 0.03 is about 3 %.
    pub spread: f64,
    /// The truth: the logarithm of A's cost over B's.
    pub effect: f64,
}

/// How often what was said, of many simulated experiments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Experiments.
    pub runs: usize,
    /// Verdicts "faster".
    pub faster: usize,
    /// Verdicts "slower".
    pub slower: usize,
    /// Verdicts "same".
    pub same: usize,
    /// Intervals that do not hold the truth.
    pub missed: usize,
    /// Intervals that do not hold "alike".
    pub seen: usize,
}

impl Tally {
    /// A count as a share of the experiments.
    #[must_use]
    pub fn share(&self, count: usize) -> f64 {
        count as f64 / self.runs.max(1) as f64
    }

    fn add(&mut self, comparison: &Comparison, verdict: Verdict, truth: f64) {
        let log = comparison.log();
        self.runs += 1;
        self.faster += usize::from(verdict == Verdict::Faster);
        self.slower += usize::from(verdict == Verdict::Slower);
        self.same += usize::from(verdict == Verdict::Same);
        self.missed += usize::from(truth < log.low || log.high < truth);
        self.seen += usize::from(log.low > 0.0 || log.high < 0.0);
    }
}

impl World {
    /// Simulates `runs` experiments of `pairs` pairs each. The same seed gives the same tally.
    #[must_use]
    pub fn tally(&self, pairs: usize, runs: usize, margin: Margin, seed: u64) -> Tally {
        let mut random = Random::new(seed);
        let rank = Arc::new(Ranks::signed(pairs));
        let mut tally = Tally::default();
        for _ in 0..runs {
            let logs = Machine::new(*self, &mut random).pairs(pairs);
            if let Some(comparison) = Comparison::with(&Pairs::of_logs(logs), &rank) {
                tally.add(&comparison, comparison.verdict(margin), self.effect);
            }
        }
        tally
    }

    /// The same, and an experiment that decides nothing is done again as the verdict advises, with all
    /// its pairs, but with no more than `most`: what a reader does who believes the number.
    #[must_use]
    pub fn advised(&self, pairs: usize, most: usize, runs: usize, seed: u64) -> Tally {
        let (mut random, margin) = (Random::new(seed), Margin::new(None));
        let (mut tally, mut comparer) = (Tally::default(), Comparer::default());
        for _ in 0..runs {
            let mut machine = Machine::new(*self, &mut random);
            let mut logs = machine.pairs(pairs);
            let mut compare = |logs: &[f64]| comparer.compare(&Pairs::of_logs(logs.to_vec()));
            let Some(mut comparison) = compare(&logs) else { continue };
            if let Verdict::Unresolved { more: Some(more) } = comparison.verdict(margin) {
                logs.extend(machine.pairs(more.min(most.saturating_sub(pairs))));
                comparison = compare(&logs).unwrap_or(comparison);
            }
            tally.add(&comparison, comparison.verdict(margin), self.effect);
        }
        tally
    }
}

/// One experiment as it goes on.
struct Machine<'a> {
    world: World,
    random: &'a mut Random,
    level: f64,
}

impl<'a> Machine<'a> {
    fn new(world: World, random: &'a mut Random) -> Self {
        Self { world, random, level: 0.0 }
    }

    fn pairs(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| self.pair()).collect()
    }

    /// The logarithm of A over B; a coin says which of them runs first.
    fn pair(&mut self) -> f64 {
        let (first, second) = (self.sample(false), self.sample(true));
        let a_first = self.random.below(2) == 0;
        self.world.effect + if a_first { first - second } else { second - first }
    }

    fn sample(&mut self, second: bool) -> f64 {
        let normal = self.normal();
        let noise = match self.world.noise {
            Noise::Normal => normal,
            Noise::HeavyTailed => normal / self.exponential().sqrt(),
            Noise::Drifting => {
                self.level += self.normal();
                normal + self.level + f64::from(u8::from(second))
            }
            Noise::Spiky if self.random.below(10) == 0 => {
                10.0f64.mul_add(self.exponential(), normal)
            }
            Noise::Spiky => normal,
        };
        noise * self.world.spread
    }

    /// Mean 1; never zero.
    fn exponential(&mut self) -> f64 {
        -(-self.random.unit()).ln_1p() + f64::MIN_POSITIVE
    }

    /// G. E. P. Box and M. E. Muller, "A note on the generation of random normal deviates" (1958).
    fn normal(&mut self) -> f64 {
        let radius = (2.0 * self.exponential()).sqrt();
        radius * (std::f64::consts::TAU * self.random.unit()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two hundred, five per cent and what their spread allows.
    const FALSE: usize = 16;

    fn world(noise: Noise, effect: f64) -> World {
        World { noise, spread: 0.03, effect }
    }

    #[test]
    fn two_identical_arms_rarely_differ() {
        for noise in Noise::ALL {
            let tally = world(noise, 0.0).tally(20, 200, Margin::new(None), 7);
            assert!(tally.faster + tally.slower <= FALSE, "{noise:?} {tally:?}");
            assert!(tally.missed <= FALSE, "{noise:?} {tally:?}");
        }
    }

    #[test]
    fn a_difference_that_is_the_margin_itself_is_not_taken_for_more_or_less() {
        let margin = Margin::new(None);
        for noise in Noise::ALL {
            let tally = world(noise, margin.log()).tally(60, 200, margin, 11);
            assert!(tally.slower <= FALSE / 2 + 2, "{noise:?} {tally:?}");
            assert!(tally.same <= FALSE / 2 + 2, "{noise:?} {tally:?}");
            assert_eq!(tally.faster, 0, "{noise:?}");
        }
    }

    #[test]
    fn a_large_difference_is_seen_and_has_the_right_sign() {
        let tally = world(Noise::Normal, 0.1).tally(20, 200, Margin::new(None), 13);
        assert!(tally.slower >= 190, "{tally:?}");
        assert_eq!(tally.faster + tally.same, 0);
        let tally = world(Noise::Spiky, -0.1).tally(40, 200, Margin::new(None), 13);
        assert!(tally.faster >= 180, "{tally:?}");
        assert_eq!(tally.slower + tally.same, 0);
    }

    #[test]
    fn more_pairs_see_more() {
        let seen = |pairs| world(Noise::Normal, 0.05).tally(pairs, 200, Margin::new(None), 17);
        assert!(seen(10).slower < seen(30).slower && seen(30).slower < seen(90).slower);
    }

    #[test]
    fn taking_the_advice_mostly_gives_an_answer() {
        let tally = world(Noise::Normal, 0.06).advised(10, 100, 100, 19);
        assert!(tally.slower >= 65, "{tally:?}");
        assert_eq!(tally.faster, 0);
    }

    #[test]
    fn the_same_seed_gives_the_same_tally() {
        let tally = || world(Noise::Spiky, 0.02).tally(12, 50, Margin::new(None), 23);
        assert_eq!(format!("{:?}", tally()), format!("{:?}", tally()));
    }
}
