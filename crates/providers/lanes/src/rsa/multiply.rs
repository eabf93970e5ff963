// SPDX-License-Identifier: Apache-2.0
//! Products and Montgomery reduction of eight numbers at a time, in radix 2⁵².
//!
//! A number is `B` blocks of ten limbs; a vector holds the same limb of eight numbers. Everything is built from one sweep:
//! ten factors stay in registers while the limbs of the other number pass by, and with each of them one column of the result
//! is finished and the next one begun. So twenty multiplications need two loads and a store, for every size, and only
//! twenty-two of the registers.
//!
//! Reduction is almost-Montgomery (Gueron, "Efficient software implementations of modular exponentiation", 2012): with
//! R = 2^(520·B) ≥ 4n, factors below 2n give a result below 2n, so nothing is subtracted between two multiplications. No
//! branch and no address depends on a limb.

use core::arch::x86_64::*;

/// Limbs in a block.
pub(super) const BLOCK: usize = 10;
/// Bits in a limb.
pub(super) const RADIX: usize = 52;
/// The bits of a limb.
pub(super) const MASK: u64 = (1 << RADIX) - 1;

/// Ten limbs of eight numbers.
pub(super) type Block = [__m512i; BLOCK];
/// Eight numbers of `B` blocks.
pub(super) type Number<const B: usize> = [Block; B];

/// Eight moduli, and what reduction wants to know about them.
#[derive(Clone, Copy)]
pub(super) struct Modulus<'a, const B: usize> {
    /// n
    pub(super) n: &'a Number<B>,
    /// −n⁻¹ mod 2⁵²
    pub(super) k0: &'a __m512i,
}

/// `value` becomes `value`·`by`/R mod n. `columns` is scratch, of 2·B blocks.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn multiply<const B: usize>(
    value: &mut Number<B>,
    by: &Number<B>,
    columns: &mut [Block],
    modulus: Modulus<'_, B>,
) {
    product(columns, value, by);
    reduce(value, columns, modulus);
}

/// `value` becomes `value`²/R mod n. `columns` is scratch, of 2·B blocks.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn square<const B: usize>(
    value: &mut Number<B>,
    columns: &mut [Block],
    modulus: Modulus<'_, B>,
) {
    squared(columns, value);
    reduce(value, columns, modulus);
}

/// `columns` becomes a·b, with carries left in the columns: 2·(10·B)² multiplications.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn product<const B: usize>(columns: &mut [Block], a: &Number<B>, b: &Number<B>) {
    for (i, factors) in b.iter().enumerate() {
        let factors = *factors;
        let begun = kept(i > 0);
        let mut window = columns[i].map(|column| _mm512_maskz_mov_epi64(begun, column));
        for (j, limbs) in a.iter().enumerate() {
            let (done, ahead) = columns.split_at_mut(i + j + 1);
            let begun = kept(i > 0 && j + 1 < B);
            let columns = Columns { done: &mut done[i + j], ahead: &ahead[0], begun };
            sweep(&mut window, &factors, limbs, columns, |_, column| column);
        }
        columns[i + B] = window;
    }
}

/// `columns` becomes a², with carries left in the columns: products of different limbs are computed once and doubled, so
/// 10·B·(10·B + 1) multiplications.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn squared<const B: usize>(columns: &mut [Block], a: &Number<B>) {
    for (i, factors) in a.iter().enumerate() {
        let factors = *factors;
        let mut window =
            triangle::<B>(&factors, &mut columns[2 * i..], kept(i > 0), kept(i > 0 && i + 1 < B));
        for (j, limbs) in a[i + 1..].iter().enumerate() {
            let (done, ahead) = columns.split_at_mut(2 * i + j + 2);
            let begun = kept(i > 0 && i + j + 2 < B);
            let columns = Columns { done: &mut done[2 * i + j + 1], ahead: &ahead[0], begun };
            if j == 0 {
                sweep(&mut window, &factors, limbs, columns, |j, column| {
                    doubled(column, &factors, 10 + j)
                });
            } else {
                sweep(&mut window, &factors, limbs, columns, |_, column| column);
            }
        }
        if i + 1 < B {
            columns[i + B] = window;
        } else {
            for (j, column) in window.iter().enumerate() {
                columns[2 * i + 1][j] = doubled(*column, &factors, 10 + j);
            }
        }
    }
}

/// The products inside one block; the first ten columns are finished, the others returned.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn triangle<const B: usize>(
    factors: &Block,
    columns: &mut [Block],
    low: __mmask8,
    high: __mmask8,
) -> Block {
    let mut sums = [_mm512_setzero_si512(); 2 * BLOCK];
    for j in 0..BLOCK {
        sums[j] = _mm512_maskz_mov_epi64(low, columns[0][j]);
        sums[BLOCK + j] = _mm512_maskz_mov_epi64(high, columns[1][j]);
    }
    triangle_row::<1>(&mut sums, factors);
    triangle_row::<2>(&mut sums, factors);
    triangle_row::<3>(&mut sums, factors);
    triangle_row::<4>(&mut sums, factors);
    triangle_row::<5>(&mut sums, factors);
    triangle_row::<6>(&mut sums, factors);
    triangle_row::<7>(&mut sums, factors);
    triangle_row::<8>(&mut sums, factors);
    triangle_row::<9>(&mut sums, factors);
    for j in 0..BLOCK {
        columns[0][j] = doubled(sums[j], factors, j);
    }
    core::array::from_fn(|j| sums[BLOCK + j])
}

/// Limb `J` times those below it.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn triangle_row<const J: usize>(sums: &mut [__m512i; 2 * BLOCK], limbs: &Block) {
    for i in 0..J {
        sums[i + J] = _mm512_madd52lo_epu64(sums[i + J], limbs[J], limbs[i]);
    }
    for i in 0..J {
        sums[i + J + 1] = _mm512_madd52hi_epu64(sums[i + J + 1], limbs[J], limbs[i]);
    }
}

/// Twice the column, and the half of a limb's square that falls into it.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn doubled(column: __m512i, limbs: &Block, place: usize) -> __m512i {
    let (twice, limb) = (_mm512_add_epi64(column, column), limbs[place / 2]);
    if place.is_multiple_of(2) {
        _mm512_madd52lo_epu64(twice, limb, limb)
    } else {
        _mm512_madd52hi_epu64(twice, limb, limb)
    }
}

/// `value` becomes the number in `columns` divided by R, mod n; its limbs have 52 bits. For a number below R·n the result is
/// below 2n; for one below R it is at most n.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn reduce<const B: usize>(
    value: &mut Number<B>,
    columns: &mut [Block],
    modulus: Modulus<'_, B>,
) {
    reduce_beside(value, columns, modulus, |_| {});
}

/// [`reduce`], with other work after each column of the B² groups of ten, which is given the column's place in its group.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn reduce_beside<const B: usize>(
    value: &mut Number<B>,
    columns: &mut [Block],
    modulus: Modulus<'_, B>,
    mut beside: impl FnMut(usize),
) {
    let mask = _mm512_set1_epi64(MASK.cast_signed());
    for i in 0..B {
        let (multiples, mut window) = clear(&columns[i..i + 2], modulus, &mut beside);
        if i + 1 < B {
            for (j, limbs) in modulus.n[1..].iter().enumerate() {
                let (done, ahead) = columns.split_at_mut(i + j + 2);
                let columns = Columns { done: &mut done[i + j + 1], ahead: &ahead[0], begun: 0xff };
                sweep(&mut window, &multiples, limbs, columns, |j, column| {
                    beside(j);
                    column
                });
            }
            columns[i + B] = window;
            continue;
        }
        let mut carry = _mm512_setzero_si512();
        let mut normal = |column| {
            let sum = _mm512_add_epi64(column, carry);
            carry = _mm512_srli_epi64::<52>(sum);
            _mm512_and_si512(sum, mask)
        };
        for (j, limbs) in modulus.n[1..].iter().enumerate() {
            let columns = Columns { done: &mut value[j], ahead: &columns[i + j + 2], begun: 0xff };
            sweep(&mut window, &multiples, limbs, columns, |j, column| {
                beside(j);
                normal(column)
            });
        }
        for (limb, column) in value[B - 1].iter_mut().zip(&window) {
            *limb = normal(*column);
        }
    }
}

/// Finds the ten multiples of n that clear the ten lowest columns, one after the other, and adds what they contribute to
/// the next ten, which are returned with them.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn clear<const B: usize>(
    columns: &[Block],
    modulus: Modulus<'_, B>,
    beside: &mut impl FnMut(usize),
) -> (Block, Block) {
    let zero = _mm512_setzero_si512();
    let n = &modulus.n[0];
    let mut sums = [zero; 2 * BLOCK];
    for (sum, column) in sums.iter_mut().zip(&columns[0]) {
        *sum = *column;
    }
    let mut multiples = [zero; BLOCK];
    multiples[0] = clear_column::<0>(&mut sums, &columns[1], n, *modulus.k0);
    beside(0);
    multiples[1] = clear_column::<1>(&mut sums, &columns[1], n, *modulus.k0);
    beside(1);
    multiples[2] = clear_column::<2>(&mut sums, &columns[1], n, *modulus.k0);
    beside(2);
    multiples[3] = clear_column::<3>(&mut sums, &columns[1], n, *modulus.k0);
    beside(3);
    multiples[4] = clear_column::<4>(&mut sums, &columns[1], n, *modulus.k0);
    beside(4);
    multiples[5] = clear_column::<5>(&mut sums, &columns[1], n, *modulus.k0);
    beside(5);
    multiples[6] = clear_column::<6>(&mut sums, &columns[1], n, *modulus.k0);
    beside(6);
    multiples[7] = clear_column::<7>(&mut sums, &columns[1], n, *modulus.k0);
    beside(7);
    multiples[8] = clear_column::<8>(&mut sums, &columns[1], n, *modulus.k0);
    beside(8);
    multiples[9] = clear_column::<9>(&mut sums, &columns[1], n, *modulus.k0);
    beside(9);
    (multiples, core::array::from_fn(|j| sums[BLOCK + j]))
}

/// One column of [`clear`].
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn clear_column<const I: usize>(
    sums: &mut [__m512i; 2 * BLOCK],
    ahead: &Block,
    n: &Block,
    k0: __m512i,
) -> __m512i {
    sums[BLOCK + I] = ahead[I];
    let multiple = _mm512_madd52lo_epu64(_mm512_setzero_si512(), sums[I], k0);
    // The column becomes a multiple of 2⁵²: what it carries is known without adding.
    let mask = _mm512_set1_epi64(MASK.cast_signed());
    let carry = _mm512_srli_epi64::<52>(_mm512_add_epi64(sums[I], mask));
    sums[I + 1] = _mm512_add_epi64(sums[I + 1], carry);
    sums[I + 1] = _mm512_madd52hi_epu64(sums[I + 1], n[0], multiple);
    for j in 1..BLOCK {
        sums[I + j] = _mm512_madd52lo_epu64(sums[I + j], n[j], multiple);
    }
    for j in 1..BLOCK {
        sums[I + j + 1] = _mm512_madd52hi_epu64(sums[I + j + 1], n[j], multiple);
    }
    multiple
}

/// The columns that a sweep passes.
struct Columns<'a> {
    /// Those that it finishes.
    done: &'a mut Block,
    /// The next ten, which it begins or continues.
    ahead: &'a Block,
    /// 0xff when they hold sums already, 0 when they hold nothing.
    begun: __mmask8,
}

/// Adds ten limbs times ten factors. `window` are the sums of the ten columns from the first on, before and after.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn sweep(
    window: &mut Block,
    factors: &Block,
    limbs: &Block,
    mut columns: Columns<'_>,
    mut finish: impl FnMut(usize, __m512i) -> __m512i,
) {
    let mut sums = [_mm512_setzero_si512(); 2 * BLOCK];
    for (sum, column) in sums.iter_mut().zip(&*window) {
        *sum = *column;
    }
    // Written out, because the compiler does not unroll a loop of that size, and only unrolled code keeps the columns
    // in registers.
    pass::<0>(&mut sums, factors, limbs, &mut columns, &mut finish);
    pass::<1>(&mut sums, factors, limbs, &mut columns, &mut finish);
    pass::<2>(&mut sums, factors, limbs, &mut columns, &mut finish);
    pass::<3>(&mut sums, factors, limbs, &mut columns, &mut finish);
    pass::<4>(&mut sums, factors, limbs, &mut columns, &mut finish);
    pass::<5>(&mut sums, factors, limbs, &mut columns, &mut finish);
    pass::<6>(&mut sums, factors, limbs, &mut columns, &mut finish);
    pass::<7>(&mut sums, factors, limbs, &mut columns, &mut finish);
    pass::<8>(&mut sums, factors, limbs, &mut columns, &mut finish);
    pass::<9>(&mut sums, factors, limbs, &mut columns, &mut finish);
    *window = core::array::from_fn(|j| sums[BLOCK + j]);
}

/// One limb of a sweep.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn pass<const J: usize>(
    sums: &mut [__m512i; 2 * BLOCK],
    factors: &Block,
    limbs: &Block,
    columns: &mut Columns<'_>,
    finish: &mut impl FnMut(usize, __m512i) -> __m512i,
) {
    sums[BLOCK + J] = _mm512_maskz_mov_epi64(columns.begun, columns.ahead[J]);
    let limb = limbs[J];
    for i in 0..BLOCK {
        sums[i + J] = _mm512_madd52lo_epu64(sums[i + J], limb, factors[i]);
    }
    for i in 0..BLOCK {
        sums[i + J + 1] = _mm512_madd52hi_epu64(sums[i + J + 1], limb, factors[i]);
    }
    columns.done[J] = finish(J, sums[J]);
}

const fn kept(whether: bool) -> __mmask8 {
    if whether { 0xff } else { 0 }
}
