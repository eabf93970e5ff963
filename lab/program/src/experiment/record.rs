// SPDX-License-Identifier: Apache-2.0
//! Writing an experiment, in the only order that there is: plan, manifest, samples, seal.

use super::plan::{Plan, Run};
use super::sample::{Measured, Sample};
use super::{AGAIN, LOG, MANIFEST, Manifest, PLAN, Provenance, SAMPLES, seal};
use crate::{Failure, Result};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// An experiment that is running. Dropped before its end, or killed, it stays readable.
#[derive(Debug)]
pub struct Recorder {
    directory: PathBuf,
    manifest: Manifest,
    plan: Plan,
    samples: File,
    log: File,
    done: usize,
    again: Option<File>,
    repeated: usize,
}

impl Recorder {
    /// Makes the directory and writes plan and manifest. `clocks` are those of `cpu_ns` and `wall_ns`.
    ///
    /// # Errors
    /// The directory's name does not end in `.labx`, it is there already, or cannot be written.
    pub fn create(
        directory: &Path,
        provenance: Provenance,
        clocks: [&str; 2],
        plan: Plan,
    ) -> Result<Self> {
        if directory.extension().is_none_or(|ending| ending != "labx") {
            let shown = directory.display();
            return Err(Failure::new(format!("{shown}: an experiment's name ends in .labx")));
        }
        fs::create_dir(directory).map_err(|error| {
            Failure::file(directory, &error)
                .hint("choose another name: no experiment is overwritten")
        })?;
        seal::replace(directory, PLAN, &serde_json::to_vec_pretty(&plan)?)?;
        let written = seal::read(directory, PLAN)?;
        let manifest = Manifest::begin(provenance, clocks, seal::digest(&written));
        seal::replace(directory, MANIFEST, &serde_json::to_vec_pretty(&manifest)?)?;
        let (samples, log) = (append(directory, SAMPLES)?, append(directory, LOG)?);
        let directory = directory.to_owned();
        Ok(Self { directory, manifest, plan, samples, log, done: 0, again: None, repeated: 0 })
    }

    /// The plan, as written.
    #[must_use]
    pub const fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What is to be run now; nothing when all is done.
    #[must_use]
    pub fn next(&self) -> Option<&Run> {
        self.plan.order.get(self.done)
    }

    /// Appends the sample of the run that was to be run now. It is one write, and no sync: a sync
    /// would disturb the next run, and a kill does not lose what was written.
    ///
    /// # Errors
    /// The plan is at its end, a value is no number, or the disk is full.
    pub fn record(&mut self, measured: Measured) -> Result<()> {
        measured.check()?;
        let run = self.next().ok_or_else(|| Failure::new("the plan has no more runs"))?.clone();
        let mut line = serde_json::to_vec(&Sample { order: self.done, run, measured })?;
        line.push(b'\n');
        self.samples
            .write_all(&line)
            .map_err(|error| Failure::file(&self.directory.join(SAMPLES), &error))?;
        self.done += 1;
        Ok(())
    }

    /// Appends a sample of a run that is outside of the plan: a cell's first arm, started afresh.
    ///
    /// # Errors
    /// A value is no number, or the disk is full.
    pub fn again(&mut self, run: Run, measured: Measured) -> Result<()> {
        measured.check()?;
        let file = match &mut self.again {
            Some(file) => file,
            none => none.insert(append(&self.directory, AGAIN)?),
        };
        let mut line = serde_json::to_vec(&Sample { order: self.repeated, run, measured })?;
        line.push(b'\n');
        file.write_all(&line)
            .map_err(|error| Failure::file(&self.directory.join(AGAIN), &error))?;
        self.repeated += 1;
        Ok(())
    }

    /// Appends a line to `log.txt`.
    ///
    /// # Errors
    /// The disk is full.
    pub fn log(&mut self, text: &str) -> Result<()> {
        self.log
            .write_all(format!("{text}\n").as_bytes())
            .map_err(|error| Failure::file(&self.directory.join(LOG), &error))
    }

    /// Writes a file beside the samples: a folded profile, what another program printed. Folders are
    /// made as needed, and what is there is not overwritten.
    ///
    /// # Errors
    /// The file is there already, or the disk is full.
    pub fn attach(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.directory.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|error| Failure::file(parent, &error))?;
        }
        append_to(&path)?.write_all(bytes).map_err(|error| Failure::file(&path, &error))
    }

    /// Notes the core's frequency over the counter's at the end.
    pub const fn core_factor_after(&mut self, factor: Option<f64>) {
        self.manifest.provenance.core_factor[1] = factor;
    }

    /// Where it is written.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Notes the end and seals.
    ///
    /// # Errors
    /// The plan is not done: then there is nothing to seal. Or a file cannot be written.
    pub fn finish(mut self) -> Result<()> {
        if let Some(run) = self.next() {
            return Err(Failure::new(format!("the plan is not done: {} is next", run.cell)));
        }
        self.manifest.stopped = Some(crate::machine::now());
        self.samples.sync_all()?;
        self.log.sync_all()?;
        seal::replace(&self.directory, MANIFEST, &serde_json::to_vec_pretty(&self.manifest)?)?;
        seal::seal(&self.directory)
    }
}

fn append(directory: &Path, name: &str) -> Result<File> {
    append_to(&directory.join(name))
}

fn append_to(path: &Path) -> Result<File> {
    let opened = OpenOptions::new().append(true).create_new(true).open(path);
    opened.map_err(|error| Failure::file(path, &error))
}
