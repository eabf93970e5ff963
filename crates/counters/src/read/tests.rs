// SPDX-License-Identifier: Apache-2.0
//! What stands in the directory of pages and is none, or lies.

use super::*;
use crate::layout::{HEADER, SHARD, SHARDS};
use metaslot_ck::CKM_SHA256;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::env;
use std::os::unix::fs::{FileExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// A directory for one test; removed on drop.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn directory(name: &str) -> Directory {
    let path = env::temp_dir().join(format!("metaslot-pages-{name}-{}", std::process::id()));
    fs::create_dir_all(&path).expect("a directory can be made");
    Directory(path)
}

/// A page as a process writes it, with these words in the header and the first shard.
fn page(path: &Path, words: &[(usize, u64)]) {
    let header = [
        (0, layout::MAGIC),
        (1, layout::VERSION),
        (layout::PID, u64::from(std::process::id())),
        (layout::SHARD_COUNT, SHARDS as u64),
        (layout::SHARD_LENGTH, SHARD as u64),
    ];
    let file = File::create(path).expect("a file can be made");
    file.set_len((layout::WORDS * 8) as u64).expect("it is a hole");
    for (at, word) in header.iter().chain(words) {
        file.write_all_at(&word.to_le_bytes(), (at * 8) as u64).expect("it is written");
    }
}

/// The name of this process's page.
fn own() -> String {
    let pid = std::process::id();
    format!("{pid}-{}.counters", directory::started(pid).expect("it runs"))
}

#[test]
fn a_quantile_is_the_end_of_its_bucket() {
    let mut cell = Cell::default();
    assert_eq!(cell.quantile(99), None);
    cell.buckets[0] = 98;
    cell.buckets[3] = 2;
    assert_eq!(cell.quantile(50), Some(256));
    assert_eq!(cell.quantile(99), Some(2048));
    cell.buckets[layout::BUCKET_COUNT - 1] = 100;
    assert_eq!(cell.quantile(99), None);
}

#[test]
fn operations_of_providers_without_a_name_are_counted_among_the_others() {
    let directory = directory("others");
    let path = directory.0.join(own());
    let cell = HEADER + layout::cell(ROWS - 1, 0);
    let last = (layout::ROW_KEYS + ROWS - 1, layout::OTHERS);
    page(&path, &[last, (cell + layout::OPERATIONS, 7)]);
    let counted = process(&path).expect("it is read").operations;
    let counted: Vec<_> =
        counted.iter().map(|(kind, cell)| (kind.provider.as_str(), cell.operations)).collect();
    assert_eq!(counted, [("others", 7)]);
}

#[test]
fn what_is_no_file_is_an_error_at_once() {
    let directory = directory("kinds");
    let at = |name: &str| directory.0.join(name);
    mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
    page(&at("page"), &[]);
    symlink(at("page"), at("link")).expect("a link");
    fs::create_dir(at("directory")).expect("a directory");
    for name in ["pipe", "link", "directory"] {
        assert!(process(&at(name)).is_err(), "{name}");
    }
    assert!(process(&at("page")).is_ok());
    assert!(process(Path::new("/dev/zero")).is_err());
}

#[test]
fn a_page_of_another_version_or_length_is_refused() {
    let directory = directory("versions");
    let path = directory.0.join(own());
    let refused = |what: &str| {
        let error = process(&path).expect_err(what);
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{what}");
    };
    for (at, word) in [
        (0, 0),
        (1, layout::VERSION + 1),
        (layout::SHARD_COUNT, 1 << 40),
        (layout::SHARD_LENGTH, 0),
    ] {
        page(&path, &[(at, word)]);
        refused("a header of another form");
    }
    page(&path, &[]);
    let file = File::options().write(true).open(&path).expect("it opens");
    for length in [0, 4096, (layout::WORDS * 8 - 1) as u64, 1 << 42] {
        file.set_len(length).expect("a file may have holes");
        refused("another length");
    }
}

#[test]
fn a_page_about_another_process_is_not_taken() {
    let directory = directory("others");
    let path = directory.0.join(own());
    page(&path, &[(layout::PID, 1)]);
    assert!(page_of(&path, std::process::id()).is_err());
    page(&path, &[]);
    assert!(page_of(&path, std::process::id()).is_ok());
}

#[test]
fn names_are_printed_without_what_a_terminal_obeys() {
    let directory = directory("names");
    let path = directory.0.join(own());
    let words = |text: &[u8; 8]| u64::from_le_bytes(*text);
    let kind = 1 << 56 | CKM_SHA256;
    let first = HEADER + layout::cell(0, 0);
    page(
        &path,
        &[
            (layout::PROGRAM, words(b"\x1b]0;\x07\xff\nx")),
            (layout::PROVIDER_NAMES + 2, words(b"\x1b[2J\"\\\0\0")),
            (layout::ROWS_USED, u64::MAX),
            (layout::ROW_KEYS, kind),
            (first, 1),
        ],
    );
    let read = process(&path).expect("it is a page");
    assert_eq!(read.program, r"\u{1b}]0;\u{7}�\nx");
    assert_eq!(read.operations[0].0.provider, r#"\u{1b}[2J"\"#);
}

#[test]
fn numbers_that_no_process_reaches_do_not_overflow() {
    let directory = directory("numbers");
    let path = directory.0.join(own());
    let shards = (0..SHARDS).flat_map(|shard| {
        (0..SHARD).step_by(7).map(move |at| (HEADER + shard * SHARD + at, u64::MAX - at as u64))
    });
    let rows = (0..ROWS).map(|row| (layout::ROW_KEYS + row, u64::MAX - 1));
    let words: Vec<_> = shards.chain(rows).chain([(layout::ROWS_USED, 1 << 63)]).collect();
    page(&path, &words);
    let read = process(&path).expect("it is a page");
    for (_, cell) in &read.operations {
        assert!(cell.timed() > 0 && cell.mean().is_some());
        assert!(cell.quantile(99).is_none_or(|end| end > 0));
    }
}

#[test]
fn only_names_that_processes_write_are_pages() {
    let here = std::process::id();
    let start = directory::started(here).expect("it runs");
    let owner = |name: String| directory::owner(name.as_ref());
    assert_eq!(owner(format!("{here}-{start}.counters")), Some((here, true)));
    assert_eq!(owner(format!("{here}-1.counters")), Some((here, false)));
    for name in [
        format!("+{here}-{start}.counters"),
        format!("{here}-0{start}.counters"),
        format!("{here}-{start}.counters\n"),
        format!("{here}--{start}.counters"),
        format!("\x1b[2J{here}-{start}.counters"),
        "-.counters".into(),
        "99999999999-1.counters".into(),
        ".counters".into(),
    ] {
        assert_eq!(owner(name.clone()), None, "{name:?}");
    }
}

#[test]
fn a_dead_process_page_goes_and_what_it_links_to_stays() {
    let directory = directory("dead");
    let at = |name: &str| directory.0.join(name);
    fs::write(at("kept"), "").expect("a file");
    symlink(at("kept"), at("1-1.counters")).expect("a link");
    page(&at("1-2.counters"), &[]);
    fs::write(at("notes.txt"), "").expect("a file");
    crate::ended::remove_dead(&directory.0);
    assert!(at("kept").exists() && at("notes.txt").exists());
    assert!(!at("1-2.counters").exists() && at("1-1.counters").symlink_metadata().is_err());
}

/// Only root can make a page of another user's.
#[test]
fn a_page_that_another_user_made_about_this_process_is_not_taken() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let directory = directory("users");
    let path = directory.0.join(own());
    page(&path, &[]);
    std::os::unix::fs::chown(&path, Some(65_534), None).expect("root may");
    assert!(process(&path).is_ok(), "root reads every page");
    assert!(page_of(&path, std::process::id()).is_err(), "but this one lies");
}

/// Only root can give up being root.
#[test]
fn a_process_that_gives_root_up_is_seen_by_root() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let here = directory("gave-up");
    let mut child = Command::new("sleep").arg("600").uid(65_534).spawn().expect("it starts");
    let start = directory::started(child.id()).expect("it runs");
    let path = here.0.join(directory::file_name(child.id(), start));
    page(&path, &[(layout::PID, u64::from(child.id()))]);
    let found = page_of(&path, child.id());
    child.kill().expect("it is ours");
    child.wait().expect("it ends");
    assert_eq!(found.expect("it is read").pid, child.id());
}
