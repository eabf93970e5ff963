// SPDX-License-Identifier: Apache-2.0
//! Whether a goal was reached.

use crate::statistics::Estimate;

/// Whether a goal was reached, as far as the interval allows to say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    Met,
    Missed,
    /// The interval holds the goal: more rounds are needed.
    Unresolved,
}

impl Verdict {
    pub(crate) fn at_least(estimate: Estimate, goal: f64) -> Self {
        if estimate.low >= goal {
            Self::Met
        } else if estimate.high < goal {
            Self::Missed
        } else {
            Self::Unresolved
        }
    }

    pub(crate) fn at_most(estimate: Estimate, goal: f64) -> Self {
        if estimate.high <= goal {
            Self::Met
        } else if estimate.low > goal {
            Self::Missed
        } else {
            Self::Unresolved
        }
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "MISSED",
            Self::Unresolved => "unresolved",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_around_the_goal_decides_nothing() {
        let around = Estimate { value: 0.97, low: 0.95, high: 0.99, confidence: 0.95 };
        assert_eq!(Verdict::at_least(around, 0.97), Verdict::Unresolved);
        assert_eq!(Verdict::at_most(around, 0.97), Verdict::Unresolved);
    }
}
