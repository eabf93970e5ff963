// SPDX-License-Identifier: Apache-2.0
//! Triple DES over prepared key schedules (FIPS 46-3, SP 800-67).

use crate::aes::Way;
use crate::{Failed, Result};
use aws_lc_sys::{DES_cblock, DES_key_schedule};
use metaslot_memory::{Protected, wipe_shallow_stack, wipe_slight_stack};
use std::ffi::c_int;

/// Length of a block, in bytes.
pub const BLOCK: usize = 8;

/// The schedules of the three keys, which serve both directions; shared by any number of threads.
#[derive(Debug)]
pub struct Keys {
    schedules: Protected<[DES_key_schedule; 3]>,
}

impl Keys {
    /// Prepares a key of three DES keys, or of two, of which the first is also the third, or of one, which makes it single DES. Parity
    /// is not looked at.
    ///
    /// # Errors
    /// For another length than 8, 16 or 24 bytes.
    pub fn new(key: &[u8]) -> Result<Self> {
        if !matches!(key.len(), 8 | 16 | 24) {
            return Err(Failed);
        }
        // SAFETY: schedules are numbers; zero is one.
        let mut schedules = unsafe { Protected::<[DES_key_schedule; 3]>::zeroed() };
        let parts = key.as_chunks::<BLOCK>().0.iter().cycle();
        for (schedule, part) in schedules.iter_mut().zip(parts) {
            // SAFETY: a key is as long as `DES_cblock`, which is bytes; `schedule` takes a schedule.
            unsafe { aws_lc_sys::DES_set_key_unchecked(part.as_ptr().cast(), schedule) };
        }
        wipe_shallow_stack();
        Ok(Self { schedules })
    }

    /// Whole blocks, each on its own.
    ///
    /// # Panics
    /// When `out` is not as long as `input`, or that is no whole number of blocks.
    pub fn ecb(&self, way: Way, input: &[u8], out: &mut [u8]) {
        whole_blocks(input, out);
        out.copy_from_slice(input);
        self.in_place(way, out);
    }

    /// Whole blocks in their place, each on its own.
    ///
    /// # Panics
    /// When they are no whole number of blocks.
    pub fn in_place(&self, way: Way, blocks: &mut [u8]) {
        whole_blocks(blocks, blocks);
        let [first, second, third] = &*self.schedules;
        for block in blocks.as_chunks_mut::<BLOCK>().0 {
            let block = block.as_mut_ptr().cast::<DES_cblock>();
            // SAFETY: a block is read, and then written where it was; the schedules are live.
            unsafe {
                aws_lc_sys::DES_ecb3_encrypt(block, block, first, second, third, number(way));
            }
        }
        wipe_slight_stack();
    }

    /// CBC over whole blocks; `iv` is left as the next call needs it.
    ///
    /// # Panics
    /// When `out` is not as long as `input`, or that is no whole number of blocks.
    pub fn cbc(&self, way: Way, iv: &mut [u8; BLOCK], input: &[u8], out: &mut [u8]) {
        whole_blocks(input, out);
        let [first, second, third] = &*self.schedules;
        // SAFETY: whole blocks are read and as many written; the schedules are live, the IV is a block of bytes.
        unsafe {
            aws_lc_sys::DES_ede3_cbc_encrypt(
                input.as_ptr(),
                out.as_mut_ptr(),
                input.len(),
                first,
                second,
                third,
                iv.as_mut_ptr().cast::<DES_cblock>(),
                number(way),
            );
        }
        wipe_slight_stack();
    }
}

const fn number(way: Way) -> c_int {
    match way {
        Way::Encrypt => aws_lc_sys::DES_ENCRYPT,
        Way::Decrypt => aws_lc_sys::DES_DECRYPT,
    }
}

fn whole_blocks(input: &[u8], out: &[u8]) {
    assert_eq!(input.len(), out.len());
    assert!(input.len().is_multiple_of(BLOCK));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SP 800-67's example (appendix B.1).
    const KEY: [u8; 24] = [
        0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef,
        0x01, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23,
    ];

    #[test]
    fn sp_800_67_example() {
        let (keys, plain) = (Keys::new(&KEY).unwrap(), b"The qufck brown fox jump");
        let (mut sealed, mut opened) = ([0; 24], [0; 24]);
        keys.ecb(Way::Encrypt, plain, &mut sealed);
        assert_eq!(sealed[..8], [0xa8, 0x26, 0xfd, 0x8c, 0xe5, 0x3b, 0x85, 0x5f]);
        assert_eq!(sealed[16..], [0x68, 0xd5, 0xc0, 0x5d, 0xd9, 0xb6, 0xb9, 0x00]);
        keys.ecb(Way::Decrypt, &sealed, &mut opened);
        assert_eq!(&opened, plain);
    }

    /// The first block of what NBS Special Publication 500-20 has: the variable plaintext that leaves one bit.
    #[test]
    fn one_key_is_single_des() {
        let (keys, mut block) =
            (Keys::new(&[1; 8]).unwrap(), 0x95f8_a5e5_dd31_d900_u64.to_be_bytes());
        keys.in_place(Way::Encrypt, &mut block);
        assert_eq!(block, [0x80, 0, 0, 0, 0, 0, 0, 0]);
        keys.in_place(Way::Decrypt, &mut block);
        assert_eq!(block, 0x95f8_a5e5_dd31_d900_u64.to_be_bytes());
    }

    #[test]
    fn two_keys_are_three_of_which_the_first_comes_back() {
        let three = [&KEY[..16], &KEY[..8]].concat();
        let data = [0x5a; 64];
        let (mut with_two, mut with_three, mut opened) = ([0; 64], [0; 64], [0; 64]);
        let keys = Keys::new(&KEY[..16]).unwrap();
        let mut iv = [1; 8];
        keys.cbc(Way::Encrypt, &mut iv, &data[..8], &mut with_two[..8]);
        keys.cbc(Way::Encrypt, &mut iv, &data[8..], &mut with_two[8..]);
        Keys::new(&three).unwrap().cbc(Way::Encrypt, &mut [1; 8], &data, &mut with_three);
        assert_eq!(with_two, with_three);
        keys.cbc(Way::Decrypt, &mut [1; 8], &with_two, &mut opened);
        assert_eq!(opened, data);
        assert!(Keys::new(&[0; 7]).is_err());
    }
}
