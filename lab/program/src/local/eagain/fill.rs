// SPDX-License-Identifier: Apache-2.0
//! Non-blocking writes until one would block.

use super::stream::Stream;
use crate::{Failure, Result};
use rustix::io::{Errno, ioctl_fionbio, write, writev};
use serde::{Deserialize, Serialize};
use std::io::IoSlice;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// The header of a message, as the application wrote it.
const HEADER: usize = 12;
/// The rest of it.
const BODY: usize = 696;
/// Bytes of one message.
pub(super) const MESSAGE: usize = HEADER + BODY;
/// Messages that are sent together where it is tried.
pub(super) const BATCH: usize = 8;
/// The clock is read once in so many writes.
const STRIDE: u64 = 256;

/// How the bytes are cut into writes.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Pattern {
    /// Each message by two writes, its header of 12 bytes and its body of 696.
    TwoWrites,
    /// Each message by one write, from one buffer.
    OneWrite,
    /// Each message by one `writev` of header and body.
    Gathered,
    /// Eight messages by each write, from one buffer.
    Batch,
    /// One byte by each write.
    Byte,
}

/// What was accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Filled {
    /// Writes that took something.
    pub(super) writes: u64,
    pub(super) payload: u64,
    /// The last write would have blocked; otherwise there was no time for more of them.
    pub(super) full: bool,
}

impl Pattern {
    /// In this order: what takes longest comes last.
    pub(super) const ALL: [Self; 5] =
        [Self::TwoWrites, Self::OneWrite, Self::Gathered, Self::Batch, Self::Byte];

    /// One round of the pattern: the parts of each of its writes.
    const fn writes(self) -> &'static [&'static [usize]] {
        match self {
            Self::TwoWrites => &[&[HEADER], &[BODY]],
            Self::OneWrite => &[&[MESSAGE]],
            Self::Gathered => &[&[HEADER, BODY]],
            Self::Batch => &[&[BATCH * MESSAGE]],
            Self::Byte => &[&[1]],
        }
    }
}

/// Writes until the path is full, or the time is over.
///
/// # Errors
/// A write failed otherwise than by being refused for now.
pub(super) fn fill(
    writer: &OwnedFd,
    pattern: Pattern,
    stream: &Stream,
    patience: Duration,
) -> Result<Filled> {
    ioctl_fionbio(writer, true).map_err(|error| Failure::new(format!("FIONBIO: {error}")))?;
    let started = Instant::now();
    let mut filled = Filled { writes: 0, payload: 0, full: false };
    for parts in pattern.writes().iter().cycle() {
        match write_parts(writer, stream, filled.payload, parts) {
            Ok(count) => {
                filled.writes += 1;
                filled.payload += count as u64;
            }
            Err(Errno::AGAIN) => {
                filled.full = true;
                break;
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(Failure::new(format!("write: {error}"))),
        }
        if filled.writes.is_multiple_of(STRIDE) && started.elapsed() > patience {
            break;
        }
    }
    Ok(filled)
}

/// One system call.
fn write_parts(
    writer: &OwnedFd,
    stream: &Stream,
    position: u64,
    parts: &[usize],
) -> rustix::io::Result<usize> {
    match *parts {
        [first, second] => {
            let tail = stream.bytes(position + first as u64, second);
            let parts = [stream.bytes(position, first), tail];
            writev(writer, &parts.map(IoSlice::new))
        }
        _ => write(writer, stream.bytes(position, parts.iter().sum())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::path::LocalPath;

    #[test]
    fn whatever_was_accepted_is_read_byte_for_byte() {
        let stream = Stream::new();
        for path in LocalPath::REFUSING {
            for pattern in Pattern::ALL {
                let ends = path.ends().unwrap();
                path.ask_buffer(&ends.writer, 16_384).unwrap();
                let filled = fill(&ends.writer, pattern, &stream, Duration::MAX).unwrap();
                assert!(filled.full && filled.writes > 0, "{path:?} {pattern:?} {filled:?}");
                drop(ends.writer);
                let read = stream.read_to_end(&ends.reader).unwrap();
                assert_eq!(read, filled.payload, "{path:?} {pattern:?}");
            }
        }
    }

    #[test]
    fn without_patience_a_path_is_not_called_full() {
        let ends = LocalPath::Tcp.ends().unwrap();
        let filled = fill(&ends.writer, Pattern::Byte, &Stream::new(), Duration::ZERO).unwrap();
        assert_eq!(filled, Filled { writes: STRIDE, payload: STRIDE, full: false });
    }
}
