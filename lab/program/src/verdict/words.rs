// SPDX-License-Identifier: Apache-2.0
//! The words for people. No p-value among them: it answers another question than the one that was asked.

use super::{Comparison, Headline, Margin, Verdict};
use std::fmt;

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Faster => f.write_str("faster"),
            Self::Slower => f.write_str("slower"),
            Self::Same => f.write_str("same"),
            Self::Unresolved { more: Some(1) } => f.write_str("unresolved: 1 more pair"),
            Self::Unresolved { more: Some(more) } => write!(f, "unresolved: {more} more pairs"),
            Self::Unresolved { more: None } => f.write_str("unresolved: at the margin"),
        }
    }
}

impl Comparison {
    /// The verdict as a sentence about arms with these names.
    #[must_use]
    pub fn sentence(&self, a: &str, b: &str, margin: Margin) -> String {
        self.sentence_of(self.verdict(margin), a, b, margin)
    }

    /// The same of a verdict with other cells in view.
    #[must_use]
    pub fn sentence_of(&self, verdict: Verdict, a: &str, b: &str, margin: Margin) -> String {
        let limit = margin.percent();
        let seen = format!("{} ({})", difference(self.log().value), self.range());
        match verdict {
            Verdict::Faster => format!("{a} is faster than {b}: it costs {seen}"),
            Verdict::Slower => format!("{a} is slower than {b}: it costs {seen}"),
            Verdict::Same => {
                format!("{a} and {b} are the same within {limit:.1} %: {a} costs {seen}")
            }
            Verdict::Unresolved { more: Some(more) } => format!(
                "unresolved: {a} costs {seen} than {b}, the margin is {limit:.1} %; about {more} \
                 more pairs would tell"
            ),
            Verdict::Unresolved { more: None } if self.is_widened() => format!(
                "unresolved: {a} costs {seen} than {b}, and the same code lies as far apart from run to run"
            ),
            Verdict::Unresolved { more: None } => format!(
                "unresolved: {a} costs {seen} than {b}, which is the margin of {limit:.1} % itself; \
                 more pairs would not tell"
            ),
        }
    }

    fn range(&self) -> String {
        format!("{} to {}", signed(self.log().low), signed(self.log().high))
    }
}

impl fmt::Display for Headline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decided = self.faster + self.slower + self.same;
        write!(
            f,
            "{} cells: faster in {}, slower in {}, same in {}, unresolved in {} (with all cells in view; \
             a cell's own interval is not adjusted)",
            self.cells,
            self.faster,
            self.slower,
            self.same,
            self.cells - decided
        )
    }
}

/// `5.0 % more` for a logarithm of a ratio of costs.
fn difference(log: f64) -> String {
    let word = if log < 0.0 { "less" } else { "more" };
    format!("{:.1} % {word}", (log.exp_m1() * 100.0).abs())
}

fn signed(log: f64) -> String {
    format!("{:+.1} %", log.exp_m1() * 100.0)
}

#[cfg(test)]
mod tests {
    use super::super::Pairs;
    use super::*;

    fn sentence(ratio: f64, step: f64) -> String {
        let log = ratio.ln();
        let logs = (0..9).map(|at| f64::from(at - 4).mul_add(step, log)).collect();
        let comparison = Comparison::of(&Pairs::of_logs(logs)).unwrap();
        comparison.sentence("new", "old", Margin::new(None))
    }

    #[test]
    fn sentences_name_who_costs_what() {
        assert_eq!(
            sentence(0.9, 0.001),
            "new is faster than old: it costs 10.0 % less (-10.2 % to -9.8 %)"
        );
        assert!(sentence(1.1, 0.001).starts_with("new is slower than old: it costs 10.0 % more"));
        assert!(sentence(1.001, 0.001).starts_with("new and old are the same within 2.0 %"));
        assert!(sentence(1.04, 0.02).starts_with("unresolved: new costs 4.0 % more"));
        assert!(sentence(1.02, 0.02).ends_with("more pairs would not tell"));
    }

    #[test]
    fn verdicts_are_one_word_or_say_what_is_missing() {
        assert_eq!(Verdict::Same.to_string(), "same");
        let more = |more| Verdict::Unresolved { more }.to_string();
        assert_eq!(more(Some(1)), "unresolved: 1 more pair");
        assert_eq!(more(Some(12)), "unresolved: 12 more pairs");
    }

    #[test]
    fn a_headline_counts_every_cell_once() {
        let headline = Headline { cells: 7, faster: 2, slower: 1, same: 3 };
        assert!(
            headline
                .to_string()
                .starts_with("7 cells: faster in 2, slower in 1, same in 3, unresolved in 1")
        );
    }
}
