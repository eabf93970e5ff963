// SPDX-License-Identifier: Apache-2.0
//! The screen beside what it is to be: `testdata/top`. `METASLOT_TRANSCRIPTS=overwrite` writes what was
//! drawn in place of it.

use super::super::clients::unit;
use super::*;
use crate::command::stat::clients::Users;
use metaslot_ck::{
    CKM_AES_GCM, CKM_ECDSA_SHA256, CKM_RSA_PKCS_PSS, CKM_SHA256, CKR_KEY_TYPE_INCONSISTENT,
    CKR_PIN_INCORRECT, Function,
};
use metaslot_counters::clients::User;
use metaslot_counters::read::{Calls, Kind, Process};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use std::path::Path;

/// What a process did in the interval of this number: some rise, some fall, one comes and goes.
fn process(pid: u32, program: &str, number: u64) -> Process {
    let row = |provider: &str, mechanism, operations: u64, bytes, bucket: usize| {
        let kind = Kind { provider: provider.into(), mechanism, size: 0 };
        let mut cell = Cell { operations, bytes: operations * bytes, ..Cell::default() };
        cell.buckets[bucket] = operations / 64 + 1;
        cell.buckets[bucket + 1] = operations / 200;
        cell.buckets[bucket + 3] = operations / 4000;
        (kind, cell)
    };
    let mut operations = vec![
        row("lanes", CKM_ECDSA_SHA256, 1000 + 50 * number, 50, 7),
        row("lanes", CKM_RSA_PKCS_PSS, 300 + 7 * (number % 13), 32, 11),
        row("awslc", CKM_SHA256, 9000 - 40 * number, 4096, 4),
        row("awslc", CKM_AES_GCM, 2000 * (number % 5), 16_384, 3),
    ];
    operations[1].1.errors = 2;
    operations.retain(|row| row.1.operations > 0);
    let calls = Calls { calls: 31_000, errors: 5 };
    Process {
        pid,
        program: program.into(),
        calls: vec![(Function::Sign, calls)],
        codes: vec![
            (Function::Login, CKR_PIN_INCORRECT, 1),
            (Function::SignInit, CKR_KEY_TYPE_INCONSISTENT, 4),
        ],
        events: vec![(Event::LoginFailure, 1), (Event::LaneBatch, 100), (Event::LaneBatched, 780)],
        operations,
        ..Process::default()
    }
}

fn watched() -> View {
    let mut view = View::default();
    for number in 0..60 {
        let all: Vec<Process> = (0..7)
            .map(|at| {
                process(4_000 + at, if at < 5 { "nginx" } else { "a long \\u{1b} name" }, number)
            })
            .collect();
        view.push(&all, 1.0);
    }
    view
}

/// The screen as text.
fn drawn(view: &View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, view, Colours::of_terminal())).unwrap();
    let buffer = terminal.backend().buffer();
    let cells: Vec<&str> = buffer.content.iter().map(|cell| cell.symbol()).collect();
    let lines = cells.chunks(usize::from(width)).map(|line| line.concat().trim_end().to_owned());
    lines.map(|line| line + "\n").collect()
}

fn compare(view: &View, width: u16, height: u16, name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/top").join(name);
    let text = drawn(view, width, height);
    if std::env::var_os("METASLOT_TRANSCRIPTS").is_some_and(|how| how == "overwrite") {
        std::fs::write(&path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{}:\n{text}", path.display());
}

#[test]
fn the_screen_is_as_it_is_to_be() {
    let mut view = watched();
    compare(&view, 80, 24, "80x24.txt");
    let book = include_str!("../../../../../../docs/commands/stat.md");
    assert!(book.contains(&drawn(&view, 80, 24)), "the book shows it");
    view.select(1);
    view.select(1);
    view.order(true);
    view.paused = true;
    compare(&view, 200, 50, "200x50.txt");
}

#[test]
fn clients_of_a_daemon_are_below_it_and_what_they_met_is_first() {
    let mut view = watched();
    view.clients = vec![
        unit(User::Local(33), "nginx.service", [2, 18_000, 0]),
        unit(User::Remote, "spiffe://example/web/a-long-name-of-it", [1, 900, 0]),
        unit(User::Local(7), "", [1, 0, 3]),
    ];
    view.users = Users::of("www-data:x:33:33::/:/bin/sh\n");
    compare(&view, 80, 24, "clients-80x24.txt");
    compare(&view, 140, 40, "clients-140x40.txt");
}

#[test]
fn no_screen_is_too_small() {
    let view = watched();
    for width in [1, 5, 20, 40, 79, 139, 140, 300] {
        for height in [1, 2, 5, 12, 23, 39, 40, 100] {
            drawn(&view, width, height);
            drawn(&View::default(), width, height);
        }
    }
}
