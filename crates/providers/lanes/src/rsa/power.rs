// SPDX-License-Identifier: Apache-2.0
//! Raising to secret exponents, with a fixed window of five bits.
//!
//! Each window costs five squarings, a scan of the whole table and a multiplication. The scan only loads and combines, which
//! the multiplier has no part in: so a few of its steps follow each column of the reductions before it, where they hide.

use super::memory::{LANES, Memory, take};
use super::multiply::{BLOCK, Block, Modulus, Number, multiply, reduce_beside, square, squared};
use core::arch::x86_64::*;
use metaslot_memory::Secret;

/// Bits of a window.
pub(super) const WINDOW: usize = 5;
/// Powers in a table.
const TABLE: usize = 1 << WINDOW;

/// The powers of eight numbers from 0 on, ten limbs of them: all powers of a limb lie together.
type Powers = [[__m512i; TABLE]; BLOCK];

/// The memory of an exponentiation.
pub(super) struct Workspace<const B: usize> {
    numbers: Memory,
    masks: Memory,
    /// One piece for each block: the arena locks no pieces of more than 64 KiB into memory.
    table: [Memory; B],
    digits: Secret,
}

impl<const B: usize> Workspace<B> {
    /// For exponents of 512·B bits.
    pub(super) fn new() -> Self {
        Self {
            numbers: Memory::of_blocks(9 * B + 1),
            masks: Memory::new(TABLE),
            table: std::array::from_fn(|_| Memory::of_blocks(TABLE)),
            digits: Secret::zeroed(LANES * (512 * B).div_ceil(WINDOW)),
        }
    }

    /// Its parts, to be filled.
    pub(super) fn parts(&mut self) -> Exponentiation<'_, B> {
        let mut rest = self.numbers.blocks();
        Exponentiation {
            n: take(&mut rest),
            one: take(&mut rest),
            value: take(&mut rest),
            chosen: take(&mut rest),
            others: std::array::from_fn(|_| take(&mut rest)),
            k0: take(&mut rest),
            columns: rest,
            masks: first(self.masks.vectors()),
            table: self.table.each_mut().map(|piece| first(piece.vectors().as_chunks_mut().0)),
            digits: self.digits.expose_mut().as_chunks_mut().0,
        }
    }
}

/// The first `N` of a slice.
fn first<T, const N: usize>(slice: &mut [T]) -> &mut [T; N] {
    match slice.first_chunk_mut() {
        Some(first) => first,
        None => panic!("memory for fewer vectors than are used"),
    }
}

/// Eight numbers raised to eight secret exponents.
pub(super) struct Exponentiation<'a, const B: usize> {
    pub(super) n: &'a mut Number<B>,
    pub(super) k0: &'a mut Number<1>,
    /// R mod n
    pub(super) one: &'a mut Number<B>,
    /// The numbers, in Montgomery form, and then their powers.
    pub(super) value: &'a mut Number<B>,
    /// Of each exponent the same digit together, the highest first.
    pub(super) digits: &'a mut [[u8; LANES]],
    /// Numbers that the exponentiation leaves alone.
    pub(super) others: [&'a mut Number<B>; 3],
    /// 2·B blocks of any content.
    pub(super) columns: &'a mut [Block],
    /// The power that the next multiplication takes.
    chosen: &'a mut Number<B>,
    /// For each power, all ones in the lanes that want it.
    masks: &'a mut [__m512i; TABLE],
    table: [&'a mut Powers; B],
}

impl<const B: usize> Exponentiation<'_, B> {
    /// Limbs that are looked up beside one reduction, which has B² groups of ten columns.
    const BESIDE: usize = if B == 1 { 2 } else { B * B };
    /// Squarings of a window in which all limbs are looked up.
    const SCANS: usize = (B * BLOCK).div_ceil(Self::BESIDE);

    /// Raises some at once, a step of each in turn: what one waits for, another's work fills.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn run(all: &mut [Self]) {
        for power in 0..TABLE {
            for one in &mut *all {
                one.tabulate(power);
            }
        }
        let windows = all.iter().map(|one| one.digits.len()).min().unwrap_or(0);
        for window in 0..windows {
            for one in &mut *all {
                one.choose(window);
            }
            for turn in 0..WINDOW {
                for one in &mut *all {
                    one.square(turn);
                }
            }
            for one in &mut *all {
                let modulus = Modulus { n: one.n, k0: &one.k0[0][0] };
                multiply(one.value, one.chosen, one.columns, modulus);
            }
        }
    }

    /// Puts a power into the table; the lower ones are there. After the last, the value is 1.
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn tabulate(&mut self, power: usize) {
        let modulus = Modulus { n: self.n, k0: &self.k0[0][0] };
        if power == 0 {
            // `chosen` keeps the numbers as long as the table is made.
            *self.chosen = *self.value;
            *self.value = *self.one;
        } else if power == 1 {
            *self.value = *self.chosen;
        } else if power.is_multiple_of(2) {
            for (block, powers) in self.value.iter_mut().zip(&self.table) {
                for (limb, powers) in block.iter_mut().zip(&**powers) {
                    *limb = powers[power / 2];
                }
            }
            square(self.value, self.columns, modulus);
        } else {
            multiply(self.value, self.chosen, self.columns, modulus);
        }
        for (block, powers) in self.value.iter().zip(&mut self.table) {
            for (limb, powers) in block.iter().zip(&mut **powers) {
                powers[power] = *limb;
            }
        }
        if power + 1 == TABLE {
            *self.value = *self.one;
        }
    }

    /// Says which powers the scan takes.
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn choose(&mut self, window: usize) {
        let digits = i64::from_le_bytes(self.digits[window]);
        let digits = _mm512_cvtepu8_epi64(_mm_cvtsi64_si128(digits));
        let mut power = _mm512_setzero_si512();
        for mask in &mut *self.masks {
            *mask = _mm512_maskz_set1_epi64(_mm512_cmpeq_epi64_mask(digits, power), -1);
            power = _mm512_add_epi64(power, _mm512_set1_epi64(1));
        }
    }

    /// One of the window's squarings.
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn square(&mut self, turn: usize) {
        let modulus = Modulus { n: self.n, k0: &self.k0[0][0] };
        if turn < Self::SCANS {
            let first = turn * Self::BESIDE;
            square_beside(self, first);
        } else {
            square(self.value, self.columns, modulus);
        }
    }
}

/// Squares, and looks up some limbs of the power to multiply with.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma")]
fn square_beside<const B: usize>(of: &mut Exponentiation<'_, B>, first: usize) {
    let modulus = Modulus { n: of.n, k0: &of.k0[0][0] };
    squared(of.columns, of.value);
    let (table, masks, chosen) = (&of.table, &*of.masks, &mut *of.chosen);
    // A reduction has B² groups of ten columns. After each of the first eight, four powers of a limb are looked at; or of two
    // limbs where there is only one group.
    let limbs = Exponentiation::<B>::BESIDE / (B * B);
    let mut limb = first;
    let mut sums = [_mm512_setzero_si512(); 2];
    reduce_beside(of.value, of.columns, modulus, |column| {
        if column >= TABLE / 4 {
            return;
        }
        for (ahead, sum) in sums[..limbs].iter_mut().enumerate() {
            // The last squaring has time for more limbs than there are.
            let index = (limb + ahead).min(B * BLOCK - 1);
            let powers = &table[index / BLOCK][index % BLOCK];
            for power in 4 * column..4 * (column + 1) {
                // sum | (mask & power)
                *sum = _mm512_ternarylogic_epi64::<0xf8>(*sum, masks[power], powers[power]);
            }
            if column == TABLE / 4 - 1 {
                chosen[index / BLOCK][index % BLOCK] = *sum;
                *sum = _mm512_setzero_si512();
            }
        }
        if column == TABLE / 4 - 1 {
            limb += limbs;
        }
    });
}
