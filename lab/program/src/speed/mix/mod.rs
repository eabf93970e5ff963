// SPDX-License-Identifier: Apache-2.0
//! `lab speed --mix`: what services do with their keys, by all providers together and by each of them alone.

mod print;

pub(crate) use print::text;

use super::Options;
use super::openssl::Readings;
use super::part::{
    Crew, Function, Job, Jobs, Key, LANES, MODULE, ONLY_LANES, ONLY_OPENSSL, Plan, ROUTED, Work,
};
use crate::experiment::Factor;
use crate::scenario::Made;
use crate::{Failure, Result, filter};
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::mechanism_name;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Deserialize)]
struct Mix<'a> {
    name: &'a str,
    parts: Vec<MixPart>,
}

#[derive(Deserialize)]
struct MixPart {
    mechanism: String,
    function: Function,
    /// Bits of an RSA pair, or bytes of a secret key, where it is not the usual one.
    key: Option<u64>,
    bytes: usize,
    times: u64,
}

impl MixPart {
    fn job(&self) -> Option<Job> {
        let is_it = |row: &&MechanismRow| mechanism_name(row.number) == Some(&self.mechanism);
        let row = MechanismRow::all().iter().find(is_it)?;
        let usual = Job::usual(row.number, self.function, self.bytes)?;
        let key = match (usual.key, self.key) {
            (Key::Rsa(_), Some(bits)) => Key::Rsa(bits),
            (Key::Secret(kind, _), Some(bytes)) => Key::Secret(kind, usize::try_from(bytes).ok()?),
            (usual, _) => usual,
        };
        Some(Job { key, ..usual })
    }
}

/// The mixes, whole.
fn mixes() -> Result<Vec<Mix<'static>>> {
    Ok(serde_json::from_str(include_str!("mixes.json"))?)
}

/// Measures.
pub(super) fn run(options: &Options) -> Result<Made> {
    let all = mixes()?;
    let all: Vec<&Mix<'static>> = all.iter().collect();
    let wanted = filter::wanted(&all, |mix| mix.name, &options.filter, "mix")?;
    let threads = options.threads.first().copied().unwrap_or(1);
    let (mut cells, mut mechanisms) = (Vec::new(), BTreeSet::new());
    for mix in &wanted {
        let work = mix.parts.iter().map(|part| Some((part.job()?, part.times)));
        let work: Option<Work> = work.collect();
        let work = work.ok_or_else(|| Failure::new(format!("{}: no job", mix.name)))?;
        mechanisms.extend(mix.parts.iter().map(|part| format!("{:?}", part.mechanism)));
        cells.push((format!("mix={}", mix.name), work, threads));
    }
    let without = mechanisms.into_iter().collect::<Vec<_>>().join(", ");
    let names = [MODULE, ONLY_LANES, ONLY_OPENSSL, LANES, ROUTED];
    let crew = Crew::without(options, &names, &without)?;
    let plan = Plan {
        name: "mix",
        factors: vec![Factor::new("mix", wanted.iter().map(|mix| mix.name))],
        cells,
        absent: "no mix",
        settings: BTreeMap::from([("threads".to_owned(), threads.to_string())]),
        seconds: 60.0,
        repetitions: 16.0,
        glance: |_| String::new(),
        readings: Readings::default(),
    };
    Jobs::new(plan, crew, options)?.make(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_every_mix_is_a_job() {
        let mixes = mixes().unwrap();
        assert_eq!(mixes.len(), 12);
        assert!(mixes.iter().flat_map(|mix| &mix.parts).all(|part| part.job().is_some()));
    }
}
