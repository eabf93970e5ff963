// SPDX-License-Identifier: Apache-2.0
//! The page: a file under the runtime directory, or private memory.

use crate::directory::{file_name, started};
use crate::ended::{bury_former_self, remove_dead};
use crate::layout::{self, CELLS, HEADER, SHARD, SHARDS, WORDS};
use metaslot_memory::SharedWords;
use rustix::process::{Resource, getrlimit};
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where a process counts that has no page. It is never touched unless something is counted, so it
/// costs address space only.
static PRIVATE: [AtomicU64; WORDS] = [const { AtomicU64::new(0) }; WORDS];

/// Where a thread counts before it has a shard: never read.
pub(crate) const NOWHERE: &[AtomicU64; SHARD] = {
    static LAST: [AtomicU64; SHARD] = [const { AtomicU64::new(0) }; SHARD];
    &LAST
};

/// A process has one page; each forked child that initialises again has the next place. Beyond the
/// last, children count privately.
static PAGES: [OnceLock<Page>; 16] = [const { OnceLock::new() }; 16];
static DEPTH: AtomicUsize = AtomicUsize::new(0);

/// Whether it is known if there is a page.
static DECIDED: AtomicBool = AtomicBool::new(false);

/// Runs what it is given: where a thread that calls the file system must not be cancelled, say.
pub type Around = fn(&mut dyn FnMut());

struct Page {
    words: SharedWords,
    path: PathBuf,
    /// One bit for each shard that has its space in the file: the rest are holes.
    reserved: Mutex<u32>,
    around: Around,
}

fn current() -> Option<&'static Page> {
    PAGES.get(DEPTH.load(Ordering::Acquire))?.get()
}

fn words() -> &'static [AtomicU64] {
    current().map_or(&PRIVATE, |page| page.words.words())
}

pub(crate) fn header() -> &'static [AtomicU64] {
    &words()[..HEADER]
}

pub(crate) fn shard(index: usize) -> &'static [AtomicU64; SHARD] {
    part(words(), index)
}

/// The same for a thread that begins to count in it: of the page where the file system has space for it,
/// else of this process's memory.
pub(crate) fn begin_shard(index: usize) -> &'static [AtomicU64; SHARD] {
    let has_space = current().is_none_or(|page| page.reserve(index).is_ok());
    part(if has_space { words() } else { &PRIVATE }, index)
}

fn part(words: &'static [AtomicU64], index: usize) -> &'static [AtomicU64; SHARD] {
    words[place(index)].try_into().unwrap_or(NOWHERE)
}

const fn place(index: usize) -> Range<usize> {
    let at = HEADER + index * SHARD;
    at..at + SHARD
}

impl Page {
    fn reserve(&self, index: usize) -> io::Result<()> {
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        if *reserved & 1 << index == 0 {
            let Range { start, end } = place(index);
            // Levels are set in the last one before any thread counts there.
            let start = if index == SHARDS - 1 { start + CELLS } else { start };
            let mut written = Ok(());
            (self.around)(&mut || written = SharedWords::reserve(&self.path, start..end));
            written?;
            *reserved |= 1 << index;
        }
        Ok(())
    }
}

/// The page's file, where it has one.
#[must_use]
pub fn path() -> Option<&'static Path> {
    current().map(|page| page.path.as_path())
}

/// In the directories of which pages are kept: `$XDG_RUNTIME_DIR/metaslot`, then `/run/metaslot`.
pub fn directories() -> impl Iterator<Item = PathBuf> {
    let own = std::env::var_os("XDG_RUNTIME_DIR")
        .filter(|directory| Path::new(directory).is_absolute())
        .map(|directory| Path::new(&directory).join("metaslot"));
    own.into_iter().chain([PathBuf::from("/run/metaslot")])
}

/// As [`crate::open`]; `renew` is called when there is a new page, before it can be read.
pub(crate) fn open(
    mut directories: impl Iterator<Item = PathBuf>,
    around: Around,
    renew: fn(),
) -> io::Result<()> {
    let result = match directories.find(|directory| directory.is_dir()) {
        Some(directory) if current().is_none() => make(&directory, around, renew),
        _ => Ok(()),
    };
    DECIDED.store(true, Ordering::Release);
    result
}

fn make(directory: &Path, around: Around, renew: fn()) -> io::Result<()> {
    let Some(place) = PAGES.get(DEPTH.load(Ordering::Acquire)) else { return Ok(()) };
    // Who writes beyond the limit of a file's size is ended by a signal.
    if getrlimit(Resource::Fsize).current.is_some_and(|limit| limit < (WORDS * 8) as u64) {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    remove_dead(directory);
    let pid = process::id();
    let path = directory.join(file_name(pid, started(pid).unwrap_or(0)));
    // One that is there is this process's from before it called `execve`, or of one that had this number before and died unseen.
    let former = bury_former_self(directory, &path);
    drop(fs::remove_file(&path));
    let words = SharedWords::create(&path, WORDS, 0o600)?;
    let levels = WORDS - SHARD..WORDS - SHARD + CELLS;
    let reserved = [0..HEADER, levels].map(|part| SharedWords::reserve(&path, part));
    if let Some(error) = reserved.into_iter().find_map(Result::err) {
        drop(fs::remove_file(&path));
        return Err(error);
    }
    if place.set(Page { words, path, reserved: Mutex::default(), around }).is_ok() {
        renew();
        describe(former);
    }
    Ok(())
}

pub(crate) fn is_decided() -> bool {
    DECIDED.load(Ordering::Acquire)
}

/// From now on this process, a forked child that begins anew, has another page.
pub(crate) fn forked() {
    DECIDED.store(false, Ordering::Release);
    DEPTH.fetch_add(1, Ordering::AcqRel);
}

fn describe(former: u64) {
    let header = header();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let pid = process::id();
    for (at, value) in [
        (layout::PID, u64::from(pid)),
        (layout::STARTED, started(pid).unwrap_or(0)),
        (layout::MADE, now.max(former.saturating_add(1))),
        (layout::SHARD_COUNT, SHARDS as u64),
        (layout::SHARD_LENGTH, SHARD as u64),
        (layout::FUNCTION_COUNT, metaslot_ck::Function::ALL.len() as u64),
        (layout::ROW_KEYS + layout::ROWS - 1, layout::OTHERS),
        (1, layout::VERSION),
    ] {
        header[at].store(value, Ordering::Relaxed);
    }
    write_text(layout::PROGRAM, &fs::read("/proc/self/comm").unwrap_or_default());
    // Readers look here first: what stands before is complete.
    header[0].store(layout::MAGIC, Ordering::Release);
}

/// Writes at most 16 bytes, to the end of the line, as two words.
pub(crate) fn write_text(at: usize, text: &[u8]) {
    let mut bytes = [0; 16];
    let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let length = line.len().min(16);
    bytes[..length].copy_from_slice(&line[..length]);
    for (place, word) in bytes.as_chunks::<8>().0.iter().enumerate() {
        header()[at + place].store(u64::from_le_bytes(*word), Ordering::Relaxed);
    }
}

/// The name of a provider, by its place in the list.
pub(crate) fn name_of(provider: usize) -> &'static [AtomicU64; 2] {
    const NONE: &[AtomicU64; 2] = {
        static WORDS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
        &WORDS
    };
    let names = header()[layout::PROVIDER_NAMES..].as_chunks::<2>().0;
    names.get(provider).filter(|_| provider < layout::PROVIDERS).unwrap_or(NONE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Set for the child whose files may not be as long as a page.
    const SHORT: &str = "METASLOT_TEST_SHORT_FILES";

    #[test]
    fn child_with_short_files() {
        let Some(directory) = std::env::var_os(SHORT) else { return };
        let opened = open([PathBuf::from(directory)].into_iter(), |work| work(), || {});
        assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        println!("lives");
    }

    #[test]
    fn a_process_whose_files_are_limited_counts_privately_and_lives() {
        let directory = std::env::temp_dir().join(format!("metaslot-limited-{}", process::id()));
        fs::create_dir_all(&directory).unwrap();
        let output = Command::new("bash")
            .args(["-c", "ulimit -f 1024; exec \"$0\" \"$@\""])
            .arg(std::env::current_exe().unwrap())
            .args(["page::tests::child_with_short_files", "--exact", "--nocapture"])
            .env(SHORT, &directory)
            .output()
            .unwrap();
        fs::remove_dir_all(&directory).unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains("lives"), "{output:?}");
    }
}
