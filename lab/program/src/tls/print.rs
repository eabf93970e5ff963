// SPDX-License-Identifier: Apache-2.0
//! The table.

use super::rows::Arm;
use super::view::{Cell, NO_JOBS, NO_PROCESSES, NO_THREADS, View};
use super::words;
use crate::experiment::Experiment;
use crate::lines::section;
use crate::scenario;
use crate::summary::summary;
use crate::table::{Table, digits};
use serde_json::{Value, json};

/// Everything.
pub(crate) fn text(experiment: &Experiment) -> String {
    let view = View::of(experiment);
    let mut text = format!(
        "{}\nFull handshakes of TLS 1.3: processor time of the server for each, and that over the key in a file\n\n{}",
        scenario::heading(experiment),
        table(&view),
    );
    section(&mut text, "What batches can gain, and what they gain", &words::gains(&view));
    section(&mut text, "Who did it", &words::who(&view));
    let skipped = experiment.plan.skipped.iter();
    let skipped =
        skipped.filter(|skipped| ![NO_JOBS, NO_PROCESSES, NO_THREADS].contains(&&*skipped.why));
    let skipped: Vec<String> = skipped.map(|s| format!("{}: {}", s.cell, s.why)).collect();
    section(&mut text, "Not run", &skipped);
    text
}

fn table(view: &View<'_>) -> String {
    let titles = [
        "server",
        "key",
        "connections",
        "arm",
        "CPU, µs",
        "over file",
        "interval",
        "verdict",
        "in a second",
        "p99, ms",
        "fill",
    ];
    let mut table = Table::new(&titles);
    for cell in view.cells() {
        for arm in Arm::ALL {
            let Some(cpu) = view.cpu(&cell, arm) else { continue };
            let shown = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), digits);
            let mut row = vec![
                cell.server.word().to_owned(),
                cell.key.clone(),
                cell.connections.to_string(),
                arm.word().to_owned(),
                digits(cpu / 1e3),
            ];
            row.extend(match view.over_file(&cell, arm) {
                None => ["–", "–", "–"].map(str::to_owned),
                Some(over) => {
                    let ratio = over.comparison.ratio();
                    let interval = format!("{:.3} to {:.3}", ratio.low, ratio.high);
                    [digits(ratio.value), interval, over.verdict.to_string()]
                }
            });
            row.extend([
                shown(view.rate(&cell, arm)),
                shown(view.p99(&cell, arm)),
                shown(view.fill(&cell, arm)),
            ]);
            table.row(row);
        }
    }
    table.render()
}

/// The summary, with the lines of the table and what follows from them.
pub(crate) fn json(experiment: &Experiment) -> Value {
    let view = View::of(experiment);
    let mut summary = summary(experiment);
    let arm = |cell: &Cell, arm: Arm| {
        let over = view.over_file(cell, arm);
        Some(json!({
            "arm": arm.word(),
            "cpu_ns": view.cpu(cell, arm)?,
            "cpu_over_file": over.map(|over| over.comparison.ratio()),
            "verdict": over.map(|over| over.verdict),
            "per_second": view.rate(cell, arm),
            "p99_ms": view.p99(cell, arm),
            "fill": view.fill(cell, arm),
        }))
    };
    let line = |cell: &Cell| {
        let gain = view.gain(cell);
        json!({
            "server": cell.server.word(),
            "key": cell.key,
            "connections": cell.connections,
            "arms": Arm::ALL.iter().filter_map(|one| arm(cell, *one)).collect::<Vec<_>>(),
            "gain": gain.map(|gain| json!({
                "share_of_signing": gain.share(),
                "signature_ns": gain.signing,
                "signature_in_batches_ns": gain.batched,
                "pause_ns": gain.pause,
                "amdahl_limit": gain.limit(),
                "amdahl_limit_with_pause": gain.limit_with_pause(),
                "measured": gain.measured,
                "of_the_limit": gain.measured / gain.limit(),
            })),
        })
    };
    summary["tls"] = json!({
        "lines": view.cells().iter().map(line).collect::<Vec<_>>(),
        "gains": words::gains(&view),
    });
    summary
}
