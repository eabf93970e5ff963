// SPDX-License-Identifier: Apache-2.0
//! Copies that a thread on another processor reads, a batch at a time.
//!
//! The two take turns and sleep meanwhile. Each reads its own CPU clock around its own part, so what counts
//! is copies and reads; what it takes to wake each other is a counter of its own.

use crate::clock::thread_cpu;
use crate::experiment::Measured;
use crate::meter::Meter;
use crate::{Failure, Result};
use metaslot_studies::copy::{Kernel, Walk, sum};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of a batch: it stays in the second-level cache, and makes hand-overs rare.
pub(super) const BATCH: usize = 256 << 10;

/// How often a cache line goes there and back.
const ROUNDS: u32 = 32;
/// So many looks at a line that does not come, and the others may run.
const PATIENCE: u32 = 10_000;

/// Two processors that this process may use, if there are two.
fn processors() -> Option<[usize; 2]> {
    let allowed = sched_getaffinity(None).ok()?;
    let mut all = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu));
    Some([all.next()?, all.next()?])
}

/// Why no other CPU can read.
pub(super) fn missing() -> Option<String> {
    processors().is_none().then(|| "this process may use one processor only".to_owned())
}

/// The calling thread, on one processor until this is dropped.
struct Pinned(CpuSet);

impl Pinned {
    fn to(cpu: usize) -> Result<Self> {
        let before = sched_getaffinity(None).map_err(std::io::Error::from)?;
        let mut one = CpuSet::new();
        one.set(cpu);
        sched_setaffinity(None, &one).map_err(std::io::Error::from)?;
        Ok(Self(before))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // It was allowed before.
        sched_setaffinity(None, &self.0).ok();
    }
}

/// What is copied: all of `to`, batch by batch, again and again.
pub(super) struct Copies<'a> {
    pub(super) kernel: Kernel,
    pub(super) to: &'a mut [u8],
    pub(super) from: &'a [u8],
    pub(super) size: usize,
    pub(super) batches: usize,
}

impl<'a> Copies<'a> {
    /// Copies and has them read.
    ///
    /// # Errors
    /// There is no second processor, or the reader has died.
    pub(super) fn measure(self, meter: &Meter) -> Result<Measured> {
        let [here, there] = processors().ok_or_else(|| Failure::new("one processor only"))?;
        let _pinned = Pinned::to(here)?;
        let (send, receive) = sync_channel(1);
        let (give_back, returned) = sync_channel(1);
        let line = Line::default();
        thread::scope(|scope| {
            let far = &line;
            let reader = scope.spawn(move || {
                let _pinned = Pinned::to(there)?;
                far.answer();
                read(&receive, &give_back);
                Ok(())
            });
            let distance = line.distance();
            let mut measured = self.run(meter, send, &returned);
            if let Ok(measured) = &mut measured {
                measured.counters.insert("latency_line_ns".to_owned(), distance);
            }
            match reader.join() {
                Ok(read) => read.and(measured),
                Err(_) => Err(Failure::new("the reading thread panicked")),
            }
        })
    }

    /// Hands over one batch after the other. Dropping `send` at the end lets the reader go.
    fn run(
        self,
        meter: &Meter,
        send: SyncSender<&'a mut [u8]>,
        returned: &Receiver<Read<'a>>,
    ) -> Result<Measured> {
        let Self { kernel, to, from, size, batches } = self;
        let length = BATCH.max(size) / size * size;
        let hand_over = |batch| {
            let gone = || Failure::new("the reading thread has gone");
            send.send(batch).map_err(|_| gone())?;
            returned.recv().map_err(|_| gone())
        };
        // The reader is there before the clock starts.
        hand_over(&mut [])?;
        let mut places: Vec<&mut [u8]> = to.chunks_exact_mut(length).collect();
        let sources: Vec<&[u8]> = from.chunks_exact(length).collect();
        let mut own = Duration::ZERO;
        let mut measured = meter.process(|| {
            for number in 0..batches {
                let at = number % places.len();
                let place = std::mem::take(&mut places[at]);
                let source = sources[number % sources.len()];
                let began = thread_cpu();
                Walk::default().copy(kernel, place, source, size, length / size, false);
                own += thread_cpu() - began;
                let read = hand_over(place)?;
                (places[at], own) = (read.batch, own + read.time);
            }
            Ok((batches * length) as f64)
        })?;
        let own = own.as_secs_f64() * 1e9;
        measured.counters.insert("handovers".to_owned(), batches as f64);
        measured.counters.insert("handover_ns".to_owned(), (measured.cpu_ns - own).max(0.0));
        measured.cpu_ns = own;
        Ok(measured)
    }
}

/// A batch that was read, and the CPU time of reading it.
struct Read<'a> {
    batch: &'a mut [u8],
    time: Duration,
}

/// Reads what comes and sends it back.
fn read<'a>(receive: &Receiver<&'a mut [u8]>, give_back: &SyncSender<Read<'a>>) {
    let mut total = 0u64;
    for batch in receive {
        let began = thread_cpu();
        total = total.wrapping_add(sum(batch));
        let time = thread_cpu() - began;
        if give_back.send(Read { batch, time }).is_err() {
            break;
        }
    }
    std::hint::black_box(total);
}

/// A cache line that two processors write in turns: how far they are from each other. A virtual machine's
/// are moved, and then another core is near or far.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line(AtomicU32);

impl Line {
    /// The shortest of some ways there and back, in nanoseconds.
    fn distance(&self) -> f64 {
        let round = |round| {
            let began = Instant::now();
            self.0.store(2 * round + 1, Ordering::Release);
            self.wait(2 * round + 2);
            began.elapsed()
        };
        let shortest = (0..ROUNDS).map(round).min().unwrap_or_default();
        shortest.as_secs_f64() * 1e9
    }

    /// The other side.
    fn answer(&self) {
        for round in 0..ROUNDS {
            self.wait(2 * round + 1);
            self.0.store(2 * round + 2, Ordering::Release);
        }
    }

    fn wait(&self, value: u32) {
        let mut looks = 0u32;
        while self.0.load(Ordering::Acquire) < value {
            spin_loop();
            looks += 1;
            if looks.is_multiple_of(PATIENCE) {
                thread::yield_now();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_batch_is_copied_and_comes_back() {
        if missing().is_some() {
            return;
        }
        let from: Vec<u8> = (0..4 * BATCH).map(|at| (at / 7).to_le_bytes()[0]).collect();
        let mut to = vec![0; 4 * BATCH];
        let kernel = Kernel::named("libc").unwrap();
        let copies = Copies { kernel, to: &mut to, from: &from, size: 1024, batches: 4 };
        let before = sched_getaffinity(None).unwrap();
        let measured = copies.measure(&Meter::start()).unwrap();
        assert_eq!(measured.counters["handovers"], 4.0);
        assert!(measured.counters["latency_line_ns"] > 0.0);
        assert!(to == from && measured.work == to.len() as f64 && measured.cpu_ns >= 0.0);
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }
}
