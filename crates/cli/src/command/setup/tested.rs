// SPDX-License-Identifier: Apache-2.0
//! `metaslot setup --enable`: the program tests the machine's own configuration before it includes our files, and after.

use super::credential::Credential;
use super::files::{apply, kept, taken_back};
use super::program::{Plan, Program};
use super::tree::{Ended, Tree};
use super::verify::{PATIENCE, Unproved};
use crate::failure::{Failure, Result};
use rustix::fs::{MemfdFlags, memfd_create};
use std::env;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How a program tests its configuration.
#[derive(Debug)]
pub(super) struct Test<'a> {
    program: &'a Program,
    script: &'static str,
}

impl<'a> Test<'a> {
    /// Without its unit's processes nobody sees a credential, and the key could not be loaded.
    pub(super) fn of(program: &'a Program, credential: Option<&Credential>) -> Option<Self> {
        let is_seen = credential.is_none_or(|it| it.file().exists());
        let script = program.test().filter(|_| is_seen)?;
        Some(Self { program, script })
    }

    /// Refuses a configuration that is broken already: with the files of the last time, if there are some.
    pub(super) fn before(&self) -> Result<()> {
        let included = self.program.plan(&[]).included;
        let enabled = included.iter().find_map(|(path, _)| {
            let text = fs::read_to_string(path).ok()?;
            text.lines()
                .find_map(|line| line.strip_prefix("Environment=OPENSSL_CONF=").map(PathBuf::from))
        });
        match run(self.script, enabled.as_deref()) {
            Ok(()) => Ok(()),
            Err(Unproved::Failed(said)) => {
                let what = format!("{}'s configuration is broken already", self.program.name);
                let said = said.message();
                Err(Failure::failed(what).hint(format!("nothing was written; it said: {said}")))
            }
            Err(interrupted) => interrupted.after(None),
        }
    }

    /// Writes the files, and takes them back where the configuration is broken by them, or a signal comes.
    pub(super) fn apply(&self, directory: &Path, plan: &Plan) -> Result<Vec<&'static str>> {
        let kept = kept(directory, plan)?;
        let written = apply(directory, plan)?;
        let openssl = self.program.file().map(|file| directory.join(file));
        match run(self.script, openssl.as_deref()) {
            Ok(()) => Ok(written),
            Err(Unproved::Failed(said)) => {
                let name = self.program.name;
                let what = format!("{name}'s configuration does not work with what was written");
                let hint = format!("it was taken back; it said: {}", said.message());
                Err(taken_back(Failure::failed(what).hint(hint), kept))
            }
            Err(interrupted) => interrupted.after(Some(kept)),
        }
    }
}

/// A script's last words, where it fails. It has no terminal to ask at.
pub(super) fn run(script: &str, openssl: Option<&Path>) -> std::result::Result<(), Unproved> {
    let cannot = |error: io::Error| Failure::io("it cannot be run", &error);
    let said = memfd_create("said", MemfdFlags::CLOEXEC).map(File::from);
    let mut said = said.map_err(|errno| cannot(errno.into()))?;
    let both = said.try_clone().and_then(|out| Ok((out, said.try_clone()?)));
    let (out, err) = both.map_err(cannot)?;
    let mut shell = Command::new("setsid");
    shell.args(["--wait", "/bin/sh", "-c", script]).stdin(Stdio::null());
    shell.envs(openssl.map(|file| ("OPENSSL_CONF", file)));
    let mut path = env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/sbin:/sbin");
    let tree = Tree::start(shell.env("PATH", path).stdout(out).stderr(err));
    match tree.and_then(|mut tree| tree.wait(PATIENCE, &mut || {})) {
        Ok(Ended::With(status)) if status.success() => return Ok(()),
        Ok(Ended::Interrupted(signal)) => return Err(Unproved::Interrupted(signal)),
        Ok(_) => {}
        Err(error) => return Err(cannot(error).into()),
    }
    let mut bytes = Vec::new();
    said.rewind().and_then(|()| said.read_to_end(&mut bytes)).map_err(cannot)?;
    let said = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    Err(Failure::failed(lines[lines.len().saturating_sub(3)..].join("; ")).into())
}
