// SPDX-License-Identifier: Apache-2.0
//! Operations told apart by what is asked for, and added up over the rest.

use super::name::{mechanism, size};
use clap::ValueEnum;
use metaslot_counters::layout::SIZE_LIMITS;
use metaslot_counters::read::{Cell, Kind, Process};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// What rows are told apart by.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(in crate::command) enum By {
    Provider,
    Mechanism,
    Size,
    Process,
    /// Understood, to say why not.
    #[value(hide = true)]
    Key,
}

impl By {
    /// The heading of its column.
    pub(super) const fn heading(self) -> &'static str {
        match self {
            Self::Provider => "PROVIDER",
            Self::Mechanism => "MECHANISM",
            Self::Size => "SIZE",
            Self::Process => "PROCESS",
            Self::Key => "KEY",
        }
    }

    fn name(self, process: &Process, kind: &Kind) -> Name {
        match self {
            Self::Provider => Name::Provider(kind.provider.clone()),
            Self::Mechanism => Name::Mechanism(kind.mechanism),
            Self::Size => Name::Size(kind.size),
            Self::Process | Self::Key => Name::Process(process.pid, process.program.clone()),
        }
    }
}

/// One thing that rows are told apart by, in the order of the rows.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(in crate::command) enum Name {
    Provider(String),
    Mechanism(u64),
    Size(usize),
    /// The number is 0 for those that have ended.
    Process(u32, String),
}

impl Name {
    /// In a table.
    pub(in crate::command) fn text(&self) -> String {
        match self {
            Self::Provider(name) => name.clone(),
            Self::Mechanism(number) => mechanism(*number),
            Self::Size(class) => size(*class),
            Self::Process(0, _) => "ended".to_owned(),
            Self::Process(pid, program) => format!("{pid} {program}"),
        }
    }

    /// In a document.
    pub(super) fn write(&self, row: &mut Map<String, Value>) {
        let mut field = |name: &str, value: Value| row.insert(name.to_owned(), value);
        match self {
            Self::Provider(name) => field("provider", name.as_str().into()),
            Self::Mechanism(number) => field("mechanism", mechanism(*number).into()),
            Self::Size(class) => field("size_limit", SIZE_LIMITS.get(*class).copied().into()),
            Self::Process(pid, program) => {
                let lives = *pid > 0;
                field("pid", lives.then_some(*pid).into());
                field("program", lives.then_some(program.as_str()).into())
            }
        };
    }
}

/// The operations of all processes, one row for each combination of names that there is.
pub(in crate::command) fn rows(processes: &[Process], by: &[By]) -> BTreeMap<Vec<Name>, Cell> {
    let mut rows: BTreeMap<Vec<Name>, Cell> = BTreeMap::new();
    for process in processes {
        for (kind, cell) in &process.operations {
            let names = by.iter().map(|by| by.name(process, kind)).collect();
            rows.entry(names).or_default().combine(cell, u64::saturating_add);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_ck::{CKM_AES_GCM, CKM_SHA256};

    #[test]
    fn rows_add_up_what_they_do_not_tell_apart() {
        let kind =
            |provider: &str, mechanism, size| Kind { provider: provider.into(), mechanism, size };
        let cell = |operations| Cell { operations, bytes: 10 * operations, ..Cell::default() };
        let operations = vec![
            (kind("awslc", CKM_SHA256, 0), cell(1)),
            (kind("awslc", CKM_SHA256, 1), cell(2)),
            (kind("lanes", CKM_SHA256, 0), cell(4)),
            (kind("lanes", CKM_AES_GCM, 0), cell(8)),
        ];
        let process = |pid| Process { pid, operations: operations.clone(), ..Process::default() };
        let all = [process(1), process(2)];
        let counts = |by: &[By]| -> Vec<(String, u64)> {
            let text =
                |names: &Vec<Name>| names.iter().map(Name::text).collect::<Vec<_>>().join(" ");
            rows(&all, by).iter().map(|(names, cell)| (text(names), cell.operations)).collect()
        };
        assert_eq!(counts(&[]), [(String::new(), 30)]);
        assert_eq!(counts(&[By::Provider]), [("awslc".into(), 6), ("lanes".into(), 24)]);
        assert_eq!(counts(&[By::Process]), [("1 ".into(), 15), ("2 ".into(), 15)]);
        assert_eq!(counts(&[By::Mechanism, By::Provider]).len(), 3);
        assert_eq!(counts(&[By::Size]), [("<= 64".into(), 26), ("<= 1K".into(), 4)]);
    }
}
