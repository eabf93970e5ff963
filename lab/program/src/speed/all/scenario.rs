// SPDX-License-Identifier: Apache-2.0
//! Every mechanism as a scenario.

use super::recipes::{BYTES, FUNCTION, MECHANISM, ONCE, SIZES, jobs as jobs_of};
use crate::experiment::Factor;
use crate::speed::Options;
use crate::speed::openssl::Readings;
use crate::speed::part::{Crew, Function, Job, Jobs, LANES, MODULE, Plan, RAW};
use crate::{Failure, Result};
use metaslot_ck::{CKF_DIGEST, CKF_ENCRYPT, CKF_SIGN, mechanism_name};
use std::collections::BTreeMap;

/// What is called, its flag in the list of mechanisms, and its name.
const FUNCTIONS: [(Function, u64, &str); 3] = [
    (Function::Digest, CKF_DIGEST, "digest"),
    (Function::Sign, CKF_SIGN, "sign"),
    (Function::Encrypt, CKF_ENCRYPT, "encrypt"),
];

/// A mechanism and a function, and its jobs.
struct Work {
    name: &'static str,
    function: &'static str,
    jobs: Vec<Job>,
}

/// Every mechanism that has a recipe.
///
/// # Errors
/// There is no module, no mechanism matches, or one of them gives another result.
pub(super) fn jobs(options: &Options) -> Result<Jobs> {
    let mut crew = Crew::new(options, &[RAW, MODULE, LANES])?;
    let (works, without) = works(&mut crew, options)?;
    let mut settings = BTreeMap::new();
    if !without.is_empty() {
        settings.insert("no recipe".to_owned(), without.join(", "));
    }
    let mut mechanisms: Vec<&str> = works.iter().map(|work| work.name).collect();
    mechanisms.dedup();
    let cells = works.iter().flat_map(|Work { name, function, jobs }| {
        let named = move |job: &Job| {
            format!("{MECHANISM}={name} {FUNCTION}={function} {BYTES}={}", job.bytes)
        };
        jobs.iter().map(move |job| (named(job), vec![(*job, 1)], 1))
    });
    let mut sizes = SIZES.to_vec();
    sizes.push(ONCE);
    sizes.sort_unstable();
    let plan = Plan {
        name: "mechanisms",
        factors: vec![
            Factor::new(MECHANISM, mechanisms),
            Factor::new(FUNCTION, FUNCTIONS.map(|(_, _, name)| name)),
            Factor::new(BYTES, sizes),
        ],
        cells: cells.collect(),
        absent: super::print::SENSELESS,
        settings,
        seconds: 90.0,
        repetitions: 16.0,
        glance: |_| String::new(),
        readings: Readings::default(),
    };
    Jobs::new(plan, crew, options)
}

/// What there is to do, and mechanisms that would be there if they had recipes.
fn works(crew: &mut Crew, options: &Options) -> Result<(Vec<Work>, Vec<String>)> {
    let (mut works, mut without) = (Vec::new(), Vec::new());
    let wanted = |name: &str| {
        let has = |text: &String| name.contains(&text.to_ascii_uppercase());
        options.filter.is_empty() || options.filter.iter().any(has)
    };
    for listed in crew.mechanisms()? {
        let functions = FUNCTIONS.into_iter().filter(|(_, flag, _)| listed.flags & flag != 0);
        let Some(name) = mechanism_name(listed.mechanism).filter(|name| wanted(name)) else {
            continue;
        };
        for (function, _, called) in functions {
            match jobs_of(listed.mechanism, function) {
                Some(jobs) => works.push(Work { name, function: called, jobs }),
                None => without.push(format!("{name} {called}")),
            }
        }
    }
    if works.is_empty() {
        let filter = options.filter.join(",");
        let text = format!("no mechanism that digests, signs or encrypts matches {filter}");
        return Err(Failure::new(text).hint("metaslot mechanisms lists them"));
    }
    Ok((works, without))
}
