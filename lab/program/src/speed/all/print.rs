// SPDX-License-Identifier: Apache-2.0
//! The tables of every mechanism.

use super::recipes::{BYTES, FUNCTION, MECHANISM, ONCE, SIZES};
use crate::experiment::{Experiment, Sample};
use crate::lines::section;
use crate::scenario;
use crate::speed::finding::over;
use crate::speed::part::{ARM, BY, LANES, MODULE, RAW};
use crate::table::{Table, digits};
use crate::verdict::{Comparison, Family, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// Why combinations that make no sense are left out; older experiments name the function behind it.
pub(super) const SENSELESS: &str = "not of this size or not for";

/// Everything.
pub(crate) fn text(experiment: &Experiment) -> String {
    let view = View::of(experiment);
    let mut text = format!(
        "{}\nDigests, MACs, ciphers: MB/s of CPU time, one thread, by the size of a message\n\n{}\nWith a key \
         pair: operations in a second of CPU time, one thread, messages of {ONCE} bytes\n\n{}",
        scenario::heading(experiment),
        view.bulk(),
        view.pairs(),
    );
    section(&mut text, "What lanes change for one thread", &view.lanes());
    section(&mut text, "Left out", &left_out(experiment));
    text
}

/// An experiment, to be asked; its cells are looked up often.
struct View<'a> {
    experiment: &'a Experiment,
    cells: BTreeSet<String>,
    works: Vec<(String, &'static str)>,
    /// With lanes over without, by the cell with lanes.
    verdicts: BTreeMap<String, Verdict>,
}

impl<'a> View<'a> {
    fn of(experiment: &'a Experiment) -> Self {
        let cells: BTreeSet<String> = experiment.plan.cells().into_iter().collect();
        let mut works = Vec::new();
        for name in experiment.plan.levels(MECHANISM) {
            for function in ["digest", "sign", "encrypt"] {
                let begin = format!("{MECHANISM}={name} {FUNCTION}={function} ");
                if cells.iter().any(|cell| cell.starts_with(&begin)) {
                    works.push((name.clone(), function));
                }
            }
        }
        let compared = over(experiment, [LANES, MODULE]);
        let names: Vec<String> = compared.iter().map(|(cell, _)| cell.clone()).collect();
        let verdicts = Family::new(compared, scenario::margin(experiment)).verdicts();
        let verdicts = names.into_iter().zip(verdicts).collect();
        Self { experiment, cells, works, verdicts }
    }

    /// The cell, if it was run.
    fn cell(&self, work: &(String, &str), bytes: usize, by: &str) -> Option<String> {
        let (name, function) = work;
        let cell = format!("{MECHANISM}={name} {FUNCTION}={function} {BYTES}={bytes} {BY}={by}");
        self.cells.contains(&cell).then_some(cell)
    }

    /// Operations in a second of CPU time.
    fn rate(&self, work: &(String, &str), bytes: usize, by: &str) -> Option<f64> {
        let cell = self.cell(work, bytes, by)?;
        let each = self.experiment.typical(&cell, ARM, |sample| Some(sample.cpu_each()))?;
        Some(1e9 / each)
    }

    fn bulk(&self) -> String {
        let mut titles = vec!["mechanism".to_owned(), "what".to_owned(), "by".to_owned()];
        titles.extend(SIZES.map(size));
        let mut table = Table::new(&titles.iter().map(String::as_str).collect::<Vec<_>>());
        for work in &self.works {
            for by in [RAW, MODULE, LANES] {
                let shown = |bytes: usize| {
                    let rate = self.rate(work, bytes, by)?;
                    Some(digits(rate * bytes as f64 / 1e6))
                };
                let rates = SIZES.map(shown);
                if rates.iter().all(Option::is_none) {
                    continue;
                }
                let mut row = vec![short(&work.0), work.1.to_owned(), by.to_owned()];
                row.extend(rates.map(|rate| rate.unwrap_or_else(|| "–".to_owned())));
                table.row(row);
            }
        }
        table.render()
    }

    fn pairs(&self) -> String {
        let titles =
            ["mechanism", "what", RAW, MODULE, LANES, "lanes / module", "interval", "verdict"];
        let mut table = Table::new(&titles);
        for work in &self.works {
            let rates = [RAW, MODULE, LANES].map(|by| self.rate(work, ONCE, by));
            if rates.iter().all(Option::is_none) {
                continue;
            }
            let mut row = vec![short(&work.0), work.1.to_owned()];
            row.extend(rates.map(|rate| rate.map_or_else(|| "–".to_owned(), digits)));
            row.extend(match self.compared(work, ONCE) {
                None => ["–", "–", "–"].map(str::to_owned),
                Some(compared) => {
                    let ratio = compared.ratio();
                    let interval = format!("{:.3} to {:.3}", ratio.low, ratio.high);
                    [digits(ratio.value), interval, self.verdict(work, ONCE).to_string()]
                }
            });
            table.row(row);
        }
        table.render()
    }

    /// CPU time with lanes over that without.
    fn compared(&self, work: &(String, &str), bytes: usize) -> Option<Comparison> {
        let (first, second) = (self.cell(work, bytes, LANES)?, self.cell(work, bytes, MODULE)?);
        let cells = [(first.as_str(), ARM), (second.as_str(), ARM)];
        Comparison::of(&self.experiment.pairs_between(cells, Sample::cpu_each))
    }

    /// The verdict with all cells in view.
    fn verdict(&self, work: &(String, &str), bytes: usize) -> Verdict {
        let cell = self.cell(work, bytes, LANES);
        let verdict = cell.and_then(|cell| self.verdicts.get(&cell).copied());
        verdict.unwrap_or(Verdict::Unresolved { more: None })
    }

    /// How many cells of which verdict, and those where something changes.
    fn lanes(&self) -> Vec<String> {
        let (mut same, mut open) = (0, 0);
        let mut lines = [Vec::new(), Vec::new()];
        for work in &self.works {
            for bytes in SIZES.into_iter().chain([ONCE]) {
                let Some(compared) = self.compared(work, bytes) else { continue };
                let times = digits(compared.ratio().value);
                let text = format!("{} {} {} ({times})", short(&work.0), work.1, size(bytes));
                match self.verdict(work, bytes) {
                    Verdict::Same => same += 1,
                    Verdict::Unresolved { .. } => open += 1,
                    Verdict::Faster => lines[0].push(text),
                    Verdict::Slower => lines[1].push(text),
                }
            }
        }
        let [faster, slower] = lines;
        let mut all = vec![format!(
            "CPU time of an operation with lanes over that without: the same in {same} cells, less in {}, more \
             in {}, unresolved in {open}.",
            faster.len(),
            slower.len()
        )];
        all.extend((!faster.is_empty()).then(|| format!("less: {}", faster.join(", "))));
        all.extend((!slower.is_empty()).then(|| format!("more: {}", slower.join(", "))));
        all
    }
}

/// A mechanism's name without what all have.
fn short(name: &str) -> String {
    name.strip_prefix("CKM_").unwrap_or(name).to_owned()
}

fn size(bytes: usize) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}

/// What the module refuses, and what has no recipe. That something is not called directly is seen in the
/// tables.
fn left_out(experiment: &Experiment) -> Vec<String> {
    let raw = format!(" {BY}={RAW}");
    let skipped = &experiment.plan.skipped;
    let meant = skipped.iter().filter(|s| !s.why.starts_with(SENSELESS) && !s.cell.ends_with(&raw));
    let mut lines: Vec<String> = meant.map(|s| format!("{}: {}", s.cell, s.why)).collect();
    let settings = &experiment.manifest.provenance.settings;
    lines.extend(settings.get("no recipe").map(|names| format!("no recipe here: {names}")));
    lines
}
