// SPDX-License-Identifier: Apache-2.0
//! `metaslot setup --enable`: the program tests the machine's own configuration before it includes our files, and after.

use super::credential::Credential;
use super::files::{apply, kept, put_back};
use super::program::{Plan, Program};
use crate::failure::{Failure, Result};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How a program tests its configuration.
#[derive(Debug)]
pub(super) struct Test {
    program: &'static Program,
    script: &'static str,
}

impl Test {
    /// Without its unit's processes nobody sees a credential, and the key could not be loaded.
    pub(super) fn of(program: &'static Program, credential: Option<&Credential>) -> Option<Self> {
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
        self.run(enabled.as_deref()).map_err(|said| {
            let what = format!("{}'s configuration is broken already", self.program.name);
            Failure::failed(what).hint(format!("nothing was written; it said: {said}"))
        })
    }

    /// Writes the files, and takes them back where the configuration is broken by them.
    pub(super) fn apply(&self, directory: &Path, plan: &Plan) -> Result<Vec<&'static str>> {
        let kept = kept(directory, plan)?;
        let written = apply(directory, plan)?;
        let openssl = self.program.bridge.file().map(|file| directory.join(file));
        let Err(said) = self.run(openssl.as_deref()) else { return Ok(written) };
        put_back(kept)?;
        let what =
            format!("{}'s configuration does not work with what was written", self.program.name);
        Err(Failure::failed(what).hint(format!("it was taken back; it said: {said}")))
    }

    /// Its last words, where it fails. It has no terminal to ask at.
    fn run(&self, openssl: Option<&Path>) -> std::result::Result<(), String> {
        let mut shell = Command::new("setsid");
        shell.args(["--wait", "/bin/sh", "-c", self.script]).stdin(Stdio::null());
        shell.envs(openssl.map(|file| ("OPENSSL_CONF", file)));
        let mut path = env::var_os("PATH").unwrap_or_default();
        path.push(":/usr/sbin:/sbin");
        let output = shell.env("PATH", path).output().map_err(|error| error.to_string())?;
        if output.status.success() {
            return Ok(());
        }
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        Err(lines[lines.len().saturating_sub(3)..].join("; "))
    }
}
