// SPDX-License-Identifier: Apache-2.0
//! The table at the end.

use std::fmt;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

/// What was done, by whom, in what time; then the comparison with the raw library.
#[derive(Default)]
pub(crate) struct Table {
    rows: Vec<(String, String, Duration)>,
    notes: Vec<String>,
    compared: Vec<Compared>,
}

struct Compared {
    cell: String,
    /// Nanoseconds of CPU per operation.
    raw: f64,
    module: f64,
    rival: Option<f64>,
}

impl Table {
    pub(crate) fn row(&mut self, what: &str, provider: &str, took: Duration) {
        println!("    {:.1} ms", took.as_secs_f64() * 1e3);
        self.rows.push((what.into(), provider.into(), took));
    }

    pub(crate) fn note(&mut self, note: &str) {
        self.notes.push(note.into());
    }

    /// Takes the medians out of the lab's JSON.
    pub(crate) fn compare(&mut self, report: &Value) -> Result<()> {
        for cell in report["overhead"]["cells"].as_array().context("a result without cells")? {
            let median = |provider: &str| {
                let arms = cell["arms"].as_array().into_iter().flatten();
                let arm = arms.into_iter().find(|arm| arm["provider"] == provider)?;
                median(arm["cpu_ns"].as_array()?.iter().filter_map(Value::as_f64).collect())
            };
            let name = cell["name"].as_str().unwrap_or_default().to_owned();
            self.compared.push(Compared {
                raw: median("raw").with_context(|| format!("{name}: nothing raw"))?,
                module: median("module").with_context(|| format!("{name}: no module"))?,
                rival: median("rival"),
                cell: name,
            });
        }
        Ok(())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<58} {:<10} {:>10}", "what", "provider", "time")?;
        for (what, provider, took) in &self.rows {
            let milliseconds = took.as_secs_f64() * 1e3;
            writeln!(f, "{what:<58} {provider:<10} {milliseconds:>7.1} ms")?;
        }
        for note in &self.notes {
            writeln!(f, "{note}")?;
        }
        writeln!(
            f,
            "\n{:<30} {:>14} {:>14} {:>10} {:>14}",
            "CPU time of one operation", "raw library", "the module", "raw/module", "SoftHSM"
        )?;
        for Compared { cell, raw, module, rival } in &self.compared {
            let rival = rival.map_or_else(|| "–".into(), |rival| format!("{:.1} µs", rival / 1e3));
            writeln!(
                f,
                "{cell:<30} {:>11.1} µs {:>11.1} µs {:>10.3} {rival:>14}",
                raw / 1e3,
                module / 1e3,
                raw / module
            )?;
        }
        Ok(())
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
