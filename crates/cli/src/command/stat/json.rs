// SPDX-License-Identifier: Apache-2.0
//! The stable form of `metaslot stat` for programs.

use super::group::{self, By, Name};
use super::name::{code, event};
use metaslot_counters::read::{Cell, Process};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Every process by itself, or the rows that were asked for.
pub(super) fn document(processes: &[Process], by: &[By], seconds: Option<f64>) -> Value {
    let mut document = Map::new();
    if let Some(seconds) = seconds {
        document.insert("seconds".to_owned(), seconds.into());
    }
    if by.is_empty() {
        let lives = |process: &&Process| process.ended == 0;
        let all: Vec<_> = processes.iter().filter(lives).map(process).collect();
        document.insert("processes".to_owned(), all.into());
        let sum = processes.iter().find(|process| process.ended > 0);
        document.insert("ended".to_owned(), sum.map(ended).into());
    } else {
        let rows = group::rows(processes, by);
        let rows: Vec<_> = rows.iter().map(|(names, cell)| operation(names, cell)).collect();
        document.insert("rows".to_owned(), rows.into());
    }
    document.into()
}

/// Those that have ended, together.
fn ended(sum: &Process) -> Value {
    let head = [("processes", sum.ended), ("since", sum.since)];
    let head = head.map(|(name, value)| (name.to_owned(), value.into()));
    head.into_iter().chain(numbers(sum)).collect::<Map<_, _>>().into()
}

fn process(process: &Process) -> Value {
    let outside = json!({
        "threads": process.outside.len(),
        "longest_seconds": process.outside.iter().max().map(Duration::as_secs_f64),
    });
    let head = [
        ("pid", process.pid.into()),
        ("program", process.program.as_str().into()),
        ("since", process.since.into()),
    ];
    let head = head.map(|(name, value)| (name.to_owned(), value));
    let tail = [("in_other_modules".to_owned(), outside)];
    head.into_iter().chain(numbers(process)).chain(tail).collect::<Map<_, _>>().into()
}

fn numbers(process: &Process) -> [(String, Value); 4] {
    let by = [By::Provider, By::Mechanism, By::Size];
    let rows = group::rows(std::slice::from_ref(process), &by);
    let operations = rows.iter().map(|(names, cell)| operation(names, cell));
    let functions = process.calls.iter().map(|(function, calls)| {
        json!({"function": function.name(), "calls": calls.calls, "errors": calls.errors})
    });
    let answers = process.codes.iter().map(|(function, rv, count)| {
        json!({"function": function.name(), "code": code(*rv), "count": count})
    });
    let events =
        process.events.iter().map(|(what, count)| json!({"event": event(*what), "count": count}));
    [
        ("operations", operations.collect::<Vec<Value>>()),
        ("functions", functions.collect()),
        ("answers", answers.collect()),
        ("events", events.collect()),
    ]
    .map(|(name, rows)| (name.to_owned(), rows.into()))
}

fn operation(names: &[Name], cell: &Cell) -> Value {
    let mut row = Map::new();
    names.iter().for_each(|name| name.write(&mut row));
    let fields = [
        ("operations", Some(cell.operations)),
        ("bytes", Some(cell.bytes)),
        ("errors", Some(cell.errors)),
        ("timed", Some(cell.timed())),
        ("timed_nanoseconds", Some(cell.nanoseconds)),
        ("mean_nanoseconds", cell.mean()),
        ("p50_below_nanoseconds", cell.quantile(50)),
        ("p90_below_nanoseconds", cell.quantile(90)),
        ("p99_below_nanoseconds", cell.quantile(99)),
    ];
    row.extend(fields.map(|(name, value)| (name.to_owned(), value.into())));
    row.into()
}
