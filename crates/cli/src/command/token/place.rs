// SPDX-License-Identifier: Apache-2.0
//! `metaslot token init --new`: a slot for another token, by a drop-in of the configuration.

use crate::command::target::Target;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::places;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use toml::de::DeTable;

/// Where root's tokens are that are none of its home's.
const SYSTEM: &str = "/var/lib/metaslot";

/// A slot that can be added.
#[derive(Debug)]
pub(super) struct Place {
    /// Of drop-ins.
    directory: PathBuf,
    /// The label as a name of files.
    name: String,
    /// The token's file.
    store: PathBuf,
    /// The usual token, which has a slot only where no file says of another.
    former: Option<PathBuf>,
}

impl Place {
    /// A `[[token]]` after those that there are, with a store of its own. Nothing is written yet: the PINs come first.
    ///
    /// # Errors
    /// Where no drop-in counts, or this one is there.
    pub(super) fn find(label: &str) -> Result<Self> {
        if let Some(named) = places::named() {
            let what =
                format!("--new: METASLOT_CONF names {}, which has no drop-ins", named.display());
            return Err(Failure::usage(what).hint(
                "add a [[token]] with a path of its own to that file, or unset the variable",
            ));
        }
        let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
        let name: String = label.trim_end().chars().map(plain).collect();
        let usual = places::usual_token();
        let (directory, tokens) = directories(&usual)?;
        let store = tokens.join(&name).join("token.db");
        let former = (naming_tokens().next().is_none() && usual.exists()).then_some(usual);
        let place = Self { directory, name, store, former };
        place.check().map(|()| place)
    }

    fn check(&self) -> Result<()> {
        if !is_free(&self.store) {
            return Err(Failure::failed(format!("{} is there already", self.store.display()))
                .hint("choose another --label; 'metaslot token list' shows what there is"));
        }
        let section = section(&self.store)?;
        let left = |(_, text): &(PathBuf, io::Result<String>)| {
            text.as_ref().is_ok_and(|text| *text == section)
        };
        match places::drop_ins().into_iter().find(left) {
            None => Ok(()),
            Some((file, _)) => {
                let what = format!("{} says of this token already", file.display());
                Err(Failure::failed(what)
                    .hint("without --new it is made in the first slot that has none"))
            }
        }
    }

    /// Adds the slot. Another process that does so waits until this token is there or is given up.
    pub(super) fn add(&self) -> Result<Slot> {
        let cannot = |error: &io::Error| {
            Failure::io(format!("cannot make {}", self.directory.display()), error)
        };
        fs::create_dir_all(&self.directory).map_err(|error| cannot(&error))?;
        let lock = File::open(&self.directory).map_err(|error| cannot(&error))?;
        lock.lock().map_err(|error| cannot(&error))?;
        self.check()?;
        // A file of its own, which stays whatever becomes of the new one: another process may count on it.
        if let Some(former) = &self.former {
            write(&self.directory.join("90-.toml"), &section(former)?)?;
        }
        let file = self.directory.join(last_name(&self.directory, &self.name)?);
        write(&file, &section(&self.store)?)?;
        Ok(Slot { file, is_kept: false, _lock: lock })
    }
}

/// A drop-in that was written. It goes with this, unless it is kept.
#[derive(Debug)]
pub(super) struct Slot {
    file: PathBuf,
    is_kept: bool,
    _lock: File,
}

impl Slot {
    /// The token is there.
    pub(super) fn keep(mut self, output: Output) {
        output.note(&format!("its slot is in {}", self.file.display()));
        self.is_kept = true;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if !self.is_kept {
            fs::remove_file(&self.file).unwrap_or_default();
        }
    }
}

/// Whether no token is there: also no link to nothing, and nothing that this user may not see. A full disk leaves a file of no bytes.
fn is_free(store: &Path) -> bool {
    match store.symlink_metadata() {
        Ok(there) => there.is_file() && there.len() == 0,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Of drop-ins that count, and of tokens. The system's only where it is they that say which tokens there are: every user sees
/// those, and would lose sight of the usual one.
fn directories(usual: &Path) -> Result<(PathBuf, PathBuf)> {
    let own = places::own_file();
    let system = places::system_drop_ins();
    let is_systems = |file: PathBuf| system.parent().is_some_and(|system| file.starts_with(system));
    if rustix::process::geteuid().is_root() && naming_tokens().any(is_systems) {
        return Ok((system, SYSTEM.into()));
    }
    let own = own.ok_or_else(|| Failure::failed("--new: this user has no home directory"))?;
    let tokens = usual.parent().unwrap_or_else(|| Path::new("/"));
    Ok((own.with_file_name("metaslot.d"), tokens.to_owned()))
}

/// A name after those that there are: slots are numbered in this order, and none is to move.
fn last_name(directory: &Path, name: &str) -> Result<String> {
    let there = fs::read_dir(directory).into_iter().flatten().flatten();
    let there: Vec<_> = there.map(|entry| entry.file_name()).collect();
    let mut names = (90..100).map(|number| format!("{number}-{name}.toml"));
    names.find(|name| there.iter().all(|other| other < OsStr::new(name))).ok_or_else(|| {
        let what = format!("--new: no name comes after those in {}", directory.display());
        Failure::failed(what).hint("write the [[token]] section yourself")
    })
}

/// The files that say which tokens there are. A configuration does, also one with none: then it is wrong.
fn naming_tokens() -> impl Iterator<Item = PathBuf> {
    let names =
        |text: &str| DeTable::parse(text).is_ok_and(|table| table.get_ref().contains_key("token"));
    let drop_ins = places::drop_ins().into_iter();
    let drop_ins = drop_ins.filter(move |(_, text)| text.as_ref().is_ok_and(|text| names(text)));
    places::in_force().into_iter().chain(drop_ins).map(|(file, _)| file)
}

fn section(path: &Path) -> Result<String> {
    let path = quoted(path)?;
    Ok(format!("# Made by 'metaslot token init --new'.\n[[token]]\npath = {path}\n"))
}

/// As TOML has strings in which nothing is escaped.
fn quoted(path: &Path) -> Result<String> {
    match path.to_str().filter(|path| !path.contains('\'') && !path.contains(char::is_control)) {
        Some(path) => Ok(format!("'{path}'")),
        None => Err(Failure::failed(format!("--new: {} cannot be quoted", path.display()))
            .hint("write the [[token]] section yourself")),
    }
}

fn write(file: &Path, text: &str) -> Result<()> {
    // Services read the system's, whatever root's umask is.
    let mut target = Target::create(file, 0o644)?;
    target.write(text.as_bytes())?;
    target.finish()
}
