// SPDX-License-Identifier: Apache-2.0
//! What `lab print` says of an experiment's profiles.

use super::about::{TIMER, about};
use super::functions::{self, Costed, Metric, Sort, Wanted};
use super::neighbours::neighbours;
use super::{Profile, alone, flame, profiles};
use crate::experiment::{Experiment, Sample};
use crate::{Failure, Result};
use serde_json::Value;
use std::path::Path;

/// So many functions are printed.
pub(super) const TOP: usize = 25;

/// Which profile, where an experiment has several.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Profile")]
pub struct Chosen {
    /// Of profiles, those whose cell has this in it
    #[arg(long, value_name = "TEXT")]
    pub cell: Option<String>,
    /// Of profiles, those of this arm
    #[arg(long, value_name = "NAME")]
    pub arm: Option<String>,
}

/// What of the profiles is printed.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Profile")]
pub struct Functions {
    /// Functions, inclusive and exclusive, instead of the result
    #[arg(long)]
    pub functions: bool,
    /// Who calls a function and whom it calls
    #[arg(long, value_name = "FUNCTION", conflicts_with = "functions")]
    pub callers_callees: Option<String>,
    /// A flame graph, as SVG
    #[arg(long, conflicts_with_all = ["functions", "callers_callees"])]
    pub flame: bool,
    /// By which column functions are sorted
    #[arg(long, value_enum, default_value_t = Sort::Excl)]
    pub sort: Sort,
    /// Columns of one kind only
    #[arg(long, value_enum)]
    pub metric: Option<Metric>,
    /// So many functions
    #[arg(long, value_name = "N", default_value_t = TOP)]
    pub top: usize,
    /// Which profiles
    #[command(flatten)]
    pub chosen: Chosen,
}

impl Functions {
    /// The table of so many functions.
    pub(super) fn table(sort: Sort, top: usize) -> Self {
        Self {
            functions: true,
            callers_callees: None,
            flame: false,
            sort,
            metric: None,
            top,
            chosen: Chosen::default(),
        }
    }

    /// Whether profiles are wanted at all.
    pub(crate) const fn wanted(&self) -> bool {
        self.functions || self.callers_callees.is_some() || self.flame
    }
}

/// What is asked for.
///
/// # Errors
/// The experiment has no such profile, or no sample is of that function.
pub(crate) fn text(
    directory: &Path,
    experiment: &Experiment,
    options: &Functions,
) -> Result<String> {
    let all = profiles(directory, &experiment.plan)?;
    if options.flame {
        let profile = choose(&all, &options.chosen)?;
        return Ok(alone(&flame(&title(profile), &profile.folded)));
    }
    let mut texts = Vec::new();
    for profile in matching(&all, &options.chosen)? {
        texts.push(one(experiment, profile, options)?);
    }
    if options.functions && all.iter().any(|profile| profile.details.sampler == "cpu-clock") {
        texts.push(TIMER.to_owned());
    }
    Ok(texts.join("\n"))
}

/// The same as JSON.
///
/// # Errors
/// As of [`text`].
pub(crate) fn json(
    directory: &Path,
    experiment: &Experiment,
    options: &Functions,
) -> Result<Value> {
    let all = profiles(directory, &experiment.plan)?;
    let unit = experiment.manifest.provenance.cost();
    let profiles = matching(&all, &options.chosen)?;
    let values = profiles
        .into_iter()
        .map(|profile| functions::json(costed(experiment, profile, &unit), options.sort));
    Ok(values.collect())
}

fn one(experiment: &Experiment, profile: &Profile, options: &Functions) -> Result<String> {
    let unit = experiment.manifest.provenance.cost();
    let costed = costed(experiment, profile, &unit);
    let body = match &options.callers_callees {
        Some(function) => neighbours(costed, function)?,
        None => {
            let wanted = Wanted { sort: options.sort, metric: options.metric, rows: options.top };
            functions::table(costed, wanted)
        }
    };
    Ok(format!("{}\n\n{body}\n{}", title(profile), about(costed)))
}

/// The profile with what its cell costs: the median of the runs that were not sampled.
fn costed<'a>(experiment: &Experiment, profile: &'a Profile, unit: &'a str) -> Costed<'a> {
    let (cell, arm) = (&profile.details.cell, &profile.details.arm);
    let cost = experiment.typical(cell, arm, |sample| Some(experiment.ticks(sample)));
    let plain = experiment.typical(cell, arm, |sample| Some(Sample::cpu_each(sample)));
    // Where the only run was sampled there is nothing to compare with.
    let unsampled = experiment
        .of(cell, arm)
        .any(|sample| !sample.measured.flags.iter().any(|flag| flag == SAMPLED));
    let slower = plain.filter(|plain| unsampled && *plain > 0.0);
    let slower = slower.map(|plain| profile.details.cpu_each / plain);
    let without = experiment.of(cell, arm).count();
    Costed { profile, cost: cost.unwrap_or(f64::NAN), unit, slower, without }
}

/// The mark of a sample that was taken while samples were taken.
pub(super) const SAMPLED: &str = "sampled";

fn title(profile: &Profile) -> String {
    format!("{} {}", profile.details.cell, profile.details.arm)
}

/// The profiles that are meant.
fn matching<'a>(all: &'a [Profile], chosen: &Chosen) -> Result<Vec<&'a Profile>> {
    if all.is_empty() {
        return Err(Failure::new("the experiment has no profiles")
            .hint("measure with --profile, or use 'metaslot lab profile -- COMMAND'"));
    }
    let cell = |profile: &&Profile| {
        chosen.cell.as_ref().is_none_or(|text| profile.details.cell.contains(text))
    };
    let arm =
        |profile: &&Profile| chosen.arm.as_ref().is_none_or(|text| profile.details.arm == *text);
    let found: Vec<&Profile> = all.iter().filter(cell).filter(arm).collect();
    if found.is_empty() {
        return Err(Failure::new("no profile is of such a cell and arm").hint(names(all.iter())));
    }
    Ok(found)
}

/// The one that is meant.
///
/// # Errors
/// There is none, or more than one.
pub(super) fn choose<'a>(all: &'a [Profile], chosen: &Chosen) -> Result<&'a Profile> {
    let found = matching(all, chosen)?;
    match found.as_slice() {
        [one] => Ok(one),
        several => Err(Failure::new(format!("{} profiles are meant", several.len()))
            .hint(format!("choose one with --cell and --arm; {}", names(found.iter().copied())))),
    }
}

fn names<'a>(profiles: impl Iterator<Item = &'a Profile>) -> String {
    let names: Vec<String> = profiles.map(title).collect();
    format!("there are: {}", names.join("; "))
}

#[cfg(test)]
mod tests {
    use super::super::details::tests::profile;
    use super::*;

    fn chosen(cell: &str, arm: Option<&str>) -> Chosen {
        Chosen { cell: Some(cell.to_owned()), arm: arm.map(str::to_owned) }
    }

    #[test]
    fn one_profile_is_chosen_or_the_names_of_all_are_said() {
        let all = [
            profile("size=1K", "new", "a 1\n"),
            profile("size=1K", "old", "a 1\n"),
            profile("size=64K", "new", "a 1\n"),
        ];
        assert_eq!(choose(&all, &chosen("64K", None)).unwrap().details.cell, "size=64K");
        assert_eq!(choose(&all, &chosen("1K", Some("old"))).unwrap().details.arm, "old");
        let failure = choose(&all, &chosen("1K", None)).unwrap_err();
        assert!(failure.hint.unwrap().contains("size=1K new; size=1K old"));
        let failure = choose(&all, &chosen("2K", None)).unwrap_err();
        assert!(failure.hint.unwrap().contains("size=64K new"));
        let failure = choose(&[], &Chosen::default()).unwrap_err();
        assert!(failure.hint.unwrap().contains("--profile"));
    }
}
