// SPDX-License-Identifier: Apache-2.0
//! The files of a proxy on their way: written beside the place where they are to be, checked there by the server itself, and put in
//! place together.

use super::arguments::Create;
use super::entry::{Entry, Spot};
use super::service;
use super::suites::Offer;
use crate::command::setup::{check_paths, runs};
use crate::failure::{Failure, Result};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What stands in the place of names in a recipe.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) values: Vec<(&'static str, String)>,
}

impl Parts {
    pub(super) fn new(server: &str, spot: &Spot, args: &Create, offer: &Offer) -> Self {
        let [tls13, tls12] = offer.names();
        let versions = offer.versions();
        let end = |version: Option<&&str>| version.copied().unwrap_or_default().to_owned();
        let is_nginx = server == "nginx";
        // A session takes a quarter of a kibibyte; nginx wants eight pages.
        let cache = if is_nginx { (args.cache / 4 + 1).max(32) } else { args.cache };
        let log = if spot.has_systemd { "stderr" } else { "error.log" };
        let values = vec![
            ("run", spot.run().display().to_string()),
            ("cache", cache.to_string()),
            ("lifetime", args.timeout.unwrap_or(300).to_string()),
            ("oldest", end(versions.first())),
            ("newest", end(versions.last())),
            ("versions", versions.join(" ")),
            ("tls12", tls12),
            ("tls13", tls13),
            ("address", spot.address(server)),
            ("plain", args.proxy_port.to_string()),
            ("log", log.to_owned()),
        ];
        Self { values }
    }

    pub(super) fn add(&mut self, name: &'static str, value: String) {
        self.values.push((name, value));
    }

    /// For lines that name the directory of the files, and that of the process.
    pub(super) fn at(&self, place: &Path, run: &Path) -> Vec<(&'static str, String)> {
        let places = [("place", place), ("run", run)];
        let places = places.map(|(name, path)| (name, path.display().to_string()));
        // The first one counts.
        places.into_iter().chain(self.values.iter().cloned()).collect()
    }
}

/// The files where they are checked; dropped before [`Stage::place`], they go.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) place: PathBuf,
    pub(super) entry: Entry,
    unit: Option<String>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.place).ok();
    }
}

impl Stage {
    pub(super) fn make(
        spot: &Spot,
        entry: Entry,
        files: &[(String, String)],
        unit: Option<String>,
    ) -> Result<Self> {
        // One at a time has this name: what is there is of one that was killed.
        let place = spot.base.join(format!(".{}.new", spot.name));
        fs::remove_dir_all(&place).ok();
        let stage = Self { place, entry, unit };
        let cannot = |error| Failure::io(format!("cannot make {}", stage.place.display()), &error);
        fs::create_dir(&stage.place).map_err(cannot)?;
        mode(&stage.place, 0o755).map_err(cannot)?;
        for (name, text) in files {
            stage.write(name, text)?;
        }
        Ok(stage)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.place.join(name);
        let written = fs::write(&path, text).and_then(|()| mode(&path, 0o644));
        written.map_err(|error| Failure::io(format!("cannot write {}", path.display()), &error))
    }

    /// A directory for what the server makes when it checks.
    pub(super) fn room(&self, user: Option<&str>) -> Result<PathBuf> {
        let room = self.place.join("run");
        room_of(&room, user).map(|()| room)
    }

    /// Has the server check its configuration. Where systemd is to hand on the PIN, OpenSSL's configuration is another one now.
    pub(super) fn check(
        &self,
        server: &str,
        line: &str,
        openssl: Option<(&str, Option<String>)>,
    ) -> Result<()> {
        const NOW: &str = "check.cnf";
        let conf = match openssl {
            Some((_, Some(text))) => {
                self.write(NOW, &text)?;
                Some(self.place.join(NOW))
            }
            Some((name, None)) => Some(self.place.join(name)),
            None => None,
        };
        let checked = runs(line, conf.as_deref(), &self.place);
        fs::remove_file(self.place.join(NOW)).ok();
        fs::remove_dir_all(self.place.join("run")).ok();
        checked.map_err(|failure| {
            Failure::failed(format!("{server} refuses the configuration: {}", failure.message()))
                .hint("nothing was changed; METASLOT_LOG=stderr before the command says what the module has to say")
        })
    }

    /// Puts the files where they are to be, and starts the proxy; where that fails, what was there before is there again.
    pub(super) fn place(self, old: Option<&Entry>, user: Option<&str>) -> Result<()> {
        let entry = self.entry.clone();
        let unit_before = entry.unit_file().and_then(|file| fs::read_to_string(file).ok());
        let started = self.exchange(old.is_some()).and_then(|()| {
            write_unit(&entry, self.unit.as_deref())?;
            if entry.unit.is_none() {
                // What another server has left.
                fs::remove_dir_all(&entry.run).ok();
                room_of(&entry.run, user)?;
            }
            service::start(&entry)
        });
        let Err(failure) = started else { return Ok(()) };
        service::stop(&entry).ok();
        let back = match old {
            Some(old) => self
                .exchange(true)
                .and_then(|()| write_unit(old, unit_before.as_deref()))
                .and_then(|()| service::start(old)),
            None => entry.remove(),
        };
        service::forget(&entry);
        Err(match (back, old) {
            (Err(left), _) => {
                failure.hint(format!("not all of it was taken back: {}", left.message()))
            }
            (Ok(()), Some(_)) => failure.hint("the proxy of before is there again"),
            (Ok(()), None) => failure.hint("what was made is taken back"),
        })
    }

    /// What was there before is where this was.
    fn exchange(&self, is_there: bool) -> Result<()> {
        let flags = if is_there { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
        let to = &self.entry.directory;
        let done = renameat_with(CWD, &self.place, CWD, to, flags);
        done.map_err(|errno| {
            Failure::io(format!("cannot put {} in place", to.display()), &io::Error::from(errno))
        })
    }
}

fn mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// A directory of the process, which its user alone may use.
fn room_of(path: &Path, user: Option<&str>) -> Result<()> {
    check_paths(&[("directory", path.display().to_string())])?;
    let cannot = |error: io::Error| Failure::io(format!("cannot make {}", path.display()), &error);
    fs::create_dir_all(path).and_then(|()| mode(path, 0o700)).map_err(cannot)?;
    let Some(user) = user else { return Ok(()) };
    let changed = Command::new("chown").arg(format!("{user}:")).arg(path).status();
    match changed.map_err(cannot)?.success() {
        true => Ok(()),
        false => Err(Failure::failed(format!("{} cannot be given to {user}", path.display()))),
    }
}

fn write_unit(entry: &Entry, text: Option<&str>) -> Result<()> {
    let (Some(file), Some(text)) = (entry.unit_file(), text) else { return Ok(()) };
    let written = fs::write(&file, text).and_then(|()| mode(&file, 0o644));
    written.map_err(|error| Failure::io(format!("cannot write {}", file.display()), &error))
}
