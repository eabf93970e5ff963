// SPDX-License-Identifier: Apache-2.0
//! SHA-3: Keccak-f[1600] (FIPS 202, section 3.2).

use super::rows::Rows;
use super::tables::KECCAK_ROUND;
use super::vector::{Vector, load, store, table};

/// The words of SHAKE128's block, the longest.
const LONGEST: usize = 21;
/// As many in whole rows of any vector.
const BUFFER: usize = 24;

/// Rotations of step rho, by `x + 5y` (section 3.2.2, table 2).
const RHO: [u32; 25] =
    [0, 1, 62, 28, 27, 36, 44, 6, 55, 20, 3, 10, 43, 25, 39, 41, 45, 15, 21, 8, 18, 2, 61, 56, 14];

/// SHA-3 with any rate in the lanes of `V`; see `Kernel::run`.
#[inline(always)]
pub(super) fn absorb<V: Vector<Word = u64>>(state: &mut [u8], rows: &Rows<'_>, block: usize) {
    let mut s: [V; 25] = load(state);
    let mut words = [V::splat(0); BUFFER];
    for at in (0..rows.bytes()).step_by(block) {
        read_block(rows, at, block / 8, &mut words);
        for (i, word) in words.iter().enumerate().take(LONGEST) {
            s[i] = s[i].xor(*word);
        }
        s = permuted(s);
    }
    store(&s, state);
}

/// The state before the permutation, once the only block of the rows has been taken in.
#[inline(always)]
pub(super) fn only_block<V: Vector<Word = u64>>(rows: &Rows<'_>) -> [V; 25] {
    let mut words = [V::splat(0); BUFFER];
    read_block(rows, 0, rows.bytes() / 8, &mut words);
    let mut s = [V::splat(0); 25];
    s[..BUFFER].copy_from_slice(&words);
    s
}

/// Keccak-f[1600]
#[inline(always)]
pub(super) fn permuted<V: Vector<Word = u64>>(mut s: [V; 25]) -> [V; 25] {
    for constant in &KECCAK_ROUND {
        s = round(&s, *constant);
    }
    s
}

/// A block of so many words.
#[inline(always)]
fn read_block<V: Vector>(rows: &Rows<'_>, at: usize, words: usize, out: &mut [V; BUFFER]) {
    let mut groups = out.chunks_exact_mut(V::ROW);
    let (whole, part) = (words / V::ROW, words % V::ROW);
    for (i, out) in groups.by_ref().take(whole).enumerate() {
        out.copy_from_slice(&V::transpose(rows, 0, at + i * V::ROW * 8, V::ROW)[..V::ROW]);
    }
    if let (1.., Some(out)) = (part, groups.next()) {
        out.copy_from_slice(&V::transpose(rows, 0, at + whole * V::ROW * 8, part)[..V::ROW]);
    }
}

#[inline(always)]
fn round<V: Vector<Word = u64>>(s: &[V; 25], constant: u64) -> [V; 25] {
    // Theta adds the parities of two columns to each word. Together first: added to each word by one operation, they would take
    // five registers more, and of 32 the state has 25.
    let [a, b, c, d, e] = [parity(s, 0), parity(s, 1), parity(s, 2), parity(s, 3), parity(s, 4)];
    let theta = [both(e, b), both(a, c), both(b, d), both(c, e), both(d, a)];
    let [mut p0, p1, p2, p3, p4] = plane::<V, 0>(s, &theta);
    p0 = p0.xor(V::splat(constant));
    let [p5, p6, p7, p8, p9] = plane::<V, 1>(s, &theta);
    let [p10, p11, p12, p13, p14] = plane::<V, 2>(s, &theta);
    let [p15, p16, p17, p18, p19] = plane::<V, 3>(s, &theta);
    let [p20, p21, p22, p23, p24] = plane::<V, 4>(s, &theta);
    [
        p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15, p16, p17, p18, p19,
        p20, p21, p22, p23, p24,
    ]
}

#[inline(always)]
fn parity<V: Vector>(s: &[V; 25], x: usize) -> V {
    let three = s[x].ternary::<{ table::PARITY }>(s[x + 5], s[x + 10]);
    three.ternary::<{ table::PARITY }>(s[x + 15], s[x + 20])
}

/// The parities of the column before and of the one behind, which is turned.
#[inline(always)]
fn both<V: Vector>(before: V, behind: V) -> V {
    before.xor(behind.rotate(1))
}

/// The words with one `y`, after chi.
#[inline(always)]
fn plane<V: Vector, const Y: usize>(s: &[V; 25], theta: &[V; 5]) -> [V; 5] {
    let a = moved::<V, 0, Y>(s, theta);
    let b = moved::<V, 1, Y>(s, theta);
    let c = moved::<V, 2, Y>(s, theta);
    let d = moved::<V, 3, Y>(s, theta);
    let e = moved::<V, 4, Y>(s, theta);
    [
        a.ternary::<{ table::CHI }>(b, c),
        b.ternary::<{ table::CHI }>(c, d),
        c.ternary::<{ table::CHI }>(d, e),
        d.ternary::<{ table::CHI }>(e, a),
        e.ternary::<{ table::CHI }>(a, b),
    ]
}

/// Theta, rho and pi for the word that comes to `(X, Y)`.
#[inline(always)]
fn moved<V: Vector, const X: usize, const Y: usize>(s: &[V; 25], theta: &[V; 5]) -> V {
    let (x, y) = ((X + 3 * Y) % 5, X);
    let word = s[x + 5 * y].xor(theta[x]);
    if X + Y == 0 { word } else { word.rotate(RHO[x + 5 * y]) }
}
