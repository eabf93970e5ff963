// SPDX-License-Identifier: Apache-2.0
//! One direction of a connection through memory that both processes have: bytes of one, for which the other looks at this moment.
//!
//! Nothing sleeps and nothing is woken here. Who does not look any more says so, and what is said then goes through the socket; so
//! does what is longer. A lane is a word of state and room for bytes behind it:
//!
//! | state | means | who ends it |
//! |---|---|---|
//! | [`AWAY`] | the reader does not look: the socket is the way | the reader looks |
//! | [`LOOKS`] | the reader looks at this word | the writer puts bytes or sends it to the socket, or the reader goes |
//! | [`FULL`] and a length | there are so many bytes | the reader takes them |
//!
//! The other process is not believed: it may write anything at any time. The state is read once, the length in it checked, and the
//! bytes are copied before anything of them is read.

use metaslot_memory::{Offered, SharedWords};
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

const AWAY: u64 = 0;
const LOOKS: u64 = 1;
const FULL: u64 = 2;

/// Where the bytes begin: in the state's cache line, short ones would be written while it is looked at.
const BYTES: usize = 8;
/// Words of one lane.
const LANE: usize = 512;

/// A word of the memory.
pub trait Word {
    /// With what was written before it.
    fn acquire(&self) -> u64;
    /// What was written before goes with it.
    fn release(&self, value: u64);
    /// Both.
    ///
    /// # Errors
    /// What is there, if it is not `from`.
    fn exchange(&self, from: u64, to: u64) -> Result<u64, u64>;
    /// A part of the bytes.
    fn read(&self) -> u64;
    /// The same.
    fn write(&self, value: u64);
}

/// The same calls of the real word and of the one of the models.
macro_rules! word {
    ($atomic:ty) => {
        impl Word for $atomic {
            fn acquire(&self) -> u64 {
                self.load(Ordering::Acquire)
            }

            fn release(&self, value: u64) {
                self.store(value, Ordering::Release);
            }

            fn exchange(&self, from: u64, to: u64) -> Result<u64, u64> {
                self.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
            }

            fn read(&self) -> u64 {
                self.load(Ordering::Relaxed)
            }

            fn write(&self, value: u64) {
                self.store(value, Ordering::Relaxed);
            }
        }
    };
}

word!(AtomicU64);

/// What a reader finds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Found {
    /// Nothing yet.
    Nothing,
    /// That it is to look at the socket.
    Socket,
    /// So many bytes, taken.
    Bytes(usize),
    /// Something that no writer of ours leaves, or more bytes than there is room for.
    Nonsense,
}

/// One direction.
#[derive(Debug)]
pub struct Lane<'a, W = AtomicU64>(&'a [W]);

impl<'a, W: Word> Lane<'a, W> {
    /// The lane in these words: one of state, seven that stay empty, and its room.
    ///
    /// # Panics
    /// With less than eight words.
    #[must_use]
    pub const fn new(words: &'a [W]) -> Self {
        assert!(words.len() >= BYTES, "no state");
        Self(words)
    }

    fn state(&self) -> &W {
        &self.0[0]
    }

    fn bytes(&self) -> &[W] {
        &self.0[BYTES..]
    }

    /// The reader looks from now on. Bytes that are there stay.
    pub fn open(&self) {
        self.state().exchange(AWAY, LOOKS).ok();
    }

    /// What there is for the reader; its bytes go into `room`, and out of the lane.
    pub fn look(&self, room: &mut [u8]) -> Found {
        self.found(self.state().acquire(), room)
    }

    /// The reader looks no more, if nothing came before.
    pub fn leave(&self, room: &mut [u8]) -> Found {
        match self.state().exchange(LOOKS, AWAY) {
            Ok(_) => Found::Socket,
            Err(state) => self.found(state, room),
        }
    }

    fn found(&self, state: u64, room: &mut [u8]) -> Found {
        let length = match state {
            AWAY => return Found::Socket,
            LOOKS => return Found::Nothing,
            full => usize::try_from(full - FULL).unwrap_or(usize::MAX),
        };
        if length > 8 * self.bytes().len() {
            return Found::Nonsense;
        }
        let Some(room) = room.get_mut(..length) else { return Found::Nonsense };
        for (part, word) in room.chunks_mut(8).zip(self.bytes()) {
            part.copy_from_slice(&word.read().to_ne_bytes()[..part.len()]);
            word.write(0);
        }
        self.state().release(AWAY);
        Found::Bytes(length)
    }

    /// Gives the reader these bytes, if it looks and they fit. Otherwise they go through the socket, and it is told to look there.
    #[must_use]
    pub fn put(&self, bytes: &[u8]) -> bool {
        if self.state().acquire() != LOOKS {
            return false;
        }
        if bytes.len() > 8 * self.bytes().len() {
            self.divert();
            return false;
        }
        for (part, word) in bytes.chunks(8).zip(self.bytes()) {
            let mut all = [0; 8];
            all[..part.len()].copy_from_slice(part);
            word.write(u64::from_ne_bytes(all));
        }
        let given = self.state().exchange(LOOKS, FULL + bytes.len() as u64).is_ok();
        if !given {
            self.bytes().iter().take(bytes.len().div_ceil(8)).for_each(|word| word.write(0));
        }
        given
    }

    /// Tells a reader that looks to do so at the socket.
    pub fn divert(&self) {
        self.state().exchange(LOOKS, AWAY).ok();
    }
}

/// The memory of one connection: a lane for requests, and one for answers.
#[derive(Debug)]
pub struct Lanes(SharedWords);

impl Lanes {
    /// How long it is, in bytes.
    pub const LENGTH: u64 = 2 * LANE as u64 * 8;

    /// Maps the memory that is open as this file. The other process does so as well before one of them [keeps](Self::keep) it.
    ///
    /// # Errors
    /// As [`Offered::map`].
    pub fn offered(file: File) -> io::Result<Offered> {
        Offered::map(file, 2 * LANE)
    }

    /// What was mapped, once the other process can take none of it away.
    ///
    /// # Errors
    /// As [`Offered::keep`].
    pub fn keep(offered: Offered) -> io::Result<Self> {
        offered.keep().map(Self)
    }

    /// From the client to the server.
    #[must_use]
    pub fn requests(&self) -> Lane<'_> {
        Lane::new(&self.0.words()[..LANE])
    }

    /// From the server to the client.
    #[must_use]
    pub fn answers(&self) -> Lane<'_> {
        Lane::new(&self.0.words()[LANE..])
    }
}

#[cfg(test)]
mod tests;
