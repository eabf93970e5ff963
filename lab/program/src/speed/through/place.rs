// SPDX-License-Identifier: Apache-2.0
//! A token with a key for every operation, the same kinds of keys in files, and the programs.

use super::program::{Ran, Shape, loops, speed};
use super::rows::{Doer, ThroughRow};
use crate::bridge::{Bridge, LOOP, Mode, compiled, configuration, provider_beside};
use crate::child::Child;
use crate::experiment::Measured;
use crate::role::Role;
use crate::sandbox::{Sandbox, Store};
use crate::speed::{Options, Part};
use crate::token::{LABEL, PIN, own_module};
use crate::{Failure, Result};
use metaslot_counters::{Event, read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Everything that a run needs.
pub(super) struct Place {
    openssl: PathBuf,
    /// The version of `openssl`.
    pub(super) version: String,
    pub(super) module: PathBuf,
    provider: PathBuf,
    engine: Option<PathBuf>,
    mode: Mode,
    store: Store,
    /// The loop, or why there is none.
    program: std::result::Result<PathBuf, String>,
    /// Goes away after those who work in it.
    place: Sandbox,
}

/// What the module counted: operations by the row's mechanism, batches, operations in batches.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    operations: f64,
    batches: f64,
    batched: f64,
}

impl Place {
    /// Makes the token, and the keys for these rows.
    ///
    /// # Errors
    /// There is no `openssl`, no module, or no provider.
    pub(super) fn new(options: &Options, rows: &[ThroughRow]) -> Result<Self> {
        let openssl = options.openssl.clone().unwrap_or_else(|| PathBuf::from("openssl"));
        let said = |what: &str| said(Command::new(&openssl).args(["version", what]));
        let version = said("-v").filter(|version| version.starts_with("OpenSSL"));
        let version = version.ok_or_else(|| {
            Failure::new(format!("{}: that is no openssl", openssl.display()))
                .hint("it is to answer 'openssl version'")
        })?;
        let engine = said("-e").and_then(|text| Some(text.split('"').nth(1)?.to_owned()));
        let engine = engine.map(|directory| Path::new(&directory).join("pkcs11.so"));
        let module = own_module(options.token.module.as_deref())?;
        let provider = options.provider.clone().map_or_else(|| provider_beside(&module), Ok)?;
        let place = Sandbox::guarded(options.token.dir.as_deref(), options.token.keep)?;
        // RSA-1024 is refused otherwise.
        let store = place.configured("through", "", "policy = \"legacy\"\n")?;
        let part = Role::Speed(Part::Module(module.clone()));
        let mut made = Child::start(store.command(&part)?)?;
        made.answer::<String>()?;
        made.end()?;
        let program = compiled(&place, "openssl_loop", LOOP);
        let engine = engine.filter(|engine| engine.exists());
        let mode = options.provider_mode;
        let place =
            Self { openssl, version, module, provider, engine, mode, store, program, place };
        rows.iter().try_for_each(|row| place.keys(row))?;
        Ok(place)
    }

    /// One in the token, named by a file, and one in a file.
    fn keys(&self, row: &ThroughRow) -> Result<()> {
        let uri = format!("pkcs11_uri:pkcs11:token={LABEL};object={}", row.name);
        let own = ["-propquery", "provider=metaslot", "-pkeyopt", &uri];
        for (doer, more) in [(Doer::Token, &own[..]), (Doer::File, &[])] {
            let mut command = Command::new("openssl");
            self.configure(&mut command, doer, false)?;
            command.arg("genpkey").args(row.key).args(more).arg("-out").arg(self.key(row, doer));
            let output = command.stdin(Stdio::null()).output()?;
            if !output.status.success() {
                let errors = String::from_utf8_lossy(&output.stderr);
                let what = format!("no key for {}: {}", row.name, errors.trim());
                return Err(Failure::new(what)
                    .hint("the provider and the module belong together: --provider, --module"));
            }
        }
        Ok(())
    }

    fn key(&self, row: &ThroughRow, doer: Doer) -> PathBuf {
        self.place.file(&format!("{}-{}.key", row.name, doer.word()))
    }

    /// Gives a program the configuration of who does it.
    fn configure(&self, command: &mut Command, doer: Doer, jobs: bool) -> Result<()> {
        let provider = |mode| Bridge::Provider { file: &self.provider, mode, jobs };
        let bridge = match doer {
            Doer::Plain | Doer::File => Bridge::None,
            Doer::Engine => self.engine.as_deref().map_or(Bridge::None, Bridge::Engine),
            Doer::Provider => provider(self.mode),
            Doer::Token => provider(Mode::Keys),
        };
        let text = configuration(bridge, &self.module, &String::from_utf8_lossy(PIN));
        let jobs = if jobs { "-jobs" } else { "" };
        let path = self.place.file(&format!("{}{jobs}.cnf", doer.word()));
        std::fs::write(&path, text).map_err(|error| Failure::file(&path, &error))?;
        self.store.configure(command);
        command.env("OPENSSL_CONF", path);
        Ok(())
    }

    /// Why nobody of this name can do anything here.
    pub(super) fn absent(&self, doer: Doer) -> Option<String> {
        match doer {
            Doer::Engine if self.engine.is_none() => {
                Some("libp11's engine is not installed (libengine-pkcs11-openssl)".to_owned())
            }
            Doer::File | Doer::Token => self.program.as_ref().err().cloned(),
            _ => None,
        }
    }

    /// Runs it once.
    ///
    /// # Errors
    /// It does not do it; or the module was to do it, and did not.
    pub(super) fn run(&self, row: &ThroughRow, doer: Doer, shape: Shape) -> Result<(Ran, Counted)> {
        let before = self.counted(row);
        let ran = if doer.is_speed() {
            let mut command = Command::new(&self.openssl);
            self.configure(&mut command, doer, shape.jobs > 0)?;
            command.arg("speed");
            command.args(if doer == Doer::Engine { &["-engine", "pkcs11"][..] } else { &[] });
            speed(command, row, shape)?
        } else {
            let program = self.program.as_ref().map_err(|why| Failure::new(why.clone()))?;
            let mut command = Command::new(program);
            self.configure(&mut command, doer, shape.jobs > 0)?;
            loops(command, &self.key(row, doer), row.group, shape)?
        };
        let counted = self.counted(row).since(before);
        if doer.by_module() && counted.operations < ran.operations {
            let (did, of) = (counted.operations, ran.operations);
            return Err(Failure::new(format!(
                "the module's counters say that it did {did:.0} of {of:.0} operations: libcrypto did the others"
            )));
        }
        Ok((ran, counted))
    }

    /// What all processes counted so far.
    fn counted(&self, row: &ThroughRow) -> Counted {
        let mut counted = Counted::default();
        for process in read::processes(&[self.store.counters()]) {
            let own = process.operations.iter().filter(|(kind, _)| kind.mechanism == row.mechanism);
            counted.operations += own.map(|(_, cell)| cell.operations as f64).sum::<f64>();
            for (event, count) in process.events {
                match event {
                    Event::LaneBatch => counted.batches += count as f64,
                    Event::LaneBatched => counted.batched += count as f64,
                    _ => {}
                }
            }
        }
        counted
    }
}

impl Counted {
    fn since(self, before: Self) -> Self {
        Self {
            operations: self.operations - before.operations,
            batches: self.batches - before.batches,
            batched: self.batched - before.batched,
        }
    }

    /// Beside the sample.
    pub(super) fn into_sample(self, measured: &mut Measured) {
        let Self { operations, batches, batched } = self;
        let all = [("counted", operations), (BATCHES, batches), (BATCHED, batched)];
        measured.counters.extend(all.map(|(name, value)| (name.to_owned(), value)));
    }
}

pub(super) const BATCHES: &str = "batches";
pub(super) const BATCHED: &str = "batched";

/// What a program says that succeeds.
fn said(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    output.status.success().then_some(text)
}
