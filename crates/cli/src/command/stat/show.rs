// SPDX-License-Identifier: Apache-2.0
//! The tables and the JSON of `metaslot stat`.

use super::difference;
use crate::output::Table;
use metaslot_ck::{CK_MECHANISM_TYPE, CK_RV, mechanism_name, rv_name};
use metaslot_counters::Event;
use metaslot_counters::layout::{OTHERS, SIZE_LIMITS};
use metaslot_counters::read::{Cell, Kind, Process};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A heading, empty for the sum of all, and what stands under it.
pub(super) type Section = (String, Process);

/// One section for all processes, or one for each.
pub(super) fn shown(processes: &[Process], by_process: bool) -> Vec<Section> {
    if !by_process {
        return vec![(String::new(), difference::sum(processes))];
    }
    let section =
        |process: &Process| (format!("{} {}\n", process.program, process.pid), process.clone());
    processes.iter().map(section).collect()
}

/// Which programs count: `2 processes: nginx (2)`.
pub(super) fn summary(processes: &[Process]) -> String {
    let mut programs: BTreeMap<&str, usize> = BTreeMap::new();
    for process in processes {
        *programs.entry(&process.program).or_default() += 1;
    }
    let name = |(program, count): (&&str, &usize)| match count {
        1 => (*program).to_owned(),
        count => format!("{program} ({count})"),
    };
    let names: Vec<String> = programs.iter().map(name).collect();
    let word = if processes.len() == 1 { "process" } else { "processes" };
    format!("{} {word}: {}\n", processes.len(), names.join(", "))
}

/// Everything since the processes started.
pub(super) fn totals(sections: &[Section]) -> String {
    let texts = sections.iter().map(|(heading, process)| {
        let mut operations = Table::new(
            &["PROVIDER", "MECHANISM", "SIZE", "OPERATIONS", "BYTES", "ERRORS", "MEAN", "P99"],
            &[3, 4, 5, 6, 7],
        );
        for (kind, cell) in &process.operations {
            operations.push(vec![
                kind.provider.clone(),
                mechanism(kind.mechanism),
                size(kind.size),
                cell.operations.to_string(),
                cell.bytes.to_string(),
                cell.errors.to_string(),
                cell.mean().map_or_else(String::new, duration),
                cell.quantile(99)
                    .map_or_else(String::new, |limit| format!("< {}", duration(limit))),
            ]);
        }
        let mut functions = Table::new(&["FUNCTION", "CALLS", "ERRORS"], &[1, 2]);
        for (function, calls) in &process.calls {
            let name = function.name().to_owned();
            functions.push(vec![name, calls.calls.to_string(), calls.errors.to_string()]);
        }
        let mut codes = Table::new(&["FUNCTION", "ANSWER", "COUNT"], &[2]);
        for (function, rv, count) in &process.codes {
            codes.push(vec![function.name().to_owned(), code(*rv), count.to_string()]);
        }
        let mut events = Table::new(&["EVENT", "COUNT"], &[1]);
        for (event, count) in &process.events {
            events.push(vec![event_name(*event).to_owned(), count.to_string()]);
        }
        let tables = [operations, functions, codes, events];
        let texts = tables.iter().map(Table::text).filter(|text| !text.is_empty());
        texts.fold(format!("\n{heading}"), |all, text| match all.trim().is_empty() {
            true => format!("\n{text}"),
            false => format!("{all}\n{text}"),
        })
    });
    texts.collect()
}

/// What was done in an interval, per second.
pub(super) fn rates(sections: &[Section], seconds: f64) -> String {
    let texts = sections.iter().map(|(heading, process)| {
        let mut table = Table::new(
            &["PROVIDER", "MECHANISM", "SIZE", "OP/S", "MB/S", "ERR/S", "MEAN", "P99"],
            &[3, 4, 5, 6, 7],
        );
        for (kind, cell) in &process.operations {
            table.push(vec![
                kind.provider.clone(),
                mechanism(kind.mechanism),
                size(kind.size),
                rate(cell.operations, seconds),
                format!("{:.1}", float(cell.bytes) / 1e6 / seconds),
                rate(cell.errors, seconds),
                cell.mean().map_or_else(String::new, duration),
                cell.quantile(99)
                    .map_or_else(String::new, |limit| format!("< {}", duration(limit))),
            ]);
        }
        let text = table.text();
        let calls: u64 = process.calls.iter().map(|row| row.1.calls).sum();
        match (text.is_empty(), calls) {
            (false, _) => format!("{heading}{text}"),
            (true, 0) => format!("{heading}idle\n"),
            // Operations are counted when they end, calls when they happen.
            (true, calls) => {
                format!("{heading}no operation ended; {} calls/s\n", rate(calls, seconds))
            }
        }
    });
    texts.collect()
}

#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
fn float(number: u64) -> f64 {
    number as f64
}

fn rate(count: u64, seconds: f64) -> String {
    let rate = float(count) / seconds;
    if rate > 0.0 && rate < 10.0 { format!("{rate:.1}") } else { format!("{rate:.0}") }
}

/// The stable form for programs: every process by itself.
pub(super) fn json(processes: &[Process], seconds: Option<f64>) -> Value {
    let processes: Vec<Value> = processes.iter().map(process_json).collect();
    match seconds {
        Some(seconds) => json!({"seconds": seconds, "processes": processes}),
        None => json!({"processes": processes}),
    }
}

fn process_json(process: &Process) -> Value {
    let operations = process.operations.iter().map(|(kind, cell)| operation_json(kind, cell));
    let functions = process.calls.iter().map(|(function, calls)| {
        json!({"function": function.name(), "calls": calls.calls, "errors": calls.errors})
    });
    let answers = process.codes.iter().map(|(function, rv, count)| {
        json!({"function": function.name(), "code": code(*rv), "count": count})
    });
    let events = process
        .events
        .iter()
        .map(|(event, count)| json!({"event": event_name(*event), "count": count}));
    json!({
        "pid": process.pid,
        "program": process.program,
        "since": process.since,
        "operations": operations.collect::<Vec<Value>>(),
        "functions": functions.collect::<Vec<Value>>(),
        "answers": answers.collect::<Vec<Value>>(),
        "events": events.collect::<Vec<Value>>(),
    })
}

fn operation_json(kind: &Kind, cell: &Cell) -> Value {
    json!({
        "provider": kind.provider,
        "mechanism": mechanism(kind.mechanism),
        "size_limit": SIZE_LIMITS.get(kind.size),
        "operations": cell.operations,
        "bytes": cell.bytes,
        "errors": cell.errors,
        "timed": cell.timed(),
        "timed_nanoseconds": cell.nanoseconds,
        "mean_nanoseconds": cell.mean(),
        "p50_below_nanoseconds": cell.quantile(50),
        "p99_below_nanoseconds": cell.quantile(99),
    })
}

pub(super) fn event_name(event: Event) -> &'static str {
    Event::ALL.iter().find(|row| row.0 == event).map_or("", |row| row.1)
}

pub(super) fn mechanism(number: CK_MECHANISM_TYPE) -> String {
    match mechanism_name(number) {
        _ if number == OTHERS => "others".to_owned(),
        Some(name) => name.to_owned(),
        None => format!("0x{number:x}"),
    }
}

pub(super) fn code(rv: CK_RV) -> String {
    rv_name(rv).map_or_else(|| format!("0x{rv:x}"), str::to_owned)
}

/// A size class, as its limit.
pub(super) fn size(class: usize) -> String {
    let short = |bytes: usize| match bytes {
        bytes if bytes >= 1024 => format!("{}K", bytes / 1024),
        bytes => bytes.to_string(),
    };
    match (SIZE_LIMITS.get(class), SIZE_LIMITS.last()) {
        (Some(limit), _) => format!("<= {}", short(*limit)),
        (None, Some(last)) => format!("> {}", short(*last)),
        (None, None) => String::new(),
    }
}

/// Three digits and a unit.
fn duration(nanoseconds: u64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
    let time = float(nanoseconds);
    let Some((scale, unit)) = units.iter().find(|unit| time >= unit.0) else {
        return format!("{nanoseconds} ns");
    };
    let scaled = time / scale;
    let digits = if scaled < 10.0 { 2 } else { usize::from(scaled < 100.0) };
    format!("{scaled:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        let rows = [(7, "7 ns"), (1234, "1.23 us"), (12_345, "12.3 us"), (123_456_789, "123 ms")];
        for (nanoseconds, text) in rows {
            assert_eq!(duration(nanoseconds), text);
        }
    }

    #[test]
    fn sizes_are_named_by_their_limit() {
        assert_eq!(size(0), "<= 64");
        assert_eq!(size(1), "<= 1K");
        assert_eq!(size(SIZE_LIMITS.len()), "> 256K");
    }
}
