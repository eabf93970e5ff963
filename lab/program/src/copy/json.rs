// SPDX-License-Identifier: Apache-2.0
//! The result as JSON: what every experiment has, and what was found of copies.

use super::findings::{Findings, Sizes};
use super::words::{Word, is_into};
use crate::experiment::Experiment;
use crate::summary;
use serde_json::{Value, json};

/// The summary, with `crossovers`, `advice`, and large pages' effect under `copy`.
pub(super) fn summary(experiment: &Experiment) -> Value {
    let mut summary = summary::summary(experiment);
    if !is_into(experiment) {
        summary["copy"] = findings(&Findings::of(experiment));
    }
    summary
}

fn findings(findings: &Findings<'_>) -> Value {
    let groups = findings.groups.iter().map(|sizes| group(findings, sizes));
    let pages = findings.large_over_small().into_iter().flat_map(|(state, sizes)| {
        sizes.into_iter().map(move |(size, (comparison, verdict))| {
            json!({
                "state": state.word(),
                "size": size,
                "large_over_small": comparison.ratio(),
                "verdict": verdict,
            })
        })
    });
    json!({
        "groups": groups.collect::<Vec<_>>(),
        "pages": pages.collect::<Vec<_>>(),
        "first_touch": findings.experiment.manifest.provenance.settings.get("first touch"),
    })
}

fn group(findings: &Findings<'_>, sizes: &Sizes) -> Value {
    let advice = sizes.cells.iter().filter_map(|(size, cell)| {
        let past = findings.past(sizes, cell)?;
        Some(json!({
            "size": size,
            "non_temporal": past.past,
            "allocating": past.into,
            "non_temporal_over_allocating": past.comparison.ratio(),
            "verdict": past.verdict,
        }))
    });
    json!({
        "state": sizes.group.state.word(),
        "pages": sizes.group.pages.word(),
        "consumer": sizes.group.consumer.word(),
        "distance": sizes.distance(),
        "first": "non_temporal",
        "second": "allocating",
        "crossover": findings.crossover(sizes),
        "crossover_by_latency": findings.crossover_alone(sizes),
        "sizes": advice.collect::<Vec<_>>(),
    })
}
