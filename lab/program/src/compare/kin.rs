// SPDX-License-Identifier: Apache-2.0
//! What two experiments must have in common.

use crate::experiment::Experiment;
use crate::table::digits;
use crate::{Failure, Result};

/// The rate of a time stamp counter is the same on the same machine; so much is measuring.
const RATE: f64 = 1e-3;
/// A core that ran so much faster or slower explains a difference by itself.
const FREQUENCY: f64 = 0.03;

/// What the two do not have in common, in words.
///
/// # Errors
/// They count different things; or they come from different machines or sources, and no option said
/// `anyway`.
pub(super) fn check(a: &Experiment, b: &Experiment, anyway: bool) -> Result<Vec<String>> {
    let (left, right) = (&a.manifest.provenance, &b.manifest.provenance);
    if left.unit != right.unit {
        return Err(Failure::new(format!(
            "A's work is counted by the {}, B's by the {}: there is nothing to compare",
            left.unit, right.unit
        )));
    }
    let serious = serious(a, b);
    if !serious.is_empty() && !anyway {
        return Err(Failure::new(format!(
            "they have too little in common: {}",
            serious.join("; ")
        ))
        .hint("--anyway compares them all the same, and says so"));
    }
    let mut all = serious;
    all.extend(settings(a, b));
    Ok(all)
}

/// What makes the numbers different things.
fn serious(a: &Experiment, b: &Experiment) -> Vec<String> {
    let (left, right) = (&a.manifest.provenance, &b.manifest.provenance);
    let mut found = Vec::new();
    let mut differ = |what: &str, left: &str, right: &str| {
        if left != right {
            found.push(format!("{what}: {left} and {right}"));
        }
    };
    differ("machine", &a.manifest.machine.processor, &b.manifest.machine.processor);
    differ("kernel", &a.manifest.machine.kernel, &b.manifest.machine.kernel);
    let source = |from: &crate::experiment::Provenance| {
        from.sources.get("cpu").cloned().unwrap_or_else(|| "unknown".to_owned())
    };
    differ("CPU time", &source(left), &source(right));
    match (left.ticks_hz, right.ticks_hz) {
        (Some(one), Some(other)) if (one / other - 1.0).abs() <= RATE => {}
        (None, None) => {}
        _ => found.push("the clocks tick at different rates".to_owned()),
    }
    found
}

/// What may explain a difference.
fn settings(a: &Experiment, b: &Experiment) -> Vec<String> {
    let (left, right) = (&a.manifest.provenance, &b.manifest.provenance);
    let mut found = Vec::new();
    if left.scenario != right.scenario {
        found.push(format!("scenario: {} and {}", left.scenario, right.scenario));
    }
    for (name, value) in &left.settings {
        let other = right.settings.get(name);
        if other != Some(value) {
            let other = other.map_or("nothing", String::as_str);
            found.push(format!("{name}: {value} and {other}"));
        }
    }
    if let ([Some(one), _], [Some(other), _]) = (left.core_factor, right.core_factor)
        && (one / other - 1.0).abs() > FREQUENCY
    {
        found.push(format!("core cycles in a tick: {} and {}", digits(one), digits(other)));
    }
    found
}
