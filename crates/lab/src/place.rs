// SPDX-License-Identifier: Apache-2.0
//! A directory for one experiment: the tokens of this module and of a rival, and their
//! configuration, all of it gone at the end.

use crate::role::Role;
use crate::{Failure, Result};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory, removed when this value is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    directory: PathBuf,
    keep: bool,
}

impl Place {
    /// Makes the directory under `parent` (the system's directory for temporary files when absent)
    /// and writes the configuration of both modules.
    ///
    /// # Errors
    /// A file could not be written.
    pub(crate) fn make(parent: Option<&Path>, keep: bool) -> Result<Self> {
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_path_buf);
        let directory = parent.join(format!("metaslot-lab-{}", std::process::id()));
        let place = Self { directory, keep };
        place.private_directory(&place.directory)?;
        place.private_directory(&place.own_store())?;
        place.private_directory(&place.rival_store())?;
        place.write("metaslot.conf", &own_configuration(&place.own_store()))?;
        let rival = format!(
            "directories.tokendir = {}\nobjectstore.backend = file\nlog.level = ERROR\n",
            place.rival_store().display()
        );
        place.write("softhsm2.conf", &rival)?;
        Ok(place)
    }

    fn private_directory(&self, path: &Path) -> Result<()> {
        let made = DirBuilder::new().mode(0o700).create(path);
        made.map_err(|error| {
            Failure::file(path, &error).hint("choose a directory that you can write with --dir")
        })
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.directory.join(name);
        std::fs::write(&path, text).map_err(|error| Failure::file(&path, &error))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.directory
    }

    fn own_store(&self) -> PathBuf {
        self.directory.join("metaslot")
    }

    fn rival_store(&self) -> PathBuf {
        self.directory.join("softhsm2")
    }

    /// This program in another part, with the environment of this place.
    ///
    /// # Errors
    /// As [`Role::command`].
    pub(crate) fn command(&self, role: &Role) -> Result<Command> {
        environment(role.command()?, &self.directory)
    }

    /// Starts the experiment in a process of its own and waits for it. One that fails has said why:
    /// then this process ends with the same code, after clearing up.
    ///
    /// # Errors
    /// The process could not be started.
    pub(crate) fn experiment(self) -> Result<()> {
        let role = Role::Experiment(self.directory.clone());
        let status = self.command(&role)?.status()?;
        drop(self);
        if status.success() {
            return Ok(());
        }
        std::process::exit(status.code().unwrap_or(1))
    }
}

/// The same environment for a process that an experiment starts, from its directory.
pub(crate) fn environment(mut command: Command, directory: &Path) -> Result<Command> {
    command.env("METASLOT_CONF", directory.join("metaslot.conf"));
    command.env("SOFTHSM2_CONF", directory.join("softhsm2.conf"));
    Ok(command)
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.keep {
            eprintln!("kept {}", self.directory.display());
        } else {
            // What is left behind hurts nobody, and the result was printed.
            std::fs::remove_dir_all(&self.directory).ok();
        }
    }
}

/// Configuration of this module: one token in the directory.
fn own_configuration(store: &Path) -> String {
    format!("[[slot]]\nstore = \"{}\"\n", store.join("token.db").display())
}
