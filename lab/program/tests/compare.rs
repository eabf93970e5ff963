// SPDX-License-Identifier: Apache-2.0
//! `lab compare` and `lab print` on experiments whose samples are known.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use metaslot_lab::experiment::{Factor, Measured, Plan, Provenance, Recorder};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory that goes away.
struct Sandbox(PathBuf);

impl Sandbox {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("compare-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn lab(&self, arguments: &[&str]) -> Output {
        let mut lab = Command::new(env!("CARGO_BIN_EXE_metaslot-lab"));
        lab.args(arguments).current_dir(&self.0).output().unwrap()
    }

    fn text(&self, arguments: &[&str]) -> String {
        let output = self.lab(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.text(arguments)).unwrap()
    }

    fn refusal(&self, arguments: &[&str]) -> String {
        let output = self.lab(arguments);
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// The page without its style and pictures, tags balanced.
fn assert_well_formed(html: &str) {
    let mut open: Vec<&str> = Vec::new();
    for tag in html.split('<').skip(1).map(|rest| rest.split('>').next().unwrap()) {
        let name = tag.split([' ', '/', '\n']).find(|name| !name.is_empty()).unwrap_or(tag);
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{tag}");
        } else if !(tag.ends_with('/') || matches!(name, "!doctype" | "meta" | "link")) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

/// Arm `new` costs `new` for each byte, `old` 100; a write of 8K a tenth more than one of 64K.
fn experiment(path: &Path, unit: &str, source: &str, new: f64) {
    let levels = vec!["8K".to_owned(), "64K".to_owned()];
    let factor = Factor { name: "write".to_owned(), levels };
    let plan = Plan::interleaved(vec![factor], &["new", "old"], 10, 1).unwrap();
    let provenance = Provenance {
        scenario: "made".to_owned(),
        unit: unit.to_owned(),
        sources: BTreeMap::from([("cpu".to_owned(), source.to_owned())]),
        ticks_hz: Some(2e9),
        ..Provenance::default()
    };
    let mut recorder = Recorder::create(path, provenance, ["cpu", "wall"], plan).unwrap();
    while let Some(run) = recorder.next().cloned() {
        let cost = if run.arm == "new" { new } else { 100.0 };
        let cost = if run.level("write") == Some("8K") { cost * 1.1 } else { cost };
        let cpu_ns = cost * 1000.0 * (1.0 + run.repetition as f64 * 1e-4);
        recorder
            .record(Measured {
                window_ns: [0, 1],
                work: 1000.0,
                cpu_ns,
                wall_ns: 2.0 * cpu_ns,
                foreign_cpu: Some(0.0),
                counters: BTreeMap::from([("segments".to_owned(), 50.0)]),
                flags: Vec::new(),
            })
            .unwrap();
    }
    recorder.finish().unwrap();
}

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
fn a_report_is_one_file_without_network_or_script() {
    let place = Sandbox::new("report");
    experiment(&place.0.join("a<b.labx"), "byte", "thread", 90.0);
    experiment(&place.0.join("b.labx"), "byte", "thread", 60.0);
    let said = place.text(&["report", "a<b.labx", "b.labx"]);
    assert!(said.starts_with("written: a<b.html ("), "{said}");
    let html = std::fs::read_to_string(place.0.join("a<b.html")).unwrap();
    assert_well_formed(&html);
    assert!(html.len() < 200_000);
    for foreign in ["http:", "https:", "<script", "src=", "@import", "url(", "NaN"] {
        assert!(!html.contains(foreign), "{foreign}");
    }
    assert!(
        html.contains("A is faster in 0, slower in 2, the same in 2")
            && html.contains("a&lt;b.labx")
    );
    assert_eq!(html.matches("class=\"forest\"").count(), 4);
    place.text(&["report", "b.labx", "-o", "one.html"]);
    let html = std::fs::read_to_string(place.0.join("one.html")).unwrap();
    assert_well_formed(&html);
    assert!(html.contains("new is the cheapest of 2 in 2 of 2 cells"), "{html}");
    assert!(place.refusal(&["report", "c.labx"]).contains("c.labx"));
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
