// SPDX-License-Identifier: Apache-2.0
//! The whole probe, on the machine that runs the tests.

use super::ability::Verdict;
use super::*;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// What could be left behind: groups, devices, children.
#[derive(Debug, Eq, PartialEq)]
struct Traces {
    groups: Vec<PathBuf>,
    devices: BTreeSet<String>,
    children: BTreeSet<String>,
}

impl Traces {
    fn now() -> Self {
        let mine = format!("{}{}-", crate::meter::PREFIX, std::process::id());
        let mut found = Vec::new();
        collect(std::path::Path::new("/sys/fs/cgroup"), &mine, &mut found);
        let children = fs::read_dir("/proc/self/task").unwrap().flatten();
        let children =
            children.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
        Self {
            groups: found,
            devices: names("/sys/class/net"),
            children: children
                .flat_map(|text| text.split(' ').map(str::to_owned).collect::<Vec<_>>())
                .collect(),
        }
    }
}

fn names(directory: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn collect(directory: &std::path::Path, prefix: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            found.push(entry.path());
        }
        collect(&entry.path(), prefix, found);
    }
}

fn everything() -> Report {
    report(&ABILITIES.iter().collect::<Vec<_>>())
}

#[test]
fn every_ability_is_tried_and_says_why_it_fails_and_nothing_stays() {
    let clean = |after: &Traces, before: &Traces| {
        after.groups.is_empty()
            && after.devices == before.devices
            && after.children.is_subset(&before.children)
    };
    let before = Traces::now();
    for _ in 0..2 {
        let report = everything();
        assert_eq!(report.abilities.len(), ABILITIES.len());
        assert!(!report.sources.is_empty());
        for (finding, ability) in report.abilities.iter().zip(ABILITIES) {
            assert_eq!(finding.name, ability.name);
            assert!(!finding.says.is_empty(), "{}", finding.name);
            let explained = finding.verdict != Verdict::Fails || !finding.needs.is_empty();
            assert!(explained, "{} fails without a need", finding.name);
        }
    }
    // Other tests have children of their own, for a while.
    let started = Instant::now();
    while !clean(&Traces::now(), &before) {
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}, {before:?}", Traces::now());
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_json_has_every_row_and_comes_back() {
    let report = everything();
    let text = serde_json::to_string(&report).unwrap();
    let again: Report = serde_json::from_str(&text).unwrap();
    let names = |report: &Report| -> Vec<String> {
        report.abilities.iter().map(|finding| finding.name.clone()).collect()
    };
    assert_eq!(again.schema, SCHEMA);
    assert_eq!(names(&again), names(&report));
    let table = print::table(&again);
    assert!(ABILITIES.iter().all(|ability| table.contains(ability.name)));
}

#[test]
fn names_are_unique_and_groups_stand_together() {
    let names: BTreeSet<&str> = ABILITIES.iter().map(|ability| ability.name).collect();
    assert_eq!(names.len(), ABILITIES.len());
    let mut groups: Vec<&str> = ABILITIES.iter().map(|ability| ability.group).collect();
    groups.dedup();
    let unique: BTreeSet<&str> = groups.iter().copied().collect();
    assert_eq!(groups.len(), unique.len());
}

#[test]
fn a_part_has_no_sources() {
    let only = ["clocksource".to_owned()];
    let chosen: Vec<&Ability> =
        ABILITIES.iter().filter(|ability| ability.is_chosen(&only)).collect();
    let report = report(&chosen);
    assert_eq!(report.abilities.len(), 1);
    assert!(report.sources.is_empty());
}
