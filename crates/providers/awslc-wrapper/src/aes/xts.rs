// SPDX-License-Identifier: Apache-2.0
//! AES-XTS (IEEE 1619). AWS-LC has it with keys of 64 bytes and in one call; this adds keys of 32
//! bytes and several parts. Longer passes go through the library's pipelined ECB.

use super::{BLOCK, Keys, Way, ecb_context};
use crate::evp::Context;
use crate::{Failed, Result, cleanse};

/// A data unit in one call, with a key of 64 bytes.
///
/// # Errors
/// For a key of another length, a key whose halves are equal, fewer than 16 bytes.
///
/// # Panics
/// When `out` is not as long as `input`.
pub fn xts_256(key: &[u8], way: Way, tweak: &[u8; 16], input: &[u8], out: &mut [u8]) -> Result<()> {
    let encrypt = way == Way::Encrypt;
    // SAFETY: takes nothing and returns the address of a static.
    let cipher = unsafe { aws_lc_sys::EVP_aes_256_xts() };
    let context = Context::new(cipher, encrypt)?;
    context.set_key(key, Some(tweak), encrypt)?;
    if input.len() < BLOCK {
        return Err(Failed);
    }
    context.update_part(input, out)
}

/// A data unit in the middle.
#[derive(Debug)]
pub struct Xts {
    blocks: Context,
    way: Way,
    tweak: [u8; BLOCK],
}

/// How many blocks are processed at a time.
const BATCH: usize = 32;

impl Drop for Xts {
    fn drop(&mut self) {
        cleanse(&mut self.tweak);
    }
}

impl Xts {
    /// Begins a data unit with a key of 32 or 64 bytes.
    ///
    /// # Errors
    /// For a key of another length.
    pub fn new(key: &[u8], way: Way, tweak: &[u8; 16]) -> Result<Self> {
        if !matches!(key.len(), 32 | 64) {
            return Err(Failed);
        }
        let (data_key, tweak_key) = key.split_at(key.len() / 2);
        let mut tweak = *tweak;
        Keys::new(tweak_key)?.block(Way::Encrypt, &mut tweak);
        Ok(Self { blocks: ecb_context(data_key, way)?, way, tweak })
    }

    /// Whole blocks, none of them among the last two where the unit ends in a part of a block.
    ///
    /// # Errors
    /// When the library fails.
    ///
    /// # Panics
    /// When `out` is not as long as `input`, or that is no whole number of blocks.
    pub fn update(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        super::whole_blocks(input, out);
        let mut tweaks = [0; BATCH * BLOCK];
        let mut masked = [0; BATCH * BLOCK];
        for (input, out) in input.chunks(masked.len()).zip(out.chunks_mut(masked.len())) {
            let (tweaks, masked) = (&mut tweaks[..input.len()], &mut masked[..input.len()]);
            for tweak in tweaks.as_chunks_mut::<BLOCK>().0 {
                *tweak = self.tweak;
                self.tweak = doubled(self.tweak);
            }
            for ((to, from), tweak) in masked.iter_mut().zip(input).zip(&*tweaks) {
                *to = from ^ tweak;
            }
            self.blocks.update(masked, out)?;
            for (byte, tweak) in out.iter_mut().zip(&*tweaks) {
                *byte ^= tweak;
            }
        }
        cleanse(&mut tweaks);
        cleanse(&mut masked);
        Ok(())
    }

    /// The end of the unit: whole blocks, or more than one block with ciphertext stealing.
    ///
    /// # Errors
    /// When fewer than 16 bytes are left.
    ///
    /// # Panics
    /// When `out` is not as long as `input`.
    pub fn finish(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        assert_eq!(input.len(), out.len());
        let rest = input.len() % BLOCK;
        if rest == 0 {
            return self.update(input, out);
        }
        if input.len() < BLOCK {
            return Err(Failed);
        }
        let head = input.len() - rest - BLOCK;
        let (input, last) = input.split_at(head);
        let (out, last_out) = out.split_at_mut(head);
        self.update(input, out)?;
        let (whole, part) = last.split_at(BLOCK);
        let (first, second) = match self.way {
            Way::Encrypt => (self.tweak, doubled(self.tweak)),
            Way::Decrypt => (doubled(self.tweak), self.tweak),
        };
        let mut block = [0; BLOCK];
        self.tweak = first;
        self.update(whole, &mut block)?;
        let mut stolen = block;
        stolen[..rest].copy_from_slice(part);
        self.tweak = second;
        self.update(&stolen, &mut last_out[..BLOCK])?;
        last_out[BLOCK..].copy_from_slice(&block[..rest]);
        cleanse(&mut block);
        cleanse(&mut stolen);
        Ok(())
    }
}

/// Times the generator, in the field of 2¹²⁸ elements, little-endian.
fn doubled(tweak: [u8; BLOCK]) -> [u8; BLOCK] {
    let number = u128::from_le_bytes(tweak);
    // The reduction is chosen without a branch: the tweak depends on the key.
    let carry = (number >> 127).wrapping_neg() & 0x87;
    ((number << 1) ^ carry).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_loop_and_library_agree_and_come_back() {
        let key: Vec<u8> = (0..64).collect();
        for length in (16..100).chain([512, 513, 1000, 1040]) {
            let data: Vec<u8> = (0..=255).cycle().take(length).collect();
            for way in [Way::Encrypt, Way::Decrypt] {
                let (mut library, mut own) = (vec![0; length], vec![0; length]);
                xts_256(&key, way, &[6; 16], &data, &mut library).unwrap();
                Xts::new(&key, way, &[6; 16]).unwrap().finish(&data, &mut own).unwrap();
                assert_eq!(library, own, "{length} bytes");
            }
            let (mut sealed, mut opened) = (vec![0; length], vec![0; length]);
            let mut xts = Xts::new(&key[..32], Way::Encrypt, &[6; 16]).unwrap();
            xts.finish(&data, &mut sealed).unwrap();
            let mut xts = Xts::new(&key[..32], Way::Decrypt, &[6; 16]).unwrap();
            xts.finish(&sealed, &mut opened).unwrap();
            assert_eq!(opened, data);
        }
    }

    #[test]
    fn less_than_a_block_is_refused() {
        let mut xts = Xts::new(&[1; 32], Way::Encrypt, &[0; 16]).unwrap();
        assert!(xts.finish(&[0; 15], &mut [0; 15]).is_err());
        assert!(xts_256(&[1; 64], Way::Encrypt, &[0; 16], &[0; 15], &mut [0; 15]).is_err());
        assert!(Xts::new(&[1; 48], Way::Encrypt, &[0; 16]).is_err());
    }
}
