// SPDX-License-Identifier: Apache-2.0
//! Which clock, counter and sampler a number comes from on this machine, and why not from a better
//! one.

use super::ability::Finding;
use serde::{Deserialize, Serialize};

/// Where one kind of number comes from.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Source {
    pub(crate) number: String,
    pub(crate) source: String,
    /// What to know about it.
    pub(crate) note: String,
}

/// A place that a number can come from: the abilities that it needs, its name, what to know.
type Choice = (&'static [&'static str], &'static str, &'static str);

/// The kinds of numbers, each with its sources from the best to the last one, which needs nothing.
const CHOICES: &[(&str, &[Choice])] = &[
    (
        "wall.source",
        &[
            (&["time-stamp"], "tsc", "rate measured against CLOCK_MONOTONIC_RAW"),
            (&[], "clock_monotonic_raw", "no steady time stamp"),
        ],
    ),
    (
        "cpu.source",
        &[
            (&["cgroup-v1"], "cgroup-v1 cpuacct.usage", "own group, nanoseconds"),
            (&["cgroup-v2"], "cgroup-v2 cpu.stat", "own group, microseconds"),
            (&[], "getrusage", "own processes; what they do in others is not seen"),
        ],
    ),
    (
        "cycles.source",
        &[
            (&["cycles"], "pmu", "core cycles"),
            (&["time-stamp"], "tsc × cpu time", "ticks of the time stamp, not core cycles"),
            (&[], "none", "CPU time only"),
        ],
    ),
    (
        "instructions.source",
        &[
            (&["instructions"], "pmu", "counted by the processor"),
            (&[], "none", "the processor's counters are not seen"),
        ],
    ),
    (
        "profile.source",
        &[
            (&["cycles", "cycle-samples", "whole-cpu"], "cycles", "all threads, the kernel too"),
            (
                &["clock-samples", "whole-cpu"],
                "cpu-clock",
                "a timer: work with interrupts off shows where they are allowed again",
            ),
            (&["clock-samples"], "cpu-clock (own)", "a timer, the experiment's own threads only"),
            (&[], "sigprof", "the program's own code only"),
        ],
    ),
    (
        "intr.source",
        &[
            (&["bpf-softirq"], "bpf-softirq", "nanoseconds, by kind of soft interrupt"),
            (&["proc-stat"], "procstat-tick", "irq + softirq in ticks; short ones are missed"),
            (&[], "none", "interrupts are not told apart"),
        ],
    ),
];

/// The best source of each number among those whose abilities work.
pub(crate) fn choose(findings: &[Finding]) -> Vec<Source> {
    let works = |name: &str| findings.iter().any(|found| found.name == name && found.works());
    CHOICES
        .iter()
        .filter_map(|(number, choices)| {
            let usable = |choice: &&Choice| choice.0.iter().all(|name| works(name));
            let (_, source, note) = choices.iter().find(usable)?;
            Some(Source {
                number: (*number).to_owned(),
                source: (*source).to_owned(),
                note: (*note).to_owned(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::ability::Verdict;
    use super::super::table::ABILITIES;
    use super::*;
    use std::collections::BTreeMap;

    fn finding(name: &str, verdict: Verdict) -> Finding {
        Finding {
            group: String::new(),
            name: name.to_owned(),
            verdict,
            says: String::new(),
            error: None,
            needs: String::new(),
            figures: BTreeMap::new(),
            how: String::new(),
            purpose: String::new(),
            fallback: String::new(),
        }
    }

    fn source<'a>(sources: &'a [Source], number: &str) -> &'a str {
        &sources.iter().find(|source| source.number == number).unwrap().source
    }

    #[test]
    fn the_best_source_that_works_is_chosen() {
        let all = ABILITIES.iter().map(|ability| finding(ability.name, Verdict::Works));
        let best = choose(&all.collect::<Vec<_>>());
        assert_eq!(source(&best, "cycles.source"), "pmu");
        assert_eq!(source(&best, "intr.source"), "bpf-softirq");
        let last = choose(&[]);
        assert_eq!(source(&last, "cycles.source"), "none");
        assert_eq!(source(&last, "profile.source"), "sigprof");
        assert_eq!(best.len(), last.len());
    }

    #[test]
    fn an_implausible_counter_is_no_source() {
        let found =
            [finding("cycles", Verdict::Implausible), finding("time-stamp", Verdict::Works)];
        assert_eq!(source(&choose(&found), "cycles.source"), "tsc × cpu time");
    }

    #[test]
    fn every_ability_that_a_source_needs_has_a_row() {
        let needed = CHOICES.iter().flat_map(|(_, choices)| *choices).flat_map(|choice| choice.0);
        for name in needed {
            assert!(ABILITIES.iter().any(|ability| ability.name == *name), "{name}");
        }
    }
}
