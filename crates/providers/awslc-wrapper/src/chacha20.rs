// SPDX-License-Identifier: Apache-2.0
//! ChaCha20-Poly1305 (RFC 8439) encryption in several parts; in one call it is [`crate::aead`]'s. Its two halves, alone.

use crate::{Failed, Result};
use aws_lc_sys::{
    CRYPTO_chacha_20, CRYPTO_poly1305_finish, CRYPTO_poly1305_init, CRYPTO_poly1305_update,
};
use metaslot_memory::{Protected, Secret, wipe_shallow_stack};
use std::fmt;

const BLOCK: usize = 64;

/// An encryption in the middle; all of it lies in protected memory.
pub struct Stream {
    plain: Plain,
    tag: Poly1305,
    aad: u64,
    length: u64,
}

/// A key stream (RFC 8439 §2.4), in protected memory.
pub struct Plain {
    state: Protected<State>,
    /// The next block's number.
    counter: u64,
    /// Whether the counter has 64 bits and the nonce as many.
    wide: bool,
    /// How much of the key stream's block is used up.
    used: usize,
}

#[derive(Clone, Copy)]
struct State {
    key: [u8; 32],
    /// The counter, then the nonce; the first is not kept up to date.
    words: [u8; 16],
    stream: [u8; BLOCK],
}

/// A MAC in the middle (RFC 8439 §2.5), in protected memory.
pub struct Poly1305(Protected<[u8; 512]>);

impl fmt::Debug for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plain(block {})", self.counter)
    }
}

impl fmt::Debug for Poly1305 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Poly1305")
    }
}

impl Poly1305 {
    /// Begins a MAC by a key that makes this one only.
    #[must_use]
    pub fn new(key: &[u8; 32]) -> Self {
        // SAFETY: bytes; zeros are some.
        let mut state = unsafe { Protected::<[u8; 512]>::zeroed() };
        // SAFETY: the place takes a state and does not move, being in protected memory.
        unsafe { CRYPTO_poly1305_init(&raw mut *state, key.as_ptr()) };
        wipe_shallow_stack();
        Self(state)
    }

    /// Takes more data.
    pub fn update(&mut self, data: &[u8]) {
        // SAFETY: an initialised state, data with its length.
        unsafe { CRYPTO_poly1305_update(&raw mut *self.0, data.as_ptr(), data.len()) };
    }

    /// Writes the MAC; this one is used up.
    pub fn finish(&mut self, tag: &mut [u8; 16]) {
        // SAFETY: an initialised state; 16 bytes are written.
        unsafe { CRYPTO_poly1305_finish(&raw mut *self.0, tag.as_mut_ptr()) };
        wipe_shallow_stack();
    }
}

/// What stands before the key in a block.
const CONSTANT: &[u8; 16] = b"expand 32-byte k";

impl State {
    /// Adds the key stream from the block whose number begins with `low`, no further than to the last that begins so.
    fn add(&self, low: u32, input: &[u8], out: &mut [u8]) {
        assert_eq!(input.len(), out.len());
        let nonce: *const u8 = self.words[4..].as_ptr();
        // SAFETY: as many bytes are written as read; key and nonce have their lengths.
        unsafe {
            CRYPTO_chacha_20(
                out.as_mut_ptr(),
                input.as_ptr(),
                input.len(),
                self.key.as_ptr(),
                nonce,
                low,
            );
        }
    }

    /// The key that this one and the beginning of a long nonce stand for (`HChaCha20`, draft-irtf-cfrg-xchacha §2.2): what the
    /// rounds make of a block, which is the key stream without the block that is added to it. Of that only words are taken that
    /// hold no key.
    fn mix(&mut self, nonce: &[u8; 16]) {
        self.words = *nonce;
        let [a, b, c, d, ..] = *nonce;
        let mut stream = [0; BLOCK];
        self.add(u32::from_le_bytes([a, b, c, d]), &[0; BLOCK], &mut stream);
        let (first, last) = (stream[..16].as_chunks().0, stream[48..].as_chunks().0);
        let added = CONSTANT.as_chunks().0.iter().chain(nonce.as_chunks().0);
        let words = first.iter().chain(last).zip(added);
        for (out, (word, added)) in self.key.as_chunks_mut().0.iter_mut().zip(words) {
            let word = u32::from_le_bytes(*word).wrapping_sub(u32::from_le_bytes(*added));
            *out = word.to_le_bytes();
        }
        crate::cleanse(&mut stream);
    }
}

impl Plain {
    /// Begins at the block whose number stands in `words`, little-endian, before the nonce; the number is `wide`, of 8 bytes, or
    /// of 4.
    #[must_use]
    pub fn new(key: &[u8; 32], words: &[u8; 16], wide: bool) -> Self {
        // SAFETY: numbers; zeros are some.
        let mut state = unsafe { Protected::<State>::zeroed() };
        (state.key, state.words) = (*key, *words);
        let mut counter = [0; 8];
        let length = if wide { 8 } else { 4 };
        counter[..length].copy_from_slice(&words[..length]);
        Self { state, counter: u64::from_le_bytes(counter), wide, used: BLOCK }
    }

    /// Begins at the block of this number, with a nonce of 12 bytes, of 8, or of 24 (`XChaCha20`).
    ///
    /// # Errors
    /// For a nonce of another length, and a number of more than 32 bits with one of 12 bytes.
    pub fn at(key: &[u8; 32], counter: u64, nonce: &[u8]) -> Result<Self> {
        let (wide, mixed) = match nonce.len() {
            12 if counter <= u64::from(u32::MAX) => (false, None),
            8 => (true, None),
            24 => (true, nonce.first_chunk()),
            _ => return Err(Failed),
        };
        let mut words = [0; 16];
        words[..8].copy_from_slice(&counter.to_le_bytes());
        let start = if wide { 8 } else { 4 };
        words[start..].copy_from_slice(&nonce[nonce.len() - (16 - start)..]);
        let mut this = Self::new(key, &words, wide);
        if let Some(first) = mixed {
            this.state.mix(first);
            this.state.words = words;
            wipe_shallow_stack();
        }
        Ok(this)
    }

    /// Adds the key stream.
    ///
    /// # Errors
    /// When the blocks have no more numbers.
    ///
    /// # Panics
    /// When `out` is not as long as `input`.
    pub fn update(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        assert_eq!(input.len(), out.len());
        let head = input.len().min(BLOCK - self.used);
        self.mask(&input[..head], &mut out[..head]);
        let whole = (input.len() - head) / BLOCK * BLOCK;
        self.blocks(&input[head..head + whole], &mut out[head..head + whole])?;
        let (rest, rest_out) = (&input[head + whole..], &mut out[head + whole..]);
        if !rest.is_empty() {
            self.next_block()?;
            self.mask(rest, rest_out);
        }
        wipe_shallow_stack();
        Ok(())
    }

    /// Whole blocks, as many at a time as the library's own counter has numbers for.
    fn blocks(&mut self, mut input: &[u8], mut out: &mut [u8]) -> Result<()> {
        let numbers = if self.wide { u128::from(u64::MAX) } else { u128::from(u32::MAX) };
        if u128::from(self.counter) + (input.len() / BLOCK) as u128 > numbers {
            return Err(Failed);
        }
        while !input.is_empty() {
            let [a, b, c, d, high @ ..] = self.counter.to_le_bytes();
            let low = u32::from_le_bytes([a, b, c, d]);
            if self.wide {
                self.state.words[4..8].copy_from_slice(&high);
            }
            let most = ((1_u64 << 32) - u64::from(low)).saturating_mul(BLOCK as u64);
            let length = input.len().min(usize::try_from(most).unwrap_or(usize::MAX));
            let (now, later) = input.split_at(length);
            let (now_out, later_out) = out.split_at_mut(length);
            self.state.add(low, now, now_out);
            self.counter += (length / BLOCK) as u64;
            (input, out) = (later, later_out);
        }
        Ok(())
    }

    /// Makes the next block of the key stream.
    fn next_block(&mut self) -> Result<()> {
        let mut block = [0; BLOCK];
        // Where there is none, zeros would mask what comes next.
        self.blocks(&[0; BLOCK], &mut block)?;
        self.state.stream = block;
        crate::cleanse(&mut block);
        self.used = 0;
        Ok(())
    }

    /// Masks with what is left of the key stream's block.
    fn mask(&mut self, input: &[u8], out: &mut [u8]) {
        let stream = &self.state.stream[self.used..self.used + input.len()];
        for ((to, from), mask) in out.iter_mut().zip(input).zip(stream) {
            *to = from ^ mask;
        }
        self.used += input.len();
    }
}

/// The key and the nonce of 12 bytes that a nonce of 24 stands for (draft-irtf-cfrg-xchacha §2.3).
///
/// # Errors
/// As [`Plain::at`].
pub fn extended(key: &[u8; 32], nonce: &[u8; 24]) -> Result<(Secret, [u8; 12])> {
    let mut short = [0; 12];
    short[4..].copy_from_slice(&nonce[16..]);
    Ok((Secret::copy_of(&Plain::at(key, 0, nonce)?.state.key), short))
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({} bytes)", self.length)
    }
}

impl Stream {
    /// Begins an encryption.
    ///
    /// # Errors
    /// When the key is not 32 bytes long or the nonce neither 12 nor 24.
    pub fn encrypt(key: &[u8], nonce: &[u8], aad: &[u8]) -> Result<Self> {
        let key = key.try_into().map_err(|_| Failed)?;
        if let Ok(nonce) = nonce.try_into() {
            let (key, nonce) = extended(key, nonce)?;
            return Self::encrypt(key.expose(), &nonce, aad);
        }
        let mut words = [0; 16];
        if nonce.len() != 12 {
            return Err(Failed);
        }
        words[4..].copy_from_slice(nonce);
        let mut plain = Plain::new(key, &words, false);
        plain.next_block()?;
        plain.used = BLOCK;
        // The first 32 bytes of block 0 are the key (RFC 8439 §2.6).
        let tag = Poly1305::new(plain.state.stream.first_chunk().ok_or(Failed)?);
        let mut this = Self { plain, tag, aad: aad.len() as u64, length: 0 };
        this.tag.update(aad);
        this.pad(this.aad);
        wipe_shallow_stack();
        Ok(this)
    }

    /// Encrypts more.
    ///
    /// # Errors
    /// When all parts together are longer than 2³⁸ − 64 bytes.
    ///
    /// # Panics
    /// When `out` is not as long as `input`.
    pub fn update(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        self.plain.update(input, out)?;
        self.tag.update(out);
        self.length += out.len() as u64;
        wipe_shallow_stack();
        Ok(())
    }

    /// Writes the tag; the stream is used up.
    pub fn finish(&mut self, tag: &mut [u8; 16]) {
        self.pad(self.length);
        let mut lengths = [0; 16];
        lengths[..8].copy_from_slice(&self.aad.to_le_bytes());
        lengths[8..].copy_from_slice(&self.length.to_le_bytes());
        self.tag.update(&lengths);
        self.tag.finish(tag);
    }

    fn pad(&mut self, length: u64) {
        let rest = usize::try_from(length % 16).unwrap_or(0);
        if rest > 0 {
            self.tag.update(&[0; 16][rest..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aead::Key;

    #[test]
    fn parts_and_whole_agree() {
        let data: Vec<u8> = (0..=255).cycle().take(1000).collect();
        for length in [0, 1, 63, 64, 65, 127, 128, 200, 1000] {
            for cut in [0, 1, 17, 64, 100] {
                let (data, cut) = (&data[..length], cut.min(length));
                let mut whole = vec![0; length + 16];
                let key = Key::chacha20_poly1305(&[8; 32]).unwrap();
                key.seal(&[5; 12], b"additional data.+", data, &mut whole).unwrap();
                let mut stream = Stream::encrypt(&[8; 32], &[5; 12], b"additional data.+").unwrap();
                let (mut parts, mut tag) = (vec![0; length], [0; 16]);
                stream.update(&data[..cut], &mut parts[..cut]).unwrap();
                stream.update(&data[cut..], &mut parts[cut..]).unwrap();
                stream.finish(&mut tag);
                assert_eq!(parts, whole[..length], "{length} cut at {cut}");
                assert_eq!(tag, whole[length..]);
            }
        }
        assert!(Stream::encrypt(&[8; 31], &[5; 12], b"").is_err());
    }

    #[test]
    fn the_block_counter_does_not_come_round() {
        let mut stream = Stream::encrypt(&[8; 32], &[5; 12], b"").unwrap();
        stream.plain.counter = u64::from(u32::MAX) - 1;
        assert_eq!(stream.update(&[0; 64], &mut [0; 64]), Ok(()));
        assert_eq!(stream.update(&[0; 64], &mut [0; 64]), Err(Failed));
        let mut plain = Plain::new(&[8; 32], &[0xff; 16], true);
        assert_eq!(plain.update(&[0; 64], &mut [0; 64]), Err(Failed));
        for _ in 0..2 {
            assert_eq!(
                plain.update(&[0; 1], &mut [0; 1]),
                Err(Failed),
                "and nothing is masked by zeros"
            );
        }
    }

    #[test]
    fn a_long_nonce_makes_another_key() {
        let mut nonce = [0; 24];
        nonce[..16].copy_from_slice(b"\0\0\0\x09\0\0\0\x4a\0\0\0\0\x31\x41\x59\x27");
        let plain =
            Plain::at(&std::array::from_fn(|at| u8::try_from(at).unwrap()), 0, &nonce).unwrap();
        // draft-irtf-cfrg-xchacha §2.2.1
        let words: [u32; 8] = [
            0x423b_4182,
            0xfe7b_b227,
            0x5042_0ed3,
            0x737d_878a,
            0xd5e4_f9a0,
            0x53a8_748a,
            0x13c4_2ec1,
            0xdcec_d326,
        ];
        assert!(plain.state.key.as_chunks().0.iter().copied().map(u32::from_le_bytes).eq(words));
        let whole_word = Plain::at(&[8; 32], u64::from(u32::MAX), &[0xff; 24]).unwrap();
        assert!(whole_word.wide && whole_word.counter == u64::from(u32::MAX));
        for (counter, length) in [(1 << 32, 12), (0, 0), (0, 16), (0, 23), (0, 25)] {
            assert!(Plain::at(&[8; 32], counter, &vec![0; length]).is_err());
        }
    }

    #[test]
    fn a_wide_counter_goes_on_in_its_upper_half() {
        let from = |number: u64, length| {
            let mut words = [7; 16];
            words[..8].copy_from_slice(&number.to_le_bytes());
            let mut out = vec![0; length];
            Plain::new(&[8; 32], &words, true).update(&vec![0; length], &mut out).unwrap();
            out
        };
        let whole = from((1 << 32) - 1, 128);
        assert_eq!(whole[..64], from((1 << 32) - 1, 64));
        assert_eq!(whole[64..], from(1 << 32, 64));
    }
}
