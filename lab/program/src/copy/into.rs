// SPDX-License-Identifier: Apache-2.0
//! Copies from a program into the kernel, beside a copy in memory: the arms are where the bytes go.
//!
//! What was written is thrown away without being copied again: a file in memory is written at the same
//! place, a pipe is spliced to `/dev/null`, and a socket's data is received with MSG_TRUNC, which for TCP
//! drops it.

use super::area::Area;
use super::words::{MEMORY, PageSize, State, Target, Word, parse, shown};
use super::{Options, first};
use crate::clock::thread_cpu;
use crate::experiment::{Experiment, Factor, Measured, Run};
use crate::meter::{Account, Meter};
use crate::scenario::{Head, Scenario};
use crate::{Failure, Result};
use metaslot_studies::copy::Kernel;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::net::RecvFlags;
use rustix::pipe::{SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, splice};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{PipeReader, PipeWriter, Write, pipe};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// A pipe's size, as large as users may have it.
const PIPE: usize = 1 << 20;
const SIZES: [usize; 5] = [1 << 10, 4 << 10, 16 << 10, 128 << 10, 1 << 20];
/// The source that is streamed through, and the one that is untouched at the start of a sample.
const STREAM: usize = 128 << 20;
const UNTOUCHED: usize = 16 << 20;
const SAMPLE: Duration = Duration::from_millis(4);

/// An open way into the kernel.
#[derive(Debug)]
enum Sink {
    Memory { kernel: Kernel, to: Area },
    Memfd(File),
    Pipe { writer: PipeWriter, reader: PipeReader, null: File, size: usize },
    Socket { writer: TcpStream, reader: TcpStream, scratch: Vec<u8> },
}

impl Sink {
    fn memory(largest: usize) -> Result<Self> {
        let kernel = Kernel::named("libc").ok_or_else(|| Failure::new("no kernel libc"))?;
        Ok(Self::Memory { kernel, to: Area::populated(largest, PageSize::Large)? })
    }

    fn open(target: Target, largest: usize) -> Result<Self> {
        match target {
            Target::Memfd => {
                let file = kernel(memfd_create("metaslot-copy", MemfdFlags::CLOEXEC))?;
                kernel(ftruncate(&file, largest as u64))?;
                Ok(Self::Memfd(file.into()))
            }
            Target::Pipe => {
                let (reader, writer) = pipe()?;
                // A user who may not have it gets what there is.
                fcntl_setpipe_size(&writer, PIPE).ok();
                let size = kernel(fcntl_getpipe_size(&writer))?;
                let null = File::options().write(true).open("/dev/null")?;
                Ok(Self::Pipe { writer, reader, null, size })
            }
            Target::Socket => {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
                let writer = TcpStream::connect(listener.local_addr()?)?;
                let (reader, _) = listener.accept()?;
                writer.set_nodelay(true)?;
                writer.set_nonblocking(true)?;
                Ok(Self::Socket { writer, reader, scratch: vec![0; 256 << 10] })
            }
        }
    }

    /// Copies all of `from` into it, and empties it.
    fn take(&mut self, from: &[u8]) -> Result<()> {
        match self {
            Self::Memory { kernel, to } => {
                kernel.copy(&mut to.bytes_mut()[..from.len()], from);
                Ok(())
            }
            Self::Memfd(file) => Ok(file.write_all_at(from, 0)?),
            Self::Pipe { writer, reader, null, size } => from.chunks(*size).try_for_each(|part| {
                writer.write_all(part)?;
                let mut left = part.len();
                while left > 0 {
                    let flags = SpliceFlags::empty();
                    left -= kernel(splice(&*reader, None, &*null, None, left, flags))?;
                }
                Ok(())
            }),
            Self::Socket { writer, reader, scratch } => through(writer, reader, scratch, from),
        }
    }
}

/// Writes as much as the socket accepts, drops it at the other end, and so on.
fn through(
    mut writer: &TcpStream,
    reader: &TcpStream,
    scratch: &mut [u8],
    from: &[u8],
) -> Result<()> {
    let mut left = from;
    while !left.is_empty() {
        let written = match writer.write(left) {
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => 0,
            written => written?,
        };
        left = &left[written..];
        let mut dropped = 0;
        while dropped < written {
            let most = scratch.len().min(written - dropped);
            let place = &mut scratch[..most];
            let (_, count) = kernel(rustix::net::recv(reader, place, RecvFlags::TRUNC))?;
            if count == 0 {
                return Err(Failure::new("the socket was closed"));
            }
            dropped += count;
        }
    }
    Ok(())
}

/// The same result with the lab's error.
fn kernel<T>(result: rustix::io::Result<T>) -> Result<T> {
    result.map_err(|error| std::io::Error::from(error).into())
}

/// The scenario.
#[derive(Debug)]
pub(super) struct Into {
    states: Vec<State>,
    sizes: Vec<usize>,
    sinks: Vec<(String, Sink)>,
    source: Area,
    untouched: Area,
    at: usize,
    copies: BTreeMap<(String, String), usize>,
    settings: BTreeMap<String, String>,
}

impl Into {
    /// What the options ask for.
    ///
    /// # Errors
    /// The kernel refused one of the targets.
    pub(super) fn new(options: &Options) -> Result<Self> {
        let mut sizes =
            if options.sizes.is_empty() { SIZES.to_vec() } else { options.sizes.clone() };
        sizes.sort_unstable();
        sizes.dedup();
        let largest = sizes.last().copied().unwrap_or(PIPE);
        let mut targets = options.to.clone();
        targets.sort_unstable();
        targets.dedup();
        let mut sinks = vec![(MEMORY.to_owned(), Sink::memory(largest)?)];
        for target in targets {
            let sink = Sink::open(target, largest);
            sinks.push((target.word(), sink.map_err(|failure| failure.context(target.word()))?));
        }
        let usual = [State::Source, State::Memory, State::Cached];
        let states = usual.into_iter();
        let states = states.filter(|s| options.states.is_empty() || options.states.contains(s));
        let states: Vec<State> = states.collect();
        if states.is_empty() {
            return Err(Failure::new("copies into the kernel have no destination in this state")
                .hint("states of a source are source, memory, cached"));
        }
        Ok(Self {
            states,
            sizes,
            sinks,
            source: Area::populated(STREAM.max(2 * largest), PageSize::Small)?,
            untouched: Area::new(UNTOUCHED.max(largest), PageSize::Small)?,
            at: 0,
            copies: BTreeMap::new(),
            settings: first::settings()?,
        })
    }

    /// Copies so often from a source in this state.
    fn copy(&mut self, cell: &str, arm: &str, copies: usize) -> Result<f64> {
        let (state, size) = parse(cell)?;
        let sink = self.sinks.iter_mut().find(|(name, _)| name == arm);
        let (_, sink) = sink.ok_or_else(|| Failure::new("the plan has an unknown target"))?;
        let bytes = match state {
            State::Source => self.untouched.bytes(),
            State::Memory => self.source.bytes(),
            _ => &self.source.bytes()[..size],
        };
        let mut at = if state == State::Memory { self.at } else { 0 };
        for _ in 0..copies {
            at = if at + size <= bytes.len() { at } else { 0 };
            sink.take(&bytes[at..at + size])?;
            at += size;
        }
        if state == State::Memory {
            self.at = at;
        }
        Ok((copies * size) as f64)
    }

    /// How many copies take long enough; of untouched memory, as many as fit.
    fn calibrate(&mut self, cell: &str, arm: &str) -> Result<usize> {
        let (state, size) = parse(cell)?;
        if state == State::Source {
            return Ok(self.untouched.length() / size);
        }
        let mut copies = 1;
        loop {
            let began = thread_cpu();
            self.copy(cell, arm, copies)?;
            if thread_cpu() - began >= SAMPLE || copies >= 1 << 28 {
                return Ok(copies);
            }
            copies *= 2;
        }
    }
}

impl Scenario for Into {
    fn head(&self) -> Head {
        Head {
            name: "copy",
            unit: "byte",
            cpu: Account::Thread.source(),
            settings: self.settings.clone(),
        }
    }

    fn factors(&self) -> Vec<Factor> {
        vec![
            Factor::new("state", self.states.iter().map(|state| state.word())),
            Factor::new("size", self.sizes.iter().map(|size| shown(*size))),
        ]
    }

    fn arms(&self) -> Vec<String> {
        self.sinks.iter().map(|(name, _)| name.clone()).collect()
    }

    fn warm(&mut self, cell: &str, arm: &str) -> Result<Duration> {
        let copies = self.calibrate(cell, arm)?;
        self.copies.insert((cell.to_owned(), arm.to_owned()), copies);
        let began = Instant::now();
        let repetition = 0;
        let run = Run { cell: cell.to_owned(), arm: arm.to_owned(), repetition };
        self.sample(&run, &Meter::start())?;
        Ok(began.elapsed())
    }

    fn sample(&mut self, run: &Run, meter: &Meter) -> Result<Measured> {
        let key = (run.cell.clone(), run.arm.clone());
        let copies = self.copies.get(&key).copied().unwrap_or(1);
        self.untouched.give_back()?;
        meter.thread(|| self.copy(&run.cell, &run.arm, copies))
    }

    fn glance(&self, experiment: &Experiment) -> String {
        super::print::into(experiment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn every_way_takes_all_bytes_of_any_size() {
        let from: Vec<u8> = (0..3 << 20).map(|at: u32| at.to_le_bytes()[1]).collect();
        for target in [Target::Memfd, Target::Pipe, Target::Socket] {
            let mut sink = Sink::open(target, from.len()).unwrap();
            for length in [64, 4096, 100_000, from.len(), 1000] {
                sink.take(&from[..length]).unwrap();
            }
        }
    }

    #[test]
    fn what_was_written_is_there_and_what_was_thrown_away_is_not() {
        let from: Vec<u8> = (0..100_000u32).map(|at| at.to_le_bytes()[0]).collect();
        let mut sink = Sink::open(Target::Memfd, from.len()).unwrap();
        sink.take(&from).unwrap();
        let Sink::Memfd(file) = &sink else { panic!() };
        let mut there = vec![0; from.len()];
        file.read_exact_at(&mut there, 0).unwrap();
        assert!(there == from);
        let mut sink = Sink::open(Target::Socket, from.len()).unwrap();
        sink.take(&from).unwrap();
        let Sink::Socket { reader, .. } = &sink else { panic!() };
        reader.set_nonblocking(true).unwrap();
        let error = rustix::net::recv(reader, &mut [0; 8][..], RecvFlags::empty()).unwrap_err();
        assert_eq!(error, Errno::AGAIN);
    }
}
