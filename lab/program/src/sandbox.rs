// SPDX-License-Identifier: Apache-2.0
//! A directory for one experiment: the tokens of this module and of a rival, and their
//! configuration, all of it gone at the end.

use crate::interrupt::Interrupt;
use crate::output::tell;
use crate::role::Role;
use crate::{Failure, Result};
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The directory, removed when this value is dropped.
#[derive(Debug)]
pub(crate) struct Sandbox {
    directory: PathBuf,
    keep: bool,
}

impl Sandbox {
    /// Makes the directory under `parent` (the system's directory for temporary files when absent).
    ///
    /// # Errors
    /// A directory could not be made.
    pub(crate) fn make(parent: Option<&Path>, keep: bool) -> Result<Self> {
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let parent = std::path::absolute(&parent).unwrap_or(parent);
        let directory = parent.join(format!("metaslot-lab-{}", std::process::id()));
        private_directory(&directory)?;
        Ok(Self { directory, keep })
    }

    /// The same for an experiment that does not look for signals: ^C and its like take the directory away
    /// as well.
    ///
    /// # Errors
    /// As [`Self::make`].
    pub(crate) fn guarded(parent: Option<&Path>, keep: bool) -> Result<Self> {
        let place = Self::make(parent, keep)?;
        if !keep {
            let directory = place.directory.clone();
            Interrupt::ends_after(move || remove(&directory))?;
        }
        Ok(place)
    }

    /// A file outside all stores.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// A store of its own inside this place, with the configuration of both modules.
    ///
    /// # Errors
    /// A file could not be written.
    pub(crate) fn store(&self, name: &str) -> Result<Store> {
        self.configured(name, "", "")
    }

    /// The same with more settings of this module's: of the whole, and of the token. Both are whole lines.
    ///
    /// # Errors
    /// A file could not be written.
    pub(crate) fn configured(&self, name: &str, whole: &str, token: &str) -> Result<Store> {
        let store = Store { directory: self.directory.join(name) };
        for part in ["", "metaslot", "counters", "softhsm2"] {
            private_directory(&store.directory.join(part))?;
        }
        let own = format!(
            "counters = {:?}\n{whole}\n[[token]]\npath = {:?}\n{token}",
            store.counters(),
            store.database()
        );
        let rival = format!(
            "directories.tokendir = {}\nobjectstore.backend = file\nlog.level = ERROR\n",
            store.directory.join("softhsm2").display()
        );
        write(&store.directory.join("metaslot.toml"), &own)?;
        write(&store.directory.join("softhsm2.conf"), &rival)?;
        Ok(store)
    }

    /// A store with the tokens of another one, which no process has open.
    ///
    /// # Errors
    /// A file could not be copied.
    pub(crate) fn copy(&self, other: &Store, name: &str) -> Result<Store> {
        let store = self.store(name)?;
        for part in ["metaslot", "softhsm2"] {
            copy(&other.directory.join(part), &store.directory.join(part))?;
        }
        Ok(store)
    }
}

/// One configuration: a directory for the token of each module.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    directory: PathBuf,
}

impl Store {
    /// This program in another part, with the environment of this store.
    ///
    /// # Errors
    /// As [`Role::command`].
    pub(crate) fn command(&self, role: &Role) -> Result<Command> {
        let mut command = role.command()?;
        self.configure(&mut command);
        Ok(command)
    }

    /// Gives a program the environment of this store.
    pub(crate) fn configure(&self, command: &mut Command) {
        command.env("METASLOT_CONF", self.directory.join("metaslot.toml"));
        command.env("SOFTHSM2_CONF", self.directory.join("softhsm2.conf"));
    }

    /// What operations cost, where that is known.
    pub(crate) fn costs(&self) -> PathBuf {
        self.directory.join("costs.tsv")
    }

    /// Where this module's processes count.
    pub(crate) fn counters(&self) -> PathBuf {
        self.directory.join("counters")
    }

    /// This module's database file.
    pub(crate) fn database(&self) -> PathBuf {
        self.directory.join("metaslot").join("token.db")
    }

    /// A file beside the tokens.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

fn private_directory(path: &Path) -> Result<()> {
    let made = DirBuilder::new().mode(0o700).create(path);
    match made {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(Failure::file(path, &error)
                .hint("choose a directory that you can write with --dir"))
        }
        _ => Ok(()),
    }
}

/// Everything below a directory.
fn copy(from: &Path, to: &Path) -> Result<()> {
    private_directory(to)?;
    for entry in std::fs::read_dir(from).map_err(|error| Failure::file(from, &error))? {
        let (entry, from) = entry.map(|entry| (entry.file_name(), entry.path()))?;
        let to = to.join(entry);
        if from.is_dir() {
            copy(&from, &to)?;
        } else {
            std::fs::copy(&from, &to).map_err(|error| Failure::file(&to, &error))?;
        }
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|error| Failure::file(path, &error))
}

/// Another process may still write there for a moment. What is left behind does no harm.
fn remove(directory: &Path) {
    for _ in 0..50 {
        match std::fs::remove_dir_all(directory) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {
                std::thread::sleep(Duration::from_millis(10));
            }
            _ => return,
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if self.keep {
            tell(format_args!("kept {}", self.directory.display()));
        } else {
            remove(&self.directory);
        }
    }
}
