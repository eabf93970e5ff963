// SPDX-License-Identifier: Apache-2.0
//! The text format of Prometheus, version 0.0.4, one set of series for each program.

use super::difference;
use super::name::{code, event, mechanism};
use metaslot_counters::layout::{SIZE_LIMITS, bucket_end};
use metaslot_counters::read::{Cell, Kind, Process};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Every counter. Processes of one program are added up: a server that forks has too many.
pub(super) fn text(processes: &[Process]) -> String {
    let mut programs: BTreeMap<&str, Vec<&Process>> = BTreeMap::new();
    for process in processes {
        programs.entry(&process.program).or_default().push(process);
    }
    let count = |(program, processes): (&&str, &Vec<&Process>)| {
        (labels(&[("program", program)]), processes.len() as u64)
    };
    let processes: Vec<_> = programs.iter().map(count).collect();
    let sums =
        programs.iter().map(|(program, all)| (*program, difference::sum(all.iter().copied())));
    let sums: Vec<(&str, Process)> = sums.collect();
    let mut out = String::new();
    metric(&mut out, "metaslot_processes", "gauge", "processes that count", &processes);
    operations(&mut out, &sums);
    calls(&mut out, &sums);
    out
}

/// Name, help and value of a metric.
type Metric = (&'static str, &'static str, fn(&Cell) -> u64);

fn operations(out: &mut String, programs: &[(&str, Process)]) {
    let rows = |value: fn(&Cell) -> u64| -> Vec<(String, u64)> {
        let rows = programs.iter().flat_map(|(program, process)| {
            process
                .operations
                .iter()
                .map(move |(kind, cell)| (kind_labels(program, kind), value(cell)))
        });
        rows.collect()
    };
    let metrics: [Metric; 3] = [
        ("metaslot_operations_total", "operations done", |cell| cell.operations),
        ("metaslot_operation_bytes_total", "bytes of input of operations", |cell| cell.bytes),
        ("metaslot_operation_errors_total", "operations that failed", |cell| cell.errors),
    ];
    for (name, help, value) in metrics {
        metric(out, name, "counter", help, &rows(value));
    }
    let name = "metaslot_operation_seconds";
    header(out, name, "histogram", "time of the operations whose time was taken, a sample");
    for (program, process) in programs {
        for (kind, cell) in &process.operations {
            histogram(out, name, &kind_labels(program, kind), cell);
        }
    }
}

fn calls(out: &mut String, programs: &[(&str, Process)]) {
    let mut counts = Vec::new();
    let mut errors = Vec::new();
    let mut events = Vec::new();
    for (program, process) in programs {
        for (function, calls) in &process.calls {
            let labels = labels(&[("program", program), ("function", function.name())]);
            counts.push((labels, calls.calls));
        }
        for (function, rv, count) in &process.codes {
            let code = code(*rv);
            let values = [("program", *program), ("function", function.name()), ("code", &code)];
            errors.push((labels(&values), *count));
        }
        for (what, count) in &process.events {
            events.push((labels(&[("program", program), ("event", event(*what))]), *count));
        }
    }
    metric(out, "metaslot_calls_total", "counter", "calls of C functions", &counts);
    metric(out, "metaslot_call_errors_total", "counter", "calls that failed, by code", &errors);
    metric(out, "metaslot_events_total", "counter", "rare events", &events);
}

fn header(out: &mut String, name: &str, kind: &str, help: &str) {
    write!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n").ok();
}

fn metric(out: &mut String, name: &str, kind: &str, help: &str, rows: &[(String, u64)]) {
    header(out, name, kind, help);
    for (labels, value) in rows {
        writeln!(out, "{name}{{{labels}}} {value}").ok();
    }
}

fn histogram(out: &mut String, name: &str, labels: &str, cell: &Cell) {
    let mut passed = 0;
    for (bucket, count) in cell.buckets.iter().enumerate() {
        passed += count;
        let limit = bucket_end(bucket).map_or_else(|| "+Inf".to_owned(), seconds);
        writeln!(out, "{name}_bucket{{{labels},le=\"{limit}\"}} {passed}").ok();
    }
    writeln!(out, "{name}_sum{{{labels}}} {}", seconds(cell.nanoseconds)).ok();
    writeln!(out, "{name}_count{{{labels}}} {passed}").ok();
}

fn seconds(nanoseconds: u64) -> String {
    format!("{}.{:09}", nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000)
}

fn kind_labels(program: &str, kind: &Kind) -> String {
    let size = SIZE_LIMITS.get(kind.size).map_or_else(|| "inf".to_owned(), usize::to_string);
    let mechanism = mechanism(kind.mechanism);
    labels(&[
        ("program", program),
        ("provider", &kind.provider),
        ("mechanism", &mechanism),
        ("size", &size),
    ])
}

fn labels(values: &[(&str, &str)]) -> String {
    let escaped = |text: &str| text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
    let labels = values.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
    labels.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_ck::{CKM_SHA256, Function};
    use metaslot_counters::layout::BUCKET_COUNT;
    use metaslot_counters::read::Calls;

    #[test]
    fn series_have_labels_and_histograms_add_up() {
        let kind = Kind { provider: "awslc".into(), mechanism: CKM_SHA256, size: 1 };
        let mut cell =
            Cell { operations: 3, bytes: 300, nanoseconds: 1_500_000_700, ..Cell::default() };
        cell.buckets[0] = 1;
        cell.buckets[BUCKET_COUNT - 1] = 1;
        let process = Process {
            program: "a\"b".into(),
            calls: vec![(Function::Digest, Calls { calls: 3, errors: 0 })],
            operations: vec![(kind, cell)],
            ..Process::default()
        };
        let text = text(&[process.clone(), process]);
        let labels = r#"program="a\"b",provider="awslc",mechanism="CKM_SHA256",size="1024""#;
        for line in [
            r#"metaslot_processes{program="a\"b"} 2"#.to_owned(),
            format!("metaslot_operations_total{{{labels}}} 6"),
            format!("metaslot_operation_seconds_bucket{{{labels},le=\"0.000000256\"}} 2"),
            format!("metaslot_operation_seconds_bucket{{{labels},le=\"+Inf\"}} 4"),
            format!("metaslot_operation_seconds_sum{{{labels}}} 3.000001400"),
            format!("metaslot_operation_seconds_count{{{labels}}} 4"),
            r#"metaslot_calls_total{program="a\"b",function="C_Digest"} 6"#.to_owned(),
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
