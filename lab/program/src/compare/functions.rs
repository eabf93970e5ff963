// SPDX-License-Identifier: Apache-2.0
//! Functions by what they cost a unit of work on each side: which one makes the difference.

use super::{Metric, Side, Sides};
use crate::Result;
use crate::experiment::Plan;
use crate::profile::{self, Profile, View};
use crate::statistics::Estimate;
use crate::table::{Table, digits};
use serde::Serialize;
use std::path::Path;

/// So many functions are shown.
const TOP: usize = 25;
/// What costs less than this share of the whole on both sides explains nothing.
const LEAST: f64 = 0.005;

/// The functions of two sides that both have profiles.
#[derive(Debug, Serialize)]
pub(crate) struct Functions {
    pub(crate) name: String,
    /// What the costs are of, in words.
    pub(crate) view: &'static str,
    pub(crate) sampler: [String; 2],
    /// Dearest first.
    pub(crate) functions: Vec<Function>,
    /// The difference as a flame graph.
    #[serde(skip)]
    pub(crate) flame: String,
}

/// One function.
#[derive(Debug, Serialize)]
pub(crate) struct Function {
    pub(crate) function: String,
    pub(crate) a_cost: f64,
    pub(crate) b_cost: f64,
    pub(crate) a_over_b: Estimate,
    /// Fewer than a hundred samples on either side.
    pub(crate) few: bool,
}

/// The profiles of both experiments.
pub(super) struct Profiles {
    a: Vec<Profile>,
    b: Vec<Profile>,
}

impl Profiles {
    pub(super) fn read(a: (&Path, &Plan), b: (&Path, &Plan)) -> Result<Self> {
        Ok(Self { a: profile::profiles(a.0, a.1)?, b: profile::profiles(b.0, b.1)? })
    }

    /// Of these sides; `None` where one has no profile or nothing to cost it by.
    pub(super) fn compare(&self, sides: &Sides<'_>, view: View) -> Option<Functions> {
        let (a, b) = (find(&self.a, &sides.a)?, find(&self.b, &sides.b)?);
        let (a_cost, b_cost) = (sides.a.cost(Metric::Cpu)?, sides.b.cost(Metric::Cpu)?);
        let rows = match view {
            View::Inclusive => profile::ratios(view, &b.folded, b_cost, &a.folded, a_cost),
            // What a timer charges to anyone who allows interrupts again is its caller's.
            View::Exclusive => {
                let (a, b) = (a.folded.charged_to_callers(), b.folded.charged_to_callers());
                profile::ratios(view, &b, b_cost, &a, a_cost)
            }
        };
        let function = |row: profile::RatioRow| Function {
            function: row.function,
            a_cost: row.b_cost,
            b_cost: row.a_cost,
            a_over_b: row.ratio,
            few: row.few,
        };
        let matters = |row: &Function| row.a_cost > LEAST * a_cost || row.b_cost > LEAST * b_cost;
        Some(Functions {
            name: sides.name(),
            view: match view {
                View::Inclusive => "function, with what it calls",
                View::Exclusive => "function, by itself",
            },
            sampler: [a.details.sampler.clone(), b.details.sampler.clone()],
            functions: rows.into_iter().map(function).filter(matters).take(TOP).collect(),
            flame: profile::difference(&sides.name(), &b.folded, b_cost, &a.folded, a_cost),
        })
    }
}

fn find<'a>(profiles: &'a [Profile], side: &Side<'_>) -> Option<&'a Profile> {
    let wanted =
        |profile: &&Profile| profile.details.cell == side.cell && profile.details.arm == side.arm;
    profiles.iter().find(wanted)
}

impl Functions {
    pub(super) fn text(&self, cost: &str) -> String {
        let (a, b) = (format!("A, {cost}"), format!("B, {cost}"));
        let mut table = Table::new(&[self.view, &a, &b, "A over B", "interval"]);
        for row in &self.functions {
            let [ratio, interval] = row.words();
            table.row(vec![
                row.function.clone(),
                digits(row.a_cost),
                digits(row.b_cost),
                ratio,
                interval,
            ]);
        }
        let [a, b] = &self.sampler;
        let sampler = if a == b { a.clone() } else { format!("A {a}, B {b}") };
        format!(
            "{} ({sampler}; few: fewer than 100 samples on a side)\n\n{}",
            self.name,
            table.render()
        )
    }
}

impl Function {
    /// The ratio and its interval, or that there are too few samples.
    pub(crate) fn words(&self) -> [String; 2] {
        let ratio = self.a_over_b;
        if self.few || !ratio.value.is_finite() {
            return ["few".to_owned(), String::new()];
        }
        [format!("{:.2}", ratio.value), format!("{:.2} to {:.2}", ratio.low, ratio.high)]
    }
}
