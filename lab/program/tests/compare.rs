// SPDX-License-Identifier: Apache-2.0
//! `lab compare`, `lab cross` and `lab print` on experiments whose samples are known.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod made;

use made::{Made, Sandbox, experiment, made as make, measured, provenance};
use metaslot_lab::experiment::{Factor, Measured, Plan, Provenance, Recorder, Run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

#[test]
fn arms_of_one_experiment_are_compared_in_pairs() {
    let place = Sandbox::new("arms");
    experiment(&place.0.join("x.labx"), "byte", "thread", 90.0);
    let report = place.json(&["compare", "x.labx", "--json"]);
    assert_eq!((&report["paired"], &report["faster"]), (&Value::Bool(true), &Value::from(2)));
    assert_eq!(report["cells"][0]["verdict"], "faster");
    let ratio = report["cells"][0]["ratio"]["value"].as_f64().unwrap();
    assert!((ratio - 0.9).abs() < 1e-6, "{ratio}");
    // 100 ns a byte of 64K writes by a clock of 2 GHz.
    let cost = report["cells"][1]["b_cost"].as_f64().unwrap();
    assert!((cost / (100.0 * 1024.0 * 2.0) - 1.0).abs() < 1e-3, "{cost}");
    let text = place.text(&["compare", "x.labx", "--arm", "old"]);
    assert!(text.contains("old is slower than new: it costs 11.1 % more"), "{text}");
}

#[test]
fn cells_of_one_experiment_are_compared_in_pairs() {
    let place = Sandbox::new("cells");
    experiment(&place.0.join("x.labx"), "byte", "thread", 90.0);
    let options = ["compare", "x.labx", "--cell", "write=8K", "--against-cell", "write=64K"];
    let text = place.text(&options);
    assert!(text.contains("write=8K is slower than write=64K: it costs 10.0 % more"), "{text}");
    let refusal = place.refusal(&["compare", "x.labx", "--cell", "write=9K"]);
    assert!(refusal.contains("there are: write=8K; write=64K"), "{refusal}");
    let refusal = place.refusal(&["compare", "x.labx", "--arm", "newer"]);
    assert!(refusal.contains("there are: new, old"), "{refusal}");
}

#[test]
fn two_experiments_are_compared_as_groups() {
    let place = Sandbox::new("two");
    experiment(&place.0.join("a.labx"), "byte", "thread", 90.0);
    experiment(&place.0.join("b.labx"), "byte", "thread", 60.0);
    let report = place.json(&["compare", "a.labx", "b.labx", "--json"]);
    assert_eq!(report["paired"], false);
    let verdicts: Vec<&str> =
        (0..4).map(|at| report["cells"][at]["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["slower", "same", "slower", "same"]);
    let text = place.text(&["compare", "a.labx", "b.labx", "--arm", "new", "--margin", "60"]);
    assert!(text.contains("A and B are the same within 60.0 %"), "{text}");
}

/// An experiment of one arm, whose first cells cost `again` times as much when they are run once more.
fn with_again(path: &Path, cost: f64, again: f64) {
    let factors: &[(&str, &[&str])] = &[("write", &["1K", "8K", "64K"])];
    let like = Made { factors, arms: &["own"], repetitions: 9, provenance: provenance() };
    let mut recorder =
        make(path, &like, |run| measured(cost * (1.0 + run.repetition as f64 * 1e-4)));
    for repetition in 9..12 {
        for cell in ["write=1K", "write=8K", "write=64K"] {
            let run = Run { cell: cell.to_owned(), repetition, arm: "own".to_owned() };
            recorder.again(run, measured(cost * again)).unwrap();
        }
    }
    recorder.finish().unwrap();
}

#[test]
fn two_runs_of_the_same_code_are_no_verdict_where_each_lies_as_far_from_itself() {
    let place = Sandbox::new("again");
    with_again(&place.0.join("a.labx"), 123.3, 1.10);
    with_again(&place.0.join("b.labx"), 100.0, 0.93);
    let report = place.json(&["compare", "a.labx", "b.labx", "--json"]);
    assert_eq!((&report["slower"], &report["paired"]), (&Value::from(0), &Value::Bool(false)));
    let apart = report["apart_percent"].as_f64().unwrap();
    // The three cells of a run were started afresh together: two runs are two differences, and not six.
    assert!((40.0..48.0).contains(&apart), "{report}");
    let ratio = &report["cells"][0]["ratio"];
    assert!(ratio["low"].as_f64() < Some(1.02) && ratio["high"].as_f64() > Some(1.4), "{ratio}");
    let text = place.text(&["compare", "a.labx", "b.labx"]);
    assert!(
        text.contains("unresolved, between runs") && text.contains("each interval is widened by")
    );
    assert!(text.contains("the same code lies as far apart from run to run"), "{text}");
}

#[test]
fn a_difference_beyond_what_runs_differ_by_is_a_verdict_and_marked_as_one_between_runs() {
    let place = Sandbox::new("beyond");
    with_again(&place.0.join("a.labx"), 160.0, 1.04);
    with_again(&place.0.join("b.labx"), 100.0, 0.98);
    let text = place.text(&["compare", "a.labx", "b.labx"]);
    assert_eq!(text.matches("slower, between runs").count(), 3, "{text}");
    let printed = place.text(&["print", "a.labx"]);
    assert!(printed.contains("the same again in the end: up to 4.0 % apart"), "{printed}");
}

#[test]
fn runs_that_were_not_run_again_are_compared_with_a_warning() {
    let place = Sandbox::new("unknown");
    experiment(&place.0.join("a.labx"), "byte", "thread", 90.0);
    experiment(&place.0.join("b.labx"), "byte", "thread", 60.0);
    let text = place.text(&["compare", "a.labx", "b.labx"]);
    assert!(
        text.contains("runs of the same code lie was not measured")
            && text.contains("slower, between runs")
    );
}

/// Six repetitions of one arm that is clearly cheaper above 4K and dearer below, with ten curves.
fn few(path: &Path, repetitions: usize) {
    let curves = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    let factors: &[(&str, &[&str])] = &[("curve", &curves), ("size", &["1K", "4K", "16K", "64K"])];
    let like = Made { factors, arms: &["flat", "falling"], repetitions, provenance: provenance() };
    let sample = |run: &Run| {
        let size = match run.level("size") {
            Some("1K") => 0.5,
            Some("4K") => 0.9,
            Some("16K") => 1.5,
            _ => 2.0,
        };
        let cost = if run.arm == "flat" { 100.0 } else { 100.0 / size };
        measured(cost * (1.0 + run.repetition as f64 * 1e-4))
    };
    make(path, &like, sample).finish().unwrap();
}

#[test]
fn no_crossover_is_claimed_that_no_verdict_carries() {
    let place = Sandbox::new("carried");
    few(&place.0.join("six.labx"), 6);
    few(&place.0.join("twelve.labx"), 12);
    let summary = place.json(&["print", "six.labx", "--json"]);
    let open =
        |cell: &Value| cell["verdict"].is_null() || cell["verdict"]["unresolved"].is_object();
    assert!(summary["cells"].as_array().unwrap().iter().all(open), "{summary}");
    let text = place.text(&["cross", "six.labx"]);
    assert!(text.contains("unclear") && !text.contains("to 16K"), "{text}");
    let text = place.text(&["cross", "twelve.labx"]);
    assert!(text.contains("5.3K to 5.3K") && !text.contains("unclear"), "{text}");
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let place = Sandbox::new("refused");
    experiment(&place.0.join("a.labx"), "byte", "thread", 90.0);
    experiment(&place.0.join("b.labx"), "operation", "thread", 90.0);
    experiment(&place.0.join("c.labx"), "byte", "cgroup", 90.0);
    let refusal = place.refusal(&["compare", "a.labx", "b.labx", "--anyway"]);
    assert!(refusal.contains("there is nothing to compare"), "{refusal}");
    let refusal = place.refusal(&["compare", "a.labx", "c.labx"]);
    assert!(refusal.contains("CPU time: thread and cgroup") && refusal.contains("--anyway"));
    let text = place.text(&["compare", "a.labx", "c.labx", "--anyway"]);
    assert!(text.contains("not the same: CPU time: thread and cgroup"), "{text}");
    let refusal = place.refusal(&["compare", "a.labx", "d.labx"]);
    assert!(refusal.contains("d.labx"), "{refusal}");
}

#[test]
fn every_form_of_print_is_of_the_same_samples() {
    let place = Sandbox::new("forms");
    experiment(&place.0.join("x.labx"), "byte", "thread", 90.0);
    let summary = place.json(&["print", "x.labx", "--json"]);
    assert_eq!(summary["cells"].as_array().unwrap().len(), 4);
    assert_eq!(summary["cells"][0]["samples"], 10);
    assert_eq!(summary["schema"], "metaslot-lab-summary/2");
    assert!(summary["cells"][0]["ticks"].is_number() && summary["cells"][0]["cycles"].is_null());
    assert_eq!(summary["cells"][0]["counters_per_unit"]["segments"], 0.05);
    let csv = place.text(&["print", "x.labx", "--form", "csv"]);
    assert_eq!(csv.lines().count(), 41);
    assert!(csv.lines().next().unwrap().ends_with("flags,segments"));
    let markdown = place.text(&["print", "x.labx", "--form", "markdown"]);
    assert!(
        markdown.contains("| write=8K | old | 10 |") && markdown.contains("1.111"),
        "{markdown}"
    );
    let text = place.text(&["print", "x.labx"]);
    assert!(text.contains("made, 40 samples, sealed"), "{text}");
}

#[test]
fn two_arms_of_curves_change_places_where_their_costs_do() {
    let place = Sandbox::new("cross");
    crossing(&place.0.join("x.labx"));
    let report = place.json(&["cross", "x.labx", "--json"]);
    let crossover = &report["crossovers"][0];
    // 1000 / size = size / 4000 at 2000.
    let at = crossover["at"]["at"].as_f64().unwrap();
    assert!((1_900.0..2_100.0).contains(&at), "{crossover}");
    assert_eq!(
        (&crossover["arm"], &crossover["above"]),
        (&Value::from("rising"), &Value::from("second"))
    );
    assert_eq!(report["cliffs"][0]["from"], 8192.0);
    assert_eq!(report["cliffs"].as_array().unwrap().len(), 1, "{report}");
    let text = place.text(&["cross", "x.labx"]);
    assert!(text.contains("8K to 16K") && text.contains("crossovers along size"), "{text}");
    let refusal = place.refusal(&["cross", "x.labx", "--x", "colour"]);
    assert!(refusal.contains("numbers are: size"), "{refusal}");
}

/// One arm's cost falls with the size, the other's rises, and has a cliff above 8K.
fn crossing(path: &Path) {
    let levels = ["256", "1K", "4K", "8K", "16K", "64K"].map(str::to_owned);
    let factor = Factor { name: "size".to_owned(), levels: levels.into() };
    let plan = Plan::interleaved(vec![factor], &["falling", "rising"], 8, 1).unwrap();
    let provenance = Provenance { unit: "copy".to_owned(), ..Provenance::default() };
    let mut recorder = Recorder::create(path, provenance, ["cpu", "wall"], plan).unwrap();
    while let Some(run) = recorder.next().cloned() {
        let level = run.level("size").unwrap();
        let size: f64 = level.strip_suffix('K').map_or_else(
            || level.parse().unwrap(),
            |thousands| thousands.parse::<f64>().unwrap() * 1024.0,
        );
        let cliff = if size > 9000.0 { 1.5 } else { 1.0 };
        let cost = if run.arm == "rising" { cliff * size / 4.0 } else { 1e6 / size };
        let cpu_ns = cost * (1.0 + run.repetition as f64 * 1e-4);
        recorder
            .record(Measured {
                window_ns: [0, 1],
                work: 1.0,
                cpu_ns,
                wall_ns: cpu_ns,
                foreign_cpu: None,
                counters: BTreeMap::new(),
                flags: Vec::new(),
            })
            .unwrap();
    }
    recorder.finish().unwrap();
}

#[test]
fn mixes_and_what_threads_gain_are_judged_with_all_of_them_in_view() {
    let place = Sandbox::new("families");
    let provenance = |scenario: &str| Provenance { scenario: scenario.to_owned(), ..provenance() };
    let mixes: &[(&str, &[&str])] = &[("mix", &["a", "b", "c"]), ("by", &["module", "routed"])];
    let sun: &[(&str, &[&str])] = &[
        ("operation", &["md5-8K", "sha1-8K"]),
        ("threads", &["1", "2"]),
        ("by", &["raw", "module"]),
    ];
    let dear = |run: &Run, factor, level| if run.level(factor) == Some(level) { 1.5 } else { 1.0 };
    // Six clear pairs decide one comparison, and none of two.
    for (repetitions, verdict, disturbed) in
        [(6, "unresolved", "unresolved"), (12, "slower", "they disturb each other")]
    {
        let made = |scenario, factors, name: &str, sample: &dyn Fn(&Run) -> f64| {
            let like = Made {
                factors,
                arms: &["measured"],
                repetitions,
                provenance: provenance(scenario),
            };
            let path = place.0.join(format!("{name}-{repetitions}.labx"));
            let noise = |run: &Run| 1.0 + run.repetition as f64 * 1e-4 * sample(run);
            make(&path, &like, |run| measured(sample(run) * noise(run))).finish().unwrap();
            place.text(&["print", path.to_str().unwrap()])
        };
        let text = made("mix", mixes, "mix", &|run| dear(run, "by", "routed"));
        assert_eq!(text.matches(verdict).count(), 3, "{text}");
        let text =
            made("speed", sun, "sun", &|run| dear(run, "by", "module") * dear(run, "threads", "2"));
        let rows = text.lines().filter(|line| line.ends_with(disturbed)).count();
        assert_eq!(rows, 4, "{text}");
    }
}
