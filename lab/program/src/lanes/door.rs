// SPDX-License-Identifier: Apache-2.0
//! Through the C ABI: the load in C with lanes and without, in turns.

use super::plan::Plan;
use super::report::{Arm, Door, ModuleResult, Window};
use super::rows::Row;
use crate::Result;
use crate::child::{Child, named};
use crate::clock::Watch;
use crate::place::{Place, Store};
use crate::random::Random;
use metaslot_counters::{Event, read};
use serde::Deserialize;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Operations of a window at most, whatever the check costs: their results are kept in memory.
const MOST: f64 = 400_000.0;
/// At least so many, so that every thread has some.
const LEAST: f64 = 256.0;

/// The load's first line.
#[derive(Debug, Deserialize)]
struct Ready {
    served: bool,
    #[serde(default)]
    why: String,
    /// What OpenSSL needs to check one result.
    #[serde(default)]
    check_ns: f64,
}

/// A process of the load, with the configuration that it runs under.
#[derive(Debug)]
struct Load {
    child: Child,
    store: Store,
    check_ns: f64,
}

/// Measures one row.
///
/// # Errors
/// A result is wrong, or the load fails.
pub(crate) fn measure(
    row: &Row,
    load: &Path,
    module: &Path,
    place: &Place,
    plan: &Plan,
    random: &mut Random,
    progress: impl Fn(usize),
) -> Result<ModuleResult> {
    let watch = Watch::start();
    let mut result = ModuleResult {
        not_served: None,
        not_served_without: None,
        arms: Vec::new(),
        foreign_cpu: None,
    };
    let mut with = match Load::start(row, load, module, with_lanes(row, place, plan)?)? {
        Ok(load) => load,
        Err(why) => {
            result.not_served = Some(why);
            return Ok(result);
        }
    };
    // Some operations are the lanes' alone; then the load fails at making a key.
    let without = Load::start(row, load, module, without_lanes(row, place)?)
        .unwrap_or_else(|failure| Err(failure.message));
    let mut without = without.map_err(|why| result.not_served_without = Some(why)).ok();
    result.arms = arms(row, plan);
    for round in 0..plan.rounds {
        progress(round);
        let mut order: Vec<usize> = (0..result.arms.len()).collect();
        random.shuffle(&mut order);
        for at in order {
            both(&mut result.arms[at], &mut with, without.as_mut(), plan, random)?;
        }
    }
    let both = without.as_ref().map_or(Duration::ZERO, |load| load.child.cpu());
    result.foreign_cpu = watch.foreign_besides(with.child.cpu() + both);
    with.child.end()?;
    without.map_or(Ok(()), |load| load.child.end())?;
    Ok(result)
}

fn with_lanes(row: &Row, place: &Place, plan: &Plan) -> Result<Store> {
    let names: Vec<String> = plan.without.iter().map(|name| format!("{name:?}")).collect();
    let whole = format!("lanes_without = [{}]\n", names.join(", "));
    place.configured(&format!("{}-with", row.name), &whole, policy(row))
}

fn without_lanes(row: &Row, place: &Place) -> Result<Store> {
    place.configured(&format!("{}-without", row.name), "lanes = false\n", policy(row))
}

const fn policy(row: &Row) -> &'static str {
    if row.legacy { "policy = \"legacy\"\n" } else { "" }
}

/// Every number of threads with every number of keys; and asynchronous sessions, with one thread that has one operation in flight,
/// and with a thread for each processor that has many.
fn arms(row: &Row, plan: &Plan) -> Vec<Arm> {
    let arm = |door, threads, keys, depth| Arm {
        door,
        threads,
        keys,
        depth,
        with: Vec::new(),
        without: Vec::new(),
    };
    let mut arms = Vec::new();
    for &keys in &plan.keys {
        for &threads in plan.threads.iter().filter(|threads| keys == 1 || **threads > 1) {
            arms.push(arm(Door::Blocking, threads, keys, 1));
        }
    }
    arms.push(arm(Door::Asynchronous, 1, 1, 1));
    for &keys in &plan.keys {
        arms.push(arm(Door::Asynchronous, plan.processors, keys, row.depth));
    }
    arms
}

/// One window with lanes and one without, in random order.
fn both(
    arm: &mut Arm,
    with: &mut Load,
    without: Option<&mut Load>,
    plan: &Plan,
    random: &mut Random,
) -> Result<()> {
    let Some(without) = without else {
        let window = with.window(arm, plan)?;
        arm.with.push(window);
        return Ok(());
    };
    if random.below(2) == 0 {
        let window = with.window(arm, plan)?;
        arm.with.push(window);
        let window = without.window(arm, plan)?;
        arm.without.push(window);
    } else {
        let window = without.window(arm, plan)?;
        arm.without.push(window);
        let window = with.window(arm, plan)?;
        arm.with.push(window);
    }
    Ok(())
}

impl Load {
    /// Starts it; the inner error says why the module does not serve the operation.
    fn start(
        row: &Row,
        load: &Path,
        module: &Path,
        store: Store,
    ) -> Result<std::result::Result<Self, String>> {
        let mut command = Command::new(load);
        command.arg(module).arg(row.name);
        store.configure(&mut command);
        let mut child = Child::start(command)?;
        let ready: Ready = child.answer()?;
        if !ready.served {
            return Ok(Err(named(&ready.why)));
        }
        Ok(Ok(Self { child, store, check_ns: ready.check_ns }))
    }

    fn window(&mut self, arm: &Arm, plan: &Plan) -> Result<Window> {
        let before = self.batches();
        let Arm { door, threads, keys, depth, .. } = arm;
        let milliseconds = plan.window.as_secs_f64() * 1e3;
        let most = most(self.check_ns, plan);
        let line = format!("{} {threads} {keys} {depth} {milliseconds} {most}", door.word());
        let window: Window =
            self.child.ask(line).map_err(|failure| failure.context(door.word()))?;
        let after = self.batches();
        Ok(Window { batches: after.0 - before.0, batched: after.1 - before.1, ..window })
    }

    /// Batches and operations in them so far, by the page of counters.
    fn batches(&self) -> (u64, u64) {
        let prefix = format!("{}-", self.child.pid());
        let Ok(entries) = std::fs::read_dir(self.store.counters()) else { return (0, 0) };
        let pages = entries
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix))
            .filter_map(|entry| read::process(&entry.path()).ok());
        let mut sums = (0, 0);
        for (event, count) in pages.flat_map(|page| page.events) {
            match event {
                Event::LaneBatch => sums.0 += count,
                Event::LaneBatched => sums.1 += count,
                _ => {}
            }
        }
        sums
    }
}

/// Operations of a window at most: as many as OpenSSL checks in the time that is meant for it.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between the limits")]
fn most(check_ns: f64, plan: &Plan) -> u64 {
    let time = plan.checks.as_secs_f64() * 1e9 * plan.processors as f64;
    (time / check_ns.max(1.0)).clamp(LEAST, MOST) as u64
}

#[cfg(test)]
mod tests {
    use super::super::rows::ROWS;
    use super::*;

    fn plan() -> Plan {
        Plan {
            rounds: 1,
            sample: Duration::from_millis(1),
            window: Duration::from_millis(20),
            checks: Duration::from_secs(1),
            threads: vec![1, 16],
            keys: vec![1, 16],
            processors: 2,
            without: Vec::new(),
        }
    }

    #[test]
    fn one_thread_needs_one_key() {
        let arms = arms(&ROWS[0], &plan());
        let blocking: Vec<_> = arms
            .iter()
            .filter(|arm| arm.door == Door::Blocking)
            .map(|arm| (arm.threads, arm.keys))
            .collect();
        assert_eq!(blocking, [(1, 1), (16, 1), (16, 16)]);
        let asynchronous = arms.iter().filter(|arm| arm.door == Door::Asynchronous);
        let asynchronous: Vec<_> = asynchronous.map(|arm| (arm.threads, arm.depth)).collect();
        assert_eq!(asynchronous, [(1, 1), (2, ROWS[0].depth), (2, ROWS[0].depth)]);
    }

    #[test]
    fn what_takes_long_to_check_is_done_less_often() {
        assert_eq!(most(100_000.0, &plan()), 20_000);
        assert_eq!(most(1.0, &plan()), 400_000);
        assert_eq!(most(1e9, &plan()), 256);
    }
}
