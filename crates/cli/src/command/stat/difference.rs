// SPDX-License-Identifier: Apache-2.0
//! What changed between two readings of the pages, and the sum over processes.

use metaslot_counters::read::{Calls, Cell, Process};

/// What each process did since `before`; a process that is new did all of it. Of those that have ended only what was not seen
/// before counts.
pub(in crate::command) fn since(now: &[Process], before: &[Process]) -> Vec<Process> {
    let same = |one: &Process, other: &Process| match one.ended {
        0 => one.pid == other.pid && one.since == other.since,
        _ => other.ended > 0,
    };
    let is_gone = |old: &&Process| old.ended == 0 && !now.iter().any(|now| same(old, now));
    let seen = sum(before.iter().filter(is_gone));
    let changes = now.iter().map(|now| {
        let old = before.iter().find(|old| same(now, old));
        let changes = old.map_or_else(|| now.clone(), |old| change(now, old));
        if now.ended == 0 { changes } else { change(&changes, &seen) }
    });
    changes.collect()
}

fn change(now: &Process, old: &Process) -> Process {
    let mut change = now.clone();
    change.ended -= old.ended.min(now.ended.saturating_sub(1));
    for (function, calls) in &mut change.calls {
        if let Some((_, was)) = old.calls.iter().find(|row| row.0 == *function) {
            calls.calls = calls.calls.saturating_sub(was.calls);
            calls.errors = calls.errors.saturating_sub(was.errors);
        }
    }
    for (function, code, count) in &mut change.codes {
        let was = old.codes.iter().find(|row| row.0 == *function && row.1 == *code);
        *count = count.saturating_sub(was.map_or(0, |row| row.2));
    }
    for (event, count) in &mut change.events {
        let was = old.events.iter().find(|row| row.0 == *event);
        *count = count.saturating_sub(was.map_or(0, |row| row.1));
    }
    for (kind, cell) in &mut change.operations {
        if let Some((_, was)) = old.operations.iter().find(|row| row.0 == *kind) {
            cell.combine(was, u64::saturating_sub);
        }
    }
    change.calls.retain(|row| row.1.calls > 0);
    change.codes.retain(|row| row.2 > 0);
    change.events.retain(|row| row.1 > 0);
    change.operations.retain(|row| row.1.operations > 0);
    change
}

/// All processes as one, without number and name.
pub(in crate::command) fn sum<'a>(processes: impl IntoIterator<Item = &'a Process>) -> Process {
    let mut all = Process::default();
    for process in processes {
        for (function, more) in &process.calls {
            let calls = entry(&mut all.calls, function, Calls::default());
            calls.calls = calls.calls.saturating_add(more.calls);
            calls.errors = calls.errors.saturating_add(more.errors);
        }
        for (function, code, more) in &process.codes {
            match all.codes.iter_mut().find(|row| row.0 == *function && row.1 == *code) {
                Some(row) => row.2 = row.2.saturating_add(*more),
                None => all.codes.push((*function, *code, *more)),
            }
        }
        for (event, more) in &process.events {
            let count = entry(&mut all.events, event, 0);
            *count = count.saturating_add(*more);
        }
        for (kind, more) in &process.operations {
            entry(&mut all.operations, kind, Cell::default()).combine(more, u64::saturating_add);
        }
    }
    all.operations.sort_by(|a, b| a.0.cmp(&b.0));
    all
}

fn entry<'a, K: Clone + PartialEq, V>(rows: &'a mut Vec<(K, V)>, key: &K, new: V) -> &'a mut V {
    let at = rows.iter().position(|row| row.0 == *key).unwrap_or_else(|| {
        rows.push((key.clone(), new));
        rows.len() - 1
    });
    &mut rows[at].1
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_ck::{CKM_SHA256, CKR_ARGUMENTS_BAD, Function};
    use metaslot_counters::Event;
    use metaslot_counters::read::Kind;

    fn process(pid: u32, count: u64) -> Process {
        let kind = Kind { provider: "awslc".into(), mechanism: CKM_SHA256, size: 0 };
        let cell = Cell { operations: count, bytes: 10 * count, ..Cell::default() };
        Process {
            pid,
            calls: vec![(Function::Digest, Calls { calls: count, errors: 1 })],
            codes: vec![(Function::Digest, CKR_ARGUMENTS_BAD, count)],
            events: vec![(Event::Login, count)],
            operations: vec![(kind, cell)],
            ..Process::default()
        }
    }

    #[test]
    fn a_difference_keeps_only_what_changed() {
        let changes = since(&[process(1, 5), process(2, 7)], &[process(1, 5)]);
        assert!(changes[0].operations.is_empty() && changes[0].calls.is_empty());
        assert_eq!(changes[1].operations[0].1.operations, 7);
        let changes = since(&[process(1, 5)], &[process(1, 2)]);
        assert_eq!(changes[0].operations[0].1.bytes, 30);
        assert_eq!(changes[0].events, [(Event::Login, 3)]);
    }

    #[test]
    fn a_number_that_another_process_got_is_not_subtracted() {
        let reborn = Process { since: 9, ..process(1, 1) };
        assert_eq!(since(&[reborn], &[process(1, 5)])[0].calls[0].1.calls, 1);
    }

    #[test]
    fn what_a_process_did_before_it_ended_is_told_once() {
        let ended = |ended, count| Process { ended, program: String::new(), ..process(0, count) };
        let calls = |now: &[Process], before: &[Process]| {
            sum(&since(now, before)).calls.first().map_or(0, |row| row.1.calls)
        };
        let before = [process(1, 5), process(2, 7), ended(3, 100)];
        // One has ended, with 2 calls more than were seen, and one that was never seen, with 4.
        let now = [process(1, 6), ended(5, 100 + 9 + 4)];
        assert_eq!(calls(&now, &before), 1 + 2 + 4);
        assert_eq!(calls(&now, &now), 0);
        assert_eq!(calls(&[ended(1, 4)], &[]), 4);
    }

    #[test]
    fn a_sum_joins_equal_rows() {
        let all = sum(&[process(1, 5), process(2, 7)]);
        assert_eq!(all.calls, [(Function::Digest, Calls { calls: 12, errors: 2 })]);
        assert_eq!(all.codes, [(Function::Digest, CKR_ARGUMENTS_BAD, 12)]);
        assert_eq!(all.operations.len(), 1);
        assert_eq!(all.operations[0].1.bytes, 120);
    }
}
