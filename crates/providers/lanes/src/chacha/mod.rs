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
use std::hint::black_box;

/// The instructions that it takes.
pub const NEEDS: Cpu = Cpu::AVX512_IFMA;
/// The longest message, in bytes: its blocks are counted in 32 bits, and the first is the authenticator's key.
pub const LONGEST: usize = (u32::MAX as usize) * BLOCK;

/// What is encrypted before it is authenticated, in bytes: it is still in the first cache then. Whole rounds of the stream but
/// for the block of the authenticator's key.
const PART: usize = 4 * size_of::<Blocks>();

/// Whether this machine has the instructions.
#[must_use]
pub fn available() -> bool {
    cpu().has(NEEDS)
}

/// What is secret while a message is worked on: wiped at the end.
struct Work {
    stream: Stream,
    poly: Poly1305,
}

impl Work {
    /// Where a message begins: no copy of it is left elsewhere in the stack.
    const ZERO: Self = Self { stream: Stream::ZERO, poly: Poly1305::ZERO };

    fn begin(&mut self, key: &[u8; KEY], nonce: &[u8; NONCE], aad: &[u8]) {
        assert!(available(), "the instructions are there");
        self.stream.begin(key, nonce);
        self.poly.begin(self.stream.first());
        self.poly.padded(aad);
    }

    /// The tag, once the ciphertext has been authenticated (RFC 8439 §2.8).
    fn tag(&mut self, aad: usize, text: usize) -> [u8; TAG] {
        let [mut lengths, mut tag] = [[0; TAG]; 2];
        lengths[..8].copy_from_slice(&(aad as u64).to_le_bytes());
        lengths[8..].copy_from_slice(&(text as u64).to_le_bytes());
        self.poly.padded(&lengths);
        self.poly.finish(&mut tag);
        tag
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        (self.stream, self.poly) = (Stream::ZERO, Poly1305::ZERO);
        black_box(self);
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
    let mut work = Work::ZERO;
    work.begin(key, nonce, aad);
    let mut at = 0;
    while at < text.len() {
        let end = text.len().min(at + PART - work.stream.used());
        work.stream.apply(&text[at..end], &mut out[at..end]);
        // A part ends with a block of the stream, which is four of the authenticator's, or with the message.
        work.poly.padded(&out[at..end]);
        at = end;
    }
    work.tag(aad.len(), text.len())
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
    let mut work = Work::ZERO;
    work.begin(key, nonce, aad);
    work.poly.padded(sealed);
    let right = work.tag(aad.len(), sealed.len());
    let differ = u128::from_le_bytes(right) ^ u128::from_le_bytes(*tag);
    // One decision of all bits.
    let is_right = black_box(differ) == 0;
    if is_right {
        work.stream.apply(sealed, out);
    }
    is_right
}
