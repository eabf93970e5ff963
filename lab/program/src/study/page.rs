// SPDX-License-Identifier: Apache-2.0
//! A study as text: tables, Sun's figures, what is there and what is absent, and why.

use super::findings::Findings;
use super::view::{Clock, View};
use crate::experiment::Experiment;
use crate::lines::section;
use crate::scenario;
use crate::table::{Table, digits};

/// Everything.
pub(super) fn text(experiment: &Experiment, findings: &Findings) -> String {
    let Findings { tables, sun, effects, reason } = findings;
    let mut text = format!("{}\n{tables}", scenario::heading(experiment));
    section(&mut text, "Sun, 2008–2009", sun);
    section(&mut text, "What it changes here", effects);
    // A figure that was not measured is no number, and no reason for anything.
    let known = reason.iter().all(|sentence| !sentence.contains("NaN"));
    let unknown = ["too little was measured to say".to_owned()];
    section(&mut text, "Why", if known { reason } else { &unknown });
    let skipped: Vec<String> = experiment.plan.skipped.iter().map(|s| s.why.clone()).collect();
    let settings = &experiment.manifest.provenance.settings;
    let absent = settings.get(ABSENT).cloned();
    let mut left: Vec<String> = skipped.into_iter().chain(absent).collect();
    left.dedup();
    section(&mut text, "Left out", &left);
    text
}

/// The setting that names what this machine cannot run.
pub(super) const ABSENT: &str = "left out";

/// A heading, and the versions in rows: ticks for a unit in each of the named cells, and in the first
/// of them the cost over the first version.
pub(super) fn versions(view: &View<'_>, heading: &str, cells: &[(&str, String)]) -> String {
    let Some((_, main)) = cells.first() else { return String::new() };
    let per_byte = view.experiment.manifest.provenance.unit == "byte";
    let rate = if per_byte { "MB/s of CPU" } else { "1/s of CPU" };
    let mut titles = vec!["version"];
    titles.extend(cells.iter().map(|(name, _)| *name));
    titles.extend([rate, "over the first", "interval", "verdict"]);
    let mut table = Table::new(&titles);
    for arm in &view.experiment.plan.arms {
        let mut row = vec![arm.clone()];
        row.extend(cells.iter().map(|(_, cell)| digits(view.ticks(cell, arm))));
        row.push(digits(view.cpu_rate(main, arm)));
        row.extend(compared(view, main, arm, Clock::Cpu));
        table.row(row);
    }
    format!("{heading}\n\n{}\n", table.render())
}

/// Ratio, interval and verdict over the first arm; blanks for the first itself.
pub(super) fn compared(view: &View<'_>, cell: &str, arm: &str, clock: Clock) -> [String; 3] {
    let first = &view.experiment.plan.arms[0];
    match view.compare(cell, arm, first, clock).filter(|_| arm != first) {
        None => [const { String::new() }; 3],
        Some(comparison) => {
            let ratio = comparison.ratio();
            let verdict = view.verdict(cell, arm, first, clock);
            [
                shown(ratio.value),
                format!("{} to {}", shown(ratio.low), shown(ratio.high)),
                verdict.to_string(),
            ]
        }
    }
}

/// A ratio; a small one keeps three digits.
fn shown(ratio: f64) -> String {
    match ratio {
        ratio if ratio < 0.01 => format!("{ratio:.5}"),
        ratio if ratio < 0.1 => format!("{ratio:.4}"),
        ratio => format!("{ratio:.3}"),
    }
}

/// The versions by the wall clock: rates in each of the named cells, and in the first of them the time
/// over the first version.
pub(super) fn by_wall(view: &View<'_>, heading: &str, cells: &[(&str, String)]) -> String {
    let Some((_, main)) = cells.first() else { return String::new() };
    let mut titles = vec!["version"];
    titles.extend(cells.iter().map(|(name, _)| *name));
    titles.extend(["over the first", "interval", "verdict"]);
    let mut table = Table::new(&titles);
    for arm in &view.experiment.plan.arms {
        let mut row = vec![arm.clone()];
        row.extend(cells.iter().map(|(_, cell)| digits(view.wall_rate(cell, arm))));
        row.extend(compared(view, main, arm, Clock::Wall));
        table.row(row);
    }
    format!("{heading}\n\n{}\n", table.render())
}

/// The versions on one thread and on all: rates by the wall clock, and by CPU time how many times one
/// thread's rate all of them would have on CPUs that are otherwise idle.
pub(super) fn scaling(view: &View<'_>, heading: &str, one: &str, all: &str) -> String {
    let threads = view.most_threads();
    let rate = if view.experiment.manifest.provenance.unit == "byte" { "MB/s" } else { "1/s" };
    let titles = [
        "version".to_owned(),
        format!("{rate}, 1 thread"),
        format!("{rate}, {threads} threads"),
        "ratio".to_owned(),
        "ratio by CPU time".to_owned(),
    ];
    let mut table = Table::new(&titles.each_ref().map(String::as_str));
    for arm in &view.experiment.plan.arms {
        let (single, several) = (view.wall_rate(one, arm), view.wall_rate(all, arm));
        let count = super::view::threads(all) as f64;
        let alone = count * view.ticks(one, arm) / view.ticks(all, arm);
        table.row(vec![
            arm.clone(),
            digits(single),
            digits(several),
            digits(several / single),
            digits(alone),
        ]);
    }
    format!("{heading}\n\n{}\n", table.render())
}

/// After the first repetition: what each version costs in each cell.
pub(super) fn glance(experiment: &Experiment) -> String {
    let view = View::of(experiment);
    let cells = experiment.plan.cells();
    let mut titles = vec![view.experiment.manifest.provenance.cost()];
    titles.extend(experiment.plan.arms.iter().cloned());
    let mut table = Table::new(&titles.iter().map(String::as_str).collect::<Vec<_>>());
    for cell in &cells {
        let mut row = vec![cell.clone()];
        let kilo = if experiment.manifest.provenance.unit == "byte" { 1024.0 } else { 1.0 };
        let arms = &experiment.plan.arms;
        row.extend(arms.iter().map(|arm| digits(view.ticks(cell, arm) * kilo)));
        table.row(row);
    }
    table.render()
}
