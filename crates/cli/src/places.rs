// SPDX-License-Identifier: Apache-2.0
//! Where the module looks for its configuration, and for the token where it has none.

use crate::encoding::word;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// A file of the configuration, and what stands in it.
pub(crate) type Text = (PathBuf, io::Result<String>);

/// Where the system's configuration is.
const SYSTEM: &str = "/etc/metaslot";

/// The first configuration that is there; one that was named must be there.
pub(crate) fn in_force() -> Option<Text> {
    if let Some(named) = named() {
        return Some((named.clone(), fs::read_to_string(named)));
    }
    let own = own_file().filter(|own| counts(own));
    let all = own.into_iter().chain([Path::new(SYSTEM).join("metaslot.toml")]);
    let mut read = all.map(|file| (file.clone(), fs::read_to_string(file)));
    read.find(|(_, text)| !text.as_ref().is_err_and(is_absent))
}

/// What is read after it, in that order.
pub(crate) fn drop_ins() -> Vec<Text> {
    if named().is_some() {
        return Vec::new();
    }
    let own = own_file();
    let is_own = in_force().is_some_and(|(file, _)| own.as_ref() == Some(&file));
    let system = (!is_own).then(system_drop_ins);
    let own = own.filter(|own| counts(own)).map(|own| own.with_file_name("metaslot.d"));
    let directories = system.into_iter().chain(own);
    directories.flat_map(|directory| drop_ins_of(&directory)).collect()
}

/// Where the system's are.
pub(crate) fn system_drop_ins() -> PathBuf {
    Path::new(SYSTEM).join("metaslot.d")
}

fn drop_ins_of(directory: &Path) -> Vec<Text> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let is_drop_in = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name.ends_with(".toml") && !name.starts_with('.')
    };
    let mut files: Vec<_> = entries.map(|entry| entry.path()).filter(is_drop_in).collect();
    files.sort();
    // The module says what is wrong with another kind of file.
    let read = |file: PathBuf| match file.is_file() {
        true => (file.clone(), fs::read_to_string(file)),
        false => (file, Err(io::Error::other("it is no plain file"))),
    };
    files.into_iter().map(read).collect()
}

/// The file that takes the place of all others.
pub(crate) fn named() -> Option<PathBuf> {
    env::var_os("METASLOT_CONF").filter(|named| !named.is_empty()).map(PathBuf::from)
}

/// Where pages of counters may be: in the directory that the configuration names, and in the usual
/// ones, because other programs have other configurations.
pub(crate) fn counters() -> Vec<PathBuf> {
    let texts = in_force().into_iter().chain(drop_ins()).filter_map(|(_, text)| text.ok());
    let named = texts.filter_map(|text| counters_of(&text)).last().flatten();
    let usual = metaslot_counters::directories().filter(|usual| Some(usual) != named.as_ref());
    named.iter().cloned().chain(usual).collect()
}

/// What makes one; that of the system is for every user.
pub(crate) fn how_to_make(counters: &Path) -> String {
    let mode = if counters == Path::new("/run/metaslot") { "-m 1777 " } else { "" };
    format!("mkdir {mode}{}", word(counters.display()))
}

/// What a file says of their directory, if it says something.
fn counters_of(text: &str) -> Option<Option<PathBuf>> {
    let table = DeTable::parse(text).ok()?;
    Some(match table.get_ref().get("counters")?.get_ref() {
        DeValue::String(path) => Some(path.as_ref().into()),
        _ => None,
    })
}

/// Whether what is beside a file of the user's directory counts, as in the module: not where that is another user's.
fn counts(own: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    let directory = own.parent().unwrap_or(own);
    match fs::metadata(directory) {
        Ok(metadata) => [0, user].contains(&metadata.uid()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let closed = directory.ancestors().find_map(|path| fs::metadata(path).ok());
            closed.is_some_and(|metadata| metadata.uid() == user)
        }
        Err(_) => true,
    }
}

/// The user's own configuration.
pub(crate) fn own_file() -> Option<PathBuf> {
    config_home().map(|own| own.join("metaslot/metaslot.toml"))
}

/// The token that there is without a configuration.
pub(crate) fn usual_token() -> PathBuf {
    let data = directory("XDG_DATA_HOME").or_else(|| Some(home()?.join(".local/share")));
    data.unwrap_or_else(|| "/var/lib".into()).join("metaslot/token.db")
}

/// The directory of the user's own configuration files.
pub(crate) fn config_home() -> Option<PathBuf> {
    directory("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")))
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The directory that a variable names, when it is an absolute path.
fn directory(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

fn home() -> Option<PathBuf> {
    directory("HOME")
}

/// What of a path is there, where it is another user's: what root makes there is in that user's way, and does not count for root.
pub(crate) fn of_another(path: &Path) -> Option<&Path> {
    let there = path.ancestors().find(|path| path.exists())?;
    let user = rustix::process::geteuid().as_raw();
    let owner = fs::metadata(there).ok()?.uid();
    (![0, user].contains(&owner)).then_some(there)
}

/// What of a path other users could put something else in the place of, and why: what is another's, a link, too, and a directory that
/// everybody may write. Above the last one it may be sticky: nobody renames another's names there.
pub(crate) fn in_others_hands(path: &Path) -> Option<(PathBuf, &'static str)> {
    let real = path.ancestors().find_map(|part| part.canonicalize().ok());
    let owners = [Path::new("/").metadata().ok()?.uid(), 0, rustix::process::geteuid().as_raw()];
    let parts = path.ancestors().chain(real.iter().flat_map(|real| real.ancestors()));
    parts.filter_map(|part| Some((part, part.symlink_metadata().ok()?))).find_map(
        |(part, there)| {
            let is_last = part == path || real.as_deref() == Some(part);
            let is_sticky = there.mode() & 0o1000 != 0 && !is_last;
            let is_open = there.is_dir() && there.mode() & 0o2 != 0 && !is_sticky;
            let is_others = !owners.contains(&there.uid());
            let why = is_others.then_some("is another user's");
            let why = why.or_else(|| is_open.then_some("may be written by every other user"));
            why.map(|why| (part.to_owned(), why))
        },
    )
}
