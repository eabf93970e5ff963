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
    /// Nanoseconds of CPU per operation: medians.
    raw: f64,
    module: f64,
    rival: Option<f64>,
    /// How much faster the module is than the raw library, round by round: the median, and an interval for it.
    speed: Speed,
}

/// A median, and the interval that holds it 19 times in 20 or more.
#[derive(Debug, PartialEq)]
struct Speed {
    low: f64,
    median: f64,
    high: f64,
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
            let rounds = |provider: &str| -> Option<Vec<f64>> {
                let arms = cell["arms"].as_array().into_iter().flatten();
                let arm = arms.into_iter().find(|arm| arm["provider"] == provider)?;
                Some(arm["cpu_ns"].as_array()?.iter().filter_map(Value::as_f64).collect())
            };
            let name = cell["name"].as_str().unwrap_or_default().to_owned();
            let raw = rounds("raw").with_context(|| format!("{name}: nothing raw"))?;
            let module = rounds("module").with_context(|| format!("{name}: no module"))?;
            let ratios = raw.iter().zip(&module).map(|(raw, module)| raw / module).collect();
            self.compared.push(Compared {
                speed: Speed::of(ratios).with_context(|| format!("{name}: no rounds"))?,
                raw: median(raw).unwrap_or_default(),
                module: median(module).unwrap_or_default(),
                rival: rounds("rival").and_then(median),
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
            "\n{:<26} {:>12} {:>12} {:>12}   raw/module",
            "CPU time of one operation", "raw library", "the module", "SoftHSM"
        )?;
        for Compared { cell, raw, module, rival, speed } in &self.compared {
            let rival = rival.map_or_else(|| "–".into(), |rival| format!("{:.1} µs", rival / 1e3));
            let Speed { low, median, high } = speed;
            writeln!(
                f,
                "{cell:<26} {:>9.1} µs {:>9.1} µs {rival:>12}   {median:.2} ({low:.2} to {high:.2})",
                raw / 1e3,
                module / 1e3,
            )?;
        }
        writeln!(
            f,
            "in brackets: an interval that holds the median of the rounds' ratios 19 times in 20"
        )
    }
}

impl Speed {
    /// By order statistics: no distribution is assumed.
    fn of(mut ratios: Vec<f64>) -> Option<Self> {
        ratios.sort_by(f64::total_cmp);
        let outside = outside(ratios.len());
        let (low, high) = (*ratios.get(outside)?, *ratios.iter().rev().nth(outside)?);
        Some(Self { low, median: median(ratios)?, high })
    }
}

/// How many of so many samples, in order, may be left out at each end of an interval for their median.
fn outside(count: usize) -> usize {
    let count = i32::try_from(count).unwrap_or(i32::MAX);
    let (mut ways, mut tail) = (1.0, 0.0);
    for left_out in 0..count {
        tail += ways / 2_f64.powi(count);
        if tail > 0.025 {
            return usize::try_from(left_out - 1).unwrap_or(0);
        }
        ways *= f64::from(count - left_out) / f64::from(left_out + 1);
    }
    0
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against tables of the sign test (Conover, Practical Nonparametric Statistics, table A3).
    #[test]
    fn an_interval_for_a_median_leaves_out_what_the_sign_test_does() {
        let outside = [5, 6, 8, 9, 11, 12, 21].map(outside);
        assert_eq!(outside, [0, 0, 0, 1, 1, 2, 5]);
        let speed = Speed::of((0..11).map(f64::from).collect());
        assert_eq!(speed, Some(Speed { low: 1.0, median: 5.0, high: 9.0 }));
        assert_eq!(Speed::of(Vec::new()), None);
    }
}
