// SPDX-License-Identifier: Apache-2.0
//! `lab speed --sun`: the table that Sun's engineers printed in 2008, on this machine: one thread and
//! several, by the raw library, this module without lanes and with them, a rival, and beside them
//! `openssl speed`; and what the gain of several threads consists of.

mod operations;
mod print;
mod scenario;
mod view;
mod words;

use super::Options;
use crate::Result;
use crate::experiment::Experiment;
use crate::scenario::Made;
use crate::summary::summary;
use serde_json::{Value, json};
use std::path::Path;
use view::View;

#[cfg(test)]
pub(super) use operations::ROWS;

/// Measures.
pub(crate) fn run(options: &Options) -> Result<Made> {
    scenario::jobs(options)?.make(options)
}

/// The text of an experiment that was made earlier.
pub(crate) fn text(directory: &Path, experiment: &Experiment) -> String {
    print::text(&View::of(directory, experiment))
}

/// The summary, with the table and the sentences.
pub(crate) fn json(directory: &Path, experiment: &Experiment) -> Value {
    let view = View::of(directory, experiment);
    let mut summary = summary(experiment);
    let rows = view.rows().into_iter().map(|row| {
        let by = view.doers().into_iter().filter_map(|by| {
            let rates = view.rates(row, by)?;
            let growth = view.growth(row, by);
            Some(json!({
                "by": by,
                "per_cpu_second": rates.cpu,
                "per_wall_second": rates.wall,
                "cpus_used": rates.cpus,
                "gain_by_wall": rates.gain(),
                "cpu_of_a_unit": growth.map(|(growth, _)| growth.ratio()),
                "verdict": growth.map(|(_, verdict)| verdict),
            }))
        });
        json!({
            "operation": row.name,
            "bytes": row.job.bytes,
            "by": by.collect::<Vec<_>>(),
            "openssl_default_elapsed_multi": view.openssl(row),
            "sun_2008": row.sun,
        })
    });
    summary["speed"] = json!({
        "threads": view.threads(),
        "rows": rows.collect::<Vec<_>>(),
        "gain": words::gain(&view),
        "clocks": words::clocks(&view),
    });
    summary
}
