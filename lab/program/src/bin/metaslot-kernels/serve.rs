// SPDX-License-Identifier: Apache-2.0
//! The conversation with the lab: a line in, a line of JSON out.

use crate::row::{Count, KernelRow, Result, WITHOUT, Work, failed};
use crate::rows::ROWS;
use metaslot_lab::kernels::{End, Ready, Sample, thread_cpu};
use metaslot_lanes::cpu::{self, Cpu};
use metaslot_lanes::peak::{self, Port};
use serde::Serialize;
use std::io::{BufRead, Write};
use std::time::Duration;

/// Turns of the loop that shows what a port can do: some tens of microseconds.
const TURNS: u64 = 10_000;

/// Says the names of the rows, or measures one as often as it is asked.
///
/// # Errors
/// In words.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (name, length, without) = match arguments {
        [list] if list == "--list" => {
            ROWS.iter().for_each(|row| println!("{}", row.name));
            return Ok(());
        }
        [name, microseconds, without @ ..] => (name, microseconds, without),
        _ => return Err("usage: metaslot-kernels ROW MICROSECONDS [EXTENSION…]".to_owned()),
    };
    let length = length.parse().map_err(failed("a number of microseconds"))?;
    let mut masked = Cpu::NONE;
    for name in without {
        masked = masked.and(Cpu::named(name).ok_or_else(|| format!("no extension {name}"))?);
    }
    cpu::mask(*WITHOUT.get_or_init(|| masked));
    let row = ROWS.iter().find(|row| row.name == name);
    serve(row.ok_or_else(|| format!("no row {name}"))?, Duration::from_micros(length))
}

fn serve(row: &KernelRow, length: Duration) -> Result<()> {
    let available = (row.available)();
    say(&Ready {
        available,
        lanes: row.lanes.to_vec(),
        ports: row.kinds.iter().map(|port| port.name().to_owned()).collect(),
        raw: row.raw,
    })?;
    if !available {
        return Ok(());
    }
    let mut work = (row.make)()?;
    // Caches, tables that are made at the first use, and clock frequencies.
    sample(row, &mut *work, length);
    for line in std::io::stdin().lock().lines() {
        match line.map_err(failed("standard input"))?.as_str() {
            "round" => say(&sample(row, &mut *work, length))?,
            "end" => return end(row, &mut *work),
            other => return Err(format!("what is {other:?}?")),
        }
    }
    Ok(())
}

fn say(what: &impl Serialize) -> Result<()> {
    let text = serde_json::to_string(what).map_err(failed("json"))?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(failed("standard output"))
}

/// Everything once, one after the other.
fn sample(row: &KernelRow, work: &mut dyn Work, length: Duration) -> Sample {
    let port = |port: &Port| time(length / 4, || peak::run(*port, TURNS));
    let instructions = (TURNS * peak::TURN) as f64;
    Sample {
        ports: row.kinds.iter().map(|kind| port(kind) / instructions).collect(),
        raw: row.raw.then(|| time(length, || work.raw())),
        lanes: row
            .lanes
            .iter()
            .map(|filled| time(length, || work.batch(*filled)) / *filled as f64)
            .collect(),
    }
}

/// CPU time of one call in nanoseconds: as many calls as fit. The clock costs as much as a short call, so it is read rarely: after
/// twice as many calls as before, or as many as are left.
fn time(length: Duration, mut run: impl FnMut()) -> f64 {
    let start = thread_cpu();
    let (mut calls, mut more) = (0.0, 1.0);
    loop {
        let mut left = more;
        while left >= 1.0 {
            run();
            left -= 1.0;
        }
        calls += more;
        let spent = thread_cpu().saturating_sub(start);
        if spent >= length {
            return spent.as_nanos() as f64 / calls;
        }
        let rest = (length - spent).as_nanos() as f64;
        let each = spent.as_nanos().max(1) as f64 / calls;
        more = (rest / each).ceil().clamp(1.0, calls);
    }
}

/// Compares and counts.
fn end(row: &KernelRow, work: &mut dyn Work) -> Result<()> {
    work.batch(row.lanes.last().copied().unwrap_or(1));
    work.check()?;
    let claims = work.claims();
    let (instructions, source) = match row.count {
        Count::Formula(count) => (vec![count()], "formula"),
        Count::Steps { .. } => (executed(row, work)?, "executed"),
    };
    say(&End { instructions, source: source.to_owned(), claims })
}

/// Instructions of each kind for one operation in full lanes, by single steps.
fn executed(row: &KernelRow, work: &mut dyn Work) -> Result<Vec<f64>> {
    let Count::Steps { small, large, full, operations } = row.count else {
        return Ok(Vec::new());
    };
    let mut count = |size| {
        work.counted(size);
        peak::count(row.kinds, || work.counted(size)).map_err(failed("single steps"))
    };
    let (few, many) = (count(small)?, count(large)?);
    let line = |(few, many): (&u64, &u64)| {
        let (few, many) = (*few as f64, *many as f64);
        let slope = (many - few) / (large - small) as f64;
        (many + slope * (full as f64 - large as f64)) / operations as f64
    };
    Ok(few.iter().zip(&many).map(line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_no_time_is_called_often_and_what_takes_long_once() {
        let mut calls = 0;
        let each = time(Duration::from_millis(20), || calls += 1);
        assert!(each * f64::from(calls) > 0.999 * 20e6, "{calls} of {each}");
        assert!(calls > 1000, "{calls}");
        calls = 0;
        let long = || {
            calls += 1;
            let start = thread_cpu();
            while thread_cpu() - start < Duration::from_millis(3) {}
        };
        assert!(time(Duration::from_millis(2), long) >= 3e6);
        assert_eq!(calls, 1);
    }
}
