// SPDX-License-Identifier: Apache-2.0
//! Profiles beside an experiment's samples: for each cell and arm the folded stacks, and a file that says
//! how they were taken and at which addresses each function was met.

use super::Folded;
use crate::experiment::Plan;
use crate::{Failure, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The schema's name; a change that breaks readers changes the number.
const SCHEMA: &str = "metaslot-lab-profile/1";
/// The folder in the experiment.
const FOLDER: &str = "profile";

/// How a profile was taken, and where functions were met.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Details {
    pub(super) schema: String,
    pub(crate) cell: String,
    pub(crate) arm: String,
    /// What the samples come from: `cycles`, `cpu-clock`.
    pub(crate) sampler: String,
    /// Cycles, or nanoseconds of CPU time, between two samples.
    pub(crate) period: u64,
    pub(crate) hz: u32,
    pub(crate) samples: u64,
    /// Samples that did not fit the kernel's memory.
    pub(crate) lost: u64,
    /// How often the kernel took none for a while.
    pub(crate) throttled: u64,
    /// Samples whose stack could not be followed to its end.
    pub(crate) broken: u64,
    /// The kernel's part was not allowed to be seen.
    pub(crate) user_only: bool,
    /// CPU time of all sampled runs, and of the lab's own thread that took the samples away.
    pub(crate) cpu_ns: f64,
    pub(crate) reader_ns: f64,
    /// CPU time of a unit of work while it was sampled: the median of the runs.
    pub(crate) cpu_each: f64,
    pub(crate) runs: usize,
    /// Samples of each program, by its name.
    pub(crate) programs: BTreeMap<String, u64>,
    /// The addresses at which each function was met at the end of a stack.
    pub(crate) functions: BTreeMap<String, Vec<Address>>,
}

/// An address, and how often it was met.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Address {
    /// The file; empty: the kernel.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) file: String,
    /// As the file's own tables count, or the offset in the file where these have no name for it.
    pub(crate) address: u64,
    /// Where the function begins; 0: unknown.
    pub(crate) start: u64,
    pub(crate) samples: u64,
    /// The line of source, where the file says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<(String, u32)>,
}

/// A profile of one arm of one cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Profile {
    pub(crate) details: Details,
    pub(crate) folded: Folded,
}

impl Profile {
    /// The files to be kept in the experiment.
    ///
    /// # Errors
    /// A number is none.
    pub(crate) fn files(mut self) -> Result<[(String, Vec<u8>); 2]> {
        self.details.schema = SCHEMA.to_owned();
        let name = name(&self.details.cell, &self.details.arm);
        Ok([
            (format!("{FOLDER}/{name}.folded"), self.folded.render().into_bytes()),
            (format!("{FOLDER}/{name}.json"), serde_json::to_vec(&self.details)?),
        ])
    }
}

/// The name of a profile's files: no character that a file's name cannot have.
fn name(cell: &str, arm: &str) -> String {
    let fit = |text: &str| text.replace(['/', '\0', '~'], "_");
    format!("{}~{}", fit(cell), fit(arm))
}

/// All profiles of an experiment, in the order in which its plan has the cells and arms; none of one without.
///
/// # Errors
/// A file cannot be read, or is not what it should be.
pub(crate) fn profiles(directory: &Path, plan: &Plan) -> Result<Vec<Profile>> {
    let (cells, arms) = (plan.cells(), &plan.arms);
    let mut profiles = all(directory)?;
    let place = |all: &[String], name: &String| all.iter().position(|one| one == name);
    profiles.sort_by_cached_key(|Profile { details, .. }| {
        [place(&cells, &details.cell), place(arms, &details.arm)].map(|at| at.unwrap_or(usize::MAX))
    });
    Ok(profiles)
}

fn all(directory: &Path) -> Result<Vec<Profile>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory.join(FOLDER)).into_iter().flatten() {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "json") {
            names.push(path);
        }
    }
    names.sort();
    names.iter().map(|path| read(path).map_err(|failure| failure.context(path.display()))).collect()
}

fn read(path: &Path) -> Result<Profile> {
    let details: Details = serde_json::from_slice(&std::fs::read(path)?)?;
    if details.schema != SCHEMA {
        return Err(Failure::new(format!("{:?} is not a profile's schema", details.schema))
            .hint("use the metaslot that made it"));
    }
    let path = path.with_extension("folded");
    let text = std::fs::read_to_string(&path).map_err(|error| Failure::file(&path, &error))?;
    let folded = Folded::parse(&text)?;
    if folded.total() != details.samples {
        return Err(Failure::new(format!(
            "{} holds {} samples where {} were taken",
            path.display(),
            folded.total(),
            details.samples
        )));
    }
    Ok(Profile { details, folded })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn profile(cell: &str, arm: &str, text: &str) -> Profile {
        let folded = Folded::parse(text).unwrap();
        let samples = folded.total();
        let details = Details {
            cell: cell.to_owned(),
            arm: arm.to_owned(),
            sampler: "cpu-clock".to_owned(),
            period: 500_250,
            hz: 1999,
            samples,
            cpu_ns: samples as f64 * 500_250.0,
            cpu_each: 102.0,
            runs: 3,
            ..Details::default()
        };
        Profile { details, folded }
    }

    #[test]
    fn what_is_written_is_read_and_what_was_changed_shows() {
        let place = std::env::temp_dir().join(format!("profiles-{}", std::process::id()));
        std::fs::create_dir_all(place.join(FOLDER)).unwrap();
        assert!(all(&place.join("none")).unwrap().is_empty());
        let one = profile("path=/a size=1K", "new", "a;b 3\n");
        for (name, bytes) in one.clone().files().unwrap() {
            std::fs::write(place.join(name), bytes).unwrap();
        }
        let read = all(&place).unwrap();
        assert_eq!(read[0].folded, one.folded);
        assert_eq!(read[0].details.cell, "path=/a size=1K");
        std::fs::write(place.join(FOLDER).join("path=_a size=1K~new.folded"), "a;b 4\n").unwrap();
        let failure = all(&place).unwrap_err();
        assert!(failure.message.contains("holds 4 samples where 3 were taken"), "{failure}");
        std::fs::remove_dir_all(place).unwrap();
    }
}
