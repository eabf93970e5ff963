// SPDX-License-Identifier: Apache-2.0
//! What is concluded from samples whose truth is known.

use super::findings::Findings;
use super::{json, print};
use crate::crossover::{SizePoint, Way};
use crate::experiment::{Experiment, Factor, Measured, Plan, Provenance, Recorder, Run};
use crate::random::Random;
use std::collections::BTreeMap;

const SIZES: [&str; 4] = ["1K", "4K", "16K", "64K"];
const ARMS: [&str; 4] = ["libc", "avx2", "nt-avx2", "ours"];

fn factor(name: &str, levels: &[&str]) -> Factor {
    Factor { name: name.to_owned(), levels: levels.iter().map(|&level| level.to_owned()).collect() }
}

/// CPU time of a byte: streams past the cache cost less from 8K on, in the caches they never do. Large pages
/// take a quarter away, and a copy alone is always faster past the cache.
fn cost(run: &Run, size: f64) -> f64 {
    let pages = if run.level("pages") == Some("2M") { 0.75 } else { 1.0 };
    let past = match run.level("state") {
        Some("memory") => (8192.0 / size).powf(0.3),
        _ => 3.0,
    };
    pages
        * match run.arm.as_str() {
            "libc" => 1.1,
            "nt-avx2" => past,
            _ => 1.0,
        }
}

fn measured(run: &Run, random: &mut Random) -> Measured {
    let size = super::words::size(run.level("size").unwrap()).unwrap() as f64;
    let noise = random.unit().mul_add(0.02, 0.99);
    let alone = if run.arm == "nt-avx2" { 500.0 } else { 900.0 };
    Measured {
        window_ns: [0, 1],
        work: size,
        cpu_ns: cost(run, size) * size * noise,
        wall_ns: size,
        foreign_cpu: None,
        counters: BTreeMap::from([("latency_ns".to_owned(), alone * noise)]),
        flags: Vec::new(),
    }
}

/// An experiment of known truth.
fn experiment(name: &str) -> Experiment {
    repeated(name, 12)
}

/// The same, with so many repetitions.
fn repeated(name: &str, repetitions: usize) -> Experiment {
    let factors = vec![
        factor("state", &["memory", "cached"]),
        factor("pages", &["4K", "2M"]),
        factor("consumer", &["nobody"]),
        factor("size", &SIZES),
    ];
    let plan = Plan::interleaved(factors, &ARMS, repetitions, 1).unwrap();
    let directory = std::env::temp_dir().join(format!("{name}-{}.labx", std::process::id()));
    let provenance = Provenance {
        scenario: "copy".to_owned(),
        unit: "byte".to_owned(),
        settings: BTreeMap::from([("first touch".to_owned(), "unknown".to_owned())]),
        ..Provenance::default()
    };
    let mut recorder = Recorder::create(&directory, provenance, ["cpu", "wall"], plan).unwrap();
    let mut random = Random::new(7);
    while let Some(run) = recorder.next().cloned() {
        recorder.record(measured(&run, &mut random)).unwrap();
    }
    recorder.finish().unwrap();
    let experiment = Experiment::read(&directory).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    experiment
}

#[test]
fn crossovers_are_where_the_costs_are_equal() {
    let experiment = experiment("copy-crossovers");
    let findings = Findings::of(&experiment);
    assert_eq!(findings.groups.len(), 4);
    for sizes in &findings.groups {
        let crossover = findings.crossover(sizes).unwrap();
        match crossover.at {
            SizePoint::At(at) => {
                let found = (sizes.group.state, crossover.above);
                assert_eq!(found, (super::State::Memory, Way::First));
                assert!((7000.0..9400.0).contains(&at), "{at}");
            }
            _ => assert_eq!(crossover.always(), Some(Way::Second), "{:?}", sizes.group),
        }
        // Of copies alone the latency decides, and it says the same at every size.
        assert_eq!(findings.crossover_alone(sizes).unwrap().always(), Some(Way::First));
    }
}

#[test]
fn the_sentence_says_where_a_stream_costs_less_and_where_it_never_does() {
    let said = print::finding(&experiment("copy-sentence")).unwrap();
    let parts: Vec<&str> = said.split(": ").nth(1).unwrap().split("; ").collect();
    let begins = ["from 8.", "from 8.", "at no size (", "at no size ("];
    assert_eq!(parts.len(), 4, "{said}");
    assert!(parts.iter().zip(begins).all(|(part, begin)| part.starts_with(begin)), "{said}");
    assert!(parts[0].ends_with(" (in memory, not in a cache, 4K pages, nobody reads)"), "{said}");
    let said = print::finding(&repeated("copy-open", 6)).unwrap();
    assert!(said.ends_with("is not resolved in any of 4 states of the memory"), "{said}");
}

#[test]
fn the_best_kernels_are_compared_and_large_pages_too() {
    let experiment = experiment("copy-best");
    let findings = Findings::of(&experiment);
    let cell = "state=memory pages=4K consumer=nobody size=64K";
    let sizes = &findings.groups[0];
    assert_eq!(findings.best(sizes, cell, |_| true), Some("nt-avx2"));
    let past = findings.past(sizes, cell).unwrap();
    assert_eq!((past.past.as_str(), past.into.as_str()), ("nt-avx2", "avx2"));
    let headline = findings.best_over_libc().headline();
    assert_eq!((headline.cells, headline.faster), (16, 16));
    let pages = findings.large_over_small();
    assert_eq!(pages.len(), 2);
    for (comparison, _) in pages.iter().flat_map(|(_, sizes)| sizes.values()) {
        assert!((comparison.ratio().value - 0.75).abs() < 0.02);
    }
}

#[test]
fn text_and_json_say_the_same() {
    let experiment = experiment("copy-print");
    let text = print::text(&experiment);
    let row = text.lines().find(|line| line.starts_with("memory 4K nobody")).unwrap();
    let fields: Vec<&str> = row.split_ascii_whitespace().collect();
    assert_eq!(fields[3..7], ["cache", "cache", "past", "past"]);
    assert!(row.contains("from 8.") || row.contains("from 7."), "{row}");
    assert!(row.ends_with("every size"), "{row}");
    assert!(
        text.contains("in 12 of 16 cells where both are resolved, a copy alone says the opposite")
    );
    let json = json::summary(&experiment);
    let group = &json["copy"]["groups"][0];
    assert_eq!((&group["state"], &group["pages"]), (&"memory".into(), &"4K".into()));
    assert_eq!(group["sizes"][0]["verdict"], "slower");
    assert_eq!(group["sizes"][3]["verdict"], "faster");
    assert!(group["crossover"]["at"]["at"].as_f64().is_some_and(|at| (7e3..9.4e3).contains(&at)));
}

#[test]
fn an_interrupted_experiment_is_printed_as_far_as_it_came() {
    let mut experiment = experiment("copy-torn");
    experiment.samples.truncate(5);
    assert!(print::text(&experiment).contains("GB/s"));
    experiment.samples.clear();
    assert!(print::text(&experiment).contains("GB/s"));
}
