// SPDX-License-Identifier: Apache-2.0
//! ChaCha20-Poly1305 (RFC 8439) of one message: 16 blocks of the key stream at a time, and 8 blocks of the authenticator.
//!
//! Constant time: additions, exclusive or, rotations, shifts and multiplications of the whole width. Branches and addresses
//! depend on lengths alone.

mod poly1305;
mod stream;
#[cfg(test)]
mod tests;

pub use self::poly1305::TAG;
pub use self::stream::{KEY, NONCE};

use self::poly1305::Poly1305;
use self::stream::{BLOCK, Blocks, Stream};
use crate::cpu::{Cpu, cpu};
use metaslot_memory::Protected;
use std::fmt;
use std::hint::black_box;

/// The instructions that it takes.
pub const NEEDS: Cpu = Cpu::AVX512_IFMA;
/// The longest message, in bytes: its blocks are counted in 32 bits, and the first is the authenticator's key.
pub const LONGEST: usize = (u32::MAX as usize) * BLOCK;

/// What is encrypted before it is authenticated, in bytes: it is still in the first cache then. A part ends where the blocks of
/// the stream that are there are used up.
const PART: usize = 4 * size_of::<Blocks>();

/// Whether this machine has the instructions.
#[must_use]
pub fn available() -> bool {
    cpu().has(NEEDS)
}

/// What is secret while a message is worked on.
#[derive(Clone, Copy)]
struct Work {
    stream: Stream,
    poly: Poly1305,
}

impl Work {
    /// Where a message begins: no copy of it is left elsewhere in the stack.
    const ZERO: Self = Self { stream: Stream::ZERO, poly: Poly1305::ZERO };

    fn begin(&mut self, key: &[u8; KEY], nonce: &[u8; NONCE], aad: &[u8]) {
        self.stream.begin(key, nonce);
        self.poly.begin(self.stream.first());
        self.poly.update(aad);
        self.poly.pad();
    }

    fn encrypt(&mut self, text: &[u8], out: &mut [u8]) {
        let mut at = 0;
        while at < text.len() {
            let end = text.len().min(at + PART - self.stream.used());
            self.stream.apply(&text[at..end], &mut out[at..end]);
            self.poly.update(&out[at..end]);
            at = end;
        }
    }

    /// The tag, once the ciphertext has been authenticated (RFC 8439 §2.8).
    fn tag(&mut self, aad: usize, text: usize) -> [u8; TAG] {
        self.stream.assert_begun();
        self.poly.pad();
        for length in [aad, text] {
            self.poly.update(&(length as u64).to_le_bytes());
        }
        self.poly.pad();
        let mut tag = [0; TAG];
        self.poly.finish(&mut tag);
        tag
    }
}

/// In the stack: wiped at the end.
struct InStack(Work);

impl Drop for InStack {
    fn drop(&mut self) {
        self.0 = Work::ZERO;
        black_box(self);
    }
}

/// A message that is encrypted in parts, in protected memory.
pub struct Sealing {
    work: Protected<Work>,
    aad: usize,
    length: usize,
}

impl fmt::Debug for Sealing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealing({} bytes so far)", self.length)
    }
}

impl Sealing {
    /// Begins a message.
    ///
    /// # Panics
    /// When the machine lacks the instructions.
    #[must_use]
    pub fn new(key: &[u8; KEY], nonce: &[u8; NONCE], aad: &[u8]) -> Self {
        // SAFETY: it is numbers, and `false`; zeros are some.
        let mut work = unsafe { Protected::<Work>::zeroed() };
        work.begin(key, nonce, aad);
        Self { work, aad: aad.len(), length: 0 }
    }

    /// Encrypts more of it; `false`, and nothing is done, beyond [`LONGEST`].
    ///
    /// # Panics
    /// When the lengths differ.
    #[must_use]
    pub fn update(&mut self, text: &[u8], out: &mut [u8]) -> bool {
        assert!(text.len() == out.len(), "room for the ciphertext");
        let fits = text.len() <= LONGEST - self.length;
        if fits {
            self.work.encrypt(text, out);
            self.length += text.len();
        }
        fits
    }

    /// The tag of all of it.
    #[must_use]
    pub fn finish(&mut self) -> [u8; TAG] {
        self.work.tag(self.aad, self.length)
    }
}

/// Encrypts `text` into `out`, and returns the tag.
///
/// # Panics
/// When the lengths differ, [`LONGEST`] is exceeded, or the machine lacks the instructions.
#[must_use]
pub fn seal(
    key: &[u8; KEY],
    nonce: &[u8; NONCE],
    aad: &[u8],
    text: &[u8],
    out: &mut [u8],
) -> [u8; TAG] {
    assert!(text.len() == out.len() && text.len() <= LONGEST, "room for the ciphertext");
    let mut work = InStack(Work::ZERO);
    work.0.begin(key, nonce, aad);
    work.0.encrypt(text, out);
    work.0.tag(aad.len(), text.len())
}

/// Decrypts `sealed` into `out` where the tag is right; else it writes nothing and returns `false`.
///
/// # Panics
/// As [`seal`].
#[must_use]
pub fn open(
    key: &[u8; KEY],
    nonce: &[u8; NONCE],
    aad: &[u8],
    sealed: &[u8],
    tag: &[u8; TAG],
    out: &mut [u8],
) -> bool {
    assert!(sealed.len() == out.len() && sealed.len() <= LONGEST, "room for the text");
    let mut work = InStack(Work::ZERO);
    work.0.begin(key, nonce, aad);
    work.0.poly.update(sealed);
    let right = work.0.tag(aad.len(), sealed.len());
    let differ = u128::from_le_bytes(right) ^ u128::from_le_bytes(*tag);
    // One decision of all bits.
    let is_right = black_box(differ) == 0;
    if is_right {
        work.0.stream.apply(sealed, out);
    }
    is_right
}
