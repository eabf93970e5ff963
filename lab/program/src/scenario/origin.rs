// SPDX-License-Identifier: Apache-2.0
//! Where the numbers of an experiment come from on this machine: tried out before the first run, as
//! `lab probe` tries it.

use super::{Head, floor, margin};
use crate::apart::Apart;
use crate::experiment::{Experiment, Provenance, Sample};
use crate::machine::date;
use crate::probe;
use crate::table::digits;
use crate::verdict::Margin;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// What stands in the manifest.
pub(crate) fn provenance(head: Head) -> Provenance {
    let ticks_hz = ticks_hz();
    let ticks = match ticks_hz {
        Some(hz) => {
            format!("time stamp counter at {:.6} GHz × CPU time: not core cycles", hz / 1e9)
        }
        None => "none: CPU time only".to_owned(),
    };
    let sources = BTreeMap::from([
        ("cpu".to_owned(), head.cpu),
        ("ticks".to_owned(), ticks),
        ("machine".to_owned(), "/proc/stat, in ticks of 10 ms; intr is irq + softirq".to_owned()),
    ]);
    let mut settings = head.settings;
    settings.extend(general());
    Provenance {
        scenario: head.name.to_owned(),
        unit: head.unit.to_owned(),
        sources,
        ticks_hz,
        core_factor: [core_factor(), None],
        settings,
        floor: floor::known(),
    }
}

/// What any result may depend on.
fn general() -> impl Iterator<Item = (String, String)> {
    const FILES: [(&str, &str); 2] = [
        ("large pages", "/sys/kernel/mm/transparent_hugepage/enabled"),
        ("clock source", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ];
    FILES.into_iter().filter_map(|(name, path)| {
        Some((name.to_owned(), std::fs::read_to_string(path).ok()?.trim().to_owned()))
    })
}

/// Ticks of the time stamp counter in a second, where it is a clock.
pub(crate) fn ticks_hz() -> Option<f64> {
    probe::figure(probe::time_stamp_rate, "hz")
}

/// Core cycles in a tick of the time stamp counter just now.
pub(crate) fn core_factor() -> Option<f64> {
    probe::figure(probe::core_factor, "factor")
}

/// What every scenario's text begins with: the machine, where the numbers come from, the state.
pub(crate) fn heading(experiment: &Experiment) -> String {
    let manifest = &experiment.manifest;
    let provenance = &manifest.provenance;
    let mut text = format!("{}\n", manifest.machine_line());
    let samples = experiment.samples.len();
    write!(text, "{}, {samples} samples, {}", provenance.scenario, experiment.state).ok();
    match doubtful(experiment).doubtful {
        0 => {}
        count => write!(text, "; {count} while others used the machine or otherwise doubtful")
            .ok()
            .unwrap_or(()),
    }
    text.push('\n');
    let factor = |factor: Option<f64>| factor.map_or_else(|| "unknown".to_owned(), digits);
    let [before, after] = provenance.core_factor.map(factor);
    let cpu = provenance.sources.get("cpu").map_or("unknown", String::as_str);
    // What version 1 of the experiments called cycles.
    let ticks = ["ticks", "cycles"].iter().find_map(|name| provenance.sources.get(*name));
    let ticks = ticks.map_or("unknown", String::as_str);
    writeln!(
        text,
        "CPU time: {cpu}\nticks: {ticks} (core cycles in a tick: {before} before, {after} after)"
    )
    .ok();
    let margin = margin(experiment);
    if let Some(floor) = provenance.floor.as_ref().filter(|_| margin > Margin::new(None)) {
        let (percent, when) = (margin.percent(), date(floor.measured));
        writeln!(
            text,
            "margin of verdicts: {percent:.1} %, as far as two identical arms lay apart at {when}; metaslot lab \
             aa looks again"
        )
        .ok();
    }
    let apart = Apart::of(experiment, Sample::cpu_each);
    if let (Some(largest), Some(reach)) = (apart.largest(), apart.reach()) {
        writeln!(
            text,
            "the same again in the end: up to {:.1} % apart; verdicts between runs leave room for {:.1} %",
            largest.exp_m1() * 100.0,
            reach.exp_m1() * 100.0
        )
        .ok();
    }
    if let Some(lab) = lab_share(experiment) {
        writeln!(
            text,
            "the lab's own work while it measured: {:.2} % of the experiment's",
            lab * 100.0
        )
        .ok();
    }
    text
}

/// How many samples have a flag.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub(crate) struct Doubtful {
    pub(crate) doubtful: usize,
    pub(crate) samples: usize,
}

impl Doubtful {
    /// What stands below a headline; nothing where none is doubtful.
    pub(crate) fn sentence(self) -> Option<String> {
        self.sentence_of("")
    }

    /// The same, with whose samples they are.
    pub(crate) fn sentence_of(self, whose: &str) -> Option<String> {
        let Self { doubtful, samples } = self;
        (doubtful > 0)
            .then(|| format!("{doubtful} of {samples} samples{whose} are doubtful: {DOUBT}"))
    }

    /// Whether most samples are.
    pub(crate) const fn are_most(self) -> bool {
        self.doubtful * 2 > self.samples
    }

    /// A headline that rests on these samples: it begins with the doubt where most of them are doubtful.
    pub(crate) fn headline(self, said: String) -> String {
        if !self.are_most() {
            return said;
        }
        format!("Doubtful, as {} are ({DOUBT}): {}", self.count(), within(&said))
    }

    /// How many they are, for a sentence.
    pub(crate) fn count(self) -> String {
        let Self { doubtful, samples } = self;
        let some = if doubtful == samples { "all".to_owned() } else { format!("{doubtful} of") };
        format!("{some} {samples} samples")
    }
}

/// Why samples are.
pub(crate) const DOUBT: &str = "others used the machine, or it was not steady";

/// A sentence within another one.
fn within(sentence: &str) -> String {
    let mut letters = sentence.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if !second.is_uppercase() => {
            first.to_lowercase().chain(sentence.chars().skip(1)).collect()
        }
        _ => sentence.to_owned(),
    }
}

/// Of an experiment.
pub(crate) fn doubtful(experiment: &Experiment) -> Doubtful {
    let flagged = experiment.samples.iter().filter(|sample| !sample.measured.flags.is_empty());
    Doubtful { doubtful: flagged.count(), samples: experiment.samples.len() }
}

/// The lab's own CPU time inside the windows over the experiment's.
pub(crate) fn lab_share(experiment: &Experiment) -> Option<f64> {
    let samples = || experiment.samples.iter().map(|sample| &sample.measured);
    let lab = samples().filter_map(|sample| sample.counters.get("lab_ns").copied());
    let lab: f64 = lab.reduce(|sum, one| sum + one)?;
    let own: f64 = samples().map(|sample| sample.cpu_ns).sum();
    (own > 0.0).then_some(lab / own)
}
