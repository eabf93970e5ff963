// SPDX-License-Identifier: Apache-2.0
//! A model of many machines that share one token in PostgreSQL: what the database sees when all of them are started, when every
//! key is rotated, and when it fails over. `docs/postgresql.md` says what it was told here, and what to read from it.

use anyhow::{Context, Result, bail, ensure};
use std::collections::VecDeque;

/// How long others wait for the lock of the tries of PINs, and a host for an answer, in seconds: as `metaslot-postgres` has it.
const LOCK: f64 = 9.0;
const CONNECT: f64 = 5.0;
/// Connections of a machine, and how often each looks at the generation, in seconds.
const LINES: f64 = 2.0;
const LOOK: f64 = 5.0;

/// Keys of a change that has many, and statements that each adds.
const BATCH: f64 = 100.0;
const ROWS: f64 = 3.0;

struct Model {
    machines: u32,
    processes: f64,
    /// Keys that each machine uses, and that there are.
    hot: f64,
    keys: f64,
    cores: f64,
    /// Milliseconds: of the server's processor for a connection and for a statement; for a change under its lock, for a try of a
    /// PIN under its lock.
    connect: f64,
    statement: f64,
    change: f64,
    pin: f64,
    /// Seconds over which machines are started, and after which one that failed is started again.
    spread: f64,
    again: f64,
}

/// Asks for one thing at a time in the order of their coming, each for so long; who waits longer than may be fails, and comes
/// again. Gives when the last was served, and how many failed.
fn queue(model: &Model, service: f64, patience: f64, wasted: bool) -> (f64, u64) {
    let moment = |at: u32| model.spread * f64::from(at) / f64::from(model.machines);
    let mut coming: VecDeque<f64> = (0..model.machines).map(moment).collect();
    let (mut free, mut failed) = (0.0_f64, 0);
    while let Some(came) = coming.pop_front() {
        let begins = free.max(came);
        if begins - came <= patience {
            free = begins + service;
            continue;
        }
        failed += 1;
        // The server has done what it was asked for, but nobody waits for it any more.
        free = if wasted { begins + service } else { free };
        let back = came + patience + model.again;
        let at = coming.partition_point(|other| *other <= back);
        coming.insert(at, back);
        if failed > 100_000 {
            return (f64::INFINITY, failed);
        }
    }
    (free, failed)
}

impl Model {
    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        if name == "--machines" {
            self.machines =
                value.parse().with_context(|| format!("{name} needs a whole number"))?;
            return Ok(());
        }
        let value: f64 = value.parse().with_context(|| format!("{name} needs a number"))?;
        *match name {
            "--processes" => &mut self.processes,
            "--hot" => &mut self.hot,
            "--keys" => &mut self.keys,
            "--cores" => &mut self.cores,
            "--connect" => &mut self.connect,
            "--statement" => &mut self.statement,
            "--change" => &mut self.change,
            "--pin" => &mut self.pin,
            "--spread" => &mut self.spread,
            "--again" => &mut self.again,
            _ => bail!("there is no {name}"),
        } = value;
        ensure!(value >= 0.0 && value.is_finite(), "{name} is a number that is not negative");
        Ok(())
    }

    /// Statements per second that the server can do.
    fn capacity(&self) -> f64 {
        self.cores * 1000.0 / self.statement
    }

    fn tell(&self) {
        let Self { processes, keys, hot, .. } = self;
        let machines = f64::from(self.machines);
        let at_rest = machines / LOOK;
        println!(
            "{machines} machines of {processes} processes: {} connections, whatever the processes are",
            LINES * machines
        );
        println!("at rest: {at_rest:.0} statements/s of {:.0}", self.capacity());
        let connects = LINES * self.connect / 1000.0 / self.cores;
        let (connected, lost) = queue(self, connects, CONNECT, true);
        let (opened, refused) = queue(self, self.pin / 1000.0, LOCK, false);
        println!(
            "all are started within {} s: connected after {connected:.1} s ({lost} attempts time out);",
            self.spread
        );
        println!(
            "  PINs are tried one at a time: the last serves after {:.1} s ({refused} starts fail)",
            opened.max(connected)
        );
        let reads = machines * (1.0 + hot) / self.capacity();
        let pace = (self.change / 1000.0).max(reads);
        println!(
            "a change: {:.0} statements on all machines, {:.2} s of the server",
            machines * (1.0 + hot),
            reads
        );
        println!(
            "  {keys} keys rotated one by one: {:.0} s, the server is {}",
            keys * pace,
            if reads > self.change / 1000.0 { "the limit" } else { "not" }
        );
        let batch = (BATCH * ROWS * self.statement / 1000.0).max(reads);
        println!("  by changes of {BATCH} keys each: {:.0} s", keys / BATCH * batch);
        let at_once = Self { spread: 0.0, again: 2.0, ..*self };
        let (back, lost) = queue(&at_once, connects, CONNECT, true);
        println!(
            "a failover: connected again {back:.1} s after the promotion ({lost} attempts time out),"
        );
        println!("  all has been read again {:.1} s later; keys sign meanwhile", reads);
    }
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let mut model = Model {
        machines: 1000,
        processes: 50.0,
        hot: 5.0,
        keys: 1000.0,
        cores: 8.0,
        connect: 8.0,
        statement: 0.1,
        change: 1.5,
        pin: 110.0,
        spread: 0.0,
        again: 5.0,
    };
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { bail!("{} needs a number", pair[0]) };
        model.set(name, value)?;
    }
    ensure!(
        model.machines >= 1 && model.cores > 0.0 && model.statement > 0.0,
        "there is nothing to ask"
    );
    model.tell();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_too_long_fails_and_comes_again() {
        let model = |machines, spread| Model {
            machines,
            processes: 1.0,
            hot: 0.0,
            keys: 0.0,
            cores: 1.0,
            connect: 1.0,
            statement: 1.0,
            change: 1.0,
            pin: 1.0,
            spread,
            again: 1.0,
        };
        assert_eq!(queue(&model(10, 0.0), 1.0, 9.0, false), (10.0, 0));
        let (end, failed) = queue(&model(20, 0.0), 1.0, 9.0, false);
        assert!(failed > 0 && end >= 20.0);
        assert_eq!(queue(&model(20, 40.0), 1.0, 9.0, false).1, 0);
        // What is done for nobody keeps others waiting.
        assert!(queue(&model(20, 0.0), 1.0, 9.0, true).0 > end);
    }
}
