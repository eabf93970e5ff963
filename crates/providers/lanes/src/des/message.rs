// SPDX-License-Identifier: Apache-2.0
//! One message: modes whose blocks do not wait for each other.

use super::cipher::triple;
use super::key::{BLOCK, Key};
use super::transpose::{BITS, Slab};
use super::word::Word;
#[cfg(target_arch = "x86_64")]
use super::word::{Avx2, Avx512};
use crate::cpu::{Cpu, cpu};
use crate::data::{Data, Way};
use metaslot_memory::wiping;
use std::hint::black_box;

impl Key {
    /// ECB over whole blocks.
    ///
    /// # Panics
    /// When `data` is no whole number of blocks.
    pub fn ecb(&self, way: Way, data: Data<'_>) {
        self.run(way, None, data, cpu());
    }

    /// CBC decryption of whole blocks; `iv` is left as the next part needs it.
    ///
    /// # Panics
    /// When `data` is no whole number of blocks.
    pub fn cbc_decrypt(&self, iv: &mut [u8; BLOCK], data: Data<'_>) {
        self.run(Way::Decrypt, Some(iv), data, cpu());
    }

    /// With the instructions of `cpu`, which the machine has.
    pub(super) fn run(&self, way: Way, iv: Option<&mut [u8; BLOCK]>, data: Data<'_>, cpu: Cpu) {
        assert!(data.len().is_multiple_of(BLOCK), "no whole number of blocks");
        wiping(|| self.passes(way, iv, data, cpu));
    }

    fn passes(&self, way: Way, iv: Option<&mut [u8; BLOCK]>, data: Data<'_>, cpu: Cpu) {
        #[cfg(target_arch = "x86_64")]
        if cpu.has(Cpu::AVX512) {
            // SAFETY: the machine has the instructions.
            return unsafe { wide(self, way, iv, data) };
        } else if cpu.has(Cpu::AVX2) {
            // SAFETY: as above.
            return unsafe { medium(self, way, iv, data) };
        }
        message::<u64>(self, way, iv, data);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn wide(key: &Key, way: Way, iv: Option<&mut [u8; BLOCK]>, data: Data<'_>) {
    message::<Avx512>(key, way, iv, data);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn medium(key: &Key, way: Way, iv: Option<&mut [u8; BLOCK]>, data: Data<'_>) {
    message::<Avx2>(key, way, iv, data);
}

#[inline(always)]
fn message<W: Word>(key: &Key, way: Way, mut iv: Option<&mut [u8; BLOCK]>, mut data: Data<'_>) {
    let mut slab = Slab::ZERO;
    let mut start = 0;
    while start < data.len() {
        let count = ((data.len() - start) / BLOCK).min(BITS * W::WORDS);
        for at in 0..count {
            let mut block = [0; BLOCK];
            data.read(start + at * BLOCK, &mut block);
            slab.0[Slab::place::<W>(at)] = u64::from_le_bytes(block);
        }
        slab.transpose::<W>();
        triple::<W>(way, key.masks(), &mut slab);
        slab.transpose::<W>();
        for at in 0..count {
            let mut block = slab.0[Slab::place::<W>(at)];
            if let Some(iv) = &mut iv {
                block ^= u64::from_le_bytes(**iv);
                data.read(start + at * BLOCK, *iv);
            }
            data.write(start + at * BLOCK, &block.to_le_bytes());
        }
        start += count * BLOCK;
    }
    slab = Slab::ZERO;
    black_box(&mut slab);
}
