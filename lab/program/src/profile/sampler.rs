// SPDX-License-Identifier: Apache-2.0
//! Taking samples of anyone who does the work: by core cycles where the processor counts them, by a timer
//! where it does not.

use super::Folded;
use super::details::{Details, Profile};
use super::fold::fold;
use crate::experiment::Measured;
use crate::statistics::median;
use crate::{Failure, Result, probe};
use metaslot_perf::{Event, Recording, Target};
use std::io::ErrorKind;

/// How samples are taken on this machine.
#[derive(Clone, Debug)]
pub(crate) struct Sampler {
    event: Event,
    /// What profiles call it.
    word: &'static str,
    period: u64,
    hz: u32,
}

/// Samples that are being taken.
#[derive(Debug)]
pub(crate) struct Sampling {
    sampler: Sampler,
    recording: Recording,
}

/// What was measured while samples were taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampled<'a> {
    pub(crate) cell: &'a str,
    pub(crate) arm: &'a str,
    pub(crate) runs: &'a [Measured],
    /// Begin and end of each run by the monotonic clock: other samples do not count. Empty: all count.
    pub(crate) windows: &'a [[u64; 2]],
}

impl Sampler {
    /// The best sampler of this machine, so many times in a second of CPU time.
    pub(crate) fn new(hz: u32) -> Self {
        let rate = u64::from(hz.max(1));
        match cycles() {
            Some(per_second) => {
                Self { event: Event::Cycles, word: "cycles", period: per_second / rate, hz }
            }
            None => {
                Self { event: Event::CpuClock, word: "cpu-clock", period: 1_000_000_000 / rate, hz }
            }
        }
    }

    /// Where samples come from, for the manifest.
    pub(crate) fn source(&self) -> String {
        format!("{}, {} samples in a second of CPU time", self.word, self.hz)
    }

    /// Takes samples from now on.
    ///
    /// # Errors
    /// This user may not, the kernel cannot, or there is no such process.
    pub(crate) fn start(&self, target: &Target) -> Result<Sampling> {
        let recording = Recording::start(target, self.event, self.period).map_err(|error| {
            let failure = Failure::new(format!("samples cannot be taken: {error}"));
            match error.kind() {
                ErrorKind::PermissionDenied => failure
                    .hint("root, CAP_PERFMON, or 'sysctl kernel.perf_event_paranoid=2' for programs of one's own"),
                ErrorKind::NotFound => failure.hint("who was to be sampled has ended"),
                _ => failure.hint("'metaslot lab probe --only samples' says what this machine has"),
            }
        })?;
        Ok(Sampling { sampler: self.clone(), recording })
    }
}

/// Core cycles in a second, where they are counted and samples of them come.
fn cycles() -> Option<u64> {
    probe::figure(probe::cycles, "count")?;
    probe::figure(probe::cycle_samples, "count")?;
    let hz = probe::figure(probe::time_stamp_rate, "hz").unwrap_or(2e9);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some billions")]
    Some(hz.clamp(1e8, 1e11) as u64)
}

impl Sampling {
    /// Takes no more, and finds the names.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn stop(self, sampled: &Sampled<'_>) -> Result<Profile> {
        let recorded = self.recording.stop()?;
        let (lost, throttled) = (recorded.lost, recorded.throttled);
        let (reader, user_only) = (recorded.reader, recorded.user_only);
        let windows = sampled.windows;
        let inside = |time| windows.iter().any(|[from, to]| (*from..=*to).contains(&time));
        let placed = recorded.place(|time| windows.is_empty() || inside(time));
        let (folded, functions) = fold(&placed);
        let each: Vec<f64> = sampled.runs.iter().map(|run| run.cpu_ns / run.work).collect();
        let Sampler { word, period, hz, .. } = self.sampler;
        let details = Details {
            cell: sampled.cell.to_owned(),
            arm: sampled.arm.to_owned(),
            sampler: word.to_owned(),
            period,
            hz,
            samples: Folded::total(&folded),
            lost,
            throttled,
            broken: placed.broken,
            user_only,
            cpu_ns: sampled.runs.iter().map(|run| run.cpu_ns).sum(),
            reader_ns: reader.as_secs_f64() * 1e9,
            cpu_each: if each.is_empty() { 0.0 } else { median(&each) },
            runs: each.len(),
            programs: placed.programs,
            functions,
            ..Details::default()
        };
        Ok(Profile { details, folded })
    }
}
