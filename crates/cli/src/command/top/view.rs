// SPDX-License-Identifier: Apache-2.0
//! What the screen shows: the last intervals of every provider and mechanism, and what is chosen.

use super::clients::Unit;
use crate::command::stat::clients::Users;
use crate::command::stat::difference;
use crate::command::stat::group::{self, By, Name};
use metaslot_ck::{CK_RV, Function};
use metaslot_counters::Event;
use metaslot_counters::read::{Cell, Process};
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::slice;
use std::time::Duration;

/// How many intervals are kept: more than a wide terminal has columns.
const HISTORY: usize = 300;
/// Times are of the last intervals together: one operation in 64 is timed.
const TIMED: usize = 10;

/// Everything that is drawn.
#[derive(Debug, Default)]
pub(super) struct View {
    pub(super) total: Series,
    rows: BTreeMap<Vec<Name>, Series>,
    pub(super) processes: Vec<(u32, String, Cell)>,
    /// Of those that are daemons.
    pub(super) clients: Vec<Unit>,
    pub(super) users: Users,
    pub(super) answers: Vec<(Function, CK_RV, u64)>,
    pub(super) events: Vec<(Event, u64)>,
    /// Calls of the last interval.
    pub(super) calls: u64,
    /// How long the last interval was.
    pub(super) seconds: f64,
    pub(super) sort: Sort,
    pub(super) paused: bool,
    selected: Option<Vec<Name>>,
}

/// The intervals of one row, the newest first.
#[derive(Debug, Default)]
pub(super) struct Series(VecDeque<(Cell, f64)>);

impl Series {
    fn push(&mut self, cell: Cell, seconds: f64) {
        self.0.push_front((cell, seconds));
        self.0.truncate(HISTORY);
    }

    /// The last interval.
    pub(super) fn last(&self) -> Cell {
        self.0.front().map_or_else(Cell::default, |row| row.0)
    }

    /// The last intervals together.
    pub(super) fn times(&self) -> Cell {
        let mut sum = Cell::default();
        self.0.iter().take(TIMED).for_each(|(cell, _)| sum.combine(cell, u64::saturating_add));
        sum
    }

    /// Something a second, for each interval, the newest first.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "drawn as bars")]
    #[expect(clippy::cast_precision_loss, reason = "drawn as bars")]
    pub(super) fn rates(&self, of: fn(&Cell) -> u64) -> Vec<u64> {
        self.0.iter().map(|(cell, seconds)| (of(cell) as f64 / seconds) as u64).collect()
    }

    fn is_idle(&self) -> bool {
        self.0.iter().all(|(cell, _)| cell.operations == 0)
    }
}

/// What the rows are ordered by.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Sort {
    #[default]
    Operations,
    Bytes,
    Errors,
    Time,
    Name,
}

impl Sort {
    const ALL: [Self; 5] = [Self::Operations, Self::Bytes, Self::Errors, Self::Time, Self::Name];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Operations => "OP/S",
            Self::Bytes => "MB/S",
            Self::Errors => "ERR/S",
            Self::Time => "P99",
            Self::Name => "PROVIDER",
        }
    }

    /// The one so many places further.
    fn moved(self, by: usize) -> Self {
        let at = Self::ALL.iter().position(|sort| *sort == self).unwrap_or(0);
        Self::ALL[(at + by) % Self::ALL.len()]
    }
}

impl View {
    /// Nothing seen yet.
    pub(super) fn new(interval: Duration, users: Users) -> Self {
        Self { seconds: interval.as_secs_f64(), users, ..Self::default() }
    }

    /// What was done in one more interval.
    pub(super) fn push(&mut self, changes: &[Process], seconds: f64) {
        let sum = |by: &[By]| group::rows(changes, by);
        self.total.push(sum(&[]).into_values().next().unwrap_or_default(), seconds);
        let mut rows = sum(&[By::Provider, By::Mechanism]);
        for (names, series) in &mut self.rows {
            series.push(rows.remove(names).unwrap_or_default(), seconds);
        }
        for (names, cell) in rows {
            self.rows.entry(names).or_default().push(cell, seconds);
        }
        self.rows.retain(|_, series| !series.is_idle());
        let all = difference::sum(changes);
        self.calls = all.calls.iter().fold(0, |sum: u64, row| sum.saturating_add(row.1.calls));
        (self.answers, self.events, self.seconds) = (all.codes, all.events, seconds);
        self.answers.sort_by_key(|row| Reverse(row.2));
        let lives = |change: &&Process| change.ended == 0;
        self.processes = changes.iter().filter(lives).map(process).collect();
        self.processes.sort_by_key(|row| Reverse(row.2.operations));
    }

    /// The rows as they are ordered now.
    pub(super) fn rows(&self) -> Vec<(&Vec<Name>, &Series)> {
        let mut rows: Vec<_> = self.rows.iter().collect();
        match self.sort {
            Sort::Operations => rows.sort_by_key(|row| Reverse(row.1.last().operations)),
            Sort::Bytes => rows.sort_by_key(|row| Reverse(row.1.last().bytes)),
            Sort::Errors => rows.sort_by_key(|row| Reverse(row.1.last().errors)),
            Sort::Time => rows.sort_by_key(|row| Reverse(row.1.times().quantile(99))),
            Sort::Name => {}
        }
        rows
    }

    /// The chosen row.
    pub(super) fn selected(&self) -> Option<(&Vec<Name>, &Series)> {
        self.rows.get_key_value(self.selected.as_ref()?)
    }

    /// The row so many places below the chosen one, or above; above the first no row is chosen.
    pub(super) fn select(&mut self, by: isize) {
        let rows = self.rows();
        let at =
            self.selected.as_ref().and_then(|names| rows.iter().position(|row| row.0 == names));
        let at = at.map_or(0, |at| at + 1).saturating_add_signed(by).min(rows.len());
        self.selected = at.checked_sub(1).map(|at| rows[at].0.clone());
    }

    /// The next order, or the one before.
    pub(super) fn order(&mut self, forward: bool) {
        self.sort = self.sort.moved(if forward { 1 } else { Sort::ALL.len() - 1 });
    }

    /// How often something happened in the last interval.
    pub(super) fn happened(&self, event: Event) -> u64 {
        self.events.iter().find(|row| row.0 == event).map_or(0, |row| row.1)
    }
}

fn process(process: &Process) -> (u32, String, Cell) {
    let all = group::rows(slice::from_ref(process), &[]).into_values().next();
    (process.pid, process.program.clone(), all.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_ck::{CKM_AES_GCM, CKM_SHA256};
    use metaslot_counters::read::Kind;

    fn changes(rows: &[(u64, u64)]) -> Vec<Process> {
        let row = |(mechanism, operations): &(u64, u64)| {
            let kind = Kind { provider: "awslc".into(), mechanism: *mechanism, size: 0 };
            (kind, Cell { operations: *operations, ..Cell::default() })
        };
        vec![Process { operations: rows.iter().map(row).collect(), ..Process::default() }]
    }

    fn shown(view: &View) -> Vec<(String, u64)> {
        let rows = view.rows();
        rows.iter().map(|(names, row)| (names[1].text(), row.last().operations)).collect()
    }

    #[test]
    fn rows_stay_while_they_have_a_history() {
        let mut view = View::default();
        view.push(&changes(&[(CKM_SHA256, 10), (CKM_AES_GCM, 20)]), 2.0);
        view.push(&changes(&[(CKM_SHA256, 4)]), 2.0);
        assert_eq!(shown(&view), [("CKM_SHA256".into(), 4), ("CKM_AES_GCM".into(), 0)]);
        assert_eq!(view.total.rates(|cell| cell.operations), [2, 15]);
        for _ in 0..HISTORY {
            view.push(&[], 1.0);
        }
        assert!(shown(&view).is_empty());
    }

    #[test]
    fn a_choice_stays_with_its_row() {
        let mut view = View::default();
        view.push(&changes(&[(CKM_SHA256, 10), (CKM_AES_GCM, 20)]), 1.0);
        assert!(view.selected().is_none());
        view.select(-1);
        assert!(view.selected().is_none());
        view.select(1);
        assert_eq!(view.selected().unwrap().0[1], Name::Mechanism(CKM_AES_GCM));
        view.push(&changes(&[(CKM_SHA256, 30), (CKM_AES_GCM, 20)]), 1.0);
        assert_eq!(view.selected().unwrap().0[1], Name::Mechanism(CKM_AES_GCM));
        view.select(1);
        view.select(-1);
        assert_eq!(view.selected().unwrap().0[1], Name::Mechanism(CKM_SHA256));
        view.select(-9);
        assert!(view.selected().is_none());
        view.order(false);
        assert_eq!(view.sort, Sort::Name);
        view.order(true);
        assert_eq!(view.sort, Sort::Operations);
    }
}
