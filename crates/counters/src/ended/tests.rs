// SPDX-License-Identifier: Apache-2.0
//! Pages of processes that are gone, and their sum.

use super::*;
use crate::Event;
use crate::directory::user_of_sum;
use crate::layout::{
    self, EVENTS, OPERATIONS, OTHERS, PROVIDER_NAMES, ROW_KEYS, ROWS, ROWS_USED, SHARD_COUNT,
    SHARD_LENGTH, SHARDS, VERSION, WORDS,
};
use crate::read::{self, Process};
use metaslot_ck::{CKM_AES_GCM, CKM_SHA256, CKR_PIN_INCORRECT, Function};
use std::os::unix::fs::symlink;

/// A directory for one test; removed on drop.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}

impl Directory {
    fn new(name: &str) -> Self {
        let name = format!("metaslot-ended-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A page of a process that is gone, the first after boot, which used a provider so often.
    fn page(&self, started: u64, provider: &[u8; 8], operations: u64) -> PathBuf {
        let path = self.0.join(directory::file_name(1, started));
        let file = File::create(&path).unwrap();
        file.set_len((WORDS * 8) as u64).unwrap();
        let shard = HEADER + 3 * SHARD;
        let place = usize::try_from(started).unwrap();
        let failed = (Function::Login as u64 + 1) << 32 | CKR_PIN_INCORRECT;
        for (at, word) in [
            (0, layout::MAGIC),
            (1, VERSION),
            (PID, 1),
            (STARTED, started),
            (MADE, 1000 + started),
            (SHARD_COUNT, SHARDS as u64),
            (SHARD_LENGTH, SHARD as u64),
            (ROWS_USED, 1),
            // Its place in the list is another in each process.
            (PROVIDER_NAMES + 2 * place, u64::from_le_bytes(*provider)),
            (ROW_KEYS, started << 56 | CKM_SHA256),
            (shard + layout::cell(0, 2) + OPERATIONS, operations),
            (shard + layout::CALLS + 2 * Function::Login as usize, 2),
            (shard + EVENTS + Event::Login as usize, 1),
            (shard + EVENTS + Event::MemoryNotLocked as usize, 1),
            (shard + layout::OUTSIDE, 5),
            (shard + CODES, failed),
            (shard + CODES + 1, 1),
        ] {
            write_words(&file, at, &[word]).unwrap();
        }
        path
    }

    fn look(&self) -> Vec<Process> {
        read::processes(std::slice::from_ref(&self.0))
    }

    /// The sum, and operations by provider.
    fn sum(&self) -> (u64, Vec<(String, u64)>) {
        let all = self.look();
        let [sum] = &all[..] else { panic!("{all:?}") };
        let operations = sum.operations.iter();
        let operations = operations.map(|(kind, cell)| (kind.provider.clone(), cell.operations));
        (sum.ended, operations.collect())
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    fn own(&self) -> PathBuf {
        self.0.join(sum_name(me()))
    }
}

fn me() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn rows(rows: &[(&str, u64)]) -> Vec<(String, u64)> {
    rows.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

#[test]
fn what_processes_counted_that_have_ended_is_kept_by_the_names_of_providers() {
    let here = Directory::new("kept");
    assert!(here.look().is_empty());
    assert_eq!(here.names(), [] as [String; 0], "nothing is made for nothing");
    here.page(1, b"awslc\0\0\0", 5);
    here.page(2, b"lanes\0\0\0", 7);
    assert_eq!(here.sum(), (2, rows(&[("awslc", 5), ("lanes", 7)])));
    // Another process begins, and takes away what it finds.
    here.page(3, b"awslc\0\0\0", 100);
    remove_dead(&here.0);
    assert_eq!(here.names(), [sum_name(me())]);
    assert_eq!(here.sum(), (3, rows(&[("awslc", 105), ("lanes", 7)])));
    let sum = here.look().remove(0);
    assert_eq!(sum.calls, [(Function::Login, read::Calls { calls: 6, errors: 0 })]);
    assert_eq!(sum.codes, [(Function::Login, CKR_PIN_INCORRECT, 3)]);
    assert_eq!(sum.events, [(Event::Login, 3)], "a level is no count");
    assert!(sum.outside.is_empty() && sum.pid == 0 && sum.since > 0);
}

#[test]
fn a_page_is_added_once_wherever_who_adds_it_is_killed() {
    let here = Directory::new("killed");
    here.page(1, b"awslc\0\0\0", 5);
    assert_eq!(here.sum(), (1, rows(&[("awslc", 5)])));
    // After the half counts, before the page is gone: the next one, with another page first or not, takes it away.
    here.page(1, b"awslc\0\0\0", 5);
    here.page(2, b"awslc\0\0\0", 7);
    assert_eq!(here.sum(), (2, rows(&[("awslc", 12)])));
    // While the half is written.
    let file = File::options().read(true).write(true).open(here.own()).unwrap();
    let active = usize::from(words(&file, ENDED_ACTIVE, 1).unwrap()[0] == 1);
    let other = ENDED_HEADER + (1 - active) * ENDED_HALF;
    write_words(&file, other, &vec![u64::MAX; ENDED_HALF / 2]).unwrap();
    assert_eq!(here.sum(), (2, rows(&[("awslc", 12)])));
    here.page(3, b"awslc\0\0\0", 1);
    assert_eq!(here.sum(), (3, rows(&[("awslc", 13)])));
}

#[test]
fn another_process_that_keeps_the_lock_loses_nothing_and_hides_nothing() {
    let here = Directory::new("locked");
    here.page(1, b"awslc\0\0\0", 5);
    assert_eq!(here.sum().0, 1);
    let file = File::open(here.own()).unwrap();
    flock(&file, FlockOperation::LockExclusive).unwrap();
    let page = here.page(2, b"awslc\0\0\0", 7);
    remove_dead(&here.0);
    assert_eq!(here.sum(), (2, rows(&[("awslc", 12)])), "the reader adds it for itself");
    assert!(page.exists(), "it is kept for another time");
    drop(file);
    assert_eq!(here.sum(), (2, rows(&[("awslc", 12)])));
}

#[test]
fn a_page_that_is_added_while_somebody_looks_is_counted_once() {
    let here = Directory::new("meanwhile");
    here.page(1, b"awslc\0\0\0", 5);
    assert_eq!(here.sum().0, 1);
    let mut adds = Ended::make(&here.0, me(), ONCE).unwrap();
    let looks = Ended::make(&here.0, me(), ONCE).unwrap();
    assert!(adds.locked && !looks.locked && looks.is_current());
    let page = here.page(2, b"awslc\0\0\0", 7);
    adds.add(&File::open(&page).unwrap()).unwrap();
    assert!(!looks.is_current());
    // It is in the sum, and not gone yet.
    assert_eq!(here.sum(), (2, rows(&[("awslc", 12)])));
    fs::remove_file(&page).unwrap();
    let again = here.page(3, b"awslc\0\0\0", 1);
    adds.add(&File::open(&again).unwrap()).unwrap();
    assert!(!looks.is_current(), "the same half counts again");
}

#[test]
fn what_stands_in_the_place_of_the_sum_is_not_followed_and_does_no_harm() {
    let here = Directory::new("place");
    let kept = here.0.join("kept");
    fs::write(&kept, vec![0; ENDED_WORDS * 8]).unwrap();
    symlink(&kept, here.own()).unwrap();
    let page = here.page(1, b"awslc\0\0\0", 5);
    assert!(here.look().is_empty() && !page.exists());
    assert_eq!(fs::read(&kept).unwrap(), vec![0; ENDED_WORDS * 8]);
    // Of another version: it is made anew.
    fs::remove_file(here.own()).unwrap();
    for length in [0, ENDED_WORDS * 8] {
        fs::write(here.own(), vec![1; length]).unwrap();
        here.page(1, b"awslc\0\0\0", 5);
        assert_eq!(here.sum(), (1, rows(&[("awslc", 5)])));
    }
    assert_eq!(user_of_sum("7.ended".as_ref()), Some(7));
    for name in ["+7.ended", "07.ended", ".ended", "7.ended\n", "7"] {
        assert_eq!(user_of_sum(name.as_ref()), None, "{name:?}");
    }
}

#[test]
fn what_has_no_row_any_more_is_counted_among_the_others() {
    let mut sum = Raw::default();
    let mut page = Raw::default();
    page.header[PROVIDER_NAMES + 2] = u64::from_le_bytes(*b"awslc\0\0\0");
    page.header[ROWS_USED] = 1;
    page.sums[layout::cell(0, 0) + OPERATIONS] = 1;
    for mechanism in 0..100 {
        page.header[ROW_KEYS] = 1 << 56 | (CKM_AES_GCM + mechanism);
        sum.join(&page);
    }
    // A provider without a name.
    page.header[ROW_KEYS] = 2 << 56 | CKM_AES_GCM;
    sum.join(&page);
    let operations = |row| sum.sums[layout::cell(row, 0) + OPERATIONS];
    assert_eq!(operations(0), 1);
    assert_eq!(operations(ROWS - 1), 101 - (ROWS as u64 - 1));
    assert_eq!(sum.header[ROW_KEYS + ROWS - 1], OTHERS);
}

/// Only root can make files of another user's.
#[test]
fn root_adds_the_pages_of_others_to_their_own_sums() {
    if me() != 0 {
        return;
    }
    let here = Directory::new("root");
    let page = here.page(1, b"awslc\0\0\0", 5);
    std::os::unix::fs::chown(&page, Some(65_534), None).unwrap();
    here.page(2, b"awslc\0\0\0", 7);
    assert_eq!(here.sum(), (2, rows(&[("awslc", 12)])));
    let sum = fs::metadata(here.0.join(sum_name(65_534))).unwrap();
    assert_eq!((sum.uid(), sum.mode() & 0o7777), (65_534, 0o600));
    assert_eq!(here.sum(), (2, rows(&[("awslc", 12)])));
}

/// A sum says which page was added last, and its user writes it.
#[test]
fn root_takes_no_page_away_that_a_sum_of_another_user_names() {
    if me() != 0 {
        return;
    }
    let here = Directory::new("victim");
    here.page(1, b"awslc\0\0\0", 5);
    assert_eq!(here.sum().0, 1);
    let page = here.page(2, b"awslc\0\0\0", 7);
    let last = words(&File::open(&page).unwrap(), PID, 3).unwrap();
    let theirs = here.0.join(sum_name(65_534));
    fs::copy(here.own(), &theirs).unwrap();
    let sum = File::options().read(true).write(true).open(&theirs).unwrap();
    for half in 0..2 {
        write_words(&sum, ENDED_HEADER + half * ENDED_HALF + PID, &last).unwrap();
    }
    std::os::unix::fs::chown(&theirs, Some(65_534), None).unwrap();
    drop(Ended::open(&here.0, 65_534, ONCE).unwrap());
    assert!(page.exists());
}

#[test]
fn a_child_that_was_forked_meanwhile_does_not_keep_the_lock() {
    let directory = Directory::new("forked");
    let user = rustix::process::geteuid().as_raw();
    let ended = Ended::make(&directory.0, user, ONCE).unwrap();
    // As a child has it.
    let inherited = ended.file.try_clone().unwrap();
    drop(ended);
    assert!(Ended::make(&directory.0, user, ONCE).unwrap().locked);
    drop(inherited);
}

#[test]
fn those_that_live_do_not_hide_those_that_are_gone() {
    let pages = (0..300).map(|pid| (PathBuf::from(pid.to_string()), pid, pid < 100));
    assert_eq!(to_bury(pages.clone().take(110)).count(), 10);
    assert_eq!(to_bury(pages).count(), BURY_AT_ONCE);
}

#[test]
fn a_code_that_has_its_place_keeps_it() {
    let here = Directory::new("codes");
    let code = |key: u64| {
        let path = here.page(1, b"awslc\0\0\0", 1);
        let file = File::options().read(true).write(true).open(&path).unwrap();
        let at = HEADER + 3 * SHARD + CODES;
        write_words(&file, at, &[key << 32 | 5, 1]).unwrap();
        write_words(&file, MADE, &[key]).unwrap();
        let mut sum = Ended::make(&here.0, me(), ONCE);
        bury(&path, &mut sum);
        sum.unwrap().sum.codes.clone()
    };
    for key in (2..CODE_COUNT as u64 + 2).rev() {
        code(key);
    }
    let last = (CODE_COUNT as u64 + 1) << 32 | 5;
    assert_eq!(code(1).get(&last), Some(&1), "a lower one has no place any more");
    assert!(!code(1).contains_key(&(1 << 32 | 5)));
}

#[test]
fn what_cannot_be_added_for_now_is_kept() {
    let here = Directory::new("passing");
    for errno in [rustix::io::Errno::MFILE, rustix::io::Errno::NOSPC] {
        let page = here.page(1, b"awslc\0\0\0", 1);
        bury(&page, &mut Err(errno.into()));
        assert!(page.exists(), "{errno}");
    }
    assert_eq!(here.sum().0, 1);
}

#[test]
fn what_a_process_counted_before_it_became_another_program_is_kept() {
    let here = Directory::new("exec");
    let path = here.page(1, b"awslc\0\0\0", 5);
    assert_eq!(bury_former_self(&here.0, &path), 1001);
    assert!(!path.exists());
    assert_eq!(here.sum(), (1, rows(&[("awslc", 5)])));
    assert_eq!(bury_former_self(&here.0, &path), 0);
}
