// SPDX-License-Identifier: Apache-2.0
//! The text format of Prometheus, version 0.0.4: what all processes did together, also those that have ended, and what each
//! that lives does.

use super::difference;
use super::group::{self, By, Name};
use super::name::{code, event, mechanism};
use metaslot_counters::Event;
use metaslot_counters::layout::{SIZE_LIMITS, bucket_end};
use metaslot_counters::read::{Cell, Process};
use std::fmt::Write;
use std::slice;
use std::time::Duration;

/// Every counter. Totals have no process: they go on when one ends. What has one ends with it.
pub(super) fn text(processes: &[Process]) -> String {
    let (ended, living): (Vec<_>, Vec<_>) =
        processes.iter().cloned().partition(|process| process.ended > 0);
    let total = difference::sum(processes);
    let mut out = String::new();
    let number = |count: u64| [(String::new(), count)];
    let help = "processes that count";
    metric(&mut out, "metaslot_processes", "gauge", help, &number(living.len() as u64));
    let ended = ended.iter().fold(0, |sum: u64, one| sum.saturating_add(one.ended));
    let help = "processes that counted and have ended";
    metric(&mut out, "metaslot_processes_ended_total", "counter", help, &number(ended));
    operations(&mut out, &total);
    calls(&mut out, &total);
    each(&mut out, &living);
    out
}

/// Name, help and value of a metric.
type Metric = (&'static str, &'static str, fn(&Cell) -> u64);

fn operations(out: &mut String, total: &Process) {
    let total = slice::from_ref(total);
    let by = [By::Provider, By::Mechanism, By::Size];
    let metrics: [Metric; 3] = [
        ("metaslot_operations_total", "operations done", |cell| cell.operations),
        ("metaslot_operation_bytes_total", "bytes of input of operations", |cell| cell.bytes),
        ("metaslot_operation_errors_total", "operations that failed", |cell| cell.errors),
    ];
    counts(out, total, &by, metrics);
    let name = "metaslot_operation_seconds";
    header(out, name, "histogram", "time of the operations whose time was taken, a sample");
    for (names, cell) in group::rows(total, &by[..2]) {
        histogram(out, name, &name_labels(&names), &cell);
    }
}

fn counts(out: &mut String, processes: &[Process], by: &[By], metrics: [Metric; 3]) {
    let rows = group::rows(processes, by);
    for (name, help, value) in metrics {
        let rows = rows.iter().map(|(names, cell)| (name_labels(names), value(cell)));
        metric(out, name, "counter", help, &rows.collect::<Vec<_>>());
    }
}

fn calls(out: &mut String, total: &Process) {
    let calls = total.calls.iter();
    let counts =
        calls.map(|(function, calls)| (labels(&[("function", function.name())]), calls.calls));
    let help = "calls of C functions";
    metric(out, "metaslot_calls_total", "counter", help, &counts.collect::<Vec<_>>());
    let answers = total.codes.iter().map(|(function, rv, count)| {
        (labels(&[("function", function.name()), ("code", &code(*rv))]), *count)
    });
    let help = "calls that failed, by code";
    metric(out, "metaslot_call_errors_total", "counter", help, &answers.collect::<Vec<_>>());
    let events = total.events.iter().filter(|(what, _)| *what != Event::MemoryNotLocked);
    let events = events.map(|(what, count)| (labels(&[("event", event(*what))]), *count));
    metric(out, "metaslot_events_total", "counter", "rare events", &events.collect::<Vec<_>>());
}

/// What is of each process that lives.
fn each(out: &mut String, processes: &[Process]) {
    let metrics: [Metric; 3] = [
        ("metaslot_process_operations_total", "operations of a process", |cell| cell.operations),
        ("metaslot_process_operation_bytes_total", "bytes of their input", |cell| cell.bytes),
        ("metaslot_process_operation_errors_total", "those that failed", |cell| cell.errors),
    ];
    counts(out, processes, &[By::Process, By::Provider, By::Mechanism, By::Size], metrics);
    let (mut levels, mut waiting, mut longest) = (vec![], vec![], vec![]);
    for process in processes {
        let pid = process.pid.to_string();
        let labels = labels(&[("pid", pid.as_str()), ("program", &process.program)]);
        let seconds = process.outside.iter().max().map_or(0, Duration::as_secs);
        let level = process.events.iter().find(|row| row.0 == Event::MemoryNotLocked);
        levels.extend(level.map(|(_, level)| (labels.clone(), *level)));
        waiting.push((labels.clone(), process.outside.len() as u64));
        longest.push((labels, seconds));
    }
    let help = "1 where memory for secrets could not be locked";
    metric(out, "metaslot_memory_not_locked", "gauge", help, &levels);
    let help = "threads in calls of other modules";
    metric(out, "metaslot_in_other_modules", "gauge", help, &waiting);
    let help = "for how long the longest of them";
    metric(out, "metaslot_in_other_modules_longest_seconds", "gauge", help, &longest);
}

fn header(out: &mut String, name: &str, kind: &str, help: &str) {
    write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n").ok();
}

pub(super) fn metric(out: &mut String, name: &str, kind: &str, help: &str, rows: &[(String, u64)]) {
    header(out, name, kind, help);
    for (labels, value) in rows {
        match labels.is_empty() {
            true => writeln!(out, "{name} {value}").ok(),
            false => writeln!(out, "{name}{{{labels}}} {value}").ok(),
        };
    }
}

fn histogram(out: &mut String, name: &str, labels: &str, cell: &Cell) {
    let mut passed: u64 = 0;
    for (bucket, count) in cell.buckets.iter().enumerate() {
        passed = passed.saturating_add(*count);
        let limit = bucket_end(bucket).map_or_else(|| "+Inf".to_owned(), seconds);
        writeln!(out, "{name}_bucket{{{labels},le=\"{limit}\"}} {passed}").ok();
    }
    writeln!(out, "{name}_sum{{{labels}}} {}", seconds(cell.nanoseconds)).ok();
    writeln!(out, "{name}_count{{{labels}}} {passed}").ok();
}

fn seconds(nanoseconds: u64) -> String {
    format!("{}.{:09}", nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000)
}

fn name_labels(names: &[Name]) -> String {
    let mut all = Vec::new();
    for name in names {
        match name {
            Name::Process(pid, program) => {
                all.extend([("pid", pid.to_string()), ("program", program.clone())]);
            }
            Name::Provider(provider) => all.push(("provider", provider.clone())),
            Name::Mechanism(number) => all.push(("mechanism", mechanism(*number))),
            Name::Size(class) => {
                let limit =
                    SIZE_LIMITS.get(*class).map_or_else(|| "inf".to_owned(), usize::to_string);
                all.push(("size", limit));
            }
        }
    }
    labels(&all.iter().map(|(name, value)| (*name, value.as_str())).collect::<Vec<_>>())
}

pub(super) fn labels(values: &[(&str, &str)]) -> String {
    let escaped = |text: &str| text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
    let labels = values.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
    labels.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_ck::{CKM_SHA256, CKR_PIN_INCORRECT, Function};
    use metaslot_counters::layout::BUCKET_COUNT;
    use metaslot_counters::read::{Calls, Kind};
    use std::collections::BTreeSet;

    fn process(pid: u32) -> Process {
        let kind = |size| Kind { provider: "awslc".into(), mechanism: CKM_SHA256, size };
        let mut cell =
            Cell { operations: 3, bytes: 300, nanoseconds: 1_500_000_700, ..Cell::default() };
        cell.buckets[0] = 1;
        cell.buckets[BUCKET_COUNT - 1] = 1;
        Process {
            pid,
            program: "a\"\\\nb".into(),
            calls: vec![(Function::Login, Calls { calls: 3, errors: 1 })],
            codes: vec![(Function::Login, CKR_PIN_INCORRECT, 1)],
            events: vec![(Event::LoginFailure, 1), (Event::MemoryNotLocked, 1)],
            operations: vec![(kind(0), cell), (kind(1), cell)],
            ..Process::default()
        }
    }

    #[test]
    fn series_have_labels_and_histograms_add_up() {
        let ended = Process { ended: 5, program: String::new(), ..process(0) };
        let text = text(&[process(1), process(2), ended]);
        let program = r#"program="a\"\\\nb""#;
        let kind = r#"provider="awslc",mechanism="CKM_SHA256""#;
        let each = format!("metaslot_process_operations_total{{pid=\"1\",{program},{kind}");
        let time = format!("metaslot_operation_seconds_bucket{{{kind}");
        for line in [
            "metaslot_processes 2".to_owned(),
            "metaslot_processes_ended_total 5".to_owned(),
            format!("metaslot_operations_total{{{kind},size=\"1024\"}} 9"),
            format!("{each},size=\"1024\"}} 3"),
            format!("{time},le=\"0.000000256\"}} 6"),
            format!("{time},le=\"+Inf\"}} 12"),
            format!("metaslot_operation_seconds_sum{{{kind}}} 9.000004200"),
            format!("metaslot_operation_seconds_count{{{kind}}} 12"),
            "metaslot_calls_total{function=\"C_Login\"} 9".to_owned(),
            format!("metaslot_memory_not_locked{{pid=\"1\",{program}}} 1"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(!text.contains("memory-not-locked"), "a level is no count");
    }

    /// As the format demands: one HELP and one TYPE of a name, before its samples, which stand together.
    #[test]
    fn each_metric_is_described_once_before_its_samples() {
        let text = text(&[process(1)]);
        let mut described = BTreeSet::new();
        let mut current = String::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                current = rest.split(' ').next().unwrap().to_owned();
                assert!(described.insert(current.clone()), "{current} twice");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert_eq!(name, current);
                assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
            } else {
                let end = line[current.len()..].chars().next();
                assert!(line.starts_with(&current) && end.is_some_and(|c| "{ _".contains(c)));
            }
        }
    }

    #[test]
    fn the_dashboard_asks_for_what_there_is() {
        let dashboard = include_str!("../../../../../examples/grafana-dashboard.json");
        let text = text(&[process(1)]);
        let names = |text: &str| -> BTreeSet<String> {
            let word = |c: char| !c.is_ascii_alphanumeric() && c != '_';
            let names = text.split(word).filter(|word| word.starts_with("metaslot_"));
            names.map(str::to_owned).collect()
        };
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let there: BTreeSet<String> = samples.flat_map(names).collect();
        let asked = names(dashboard);
        assert!(asked.len() > 5 && asked.is_subset(&there), "{:?}", asked.difference(&there));
        let parsed: serde_json::Value = serde_json::from_str(dashboard).unwrap();
        let panels = parsed["panels"].as_array().unwrap();
        let expressions = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
        let labels =
            ["pid", "program", "provider", "mechanism", "size", "function", "code", "event", "le"];
        for target in expressions {
            let expression = target["expr"].as_str().unwrap();
            for by in expression.split("by (").skip(1) {
                let by = by.split(')').next().unwrap();
                assert!(by.split(", ").all(|label| labels.contains(&label)), "{expression}");
            }
        }
    }
}
