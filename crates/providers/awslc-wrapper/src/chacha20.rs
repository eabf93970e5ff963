// SPDX-License-Identifier: Apache-2.0
//! ChaCha20-Poly1305 (RFC 8439) encryption in several parts; in one call it is [`crate::aead`]'s.

use crate::{Failed, Result};
use aws_lc_sys::{
    CRYPTO_chacha_20, CRYPTO_poly1305_finish, CRYPTO_poly1305_init, CRYPTO_poly1305_update,
};
use metaslot_memory::{Protected, wipe_shallow_stack};
use std::fmt;

const BLOCK: usize = 64;

/// An encryption in the middle; all of it lies in protected memory.
pub struct Stream {
    state: Protected<State>,
    /// The next block's number.
    counter: u32,
    /// How much of the key stream's block is used up.
    used: usize,
    aad: u64,
    length: u64,
}

#[derive(Clone, Copy)]
struct State {
    key: [u8; 32],
    nonce: [u8; 12],
    stream: [u8; BLOCK],
    poly: [u8; 512],
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
    /// When the key is not 32 bytes long or the nonce not 12.
    pub fn encrypt(key: &[u8], nonce: &[u8], aad: &[u8]) -> Result<Self> {
        if key.len() != 32 || nonce.len() != 12 {
            return Err(Failed);
        }
        // SAFETY: numbers; zeros are some.
        let mut state = unsafe { Protected::<State>::zeroed() };
        state.key.copy_from_slice(key);
        state.nonce.copy_from_slice(nonce);
        let mut this = Self { state, counter: 0, used: BLOCK, aad: aad.len() as u64, length: 0 };
        this.next_block()?;
        this.used = BLOCK;
        let State { stream, poly, .. } = &mut *this.state;
        // SAFETY: the first 32 bytes of block 0 are the key (RFC 8439 §2.6); the place takes a
        // state and does not move, being in protected memory.
        unsafe { CRYPTO_poly1305_init(poly, stream.as_ptr()) };
        this.authenticate(aad);
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
        self.authenticate(out);
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
        self.authenticate(&lengths);
        // SAFETY: an initialised state; 16 bytes are written.
        unsafe { CRYPTO_poly1305_finish(&raw mut self.state.poly, tag.as_mut_ptr()) };
        wipe_shallow_stack();
    }

    /// Whole blocks.
    fn blocks(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        let count = u32::try_from(input.len() / BLOCK).map_err(|_| Failed)?;
        let next = self.counter.checked_add(count).ok_or(Failed)?;
        let State { key, nonce, .. } = &*self.state;
        // SAFETY: as many bytes are written as read; key and nonce have their lengths.
        unsafe {
            CRYPTO_chacha_20(
                out.as_mut_ptr(),
                input.as_ptr(),
                input.len(),
                key.as_ptr(),
                nonce.as_ptr(),
                self.counter,
            );
        }
        self.counter = next;
        Ok(())
    }

    /// Makes the next block of the key stream.
    fn next_block(&mut self) -> Result<()> {
        let mut block = [0; BLOCK];
        let done = self.blocks(&[0; BLOCK], &mut block);
        self.state.stream = block;
        crate::cleanse(&mut block);
        self.used = 0;
        done
    }

    /// Masks with what is left of the key stream's block.
    fn mask(&mut self, input: &[u8], out: &mut [u8]) {
        let stream = &self.state.stream[self.used..self.used + input.len()];
        for ((to, from), mask) in out.iter_mut().zip(input).zip(stream) {
            *to = from ^ mask;
        }
        self.used += input.len();
    }

    fn authenticate(&mut self, data: &[u8]) {
        // SAFETY: an initialised state, data with its length.
        unsafe { CRYPTO_poly1305_update(&raw mut self.state.poly, data.as_ptr(), data.len()) };
    }

    fn pad(&mut self, length: u64) {
        let rest = usize::try_from(length % 16).unwrap_or(0);
        if rest > 0 {
            self.authenticate(&[0; 16][rest..]);
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
        stream.counter = u32::MAX - 1;
        assert_eq!(stream.update(&[0; 64], &mut [0; 64]), Ok(()));
        assert_eq!(stream.update(&[0; 64], &mut [0; 64]), Err(Failed));
    }
}
