// SPDX-License-Identifier: Apache-2.0
//! What follows from the figures of one run: where a path costs less than TCP, where it costs more,
//! and whether a write just above a loopback segment costs more than one just below.

use crate::experiment::{Experiment, Sample, level};
use crate::local::path::LocalPath;
use crate::scenario::margin;
use crate::verdict::{Comparison, Family, Verdict};

/// The largest write that one segment of the loopback interface holds.
const SEGMENT: usize = 65_483;
/// One that clearly fits, and one that takes a second segment.
const WITHIN: usize = 61_440;
const ABOVE: usize = 65_536;

/// The sentences. What was not measured is left out, what could not be told is said to be open.
pub(super) fn sentences(experiment: &Experiment) -> Vec<String> {
    let paths = LocalPath::ALL.into_iter().filter(|path| *path != LocalPath::Tcp);
    let mut said: Vec<String> = paths.filter_map(|path| against_tcp(experiment, path)).collect();
    said.extend(cliff(experiment));
    let skipped = experiment.plan.skipped.iter();
    said.extend(skipped.map(|skipped| format!("not run: {}: {}", skipped.cell, skipped.why)));
    said.extend(experiment.manifest.provenance.settings.get("absent").cloned());
    said
}

/// What a path's cost is against TCP's at one size; what is not resolved counts as not to be told.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Side {
    Less,
    More,
    Same,
    Open,
}

impl From<Verdict> for Side {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Faster => Self::Less,
            Verdict::Slower => Self::More,
            Verdict::Same => Self::Same,
            Verdict::Unresolved { .. } => Self::Open,
        }
    }
}

fn against_tcp(experiment: &Experiment, path: LocalPath) -> Option<String> {
    let arms = [path.word(), LocalPath::Tcp.word()];
    let compared = |cell: &String| {
        let comparison = Comparison::of(&experiment.pairs_of(cell, arms, Sample::cpu_each))?;
        Some((level(cell, SIZE)?.to_owned(), comparison))
    };
    let sizes: Vec<_> = experiment.plan.cells().iter().filter_map(compared).collect();
    let names: Vec<String> = sizes.iter().map(|(size, _)| size.clone()).collect();
    let verdicts = Family::new(sizes, margin(experiment)).verdicts();
    let sides: Vec<(String, Side)> =
        names.into_iter().zip(verdicts.into_iter().map(Side::from)).collect();
    (!sides.is_empty()).then(|| format!("{} against TCP: {} bytes.", path.name(), parts(&sides)))
}

/// The sides with their sizes.
fn parts(sides: &[(String, Side)]) -> String {
    let part = |(wanted, words): (Side, &str)| {
        let ranges = ranges(sides, wanted);
        (!ranges.is_empty()).then(|| format!("{words} at {ranges}"))
    };
    let all = [
        (Side::Less, "costs less CPU for each KB"),
        (Side::More, "costs more"),
        (Side::Same, "costs the same"),
        (Side::Open, "cannot be told from it"),
    ];
    all.into_iter().filter_map(part).collect::<Vec<_>>().join("; ")
}

/// Neighbouring sizes on the same side, as ranges.
fn ranges(sides: &[(String, Side)], wanted: Side) -> String {
    let runs = sides.chunk_by(|left, right| left.1 == right.1).filter(|run| run[0].1 == wanted);
    let range = |run: &[(String, Side)]| match run {
        [(only, _)] => only.clone(),
        [(first, _), .., (last, _)] => format!("{first} to {last}"),
        [] => String::new(),
    };
    runs.map(range).collect::<Vec<_>>().join(", ")
}

fn cliff(experiment: &Experiment) -> Option<String> {
    let over = |size: usize| {
        let cells = [ABOVE, size].map(|size| format!("{SIZE}={size}"));
        let ends = cells.each_ref().map(|cell| (cell.as_str(), LocalPath::Tcp.word()));
        Comparison::of(&experiment.pairs_between(ends, Sample::cpu_each))
    };
    let figures = |comparison: &Comparison, size: usize| {
        let ratio = comparison.ratio();
        format!("{:.2} times [{:.2}, {:.2}] that of {size}", ratio.value, ratio.low, ratio.high)
    };
    let comparison = over(SEGMENT)?;
    let verdict = match comparison.verdict(margin(experiment)) {
        Verdict::Slower => "TCP has a cliff",
        _ => "TCP's cliff is absent here, or too small for this run",
    };
    let within = over(WITHIN).map(|ratio| format!(", and {}", figures(&ratio, WITHIN)));
    Some(format!(
        "{verdict}: one loopback segment holds {SEGMENT} bytes, and each KB of writes of {ABOVE} \
         costs {}{}.",
        figures(&comparison, SEGMENT),
        within.unwrap_or_default()
    ))
}

/// The factor.
pub(super) const SIZE: &str = "write";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Factor, Measured, Plan, Provenance, Recorder};
    use std::collections::BTreeMap;

    /// An experiment in which a KB costs so much, by path and size.
    fn experiment(name: &str, costs: &[(LocalPath, usize, f64)], rounds: usize) -> Experiment {
        let directory = format!("local-words-{name}-{}.labx", std::process::id());
        let directory = std::env::temp_dir().join(directory);
        let mut sizes: Vec<usize> = costs.iter().map(|cost| cost.1).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let levels = sizes.iter().map(usize::to_string).collect();
        let factor = Factor { name: SIZE.to_owned(), levels };
        let arms = LocalPath::ALL.into_iter().filter(|path| costs.iter().any(|c| c.0 == *path));
        let arms: Vec<&str> = arms.map(LocalPath::word).collect();
        let plan = Plan::interleaved(vec![factor], &arms, rounds, 3).unwrap();
        let mut recorder =
            Recorder::create(&directory, Provenance::default(), ["cpu", "wall"], plan).unwrap();
        while let Some(run) = recorder.next().cloned() {
            let is_it = |cost: &&(LocalPath, usize, f64)| {
                cost.0.word() == run.arm && run.level(SIZE) == Some(&cost.1.to_string())
            };
            let cost = costs.iter().find(is_it).unwrap().2;
            let measured = Measured {
                window_ns: [0, 1],
                work: 1024.0,
                cpu_ns: cost * (1.0 + run.repetition as f64 * 1e-4),
                wall_ns: 1.0,
                foreign_cpu: None,
                counters: BTreeMap::new(),
                flags: Vec::new(),
            };
            recorder.record(measured).unwrap();
        }
        recorder.finish().unwrap();
        let experiment = Experiment::read(&directory).unwrap();
        std::fs::remove_dir_all(directory).unwrap();
        experiment
    }

    #[test]
    fn sizes_on_the_same_side_of_tcp_are_ranges() {
        let costs = [(64, 300.0), (128, 200.0), (256, 100.1), (512, 40.0), (1024, 30.0)];
        let both = costs
            .map(|(size, cost)| [(LocalPath::Tcp, size, 100.0), (LocalPath::Unix, size, cost)]);
        assert_eq!(
            sentences(&experiment("sides", both.as_flattened(), 9)),
            [
                "AF_UNIX stream against TCP: costs less CPU for each KB at 512 to 1024; costs more at \
              64 to 128; costs the same at 256 bytes."
            ]
        );
    }

    #[test]
    fn a_cliff_is_told_or_said_to_be_absent() {
        let at = |size, cost| (LocalPath::Tcp, size, cost);
        let said = cliff(&experiment(
            "cliff",
            &[at(61_440, 98.0), at(65_483, 100.0), at(65_536, 147.0)],
            9,
        ));
        let said = said.unwrap();
        assert!(said.starts_with("TCP has a cliff"), "{said}");
        assert!(said.contains("65536 costs 1.47 times [1.47, 1.47] that of 65483"), "{said}");
        assert!(said.ends_with(", and 1.50 times [1.50, 1.50] that of 61440."), "{said}");
        let said = cliff(&experiment("none", &[at(65_483, 100.0), at(65_536, 100.0)], 9)).unwrap();
        assert!(said.starts_with("TCP's cliff is absent here, or too small"), "{said}");
        assert_eq!(cliff(&experiment("one", &[at(65_483, 100.0)], 9)), None);
    }

    #[test]
    fn too_few_rounds_tell_nothing() {
        let costs = [(LocalPath::Tcp, 64, 100.0), (LocalPath::Pipe, 64, 500.0)];
        assert_eq!(
            sentences(&experiment("few", &costs, 2)),
            ["pipe against TCP: cannot be told from it at 64 bytes."]
        );
    }
}
