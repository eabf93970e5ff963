// SPDX-License-Identifier: Apache-2.0
//! The table.

use super::rows::Doer;
use super::view::{Line, View};
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
        "{}\nOperations in a second by the wall clock, CPU time of one, and that over the CPU time without the module \
         (plain, file)\n\n{}",
        scenario::heading(experiment),
        table(&view),
    );
    section(&mut text, "Beside Sun's table of 2008–2009", &sun(&view));
    section(&mut text, "Who did it", &who(&view));
    section(&mut text, "Not run", &view.left_out());
    text
}

fn table(view: &View<'_>) -> String {
    let titles = [
        "operation",
        "by",
        "processes",
        "jobs",
        "in a second",
        "CPU, µs",
        "over",
        "interval",
        "verdict",
        "gain",
        "fill",
    ];
    let mut table = Table::new(&titles);
    let mut last = "";
    for line in view.lines() {
        let shown = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), digits);
        let name = if line.row.name == last { "" } else { line.row.name };
        last = line.row.name;
        let jobs = if line.jobs == 0 { "–".to_owned() } else { line.jobs.to_string() };
        let mut cells = vec![
            name.to_owned(),
            line.doer.word().to_owned(),
            line.processes.to_string(),
            jobs,
            shown(view.rate(&line)),
            shown(view.cpu(&line).map(|cpu| cpu / 1e3)),
        ];
        cells.extend(match view.compared(&line) {
            None => ["–", "–", "–"].map(str::to_owned),
            Some((compared, verdict)) => {
                let ratio = compared.ratio();
                let interval = format!("{:.3} to {:.3}", ratio.low, ratio.high);
                [digits(ratio.value), interval, verdict.to_string()]
            }
        });
        cells.extend([shown(view.gain(&line)), shown(view.fill(&line))]);
        table.row(cells);
    }
    table.render()
}

/// What Sun printed, where the same was measured.
fn sun(view: &View<'_>) -> Vec<String> {
    let sentence = |line: &Line| {
        let [one, sixteen] = line.row.sun?;
        let gain = view.gain(line)?;
        let alone = view.rate(&Line { processes: 1, ..line.clone() })?;
        let jobs = if line.jobs == 0 { String::new() } else { format!(" with {} jobs", line.jobs) };
        Some(format!(
            "{} by {}{jobs}: {} a second with 1 process and {} with {}, × {}; Sun's engine pkcs11 on a Xeon X5560 with 8 cores: {} \
             with 1 and {} with 16, × {}",
            line.row.name,
            line.doer.word(),
            digits(alone),
            digits(view.rate(line)?),
            line.processes,
            digits(gain),
            digits(one),
            digits(sixteen),
            digits(sixteen / one),
        ))
    };
    view.lines().iter().filter_map(sentence).collect()
}

fn who(view: &View<'_>) -> Vec<String> {
    let measured = view.lines();
    let doers = Doer::ALL.into_iter();
    let doers = doers.filter(|doer| measured.iter().any(|line| line.doer == *doer));
    let mut lines: Vec<String> =
        doers.map(|doer| format!("{}: {}", doer.word(), doer.words())).collect();
    let settings = &view.experiment.manifest.provenance.settings;
    lines.extend(settings.iter().map(|(name, value)| format!("{name}: {value}")));
    lines.push(
        "A figure of the engine, of the provider or of a token's key stands here only where the module's counters rose by as many \
         operations as it claims."
            .to_owned(),
    );
    lines
}

/// The summary, with the lines of the table.
pub(crate) fn json(experiment: &Experiment) -> Value {
    let view = View::of(experiment);
    let mut summary = summary(experiment);
    let line = |line: &Line| {
        let compared = view.compared(line);
        json!({
            "operation": line.row.name,
            "by": line.doer.word(),
            "processes": line.processes,
            "jobs": line.jobs,
            "per_wall_second": view.rate(line),
            "cpu_ns": view.cpu(line),
            "cpu_over_without_module": compared.map(|(compared, _)| compared.ratio()),
            "verdict": compared.map(|(_, verdict)| verdict),
            "gain_by_wall": view.gain(line),
            "fill": view.fill(line),
            "sun_2008": line.row.sun,
        })
    };
    summary["through_openssl"] = json!({
        "lines": view.lines().iter().map(line).collect::<Vec<_>>(),
        "not_run": view.left_out(),
    });
    summary
}
