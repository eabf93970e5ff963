// SPDX-License-Identifier: Apache-2.0
//! The copies themselves, in every state.

use super::area::Area;
use super::other::{BATCH, Copies};
use super::words::{Cell, Consumer, PageSize, State};
use crate::Result;
use crate::clock::thread_cpu;
use crate::experiment::Measured;
use crate::meter::Meter;
use crate::statistics::median;
use metaslot_studies::copy::{Kernel, Walk, evict, sum};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// CPU time of a sample.
const SAMPLE: Duration = Duration::from_millis(2);
/// Each of the two areas that are streamed through: the caches hold a small part of them.
const STREAM: usize = 128 << 20;
/// Memory that is untouched at the start of a sample; it is touched once in it.
const UNTOUCHED: usize = 8 << 20;
/// What another thread reads in a sample.
const HANDED_OVER: usize = 4 << 20;
/// Copies that are timed one by one, for a sample.
const ALONE: usize = 3;

/// Areas of one kind of pages, made when they are first needed.
#[derive(Debug)]
struct Areas {
    pages: PageSize,
    source: Area,
    destination: Area,
    untouched: Area,
    walk: Walk,
    /// Large pages were asked for, and most are not.
    disappointing: bool,
}

impl Areas {
    fn new(pages: PageSize, largest: usize) -> Result<Self> {
        let stream = STREAM.max(2 * largest);
        let source = Area::populated(stream, pages)?;
        let destination = Area::populated(stream, pages)?;
        let mostly = [&source, &destination].iter().all(|area| area.is_mostly_large());
        Ok(Self {
            pages,
            source,
            destination,
            untouched: Area::new(UNTOUCHED.max(largest), pages)?,
            walk: Walk::default(),
            disappointing: pages == PageSize::Large && !mostly,
        })
    }

    /// Destination and source of a cell. In the caches: as much as is copied again and again.
    fn of(&mut self, cell: &Cell) -> (&mut [u8], &[u8]) {
        let once = if cell.consumer == Consumer::Other { BATCH.max(cell.size) } else { cell.size };
        match cell.state {
            State::Source => (&mut self.destination.bytes_mut()[..once], self.untouched.bytes()),
            State::Fresh | State::Host => {
                (self.untouched.bytes_mut(), &self.source.bytes()[..once])
            }
            State::Memory => (self.destination.bytes_mut(), self.source.bytes()),
            State::Cached => {
                (&mut self.destination.bytes_mut()[..once], &self.source.bytes()[..once])
            }
        }
    }
}

/// Everything that is copied.
#[derive(Debug)]
pub(super) struct Bench {
    areas: Vec<Areas>,
    largest: usize,
    /// What reading the clock twice takes.
    clock: Duration,
}

impl Bench {
    /// For copies up to this size.
    pub(super) fn new(largest: usize) -> Self {
        let twice = |_| {
            let began = Instant::now();
            black_box(began).elapsed()
        };
        let clock = (0..1000).map(twice).min().unwrap_or_default();
        Self { areas: Vec::new(), largest, clock }
    }

    /// Gives all memory back: what is copied next lies elsewhere.
    pub(super) fn afresh(&mut self) {
        self.areas.clear();
    }

    fn areas(&mut self, pages: PageSize) -> Result<&mut Areas> {
        let at = match self.areas.iter().position(|areas| areas.pages == pages) {
            Some(at) => at,
            None => {
                self.areas.push(Areas::new(pages, self.largest)?);
                self.areas.len() - 1
            }
        };
        Ok(&mut self.areas[at])
    }

    /// How many copies make a sample, found by doubling; with areas that are untouched, so many as fit.
    ///
    /// # Errors
    /// There is no memory.
    pub(super) fn calibrate(&mut self, cell: &Cell, kernel: Kernel) -> Result<usize> {
        let areas = self.areas(cell.pages)?;
        if matches!(cell.state, State::Source | State::Fresh | State::Host) {
            return Ok(areas.untouched.length() / cell.size);
        }
        if cell.consumer == Consumer::Other {
            return Ok((HANDED_OVER / cell.size).max(1));
        }
        let read = cell.consumer == Consumer::Same;
        let mut copies = 1;
        loop {
            let began = thread_cpu();
            areas.copy(cell, kernel, copies, read);
            if thread_cpu() - began >= SAMPLE || copies >= 1 << 28 {
                return Ok(copies);
            }
            copies *= 2;
        }
    }

    /// Takes a sample of so many copies: first some of them alone, then all of them in a row.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn sample(
        &mut self,
        cell: &Cell,
        kernel: Kernel,
        copies: usize,
        meter: &Meter,
    ) -> Result<Measured> {
        let clock = self.clock;
        let areas = self.areas(cell.pages)?;
        let latency = match cell.consumer {
            Consumer::Other => None,
            _ => Some(areas.alone(cell, kernel, clock)?),
        };
        areas.prepare(cell)?;
        let mut measured = match cell.consumer {
            Consumer::Other => areas.handed_over(cell, kernel, copies, meter)?,
            reads => meter.thread(|| {
                areas.copy(cell, kernel, copies, reads == Consumer::Same);
                Ok((copies * cell.size) as f64)
            })?,
        };
        measured.counters.extend(latency.map(|latency| ("latency_ns".to_owned(), latency)));
        measured.flags.extend(areas.disappointing.then(|| "small_pages".to_owned()));
        Ok(measured)
    }
}

impl Areas {
    /// Untouched memory is untouched again.
    fn prepare(&mut self, cell: &Cell) -> Result<()> {
        match cell.state {
            State::Source | State::Fresh | State::Host => self.untouched.give_back(),
            State::Memory | State::Cached => Ok(()),
        }
    }

    /// Copies in a row. A stream goes on where the last one stopped, everything else begins anew.
    fn copy(&mut self, cell: &Cell, kernel: Kernel, copies: usize, read: bool) {
        let mut walk = if cell.state == State::Memory { self.walk } else { Walk::default() };
        let (to, from) = self.of(cell);
        black_box(walk.copy(kernel, to, from, cell.size, copies, read));
        if cell.state == State::Memory {
            self.walk = walk;
        }
    }

    fn handed_over(
        &mut self,
        cell: &Cell,
        kernel: Kernel,
        copies: usize,
        meter: &Meter,
    ) -> Result<Measured> {
        let size = cell.size;
        let batches = (copies * size).div_ceil(BATCH.max(size)).max(2);
        let (to, from) = self.of(cell);
        Copies { kernel, to, from, size, batches }.measure(meter)
    }

    /// Wall time of a copy alone, the median of a few. Where memory is in no cache, neither is what is
    /// copied; where it is in the caches, source and destination have just been read.
    fn alone(&mut self, cell: &Cell, kernel: Kernel, clock: Duration) -> Result<f64> {
        let mut times = Vec::with_capacity(ALONE);
        for _ in 0..ALONE {
            self.prepare(cell)?;
            let (to, from) = self.of(cell);
            let (to, from) = (&mut to[..cell.size], &from[..cell.size]);
            match cell.state {
                State::Source => _ = black_box(sum(to)),
                State::Fresh | State::Host => _ = black_box(sum(from)),
                State::Memory => [&*to, from].iter().for_each(|bytes| evict(bytes)),
                State::Cached => _ = black_box(sum(from).wrapping_add(sum(to))),
            }
            let began = Instant::now();
            kernel.copy(to, from);
            if cell.consumer == Consumer::Same {
                black_box(sum(to));
            }
            let time = began.elapsed().saturating_sub(clock);
            times.push(time.as_secs_f64() * 1e9);
        }
        Ok(median(&times))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_copies_what_it_says_and_counts_it() {
        let mut bench = Bench::new(16 << 10);
        let meter = Meter::start();
        let libc = Kernel::named("libc").unwrap();
        for state in [State::Source, State::Fresh, State::Memory, State::Cached] {
            for consumer in [Consumer::Nobody, Consumer::Same] {
                let cell = Cell { state, pages: PageSize::Small, consumer, size: 16 << 10 };
                let sample = bench.sample(&cell, libc, 10, &meter).unwrap();
                assert_eq!(sample.work, f64::from(10 * (16 << 10)), "{cell:?}");
                assert!(sample.cpu_ns >= 0.0 && sample.counters.contains_key("latency_ns"));
                let (to, from) = bench.areas(PageSize::Small).unwrap().of(&cell);
                assert!(to[..cell.size] == from[..cell.size], "{cell:?}");
                // What is read of untouched memory is zero; everything else is not.
                assert_eq!(from[..cell.size].iter().all(|byte| *byte == 0), state == State::Source);
            }
        }
    }
}
