// SPDX-License-Identifier: Apache-2.0
//! Sun's table as a scenario: every operation, on one thread and on several, by each one who can do it.

use super::operations::{OPERATION, ROWS, THREADS};
use crate::Result;
use crate::experiment::Factor;
use crate::filter::wanted;
use crate::speed::Options;
use crate::speed::openssl::{How, Readings};
use crate::speed::part::{Crew, Jobs, LANES, MODULE, Plan, RAW, RIVAL};
use std::collections::BTreeMap;
use std::path::Path;

/// Every operation.
///
/// # Errors
/// There is no module, no operation matches, or one of them gives another result.
pub(super) fn jobs(options: &Options) -> Result<Jobs> {
    let rows = wanted(&ROWS, |row| row.name, &options.filter, "operation of Sun's table")?;
    let cpus = std::thread::available_parallelism().map_or(1, Into::into);
    let most = options.threads.iter().copied().max().unwrap_or(cpus);
    let mut threads = vec![1, most];
    threads.dedup();
    let asked: Vec<_> = rows.iter().map(|row| row.openssl).collect();
    let hows = [How::Default, How::Elapsed, How::Multi(most)];
    let (readings, openssl) = Readings::new(options, &asked, &hows[..threads.len() + 1])?;
    let crew = Crew::new(options, &[RAW, MODULE, LANES, RIVAL])?;
    let mut cells = Vec::new();
    for row in &rows {
        for &threads in &threads {
            let name = format!("{OPERATION}={} {THREADS}={threads}", row.name);
            cells.push((name, vec![(row.job, 1)], threads));
        }
    }
    let plan = Plan {
        name: "speed",
        factors: vec![
            Factor::new(OPERATION, rows.iter().map(|row| row.name)),
            Factor::new(THREADS, &threads),
        ],
        cells,
        absent: "no operation",
        settings: BTreeMap::from([
            ("openssl".to_owned(), openssl),
            ("hardware threads per core".to_owned(), siblings()),
        ]),
        seconds: 60.0,
        repetitions: 16.0,
        glance: super::print::glance,
        readings,
    };
    Jobs::new(plan, crew, options)
}

/// Hardware threads that share the first CPU's core, as far as the system shows them.
fn siblings() -> String {
    let path = Path::new("/sys/devices/system/cpu/cpu0/topology/thread_siblings");
    let Ok(mask) = std::fs::read_to_string(path) else { return "unknown".to_owned() };
    let digits = mask.chars().filter_map(|digit| digit.to_digit(16));
    digits.map(u32::count_ones).sum::<u32>().to_string()
}
