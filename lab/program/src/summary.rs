// SPDX-License-Identifier: Apache-2.0
//! Every cell and arm of an experiment: medians and verdicts, as a table and as JSON.

use crate::experiment::{Experiment, Sample};
use crate::judged::{Judged, OverFirst};
use crate::table::{Table, digits};
use serde_json::{Value, json};

/// Every cell and arm: what a unit of work costs.
pub(super) fn cells(experiment: &Experiment) -> Table {
    let provenance = &experiment.manifest.provenance;
    let cost = provenance.cost();
    let mut table = Table::new(&[
        "cell",
        "arm",
        "samples",
        &cost,
        "rate, MB/s or 1/s",
        "over the first arm",
        "interval",
    ]);
    let judged = Judged::of(experiment);
    for cell in experiment.plan.cells() {
        for arm in &experiment.plan.arms {
            let typical = |figure: &dyn Fn(&Sample) -> f64| {
                experiment.typical(&cell, arm, |sample| Some(figure(sample))).unwrap_or(f64::NAN)
            };
            let rate = typical(&|sample| 1e9 / sample.wall_each());
            let rate = if provenance.unit == "byte" { rate / 1e6 } else { rate };
            let (ratio, interval) = over_first(&judged, &cell, arm);
            table.row(vec![
                cell.clone(),
                arm.clone(),
                experiment.of(&cell, arm).count().to_string(),
                digits(typical(&|sample| experiment.ticks(sample))),
                digits(rate),
                ratio,
                interval,
            ]);
        }
    }
    table
}

pub(super) fn over_first(judged: &Judged, cell: &str, arm: &str) -> (String, String) {
    match judged.over_first(cell, arm) {
        None => (String::new(), String::new()),
        Some(OverFirst { comparison, .. }) => {
            let ratio = comparison.ratio();
            (format!("{:.3}", ratio.value), format!("{:.3} to {:.3}", ratio.low, ratio.high))
        }
    }
}

/// Medians and verdicts.
pub(crate) fn summary(experiment: &Experiment) -> Value {
    let judged = Judged::of(experiment);
    let cell = |cell: &String, arm: &String| {
        let typical = |figure: fn(&Sample) -> f64| {
            experiment.typical(cell, arm, |sample| Some(figure(sample)))
        };
        let compared = judged.over_first(cell, arm);
        json!({
            "cell": cell,
            "arm": arm,
            "samples": experiment.of(cell, arm).count(),
            "doubtful": experiment.of(cell, arm).filter(|s| !s.measured.flags.is_empty()).count(),
            "cpu_ns_per_unit": typical(Sample::cpu_each),
            "wall_ns_per_unit": typical(Sample::wall_each),
            "ticks": experiment.typical(cell, arm, |sample| Some(experiment.ticks(sample))),
            "counters_per_unit": counters(experiment, cell, arm),
            "over_first_arm": compared.map(|compared| compared.comparison.ratio()),
            "verdict": compared.map(|compared| compared.verdict),
        })
    };
    let cells = experiment.plan.cells();
    let cells =
        cells.iter().flat_map(|name| experiment.plan.arms.iter().map(move |arm| cell(name, arm)));
    json!({
        "schema": "metaslot-lab-summary/2",
        "manifest": experiment.manifest,
        "state": experiment.state.to_string(),
        "margin_percent": judged.margin.percent(),
        "cells": cells.collect::<Vec<_>>(),
        "skipped": experiment.plan.skipped,
    })
}

/// Medians of every counter for a unit of work; shares of the machine, and latencies, as they are.
pub(super) fn counters(experiment: &Experiment, cell: &str, arm: &str) -> Value {
    let mut names: Vec<&String> =
        experiment.of(cell, arm).flat_map(|sample| sample.measured.counters.keys()).collect();
    names.sort();
    names.dedup();
    let value = |name: &String| {
        let share = name.starts_with("machine_") || name.starts_with("latency_");
        experiment.typical(cell, arm, |sample| {
            if share {
                sample.measured.counters.get(name).copied()
            } else {
                sample.counted_each(name)
            }
        })
    };
    names
        .into_iter()
        .map(|name| (name.clone(), json!(value(name))))
        .collect::<serde_json::Map<_, _>>()
        .into()
}
