// SPDX-License-Identifier: Apache-2.0
//! A scenario from its plan to its end.

use super::{RunOptions, Scenario, core_factor, profiled, provenance};
use crate::experiment::{Experiment, Plan, Recorder, Skipped, cells};
use crate::interrupt::Interrupt;
use crate::meter::Meter;
use crate::progress::Progress;
use crate::random::Random;
use crate::{Failure, Result};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// More narrow an interval no longer as fast as people's patience goes.
pub(super) const MAX_REPETITIONS: usize = 400;

/// An experiment that was made, and how it is to be shown.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) directory: PathBuf,
    pub(crate) experiment: Experiment,
    pub(crate) json: bool,
}

/// Runs a scenario to its end, into the directory that the options name.
///
/// # Errors
/// As [`measure`].
pub(crate) fn make(scenario: &mut dyn Scenario, options: &RunOptions) -> Result<Made> {
    let directory = options.directory(scenario.head().name);
    let run = RunOptions { output: Some(directory.clone()), ..options.clone() };
    let experiment = measure(scenario, &run)?;
    Ok(Made { directory, experiment, json: options.json })
}

/// Runs a scenario to its end and reads what was written.
///
/// # Errors
/// A run failed or the experiment was interrupted: what was measured until then stays readable, and
/// the error says where.
pub(crate) fn measure(scenario: &mut dyn Scenario, options: &RunOptions) -> Result<Experiment> {
    let (interrupt, progress) = (Interrupt::new()?, Progress::new());
    let plan = plan(scenario, options, &interrupt, &progress)?;
    let head = scenario.head();
    let directory = options.directory(head.name);
    let clocks = [head.cpu.clone(), "monotonic".to_owned()];
    let mut provenance = provenance(head);
    provenance.sources.extend(profiled::source(options));
    let mut recorder = Recorder::create(&directory, provenance, [&clocks[0], &clocks[1]], plan)?;
    let done = runs(scenario, &mut recorder, &interrupt, &progress)
        .and_then(|()| profiled::profile(scenario, &mut recorder, options, &interrupt, &progress));
    drop(progress);
    let kept = |failure: Failure| {
        let shown = directory.display();
        match failure.hint {
            None => {
                failure.hint(format!("what was measured is in {shown}: metaslot lab print {shown}"))
            }
            Some(_) => failure,
        }
    };
    done.map_err(kept)?;
    for (name, bytes) in scenario.files()? {
        recorder.attach(&name, &bytes)?;
    }
    recorder.core_factor_after(core_factor());
    recorder.finish()?;
    Experiment::read(&directory)
}

/// Everything that there is to run, as often as the time allows.
pub(super) fn plan(
    scenario: &mut dyn Scenario,
    options: &RunOptions,
    interrupt: &Interrupt,
    progress: &Progress,
) -> Result<Plan> {
    let (factors, arms) = (scenario.factors(), scenario.arms());
    let all = cells(&factors);
    let why =
        |cell: &String| Some(Skipped { cell: cell.clone(), arm: None, why: scenario.skip(cell)? });
    let mut skipped: Vec<Skipped> = all.iter().filter_map(why).collect();
    if let Some(first) = skipped.first().filter(|_| skipped.len() == all.len()) {
        let Skipped { cell, why, .. } = first;
        return Err(Failure::new(format!("nothing of this can be run here: {cell}: {why}")));
    }
    let left = all.iter().filter(|cell| !skipped.iter().any(|skipped| skipped.cell == **cell));
    let mut arms_skipped = Vec::new();
    let (began, mut round) = (Instant::now(), Duration::ZERO);
    for cell in left {
        for arm in &arms {
            if let Some(why) = scenario.skip_arm(cell, arm) {
                let (cell, arm) = (cell.clone(), Some(arm.clone()));
                arms_skipped.push(Skipped { cell, arm, why });
                continue;
            }
            progress.say(format_args!("warming up: {cell} {arm}"));
            round += scenario.warm(cell, arm).map_err(|failure| failure.context(cell))?;
            interrupt.failure().map_or(Ok(()), Err)?;
        }
    }
    skipped.extend(arms_skipped);
    let time = Duration::from_secs_f64(options.seconds.unwrap_or_else(|| scenario.seconds()))
        .saturating_sub(began.elapsed());
    let fitting = time.as_secs_f64() * 0.9 / round.as_secs_f64().max(1e-6);
    let fewest = scenario.fewest();
    let fitting =
        (fewest..=MAX_REPETITIONS).rev().find(|count| *count as f64 <= fitting).unwrap_or(fewest);
    let repetitions = options.repetitions.unwrap_or(fitting);
    let seed = options.seed.unwrap_or_else(Random::seed_from_clock);
    let arms: Vec<&str> = arms.iter().map(String::as_str).collect();
    Plan::without(skipped, factors, &arms, repetitions, seed)
}

/// All runs, in the plan's order.
pub(super) fn runs(
    scenario: &mut dyn Scenario,
    recorder: &mut Recorder,
    interrupt: &Interrupt,
    progress: &Progress,
) -> Result<()> {
    let (meter, all) = (Meter::start(), recorder.plan().order.len());
    let first = all / recorder.plan().repetitions().max(1);
    recorder.log(&format!("{all} runs"))?;
    let mut done = 0;
    while let Some(run) = recorder.next().cloned() {
        interrupt.failure().map_or(Ok(()), Err)?;
        progress.say(format_args!("{done} of {all}: {} {}", run.cell, run.arm));
        let what = format!("{} {}", run.cell, run.arm);
        let sample = scenario.sample(&run, &meter).map_err(|failure| {
            // A signal ends what the experiment has started as well.
            interrupt.failure().unwrap_or_else(|| failure.context(what))
        })?;
        recorder.record(sample)?;
        done += 1;
        if done == first && all > first && progress.is_shown() {
            let text = scenario.glance(&Experiment::read(recorder.directory())?);
            progress.interject(&text);
        }
    }
    Ok(())
}
