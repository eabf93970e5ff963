// SPDX-License-Identifier: Apache-2.0
//! Everything that a comparison says.

use super::functions::Functions;
use super::options::Metric;
use crate::scenario::{DOUBT, Doubtful};
use crate::verdict::{Estimate, Verdict};
use serde::Serialize;

/// Everything that a comparison says.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(super) schema: &'static str,
    pub(super) a: String,
    pub(super) b: String,
    pub(super) metric: Metric,
    /// The unit of `a_cost` and `b_cost`.
    pub(super) cost: String,
    pub(super) margin_percent: f64,
    /// The runs were interleaved, and are compared in pairs.
    pub(super) paired: bool,
    /// Between two experiments: by how much each interval was widened on both sides, because the same code
    /// differed by about that when it was started afresh. `null` within one, or where it was not measured.
    pub(super) apart_percent: Option<f64>,
    /// Of A and of B: doubtful samples, and all.
    pub(super) doubtful: [Doubtful; 2],
    /// What both do not have in common.
    pub(super) differences: Vec<String>,
    pub(crate) cells: Vec<ComparisonRow>,
    /// Of the family of cells.
    pub(super) faster: usize,
    pub(super) slower: usize,
    pub(super) same: usize,
    /// Of cells with profiles on both sides.
    pub(crate) functions: Vec<Functions>,
    /// Cells that only one side has.
    pub(super) unmatched: Vec<String>,
}

/// One cell.
#[derive(Debug, Serialize)]
pub(crate) struct ComparisonRow {
    pub(crate) name: String,
    pub(crate) a_cost: f64,
    pub(crate) b_cost: f64,
    pub(crate) samples: [usize; 2],
    pub(crate) ratio: Estimate,
    pub(crate) verdict: Verdict,
    pub(crate) sentence: String,
}

/// What is said of a verdict that no pair stands behind.
const BETWEEN: &str = ", between runs";

impl Report {
    /// In how many cells what holds.
    pub(crate) fn headline(&self) -> String {
        let decided = self.faster + self.slower + self.same;
        let between = if self.paired { "" } else { "Between runs, " };
        let doubt = self.doubt();
        let between = if doubt.is_empty() { between.to_owned() } else { between.to_lowercase() };
        format!(
            "{doubt}{between}{} cells: A is faster in {}, slower in {}, the same in {}, unresolved in {}; margin {:.1} %, \
             all cells in view",
            self.cells.len(),
            self.faster,
            self.slower,
            self.same,
            self.cells.len() - decided,
            self.margin_percent
        )
    }

    /// What a headline begins with where it rests on samples most of which are doubtful.
    pub(crate) fn doubt(&self) -> String {
        let some = |(name, doubtful): (&str, Doubtful)| {
            doubtful.are_most().then(|| format!("{}{name}", doubtful.count()))
        };
        let some: Vec<String> = self.sides().filter_map(some).collect();
        if some.is_empty() {
            return String::new();
        }
        format!("Doubtful, as {} are ({DOUBT}): ", some.join(" and "))
    }

    /// What else is doubtful on either side, below a headline.
    pub(crate) fn doubtful(&self) -> impl Iterator<Item = String> {
        let sides = self.sides().filter(|(_, doubtful)| !doubtful.are_most());
        sides.filter_map(|(name, doubtful)| doubtful.sentence_of(name))
    }

    /// The samples of both, and whose they are; within one experiment all of it.
    fn sides(&self) -> impl Iterator<Item = (&'static str, Doubtful)> + use<> {
        let names: &[&str] = if self.paired { &[""] } else { &[" of A", " of B"] };
        names.iter().copied().zip(self.doubtful)
    }

    /// How the two were measured, and what they do not have in common.
    pub(crate) fn note(&self) -> String {
        let how = if self.paired {
            "run interleaved, compared in pairs"
        } else {
            "two experiments, compared as two groups"
        };
        let how = match (self.paired, self.apart_percent) {
            (true, _) => how.to_owned(),
            (false, Some(apart)) => format!(
                "{how}; each interval is widened by {apart:.1} % on both sides: the same code may lie so far apart, \
                 judged by what was run again at the end of each"
            ),
            (false, None) => format!(
                "{how}; how far apart two runs of the same code lie was not measured, and is not in the \
                 intervals: a difference may be the machine's"
            ),
        };
        let differences = self.differences.iter().map(|words| format!("\nnot the same: {words}"));
        how + &differences.collect::<String>()
    }

    /// A row's verdict in words: of two groups there are samples, not pairs.
    pub(crate) fn verdict(&self, row: &ComparisonRow) -> String {
        let words = match row.verdict {
            Verdict::Unresolved { more: None } if !self.paired => "unresolved".to_owned(),
            verdict => verdict.to_string(),
        };
        if self.paired { words } else { words.replace("pair", "sample") + BETWEEN }
    }

    /// The margin on the scale of logarithms.
    pub(crate) fn margin_log(&self) -> f64 {
        (self.margin_percent / 100.0).ln_1p()
    }
}
