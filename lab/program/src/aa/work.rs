// SPDX-License-Identifier: Apache-2.0
//! Something to do: one thing that only computes, and one that asks the kernel and another thread.

use crate::experiment::{Factor, Measured, Run, level};
use crate::meter::{Account, Meter};
use crate::scenario::{Head, Scenario};
use crate::{Failure, Result};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::time::{Duration, Instant};

/// Bytes of one copy: more than a first-level cache, less than a second-level one.
const COPY: usize = 64 * 1024;
/// Wall time of one sample: two ticks of what the system says about foreign work.
const SAMPLE: Duration = Duration::from_millis(20);

/// What is done.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Copies memory.
    Copy,
    /// Sends a byte through a pipe to another thread, and waits until it comes back.
    Pipe,
}

/// Every kind.
const KINDS: [Kind; 2] = [Kind::Copy, Kind::Pipe];

impl Kind {
    /// The level's name in the plan.
    const fn word(self) -> &'static str {
        match self {
            Self::Copy => "copy-64K",
            Self::Pipe => "pipe-1B",
        }
    }

    fn start(self) -> Result<Work> {
        Ok(match self {
            Self::Copy => Work::Copy { from: vec![1; COPY], to: vec![0; COPY] },
            Self::Pipe => {
                let (mut request, writer) = pipe()?;
                let (reader, mut answer) = pipe()?;
                // Ends when the writer is dropped: then there is nothing more to read.
                std::thread::Builder::new().spawn(move || echo(&mut request, &mut answer))?;
                Work::Pipe { writer, reader }
            }
        })
    }
}

fn echo(request: &mut PipeReader, answer: &mut PipeWriter) {
    let mut byte = [0];
    while request.read_exact(&mut byte).is_ok() && answer.write_all(&byte).is_ok() {}
}

#[derive(Debug)]
enum Work {
    Copy { from: Vec<u8>, to: Vec<u8> },
    Pipe { writer: PipeWriter, reader: PipeReader },
}

impl Work {
    fn repeat(&mut self, times: u64) -> Result<()> {
        match self {
            Self::Copy { from, to } => {
                for _ in 0..times {
                    black_box(to.as_mut_slice()).copy_from_slice(black_box(from));
                }
            }
            Self::Pipe { writer, reader } => {
                for count in 0..times {
                    let (sent, mut back) = ([count.to_le_bytes()[0]], [0]);
                    writer.write_all(&sent)?;
                    reader.read_exact(&mut back)?;
                    if sent != back {
                        return Err(Failure::new("a pipe gave another byte than it was given"));
                    }
                }
            }
        }
        Ok(())
    }

    fn timed(&mut self, times: u64) -> Result<Duration> {
        let began = Instant::now();
        self.repeat(times)?;
        Ok(began.elapsed())
    }
}

/// A work, and how often it is done for a sample of the length wished for.
#[derive(Debug)]
struct Calibrated {
    kind: Kind,
    work: Work,
    times: u64,
    expected: Duration,
}

impl Calibrated {
    /// Starts it and doubles until a sample is long enough, which warms everything up as well. On a
    /// busy machine a single try may be long for no fault of its own: the shortest of three tells how
    /// much work it takes, and their mean how long that is going to be.
    fn new(kind: Kind, sample: Duration) -> Result<Self> {
        let mut work = kind.start()?;
        let mut times = 1;
        loop {
            let tries = [work.timed(times)?, work.timed(times)?, work.timed(times)?];
            if tries.iter().all(|time| *time >= sample) || times >= 1 << 30 {
                let expected = tries.iter().sum::<Duration>() / 3;
                return Ok(Self { kind, work, times, expected });
            }
            times *= 2;
        }
    }
}

/// All kinds as a scenario.
#[derive(Debug)]
pub(super) struct Works(Vec<Calibrated>);

impl Works {
    pub(super) fn new() -> Result<Self> {
        KINDS.iter().map(|kind| Calibrated::new(*kind, SAMPLE)).collect::<Result<_>>().map(Self)
    }

    fn of(&mut self, cell: &str) -> Result<&mut Calibrated> {
        let kind = level(cell, "work");
        let work = self.0.iter_mut().find(|work| Some(work.kind.word()) == kind);
        work.ok_or_else(|| Failure::new("the plan has a work that is not there"))
    }
}

impl Scenario for Works {
    fn head(&self) -> Head {
        Head {
            name: "work",
            unit: "operation",
            cpu: Account::Process.source(),
            settings: BTreeMap::new(),
        }
    }

    fn factors(&self) -> Vec<Factor> {
        let levels = KINDS.iter().map(|kind| kind.word().to_owned()).collect();
        vec![Factor { name: "work".to_owned(), levels }]
    }

    fn arms(&self) -> Vec<String> {
        vec!["work".to_owned()]
    }

    fn warm(&mut self, cell: &str, _arm: &str) -> Result<Duration> {
        Ok(self.of(cell)?.expected)
    }

    fn sample(&mut self, run: &Run, meter: &Meter) -> Result<Measured> {
        let Calibrated { work, times, .. } = self.of(&run.cell)?;
        meter.process(|| work.repeat(*times).map(|()| *times as f64))
    }
}
