// SPDX-License-Identifier: Apache-2.0
//! One sample: a writer and a reader on a pair of ends of their own, each with its CPU time.
//!
//! Before the clock starts they do the same for a while: TCP's window opens, pages are there. The
//! writer ends both phases: it says where the end will be before it writes the last block, so the
//! reader, who looks before each read, never waits for bytes that do not come. Between the phases
//! the writer waits until everything was read.

use crate::clock::{Spent, measure};
use crate::experiment::Measured;
use crate::local::path::{Ends, LocalPath};
use crate::{Failure, Result};
use rustix::io::{Errno, ioctl_fionbio, read, write};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// The reader's buffer: it takes what is there, up to this.
const READ: usize = 1 << 17;
/// The clock and the reader's position are looked at once in so many writes.
const STRIDE: u64 = 16;

/// What one sample says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    bytes: u64,
    writer: Spent,
    reader: Spent,
    pub(super) outstanding: Outstanding,
}

impl Sample {
    pub(super) const fn bytes(&self) -> f64 {
        self.bytes as f64
    }

    /// Puts this sample's own figures in the place of a window's around it: CPU time of both ends, and
    /// wall time until the last byte was read.
    pub(super) fn replace(&self, measured: &mut Measured) {
        let nanoseconds = |time: Duration| time.as_secs_f64() * 1e9;
        let (writer, reader) = (nanoseconds(self.writer.cpu), nanoseconds(self.reader.cpu));
        measured.cpu_ns = writer + reader;
        measured.wall_ns = nanoseconds(self.reader.wall);
        let counted = [
            ("writer_ns", writer),
            ("reader_ns", reader),
            ("outstanding_mean", self.outstanding.mean()),
            ("outstanding_most", self.outstanding.most),
        ];
        measured.counters.extend(counted.map(|(name, value)| (name.to_owned(), value)));
    }
}

/// Writes that had returned and were not read yet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Outstanding {
    sum: f64,
    looks: u32,
    pub(super) most: f64,
}

impl Outstanding {
    fn look(&mut self, written: u64, read: u64, size: usize) {
        let writes = written.saturating_sub(read) as f64 / size as f64;
        self.sum += writes;
        self.looks += 1;
        self.most = self.most.max(writes);
    }

    /// The mean of all looks. Rounding does not take it beyond the largest.
    pub(super) fn mean(&self) -> f64 {
        (self.sum / f64::from(self.looks.max(1))).min(self.most)
    }
}

/// What both ends see: how far the reader is, and where the phases end.
struct Shared {
    read: AtomicU64,
    ends: [AtomicU64; 2],
}

/// Whether the path takes a write of this size; messages have a limit.
///
/// # Errors
/// The write failed otherwise.
pub(super) fn carries(path: LocalPath, size: usize) -> Result<bool> {
    let ends = path.ends()?;
    let failed = |error: Errno| Failure::new(error.to_string()).context(path.name());
    ioctl_fionbio(&ends.writer, true).map_err(failed)?;
    match write(&ends.writer, &vec![0; size]) {
        Ok(_) => Ok(true),
        Err(Errno::MSGSIZE) => Ok(false),
        Err(error) => Err(failed(error)),
    }
}

/// Takes a sample of about this length.
///
/// # Errors
/// The path failed; one that does not carry blocks of this size does.
pub(super) fn sample(path: LocalPath, size: usize, length: Duration) -> Result<Sample> {
    let Ends { redirect, writer: end, reader: other } = path.ends()?;
    let unknown = || AtomicU64::new(u64::MAX);
    let shared = Shared { read: AtomicU64::new(0), ends: [unknown(), unknown()] };
    let (warm, warmed) = channel();
    let (reading, read_all) = channel::<()>();
    let (written, read) = std::thread::scope(|scope| {
        // Each side closes its end whatever happens to it, so the other one never waits for it.
        let shared = &shared;
        let writer = scope.spawn(move || {
            let written = writer(&end, size, length, warmed, shared);
            if written.is_ok() && redirect.is_some() {
                // Fails when the reader is done: that is what is waited for.
                read_all.recv().err();
            }
            drop(redirect);
            written
        });
        let read = reader(&other, size.max(READ), warm, shared);
        drop((reading, other));
        let written = writer.join().map_err(|_| Failure::new("the writer panicked"));
        (written.and_then(|result| result), read)
    });
    // The writer's reason first: its end is the reader's.
    let (writer, outstanding, sent) = written?;
    let (reader, bytes) = read?;
    if sent != bytes {
        return Err(Failure::new(format!("{sent} bytes were written, {bytes} read")));
    }
    Ok(Sample { bytes, writer, reader, outstanding })
}

fn writer(
    end: &OwnedFd,
    size: usize,
    length: Duration,
    warmed: Receiver<()>,
    shared: &Shared,
) -> Result<(Spent, Outstanding, u64)> {
    let block = vec![0x5A; size];
    let warm = write_phase(end, &block, 0, length / 4, 0, shared)?.0;
    warmed.recv().map_err(|_| Failure::new("the reader ended early"))?;
    let (result, spent) = measure(|| write_phase(end, &block, warm, length, 1, shared));
    let (written, outstanding) = result?;
    Ok((spent, outstanding, written - warm))
}

/// Writes for a while, and gives the position then.
fn write_phase(
    end: &OwnedFd,
    block: &[u8],
    mut written: u64,
    length: Duration,
    phase: usize,
    shared: &Shared,
) -> Result<(u64, Outstanding)> {
    let (started, mut outstanding) = (Instant::now(), Outstanding::default());
    for number in 1_u64.. {
        let look = number.is_multiple_of(STRIDE);
        let last = look && started.elapsed() >= length;
        if last {
            shared.ends[phase].store(written + block.len() as u64, Ordering::SeqCst);
        }
        write_whole(end, block)?;
        written += block.len() as u64;
        if look {
            outstanding.look(written, shared.read.load(Ordering::Relaxed), block.len());
        }
        if last {
            break;
        }
    }
    Ok((written, outstanding))
}

fn write_whole(end: &OwnedFd, mut block: &[u8]) -> Result<()> {
    while !block.is_empty() {
        match write(end, block) {
            Ok(count) => block = &block[count..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(Failure::new(format!("write: {error}"))),
        }
    }
    Ok(())
}

fn reader(end: &OwnedFd, most: usize, warmed: Sender<()>, shared: &Shared) -> Result<(Spent, u64)> {
    let mut buffer = vec![0; most];
    let warm = read_phase(end, &mut buffer, 0, 0, shared)?;
    warmed.send(()).map_err(|_| Failure::new("the writer ended early"))?;
    let (position, spent) = measure(|| read_phase(end, &mut buffer, warm, 1, shared));
    Ok((spent, position? - warm))
}

/// Reads to the end of a phase, and gives the position there.
fn read_phase(
    end: &OwnedFd,
    buffer: &mut [u8],
    mut position: u64,
    phase: usize,
    shared: &Shared,
) -> Result<u64> {
    while position < shared.ends[phase].load(Ordering::SeqCst) {
        match read(end, &mut *buffer) {
            Ok(0) => return Err(Failure::new("the writer ended early")),
            Ok(count) => position += count as u64,
            Err(Errno::INTR) => {}
            Err(error) => return Err(Failure::new(format!("read: {error}"))),
        }
        shared.read.store(position, Ordering::Relaxed);
    }
    Ok(position)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_carries_small_and_large_blocks() {
        for path in LocalPath::ALL {
            if path == LocalPath::Sockmap && path.ends().is_err() {
                continue;
            }
            for size in [1, 700, 65_536, 150_000] {
                let sample = sample(path, size, Duration::from_millis(2)).unwrap();
                assert!(sample.bytes.is_multiple_of(size as u64), "{path:?} {size}");
                assert!(sample.bytes >= STRIDE * size as u64, "{path:?} {size}");
                assert!(sample.outstanding.most >= sample.outstanding.mean(), "{path:?} {size}");
            }
        }
    }

    #[test]
    fn a_mean_of_equal_looks_is_not_more_than_each() {
        let mut outstanding = Outstanding::default();
        // Three times a tenth is more than three tenths.
        (0..3).for_each(|_| outstanding.look(1, 0, 10));
        assert!(outstanding.most >= outstanding.mean());
    }

    #[test]
    fn a_block_that_a_path_does_not_carry_is_an_error_and_ends() {
        assert!(!carries(LocalPath::Seqpacket, 1 << 26).unwrap());
        assert!(carries(LocalPath::Seqpacket, 1 << 16).unwrap());
        let failed = sample(LocalPath::Seqpacket, 1 << 26, Duration::from_millis(2));
        let failure = failed.unwrap_err();
        assert!(failure.message.starts_with("write: "), "{failure}");
    }

    #[test]
    fn only_what_follows_the_warming_up_counts() {
        let spent = |cpu, wall| Spent {
            cpu: Duration::from_micros(cpu),
            wall: Duration::from_millis(wall),
        };
        let outstanding = Outstanding::default();
        let sample =
            Sample { bytes: 1_024_000, writer: spent(500, 9), reader: spent(250, 8), outstanding };
        let window = crate::meter::Meter::start().thread(|| Ok(sample.bytes()));
        let mut measured = window.unwrap();
        sample.replace(&mut measured);
        assert!((measured.cpu_ns - 750e3).abs() < 1e-3 && (measured.wall_ns - 8e6).abs() < 1e-3);
        assert!((measured.counters["reader_ns"] - 250e3).abs() < 1e-3, "{measured:?}");
    }

    #[test]
    fn outstanding_writes_are_what_was_written_and_not_read() {
        let mut outstanding = Outstanding::default();
        assert_eq!(outstanding.mean(), 0.0);
        outstanding.look(1000, 400, 100);
        outstanding.look(1100, 900, 100);
        assert_eq!((outstanding.mean(), outstanding.most), (4.0, 6.0));
    }
}
