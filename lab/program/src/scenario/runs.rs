// SPDX-License-Identifier: Apache-2.0
//! A scenario from its plan to its end.

use super::{RunOptions, Scenario, again, core_factor, profiled, provenance};
use crate::experiment::{Experiment, Plan, Recorder, Skipped, cells};
use crate::interrupt::Interrupt;
use crate::meter::Meter;
use crate::output::tell;
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
    /// With goals, and whether they were reached.
    pub(crate) goals: bool,
}

/// Runs a scenario to its end, into the directory that the options name.
///
/// # Errors
/// As [`measure`].
pub(crate) fn make(scenario: &mut dyn Scenario, options: &RunOptions) -> Result<Made> {
    let directory = options.directory(scenario.head().name);
    let run = RunOptions { output: Some(directory.clone()), ..options.clone() };
    let experiment = measure(scenario, &run)?;
    Ok(Made { directory, experiment, json: options.json, goals: false })
}

/// Runs a scenario to its end and reads what was written.
///
/// # Errors
/// A run failed or the experiment was interrupted: what was measured until then stays readable, and
/// the error says where.
pub(crate) fn measure(scenario: &mut dyn Scenario, options: &RunOptions) -> Result<Experiment> {
    let (interrupt, progress) = (Interrupt::new()?, Progress::new());
    let (plan, length) = plan(scenario, options, &interrupt, &progress)?;
    if let Some(words) = announced(&plan, length, &scenario.afterwards()) {
        progress.say("");
        tell(words);
    }
    let head = scenario.head();
    let directory = options.directory(head.name);
    let clocks = [head.cpu.clone(), "monotonic".to_owned()];
    let mut provenance = provenance(head);
    provenance.sources.extend(profiled::source(options));
    let mut recorder = Recorder::create(&directory, provenance, [&clocks[0], &clocks[1]], plan)?;
    let done = runs(scenario, &mut recorder, &interrupt, &progress)
        .and_then(|()| again::again(scenario, &mut recorder, &interrupt, &progress))
        .and_then(|()| profiled::profile(scenario, &mut recorder, options, &interrupt, &progress))
        .and_then(|()| interrupt.looks_no_more());
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
    for (name, bytes) in scenario.files().map_err(kept)? {
        recorder.attach(&name, &bytes)?;
    }
    recorder.core_factor_after(core_factor());
    recorder.finish()?;
    Experiment::read(&directory)
}

/// What there is to wait for; nothing where no one knows.
fn announced(plan: &Plan, length: Duration, afterwards: &str) -> Option<String> {
    let (cells, repetitions) = (plan.cells().len(), plan.repetitions());
    (length > Duration::ZERO).then(|| {
        format!(
            "{}: {} samples, {repetitions} of each arm of {cells} cells; ^C keeps what was measured{}{afterwards}",
            about(length),
            plan.order.len(),
            if afterwards.is_empty() { "" } else { "; then " }
        )
    })
}

/// A time for people.
fn about(length: Duration) -> String {
    let seconds = length.as_secs();
    match seconds {
        0..100 => format!("about {} s", seconds.max(1)),
        100..6_000 => format!("about {} min", (seconds + 30) / 60),
        _ => format!("about {} h {} min", seconds / 3_600, seconds % 3_600 / 60),
    }
}

/// Everything that there is to run, as often as the time allows, and how long that takes.
pub(super) fn plan(
    scenario: &mut dyn Scenario,
    options: &RunOptions,
    interrupt: &Interrupt,
    progress: &Progress,
) -> Result<(Plan, Duration)> {
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
    let (began, mut rounds) = (Instant::now(), Rounds::default());
    for cell in left {
        for arm in &arms {
            if let Some(why) = scenario.skip_arm(cell, arm) {
                let (cell, arm) = (cell.clone(), Some(arm.clone()));
                arms_skipped.push(Skipped { cell, arm, why });
                continue;
            }
            progress.say(format_args!("warming up: {cell} {arm}"));
            let warm = scenario.warm(cell, arm).map_err(|failure| failure.context(cell))?;
            rounds.add(warm.max(scenario.expected(cell, arm)), Some(arm) == arms.first());
            interrupt.failure().map_or(Ok(()), Err)?;
        }
    }
    skipped.extend(arms_skipped);
    let time = Duration::from_secs_f64(options.seconds.unwrap_or_else(|| scenario.seconds()))
        .saturating_sub(began.elapsed());
    let again = if scenario.again() { rounds.again() } else { Duration::ZERO };
    let repetitions = options
        .repetitions
        .unwrap_or_else(|| rounds.fitting(time.saturating_sub(again), scenario.fewest()));
    let seed = options.seed.unwrap_or_else(Random::seed_from_clock);
    let arms: Vec<&str> = arms.iter().map(String::as_str).collect();
    let length = rounds.all.mul_f64(repetitions as f64) + again;
    Ok((Plan::without(skipped, factors, &arms, repetitions, seed)?, length))
}

/// How long samples take.
#[derive(Default)]
struct Rounds {
    /// One of everything.
    all: Duration,
    /// Of each cell's first arm.
    first: Vec<Duration>,
}

impl Rounds {
    fn add(&mut self, sample: Duration, first: bool) {
        self.all += sample;
        self.first.extend(first.then_some(sample));
    }

    /// What is run once more in the end.
    fn again(&self) -> Duration {
        let count = again::count(self.first.len()) as f64 / self.first.len().max(1) as f64;
        self.first.iter().sum::<Duration>().mul_f64(count)
    }

    /// How many repetitions fit.
    fn fitting(&self, time: Duration, fewest: usize) -> usize {
        let fitting = time.as_secs_f64() * 0.9 / self.all.as_secs_f64().max(1e-6);
        (fewest..=MAX_REPETITIONS).rev().find(|count| *count as f64 <= fitting).unwrap_or(fewest)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_said_as_people_say_them() {
        let words = [1.2, 99.0, 150.0, 5_400.0, 8_520.0].map(|s| about(Duration::from_secs_f64(s)));
        assert_eq!(
            words,
            ["about 1 s", "about 99 s", "about 3 min", "about 90 min", "about 2 h 22 min"]
        );
    }

    #[test]
    fn what_takes_an_unknown_time_is_announced_too() {
        let plan = Plan::interleaved(Vec::new(), &["own"], 3, 1).unwrap();
        let said = |afterwards| announced(&plan, Duration::from_secs(2), afterwards).unwrap();
        assert!(said("").ends_with("^C keeps what was measured"));
        assert!(said("they are counted").ends_with("was measured; then they are counted"));
    }

    #[test]
    fn what_is_run_again_is_taken_off_the_time() {
        let mut rounds = Rounds::default();
        for _ in 0..4 {
            rounds.add(Duration::from_millis(100), true);
            rounds.add(Duration::from_millis(100), false);
        }
        assert_eq!(rounds.again(), Duration::from_millis(1200));
        assert_eq!(rounds.fitting(Duration::from_secs(8), 6), 9);
        assert_eq!(rounds.fitting(Duration::from_secs(1), 6), 6);
    }
}
