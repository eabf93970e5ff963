// SPDX-License-Identifier: Apache-2.0
//! What a module adds to a call, as a scenario.

use super::cells::Cell;
use crate::experiment::Factor;
use crate::speed::Options;
use crate::speed::openssl::{How, Readings};
use crate::speed::part::{AGAIN, Crew, Jobs, LANES, Plan, RAW, RIVAL};
use crate::{Failure, Result};
use std::collections::BTreeMap;

/// The factors.
pub(super) const CELL: &str = "operation";
pub(super) const THREADS: &str = "threads";

/// Everything that there is to do.
///
/// # Errors
/// There is no module, or one of them gives another result.
pub(super) fn jobs(options: &Options, all: &[Cell]) -> Result<Jobs> {
    let mut threads = options.threads.clone();
    if threads.is_empty() {
        threads.push(2);
    }
    // Everything is compared with one thread.
    threads.push(1);
    threads.sort_unstable();
    threads.dedup();
    let asked: Vec<_> =
        all.iter().map(|cell| cell.openssl).filter(|asked| !asked.is_empty()).collect();
    let (readings, openssl) = Readings::new(options, &asked, &[How::Default, How::Elapsed])?;
    let mut cells = Vec::new();
    for cell in all {
        let job = cell.job().ok_or_else(|| Failure::new(format!("{}: no job", cell.name)))?;
        for &threads in threads.iter().filter(|threads| cell.threads || **threads == 1) {
            let name = format!("{CELL}={} {THREADS}={threads}", cell.name);
            cells.push((name, vec![(job, 1)], threads));
        }
    }
    let plan = Plan {
        name: "overhead",
        factors: vec![
            Factor::new(CELL, all.iter().map(|cell| cell.name)),
            Factor::new(THREADS, &threads),
        ],
        cells,
        absent: "on one thread only",
        settings: BTreeMap::from([("openssl".to_owned(), openssl)]),
        seconds: 90.0,
        repetitions: 41.0,
        glance: |_| String::new(),
        readings,
    };
    Jobs::new(plan, Crew::new(options, &[RAW, AGAIN, LANES, RIVAL])?, options)
}
