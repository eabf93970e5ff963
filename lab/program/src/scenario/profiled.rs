// SPDX-License-Identifier: Apache-2.0
//! Runs that are sampled, after those that are measured: taking samples must not disturb these.

use super::{RunOptions, Scenario};
use crate::Result;
use crate::experiment::{Measured, Recorder, Run};
use crate::interrupt::Interrupt;
use crate::meter::Meter;
use crate::output::tell;
use crate::profile::{Sampled, Sampler};
use crate::progress::Progress;
use std::time::{Duration, Instant};

/// Where profiles come from, for the manifest; nothing where none are taken.
pub(super) fn source(options: &RunOptions) -> Option<(String, String)> {
    options.sampling.profile?;
    Some(("profile".to_owned(), Sampler::new(options.sampling.hz).source()))
}

/// Samples every cell and arm once more, and keeps the profiles.
pub(super) fn profile(
    scenario: &mut dyn Scenario,
    recorder: &mut Recorder,
    options: &RunOptions,
    interrupt: &Interrupt,
    progress: &Progress,
) -> Result<()> {
    let Some(seconds) = options.sampling.profile else { return Ok(()) };
    let sampler = Sampler::new(options.sampling.hz);
    let plan = recorder.plan();
    let (cells, arms, repetition) = (plan.cells(), plan.arms.clone(), plan.repetitions());
    for cell in &cells {
        for arm in &arms {
            if scenario.skip_arm(cell, arm).is_some() {
                continue;
            }
            interrupt.failure().map_or(Ok(()), Err)?;
            progress.say(format_args!("sampling {cell} {arm}"));
            let run = Run { cell: cell.clone(), repetition, arm: arm.clone() };
            let profiled = one(scenario, &sampler, &run, Duration::from_secs_f64(seconds));
            let profiled = profiled.map_err(|failure| {
                interrupt.failure().unwrap_or_else(|| failure.context(format_args!("{cell} {arm}")))
            })?;
            for (name, bytes) in profiled {
                recorder.attach(&name, &bytes)?;
            }
        }
    }
    let shown = recorder.directory().display().to_string();
    progress.say("");
    tell(format_args!("the functions: metaslot lab print {shown} --functions"));
    Ok(())
}

/// Runs one arm of one cell while samples are taken: at least once, and so long.
fn one(
    scenario: &mut dyn Scenario,
    sampler: &Sampler,
    run: &Run,
    length: Duration,
) -> Result<[(String, Vec<u8>); 2]> {
    let (meter, began) = (Meter::start(), Instant::now());
    let sampling = sampler.start(&scenario.account())?;
    let mut runs: Vec<Measured> = Vec::new();
    while runs.is_empty() || began.elapsed() < length {
        runs.push(scenario.sample(run, &meter)?);
    }
    let origin = meter.origin();
    let windows: Vec<[u64; 2]> =
        runs.iter().map(|run| run.window_ns.map(|time| origin + time)).collect();
    let sampled = Sampled { cell: &run.cell, arm: &run.arm, runs: &runs, windows: &windows };
    sampling.stop(&sampled)?.files()
}
