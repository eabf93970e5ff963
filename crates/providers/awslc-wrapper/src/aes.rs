// SPDX-License-Identifier: Apache-2.0
//! AES over prepared key schedules, and its modes that have no tag.

mod ccm;
mod gcm;
mod wrap;
mod xts;

pub use ccm::{ccm_open, ccm_seal};
pub use gcm::GcmStream;
pub use xts::{Xts, xts_256};

use crate::evp::{Context, by_key_length};
use crate::{Failed, Result, cleanse};
use aws_lc_sys::{AES_KEY, aes_key_st};
use metaslot_memory::Protected;
use std::ffi::c_uint;

/// Length of a block, in bytes.
pub const BLOCK: usize = 16;

/// The key schedules of both directions; shared by any number of threads.
#[derive(Debug)]
pub struct Keys {
    schedules: Protected<Schedules>,
}

#[derive(Clone, Copy)]
struct Schedules {
    encrypt: aes_key_st,
    decrypt: aes_key_st,
}

/// Which way.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(missing_docs, reason = "two words that say it")]
pub enum Way {
    Encrypt,
    Decrypt,
}

/// Counter mode in the middle of a block.
#[derive(Debug)]
pub struct Counter {
    /// The next counter block.
    block: [u8; BLOCK],
    /// The key stream of the block begun.
    stream: [u8; BLOCK],
    used: c_uint,
}

impl Counter {
    /// Begins with this counter block.
    #[must_use]
    pub const fn new(block: [u8; BLOCK]) -> Self {
        Self { block, stream: [0; BLOCK], used: 0 }
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        cleanse(&mut self.stream);
    }
}

impl Keys {
    /// Prepares a key of 16, 24 or 32 bytes.
    ///
    /// # Errors
    /// For another length.
    pub fn new(key: &[u8]) -> Result<Self> {
        if !matches!(key.len(), 16 | 24 | 32) {
            return Err(Failed);
        }
        let bits = c_uint::try_from(key.len() * 8).map_err(|_| Failed)?;
        // SAFETY: a schedule is numbers; zero is one.
        let mut schedules = unsafe { Protected::<Schedules>::zeroed() };
        let place = &raw mut schedules.encrypt;
        // SAFETY: `key` is as long as `bits` says, `place` takes a schedule.
        let encrypt = unsafe { aws_lc_sys::AES_set_encrypt_key(key.as_ptr(), bits, place) };
        let place = &raw mut schedules.decrypt;
        // SAFETY: as above.
        let decrypt = unsafe { aws_lc_sys::AES_set_decrypt_key(key.as_ptr(), bits, place) };
        // These two return 0 for success.
        if encrypt == 0 && decrypt == 0 { Ok(Self { schedules }) } else { Err(Failed) }
    }

    fn schedule(&self, way: Way) -> *const AES_KEY {
        match way {
            Way::Encrypt => &raw const self.schedules.encrypt,
            Way::Decrypt => &raw const self.schedules.decrypt,
        }
    }

    /// One block, in place.
    pub fn block(&self, way: Way, block: &mut [u8; BLOCK]) {
        let place = block.as_mut_ptr();
        match way {
            // SAFETY: a block is read and written; AWS-LC allows both to be the same.
            Way::Encrypt => unsafe {
                aws_lc_sys::AES_encrypt(place, place, self.schedule(way));
            },
            // SAFETY: as above.
            Way::Decrypt => unsafe {
                aws_lc_sys::AES_decrypt(place, place, self.schedule(way));
            },
        }
    }

    /// Whole blocks, one by one: for few. [`ecb`] is for many.
    ///
    /// # Panics
    /// When `out` is not as long as `input`, or that is no whole number of blocks.
    pub fn ecb(&self, way: Way, input: &[u8], out: &mut [u8]) {
        whole_blocks(input, out);
        for (input, out) in input.as_chunks::<BLOCK>().0.iter().zip(out.as_chunks_mut().0) {
            *out = *input;
            self.block(way, out);
        }
    }

    /// CBC over whole blocks; `iv` is left as the next call needs it.
    ///
    /// # Panics
    /// When `out` is not as long as `input`, or that is no whole number of blocks.
    pub fn cbc(&self, way: Way, iv: &mut [u8; BLOCK], input: &[u8], out: &mut [u8]) {
        whole_blocks(input, out);
        let mode = match way {
            Way::Encrypt => aws_lc_sys::AES_ENCRYPT,
            Way::Decrypt => aws_lc_sys::AES_DECRYPT,
        };
        // SAFETY: whole blocks are read and as many written; the schedule is that direction's.
        unsafe {
            aws_lc_sys::AES_cbc_encrypt(
                input.as_ptr(),
                out.as_mut_ptr(),
                input.len(),
                self.schedule(way),
                iv.as_mut_ptr(),
                mode,
            );
        }
    }

    /// Counter mode with a big-endian counter of 128 bits; continues where the last call ended.
    ///
    /// # Panics
    /// When `out` is not as long as `input`.
    pub fn ctr(&self, counter: &mut Counter, input: &[u8], out: &mut [u8]) {
        assert_eq!(input.len(), out.len());
        // SAFETY: as many bytes are written as read; `used` is below a block's length.
        unsafe {
            aws_lc_sys::AES_ctr128_encrypt(
                input.as_ptr(),
                out.as_mut_ptr(),
                input.len(),
                self.schedule(Way::Encrypt),
                counter.block.as_mut_ptr(),
                counter.stream.as_mut_ptr(),
                &raw mut counter.used,
            );
        }
    }
}

/// ECB over many blocks, several at a time.
///
/// # Errors
/// For a key of another length than 16, 24 or 32 bytes.
///
/// # Panics
/// When `out` is not as long as `input`, or that is no whole number of blocks.
pub fn ecb(key: &[u8], way: Way, input: &[u8], out: &mut [u8]) -> Result<()> {
    whole_blocks(input, out);
    ecb_context(key, way)?.update(input, out)
}

fn ecb_context(key: &[u8], way: Way) -> Result<Context> {
    let ciphers =
        [aws_lc_sys::EVP_aes_128_ecb, aws_lc_sys::EVP_aes_192_ecb, aws_lc_sys::EVP_aes_256_ecb];
    let encrypt = way == Way::Encrypt;
    let context = Context::new(by_key_length(key, ciphers)?, encrypt)?;
    context.set_key(key, None, encrypt)?;
    context.without_padding()?;
    Ok(context)
}

fn whole_blocks(input: &[u8], out: &[u8]) {
    assert_eq!(input.len(), out.len());
    assert!(input.len().is_multiple_of(BLOCK));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fips_197_example() {
        let key: Vec<u8> = (0..32).collect();
        let keys = Keys::new(&key).unwrap();
        let plain: [u8; 16] = std::array::from_fn(|at| u8::try_from(at * 0x11).unwrap());
        let mut block = plain;
        keys.block(Way::Encrypt, &mut block);
        assert_eq!(block[..4], [0x8e, 0xa2, 0xb7, 0xca]);
        keys.block(Way::Decrypt, &mut block);
        assert_eq!(block, plain);
    }

    #[test]
    fn few_and_many_blocks_agree() {
        for length in [16, 24, 32] {
            let key = vec![3; length];
            let data: Vec<u8> = (0..=255).collect();
            for way in [Way::Encrypt, Way::Decrypt] {
                let (mut few, mut many) = ([0; 256], [0; 256]);
                Keys::new(&key).unwrap().ecb(way, &data, &mut few);
                ecb(&key, way, &data, &mut many).unwrap();
                assert_eq!(few, many);
            }
        }
        assert!(Keys::new(&[0; 20]).is_err());
    }

    #[test]
    fn counter_mode_continues_within_a_block() {
        let keys = Keys::new(&[5; 16]).unwrap();
        let data = [0x5a; 100];
        let (mut whole, mut parts) = ([0; 100], [0; 100]);
        keys.ctr(&mut Counter::new([255; 16]), &data, &mut whole);
        let mut counter = Counter::new([255; 16]);
        for (input, out) in data.chunks(7).zip(parts.chunks_mut(7)) {
            keys.ctr(&mut counter, input, out);
        }
        assert_eq!(whole, parts);
    }

    #[test]
    fn cbc_continues_across_calls_and_comes_back() {
        let keys = Keys::new(&[5; 24]).unwrap();
        let data = [0x5a; 64];
        let (mut sealed, mut opened) = ([0; 64], [0; 64]);
        let mut iv = [1; 16];
        keys.cbc(Way::Encrypt, &mut iv, &data[..16], &mut sealed[..16]);
        keys.cbc(Way::Encrypt, &mut iv, &data[16..], &mut sealed[16..]);
        keys.cbc(Way::Decrypt, &mut [1; 16], &sealed, &mut opened);
        assert_eq!(opened, data);
    }
}
