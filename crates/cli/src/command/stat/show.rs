// SPDX-License-Identifier: Apache-2.0
//! The tables of `metaslot stat`.

use super::difference;
use super::group::{self, By, Name};
use super::name::{code, event};
use super::number::{float, megabytes, quantile, rate};
use crate::output::Table;
use metaslot_counters::Event;
use metaslot_counters::read::{Cell, Process};
use std::collections::BTreeMap;
use std::slice;

/// Which programs count: `2 processes: nginx (2); 7 have ended`.
pub(super) fn summary(processes: &[Process]) -> String {
    let mut programs: BTreeMap<&str, usize> = BTreeMap::new();
    for process in processes.iter().filter(|process| process.ended == 0) {
        *programs.entry(&process.program).or_default() += 1;
    }
    let count: usize = programs.values().sum();
    let name = |(program, count): (&&str, &usize)| match count {
        1 => (*program).to_owned(),
        count => format!("{program} ({count})"),
    };
    let names: Vec<String> = programs.iter().map(name).collect();
    let word = if count == 1 { "process" } else { "processes" };
    let names = if count == 0 { String::new() } else { format!(": {}", names.join(", ")) };
    let ended = match processes.iter().map(|process| process.ended).max() {
        None | Some(0) => String::new(),
        Some(1) => "; 1 has ended".to_owned(),
        Some(ended) => format!("; {ended} have ended"),
    };
    format!("{count} {word}{names}{ended}\n")
}

/// Operations since the processes started.
pub(super) fn operations(processes: &[Process], by: &[By]) -> String {
    let numbers = |cell: &Cell| {
        let exact = [cell.operations, cell.bytes, cell.errors].map(|number| number.to_string());
        exact.to_vec()
    };
    table(processes, by, ["OPERATIONS", "BYTES", "ERRORS"], numbers)
}

/// What was done in an interval, per second.
pub(super) fn rates(processes: &[Process], by: &[By], seconds: f64) -> String {
    let numbers = |cell: &Cell| {
        let (done, failed) = (rate(cell.operations, seconds), rate(cell.errors, seconds));
        vec![done, megabytes(cell.bytes, seconds), failed]
    };
    let text = table(processes, by, ["OP/S", "MB/S", "ERR/S"], numbers);
    if text.is_empty() { "idle\n".to_owned() } else { text }
}

fn table(
    processes: &[Process],
    by: &[By],
    headings: [&str; 3],
    numbers: impl Fn(&Cell) -> Vec<String>,
) -> String {
    let names = by.iter().map(|by| by.heading());
    let headings: Vec<&str> = names.chain(headings).chain(["P50", "P90", "P99"]).collect();
    let right: Vec<usize> = (by.len()..headings.len()).collect();
    let mut table = Table::new(&headings, &right);
    for (names, cell) in group::rows(processes, by) {
        let times = [50, 90, 99].map(|percent| quantile(&cell, percent));
        let names = names.iter().map(Name::text);
        table.push(names.chain(numbers(&cell)).chain(times).collect());
    }
    table.text()
}

/// The calls of each function, what they answered, and what else happened.
pub(super) fn calls(processes: &[Process]) -> Vec<String> {
    let all = difference::sum(processes);
    let mut functions = Table::new(&["FUNCTION", "CALLS", "ERRORS"], &[1, 2]);
    for (function, calls) in &all.calls {
        let name = function.name().to_owned();
        functions.push(vec![name, calls.calls.to_string(), calls.errors.to_string()]);
    }
    let mut codes = Table::new(&["FUNCTION", "ANSWER", "COUNT"], &[2]);
    for (function, rv, count) in &all.codes {
        codes.push(vec![function.name().to_owned(), code(*rv), count.to_string()]);
    }
    let mut events = Table::new(&["EVENT", "COUNT"], &[1]);
    for (what, count) in &all.events {
        events.push(vec![event(*what).to_owned(), count.to_string()]);
    }
    [functions, codes, events].iter().map(Table::text).filter(|text| !text.is_empty()).collect()
}

/// The columns of [`line`]: at most 80 wide.
pub(super) const LINE: &str =
    "PROC     OP/S     MB/S  ERR/S     P50     P90     P99  BATCH/S  FILL   CALL/S";

/// One interval of all processes, per second, as one line under [`LINE`].
pub(super) fn line(processes: &[Process], seconds: f64) -> String {
    let all = difference::sum(processes);
    let cell = group::rows(slice::from_ref(&all), &[]).into_values().next().unwrap_or_default();
    let calls: u64 = all.calls.iter().fold(0, |sum: u64, row| sum.saturating_add(row.1.calls));
    let happened =
        |wanted| all.events.iter().find(|row| row.0 == wanted).map_or(0, |(_, count)| *count);
    let (batches, batched) = (happened(Event::LaneBatch), happened(Event::LaneBatched));
    let fill = match batches {
        0 => String::new(),
        batches => format!("{:.1}", float(batched) / float(batches)),
    };
    let times = [50, 90, 99].map(|percent| format!("{:>8}", quantile(&cell, percent)));
    let line = format!(
        "{:>4} {:>8} {:>8} {:>6}{} {:>8} {fill:>5} {:>8}",
        processes.iter().filter(|process| process.ended == 0).count(),
        rate(cell.operations, seconds),
        megabytes(cell.bytes, seconds),
        rate(cell.errors, seconds),
        times.concat(),
        rate(batches, seconds),
        rate(calls, seconds),
    );
    format!("{line}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_ck::{CKM_SHA256, Function};
    use metaslot_counters::read::{Calls, Kind};

    #[test]
    fn those_that_have_ended_are_told_beside_those_that_live() {
        let process = |ended| Process { ended, program: "a".into(), ..Process::default() };
        assert_eq!(summary(&[process(0), process(0)]), "2 processes: a (2)\n");
        assert_eq!(summary(&[process(0), process(1)]), "1 process: a; 1 has ended\n");
        assert_eq!(summary(&[process(7)]), "0 processes; 7 have ended\n");
        assert!(line(&[process(7)], 1.0).starts_with("   0 "));
    }

    #[test]
    fn a_line_stands_under_its_headings() {
        let kind = Kind { provider: "lanes".into(), mechanism: CKM_SHA256, size: 0 };
        let mut cell = Cell {
            operations: 123_456_789,
            bytes: 98_765_432_100,
            errors: 12_345,
            ..Cell::default()
        };
        cell.buckets[10] = 1;
        let process = Process {
            calls: vec![(Function::Digest, Calls { calls: 123_456_789, errors: 0 })],
            events: vec![(Event::LaneBatch, 1_000_000), (Event::LaneBatched, 16_000_000)],
            operations: vec![(kind, cell)],
            ..Process::default()
        };
        assert!(LINE.len() <= 80);
        assert_eq!(
            line(&[process.clone(), process], 2.0),
            "   2     123M    98765  12345   262us   262us   262us    1.00M  16.0     123M\n"
        );
        assert_eq!(line(&[], 1.0).len(), LINE.len() + 1);
    }
}
