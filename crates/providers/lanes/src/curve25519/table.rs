// SPDX-License-Identifier: Apache-2.0
//! Multiples of known points, prepared to be added.

use super::edwards::{BASE, Entry, NEUTRAL, Order, Point, Prepared};
use crate::field52::bytes::put;
use crate::field52::{LANES, Mask, Num, V, load, rows, splat, store};
use crate::weierstrass::table::{digit, odd, recoded};
use core::arch::x86_64::*;
use std::sync::OnceLock;

/// Bits of a window of the base point's scalar, and how many windows 253 bits take.
const BASE_WINDOW: u32 = 6;
const BASE_WINDOWS: usize = 43;
/// Entries of such a window: 1, 3, … 63 times the point.
const BASE_ENTRIES: usize = 1 << (BASE_WINDOW - 1);
/// Bits of a window of a key's scalar.
const WINDOW: u32 = 5;
/// Parts into which that scalar is split; they share the doublings.
const PARTS: usize = 4;
/// Windows in each part.
const PART_WINDOWS: usize = 13;
/// Entries of a window: 0 to 16 times the point.
const ENTRIES: usize = (1 << (WINDOW - 1)) + 1;

/// One limb of one number of a window's 32 entries.
#[repr(align(64))]
#[derive(Clone, Copy)]
struct EntryLimbs([u64; BASE_ENTRIES]);

/// The base point's odd multiples, for every window.
pub(super) struct BaseTable(Vec<[[EntryLimbs; 5]; 3]>);

impl BaseTable {
    pub(super) fn shared() -> &'static Self {
        static TABLE: OnceLock<BaseTable> = OnceLock::new();
        // SAFETY: only the kernel calls this, and it runs where its instructions are.
        TABLE.get_or_init(|| unsafe { Self::new() })
    }

    #[target_feature(enable = "avx512f,avx512ifma")]
    fn new() -> Self {
        let mut rows = rows([[EntryLimbs([0; BASE_ENTRIES]); 5]; 3], BASE_WINDOWS);
        let (mut point, _) = Point::decode(&[BASE; LANES]);
        for window in &mut rows {
            let series = Point::series(&point, &point.double(true), BASE_ENTRIES);
            for (index, prepared) in series.iter().enumerate() {
                for (rows, limbs) in window.iter_mut().zip(&prepared.entries()[0]) {
                    for (row, limb) in rows.iter_mut().zip(limbs) {
                        row.0[index] = *limb;
                    }
                }
            }
            for _ in 0..BASE_WINDOW {
                point = point.double(true);
            }
        }
        Self(rows)
    }

    /// sum + scalar·B, for scalars below the order: each window's entries are all loaded, and chosen from within registers. An
    /// even scalar becomes the order less it, and the base point's multiple changes its sign.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn add_multiple(&self, sum: &Point, scalar: &Num<5>) -> Point {
        let (scalar, flipped) = odd::<Order, 5>(scalar);
        let windows = recoded(&scalar, BASE_WINDOW, BASE_WINDOWS);
        let mut sum = *sum;
        for (window, [plus, minus, product]) in self.0.iter().enumerate() {
            let (index, negative) = digit(&windows, window, BASE_WINDOW);
            let entry = Prepared {
                plus: choose(plus, index),
                minus: choose(minus, index),
                product: choose(product, index),
            };
            sum = sum.add(&entry, negative ^ flipped);
        }
        sum
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
#[inline]
fn choose(rows: &[EntryLimbs; 5], index: V) -> Num<5> {
    let upper = _mm512_test_epi64_mask(index, splat(16));
    let mut out = [index; 5];
    for i in 0..5 {
        let (parts, _) = rows[i].0.as_chunks::<LANES>();
        let below = _mm512_permutex2var_epi64(load(&parts[0]), index, load(&parts[1]));
        let above = _mm512_permutex2var_epi64(load(&parts[2]), index, load(&parts[3]));
        out[i] = _mm512_mask_mov_epi64(below, upper, above);
    }
    Num(out)
}

/// A key's multiples, for every part of a split scalar. Public.
pub(super) struct KeyTable(Vec<[Entry; ENTRIES]>);

impl KeyTable {
    /// Of the points of eight keys.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn eight(points: &Point) -> [Self; LANES] {
        let mut tables = [const { Self(Vec::new()) }; LANES];
        let mut point = *points;
        for part in 0..PARTS {
            tables.iter_mut().for_each(|table| table.0.push([NEUTRAL; ENTRIES]));
            for (number, prepared) in Point::series(&point, &point, ENTRIES - 1).iter().enumerate()
            {
                for (table, entry) in tables.iter_mut().zip(prepared.entries()) {
                    table.0[part][number + 1] = entry;
                }
            }
            for _ in 0..WINDOW as usize * PART_WINDOWS {
                point = point.double(true);
            }
        }
        tables
    }
}

/// Σ 16·32^i: added to a scalar, it makes the windows the digits plus 16.
const BIAS: [u64; 5] = {
    let mut out = [0; 5];
    let mut bit = 4;
    while bit < 260 {
        out[bit / 52] |= 1 << (bit % 52);
        bit += 5;
    }
    out
};

/// −scalar·A for each lane's own key, by signed digits from −16 to 15; also right for points outside of the prime-order
/// subgroup, for which the scalar must not change. Where there is no key, the neutral element.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn minus_times_key(scalar: &Num<5>, keys: &[Option<&KeyTable>; LANES]) -> Point {
    let windows = scalar.plus(&Num::splat(&BIAS)).carried();
    let mut sum = Point::neutral();
    for window in (0..PART_WINDOWS).rev() {
        if window + 1 < PART_WINDOWS {
            for step in 0..WINDOW {
                sum = sum.double(step + 1 == WINDOW);
            }
        }
        for part in 0..PARTS {
            let start = (part * PART_WINDOWS + window) * WINDOW as usize;
            let shifted = _mm512_sub_epi64(windows.window(start, WINDOW), splat(16));
            let (entry, positive) = gather(keys, part, shifted);
            sum = sum.add(&entry, positive);
        }
    }
    sum
}

/// Each lane's entry for its digit, and the lanes whose digit is positive.
#[target_feature(enable = "avx512f,avx512ifma")]
fn gather(keys: &[Option<&KeyTable>; LANES], part: usize, digits: V) -> (Prepared, Mask) {
    let index = store(_mm512_abs_epi64(digits));
    let mut columns = [[[0; LANES]; 5]; 3];
    for (lane, key) in keys.iter().enumerate() {
        #[expect(clippy::cast_possible_truncation, reason = "at most 16")]
        let entry = key.map_or(&NEUTRAL, |key| &key.0[part][index[lane] as usize]);
        for (column, limbs) in columns.iter_mut().zip(entry) {
            put(column, lane, limbs);
        }
    }
    let [plus, minus, product] = &columns;
    let entry =
        Prepared { plus: Num::load(plus), minus: Num::load(minus), product: Num::load(product) };
    (entry, _mm512_cmpgt_epi64_mask(digits, _mm512_setzero_si512()))
}
