// SPDX-License-Identifier: Apache-2.0
//! What stands in the directory of pages: whose it is, and whether its process lives. Others may write there.

use crate::layout::WORDS;
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// When `pid` started, in clock ticks after boot; `None` when there is no such process.
pub(crate) fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may itself contain anything.
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(19)?.parse().ok()
}

pub(crate) fn file_name(pid: u32, started: u64) -> String {
    format!("{pid}-{started}.counters")
}

/// The users of a process, real and effective and two more; `None` when there is no such process.
pub(crate) fn users(pid: u32) -> Option<Vec<u32>> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_whitespace().map(|user| user.parse().ok()).collect()
}

/// Whether what this user made is at stake, or the user is root, who may do anything.
fn is_ours(metadata: &Metadata) -> bool {
    let user = rustix::process::geteuid();
    user.is_root() || user.as_raw() == metadata.uid()
}

/// A page of this user's, or any for root. Nothing that stands in its place holds the reader up: no pipe, no
/// link, no device, no directory, and no file of another length.
pub(crate) fn open_to_read(path: &Path) -> io::Result<File> {
    open_of_length(path, WORDS)
}

/// The same of a file of so many words.
pub(crate) fn open_of_length(path: &Path, words: usize) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() != (words * 8) as u64 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "no page of this version"));
    }
    if !is_ours(&metadata) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(file)
}

/// Takes away the page of a process that is gone, and what its clients did: its owner may, and root, whatever the directory
/// allows.
pub(crate) fn remove(path: &Path) {
    for path in [path, &path.with_extension("clients")] {
        if fs::symlink_metadata(path).is_ok_and(|metadata| is_ours(&metadata)) {
            drop(fs::remove_file(path));
        }
    }
}

/// The process of a page's file name, and whether it is still the one that made it.
pub(crate) fn owner(name: &OsStr) -> Option<(u32, bool)> {
    let name = name.to_str()?;
    let (pid, start) = name.strip_suffix(".counters")?.split_once('-')?;
    let (pid, start) = (pid.parse().ok()?, start.parse::<u64>().ok()?);
    // As it is written, and no other way to write the same numbers.
    (name == file_name(pid, start)).then(|| (pid, started(pid) == Some(start)))
}

/// Whose pages and sums a directory has, as far as they are this user's; root asks for all.
pub(crate) fn users_of(directory: &Path) -> BTreeSet<u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| {
        let name = entry.file_name();
        owner(&name).is_some() || user_of_sum(&name).is_some()
    });
    let metadata = ours.filter_map(|entry| entry.metadata().ok());
    metadata.filter(is_ours).map(|metadata| metadata.uid()).collect()
}

/// The pages of a user in a directory: the process, and whether it lives.
pub(crate) fn pages(directory: &Path, user: u32) -> impl Iterator<Item = (PathBuf, u32, bool)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let (pid, lives) = owner(&entry.file_name())?;
        (entry.metadata().ok()?.uid() == user).then(|| (entry.path(), pid, lives))
    })
}

/// The user whose sum has this name.
pub(crate) fn user_of_sum(name: &OsStr) -> Option<u32> {
    let user = name.to_str()?.strip_suffix(".ended")?.parse().ok()?;
    (*name == *sum_name(user)).then_some(user)
}

pub(crate) fn sum_name(user: u32) -> String {
    format!("{user}.ended")
}
