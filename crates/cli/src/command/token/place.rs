// SPDX-License-Identifier: Apache-2.0
//! `metaslot token init --new`: a slot for another token, by a drop-in of the configuration.

use crate::command::target::Target;
use crate::configured::{Configuration, TokenSection};
use crate::failure::{Failure, Result};
use crate::host::{Host, Token};
use crate::output::Output;
use crate::places;
use metaslot_ck::CKF_TOKEN_INITIALIZED;
use rustix::fs::Mode;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};
use toml::de::DeTable;

/// Where root's tokens are that are none of its home's.
const SYSTEM: &str = "/var/lib/metaslot";

/// As the module describes the slot of the usual token.
const USUAL: &str = "Metaslot";

/// The first line of a drop-in of ours.
pub(crate) const ADDED: &str = "# Made by 'metaslot token init --new'.";

/// The longest name that is made of a label or of a file's name, in bytes.
const LONGEST: usize = 64;

/// How long others may make their tokens: every user who reads the directory can lock it.
const PATIENCE: Duration = Duration::from_secs(60);

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
    usual: PathBuf,
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
        let name: String = label.chars().map(plain).take(LONGEST).collect();
        let usual = places::usual_token();
        let (directory, tokens) = directories(&usual)?;
        let store = tokens.join(&name).join("token.db");
        let place = Self { directory, name, store, usual };
        place.check().map(|()| place)
    }

    fn check(&self) -> Result<()> {
        if !is_free(&self.store) {
            return Err(Failure::failed(format!("{} is there already", self.store.display()))
                .hint("choose another --label, or another name for the copy; 'metaslot token list' shows what there is"));
        }
        let section = section(&self.store, None)?;
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
        if self.directory == places::system_drop_ins() {
            // Every user reads them, whatever root's umask is.
            rustix::process::umask(Mode::from_raw_mode(0o022));
        }
        let cannot = |error: &io::Error| {
            Failure::io(format!("cannot make {}", self.directory.display()), error)
        };
        fs::create_dir_all(&self.directory).map_err(|error| cannot(&error))?;
        let lock = lock(&self.directory)?;
        self.check()?;
        // A file of its own, which stays whatever becomes of the new one: another process may count on it. It was made since the
        // PINs were asked for, perhaps.
        let is_first = naming_tokens().next().is_none();
        if is_first && !is_free(&self.usual) {
            name_usual(&self.directory, &self.usual)?;
        }
        let file = write(&self.directory, &self.name, &section(&self.store, None)?)?;
        let directory = self.store.parent().filter(|path| path.symlink_metadata().is_err());
        let directory = directory.map(Path::to_owned);
        let store = self.store.clone();
        let slot = Slot { file, store, directory, is_kept: false, _lock: lock };
        // Who makes the usual token holds no lock: it looks at this file afterwards, and so it is not looked for too early here.
        if is_first && !is_free(&self.usual) {
            name_usual(&self.directory, &self.usual)?;
        }
        Ok(slot)
    }
}

/// The usual token, which another command may take the slot from while this one asks for the PINs.
#[derive(Debug)]
pub(super) struct Usual {
    /// `None` where a file says which slots there are.
    store: Option<PathBuf>,
}

impl Usual {
    /// Before the module is loaded.
    pub(super) fn look() -> Self {
        let is_alone = places::named().is_none() && naming_tokens().next().is_none();
        Self { store: is_alone.then(places::usual_token) }
    }

    /// After a token was made: it has a slot also where another has got one meanwhile.
    pub(super) fn keep(&self) -> Result<()> {
        let Some(usual) = &self.store else { return Ok(()) };
        if is_free(usual) || naming_tokens().next().is_none() {
            return Ok(());
        }
        let name = || {
            let (directory, _) = directories(usual)?;
            let _lock = lock(&directory)?;
            name_usual(&directory, usual)
        };
        name().map_err(|failure: Failure| {
            let made = format!("the token is made, and {} has no slot yet", usual.display());
            failure.context(made)
        })
    }
}

/// Gives the usual token a slot where it has none. Its directory is locked.
fn name_usual(directory: &Path, usual: &Path) -> Result<()> {
    let named = Configuration::read();
    let has_files = naming_tokens().next().is_some();
    if has_files && named.tokens.iter().any(|section| section.path == usual) {
        return Ok(());
    }
    write(directory, "", &section(usual, Some(USUAL))?).map(drop)
}

fn lock(path: &Path) -> Result<File> {
    let cannot = |error: io::Error| Failure::io(format!("cannot lock {}", path.display()), &error);
    let directory = File::open(path).map_err(cannot)?;
    let begun = Instant::now();
    loop {
        match directory.try_lock() {
            Ok(()) => return Ok(directory),
            Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => {
                sleep(Duration::from_millis(20));
            }
            Err(error) => return Err(cannot(error.into())),
        }
    }
}

fn write(directory: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let file = last_file(directory, name)?;
    let mut target = Target::create(&file, 0o644)?;
    target.write(text.as_bytes())?;
    target.finish().map(|()| file)
}

/// A drop-in that was written. It goes with this, unless it is kept.
#[derive(Debug)]
pub(super) struct Slot {
    file: PathBuf,
    store: PathBuf,
    /// The store's, where it was not there before.
    directory: Option<PathBuf>,
    is_kept: bool,
    _lock: File,
}

impl Slot {
    /// The token that is to be made. Slots of other modules and of a user's own drop-ins come after it, and may be free, too.
    pub(super) fn token(&self, host: &Host) -> Result<Token> {
        let section = TokenSection { path: self.store.clone(), ..TokenSection::default() };
        let mut found = Vec::new();
        if host.module().is_metaslot() {
            let is_free = |token: &Token| !token.has(CKF_TOKEN_INITIALIZED) && !token.is_others();
            for token in host.tokens()?.into_iter().filter(is_free) {
                if section.has(&host.module().slot_info(token.slot)?.description) {
                    found.push(token);
                }
            }
        }
        match (found.pop(), found.is_empty()) {
            (Some(token), true) => Ok(token),
            _ => Err(Failure::failed("the slot that was added is not to be found")
                .hint("'metaslot token list' shows the slots that the module has")),
        }
    }

    /// The token is there.
    pub(super) fn keep(mut self, output: Output) {
        output.note(&format!("its slot is in {}", self.file.display()));
        self.is_kept = true;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // What another process has made there meanwhile has no other slot.
        if !self.is_kept && is_free(&self.store) {
            fs::remove_file(&self.file).unwrap_or_default();
            // Where something is in it, it stays.
            self.directory.iter().for_each(|path| fs::remove_dir(path).unwrap_or_default());
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
    let own = own.ok_or_else(|| {
        Failure::failed("--new: this user has no home directory").hint("set HOME")
    })?;
    let (directory, tokens) =
        (own.with_file_name("metaslot.d"), usual.parent().unwrap_or_else(|| Path::new("/")));
    let others = places::of_another(&directory).or_else(|| places::of_another(tokens));
    match others.map(Path::to_owned) {
        None => Ok((directory, tokens.to_owned())),
        Some(place) => Err(Failure::failed(format!(
            "--new: {} is another user's",
            place.display()
        ))
        .hint(
            "the variables HOME, XDG_CONFIG_HOME and XDG_DATA_HOME say where the user's own are",
        )),
    }
}

/// A name after those of drop-ins with tokens: slots are numbered in this order, and none is to move.
fn last_file(directory: &Path, name: &str) -> Result<PathBuf> {
    let last = naming_tokens().filter(|file| file.parent() == Some(directory)).max();
    let numbers = (90..100).chain(990..1000).map(|number: u16| number.to_string());
    let numbers = numbers.chain((90..100).map(|number| format!("z{number}")));
    let mut files = numbers.map(|number| directory.join(format!("{number}-{name}.toml")));
    let is_last = |file: &PathBuf| last.as_ref().is_none_or(|last| last < file);
    files.find(|file| is_last(file) && file.symlink_metadata().is_err()).ok_or_else(|| {
        let what = format!("--new: no name comes after those in {}", directory.display());
        Failure::failed(what).hint("write the [[token]] section yourself")
    })
}

/// The files that say which slots there are. A configuration does, also one with none: then it is wrong.
fn naming_tokens() -> impl Iterator<Item = PathBuf> {
    let names = |text: &str| {
        let table = DeTable::parse(text);
        table.is_ok_and(|table| {
            ["token", "foreign"].iter().any(|key| table.get_ref().contains_key(*key))
        })
    };
    let drop_ins = places::drop_ins().into_iter();
    let drop_ins = drop_ins.filter(move |(_, text)| text.as_ref().is_ok_and(|text| names(text)));
    places::in_force().into_iter().chain(drop_ins).map(|(file, _)| file)
}

fn section(path: &Path, description: Option<&str>) -> Result<String> {
    let path = quoted(path)?;
    let described = description.map(|text| format!("description = '{text}'\n")).unwrap_or_default();
    Ok(format!("{ADDED}\n[[token]]\npath = {path}\n{described}"))
}

/// As TOML has strings in which nothing is escaped.
fn quoted(path: &Path) -> Result<String> {
    match path.to_str().filter(|path| !path.contains('\'') && !path.contains(char::is_control)) {
        Some(path) => Ok(format!("'{path}'")),
        None => Err(Failure::failed(format!("--new: {} cannot be quoted", path.display()))
            .hint("write the [[token]] section yourself")),
    }
}
