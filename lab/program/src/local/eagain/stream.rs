// SPDX-License-Identifier: Apache-2.0
//! The bytes that travel: each one follows from its position, so the reader can judge every byte
//! however the path cut them.

use crate::{Failure, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, read};
use std::os::fd::OwnedFd;

/// Prime, so that no size of a write or a page repeats in step with it.
const PERIOD: u8 = 251;
/// Most bytes of one read, and of one write.
const MAX_TRANSFER: usize = 1 << 16;
/// How long the reader waits for bytes that were accepted.
const PATIENCE: Timespec = Timespec { tv_sec: 2, tv_nsec: 0 };

/// The sequence, long enough to be cut anywhere.
#[derive(Debug)]
pub(super) struct Stream(Vec<u8>);

impl Stream {
    pub(super) fn new() -> Self {
        Self((0..PERIOD).cycle().take(usize::from(PERIOD) + MAX_TRANSFER).collect())
    }

    /// The bytes from a position on.
    pub(super) fn bytes(&self, position: u64, length: usize) -> &[u8] {
        let start = usize::try_from(position % u64::from(PERIOD)).unwrap_or(0);
        &self.0[start..start + length]
    }

    /// Reads to the end and compares every byte; says how many there were.
    ///
    /// # Errors
    /// A byte was another one, or none came for two seconds.
    pub(super) fn read_to_end(&self, reader: &OwnedFd) -> Result<u64> {
        let mut buffer = vec![0; MAX_TRANSFER];
        let mut position = 0;
        loop {
            wait(reader)?;
            let count = match read(reader, &mut buffer) {
                Ok(0) => return Ok(position),
                Ok(count) => count,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(Failure::new(format!("read: {error}"))),
            };
            if buffer[..count] != *self.bytes(position, count) {
                return Err(Failure::new(format!(
                    "the peer read other bytes than were written, from {position} on"
                )));
            }
            position += count as u64;
        }
    }
}

fn wait(reader: &OwnedFd) -> Result<()> {
    match poll(&mut [PollFd::new(reader, PollFlags::IN)], Some(&PATIENCE)) {
        Ok(0) => Err(Failure::new("what was accepted did not reach the peer")),
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(Failure::new(format!("poll: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::path::LocalPath;
    use rustix::io::write;

    #[test]
    fn every_position_has_its_byte() {
        let stream = Stream::new();
        assert_eq!(stream.bytes(0, 3), [0, 1, 2]);
        assert_eq!(stream.bytes(250, 3), [250, 0, 1]);
        assert_eq!(stream.bytes(251 * 1_000_000 + 7, MAX_TRANSFER)[0], 7);
    }

    #[test]
    fn a_changed_byte_shows() {
        let stream = Stream::new();
        let ends = LocalPath::Unix.ends().unwrap();
        write(&ends.writer, stream.bytes(0, 5)).unwrap();
        write(&ends.writer, stream.bytes(6, 5)).unwrap();
        drop(ends.writer);
        let failure = stream.read_to_end(&ends.reader).unwrap_err();
        assert!(failure.message.contains("other bytes"), "{failure}");
    }
}
