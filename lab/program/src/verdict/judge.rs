// SPDX-License-Identifier: Apache-2.0
//! The decision: an interval against a margin.

use super::Estimate;
use crate::ranks::CONFIDENCE;
use serde::{Deserialize, Serialize};

/// Differences up to this do not matter, whatever the machine could see.
const LEAST: f64 = 0.02;
/// Below this many pairs no interval reaches its confidence: 2 of 2^6 is the first below 0.05.
const FEWEST: usize = 6;
/// No more than this is promised: beyond it, the difference lies at the margin itself.
const MAX_PAIRS: usize = 100_000;
/// How much narrower than the gap to the margin an interval has to be expected, so that four of five
/// are inside the gap: (1.96 + 0.84) / 1.96 where one end may hurt, (1.96 + 1.28) / 1.96 where both.
const ONE_END: f64 = 1.43;
const BOTH_ENDS: f64 = 1.65;

/// How large a difference must be to count, on the scale of logarithms: in both directions alike.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, PartialOrd, Serialize)]
pub struct Margin(f64);

impl Margin {
    /// 2 %, or the floor that two identical arms had today ([`super::Comparison::floor`]) if that is
    /// larger: what the machine sees in nothing must not count as something.
    #[must_use]
    pub fn new(floor: Option<f64>) -> Self {
        let least = LEAST.ln_1p();
        Self(floor.filter(|floor| floor.is_finite()).map_or(least, |floor| floor.max(least)))
    }

    /// So many percent, whatever the machine could see.
    #[must_use]
    pub fn of_percent(percent: f64) -> Self {
        Self((percent / 100.0).ln_1p())
    }

    /// The larger of two: what one of two experiments could not see, both cannot.
    #[must_use]
    pub fn larger(one: Self, other: Self) -> Self {
        Self(one.0.max(other.0))
    }

    /// On the scale of logarithms.
    #[must_use]
    pub const fn log(self) -> f64 {
        self.0
    }

    /// In percent of more.
    #[must_use]
    pub fn percent(self) -> f64 {
        self.0.exp_m1() * 100.0
    }
}

/// What the pairs allow to say of A.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// A costs less, by more than the margin.
    Faster,
    /// A costs more, by more than the margin.
    Slower,
    /// The difference is smaller than the margin.
    Same,
    /// The interval holds an end of the margin.
    Unresolved {
        /// About how many more pairs would decide four times in five, by the spread seen so far;
        /// `None` where no number would be believable.
        more: Option<usize>,
    },
}

impl Verdict {
    /// Judges an interval of logarithms that `pairs` pairs gave.
    #[must_use]
    pub fn of(log: Estimate, pairs: usize, margin: Margin) -> Self {
        let margin = margin.log();
        if log.confidence < CONFIDENCE {
            Self::Unresolved { more: Some(FEWEST.saturating_sub(pairs).max(1)) }
        } else if log.high < -margin {
            Self::Faster
        } else if log.low > margin {
            Self::Slower
        } else if log.low > -margin && log.high < margin {
            Self::Same
        } else {
            Self::Unresolved { more: more_pairs(log, pairs, margin) }
        }
    }

    /// The word alone: `faster`, `slower`, `same`, `unresolved`.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Same => "same",
            Self::Unresolved { .. } => "unresolved",
        }
    }

    /// What would be said of B.
    #[must_use]
    pub const fn exchanged(self) -> Self {
        match self {
            Self::Faster => Self::Slower,
            Self::Slower => Self::Faster,
            other => other,
        }
    }

    /// Whether something was decided.
    #[must_use]
    pub const fn is_resolved(self) -> bool {
        !matches!(self, Self::Unresolved { .. })
    }
}

/// An interval's width shrinks with the root of the number of pairs, whatever their distribution: so
/// the width itself is the estimate of the spread (Lehmann 1963).
fn more_pairs(log: Estimate, pairs: usize, margin: f64) -> Option<usize> {
    let half = (log.high - log.low) / 2.0;
    let distance = log.value.abs() - margin;
    let reserve = if distance > 0.0 { ONE_END } else { BOTH_ENDS };
    let needed = pairs as f64 * (reserve * half / distance).powi(2);
    if needed.is_finite() && needed < MAX_PAIRS as f64 {
        Some(whole(needed.ceil()).saturating_sub(pairs).max(1))
    } else {
        None
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a positive count")]
const fn whole(value: f64) -> usize {
    value as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(low: f64, high: f64) -> Estimate {
        Estimate { value: f64::midpoint(low, high), low, high, confidence: 0.951 }
    }

    fn judge(low: f64, high: f64) -> Verdict {
        Verdict::of(estimate(low, high), 20, Margin::new(None))
    }

    #[test]
    fn an_interval_outside_of_the_margin_is_a_difference() {
        assert_eq!(judge(0.021, 0.04), Verdict::Slower);
        assert_eq!(judge(-0.04, -0.021), Verdict::Faster);
        assert_eq!(judge(-0.019, 0.019), Verdict::Same);
    }

    #[test]
    fn an_interval_with_an_end_of_the_margin_decides_nothing() {
        for (low, high) in [(0.01, 0.06), (-0.06, -0.01), (-0.03, 0.01), (-0.5, 0.5)] {
            assert!(!judge(low, high).is_resolved(), "{low} {high}");
        }
    }

    #[test]
    fn the_margin_is_never_below_the_floor_nor_below_two_percent() {
        assert!((Margin::new(None).percent() - 2.0).abs() < 1e-9);
        assert!((Margin::new(Some(0.001)).percent() - 2.0).abs() < 1e-9);
        assert_eq!(Margin::new(Some(0.07)).log(), 0.07);
        assert!((Margin::new(Some(f64::NAN)).percent() - 2.0).abs() < 1e-9);
        assert_eq!(Verdict::of(estimate(0.03, 0.05), 20, Margin::new(Some(0.06))), Verdict::Same);
    }

    #[test]
    fn too_few_pairs_decide_nothing_however_clear_they_are() {
        let clear = Estimate { value: 1.0, low: 0.9, high: 1.1, confidence: 0.9375 };
        let verdict = Verdict::of(clear, 5, Margin::new(None));
        assert_eq!(verdict, Verdict::Unresolved { more: Some(1) });
    }

    #[test]
    fn twice_the_spread_needs_four_times_the_pairs() {
        let more = |half: f64| match judge(0.06 - half, 0.06 + half) {
            Verdict::Unresolved { more: Some(more) } => more + 20,
            verdict => panic!("{verdict:?}"),
        };
        let ratio = more(0.2) as f64 / more(0.1) as f64;
        assert!((3.9..4.1).contains(&ratio), "{ratio}");
    }

    #[test]
    fn a_difference_at_the_margin_is_not_promised_an_answer() {
        let margin = Margin::new(None).log();
        assert_eq!(judge(margin - 0.01, margin + 0.01), Verdict::Unresolved { more: None });
    }
}
