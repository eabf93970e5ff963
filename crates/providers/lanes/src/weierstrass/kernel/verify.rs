// SPDX-License-Identifier: Apache-2.0
//! Checks of ECDSA signatures (SEC 1 §4.1.4). All inputs are public, and addresses depend on them.

use super::super::curve::Curve;
use super::super::point::{Affine, Point, add_affine, double};
use super::super::table::{
    BASE_WINDOW, Multiples, PARTS, WINDOW, digit, odd, part_windows, recoded,
};
use super::super::{PublicKey, VerifyRequest};
use super::{BATCH, digest, has, in_range, vanishes};
use crate::field52::bytes::{big_endian, less, put};
use crate::field52::inverse::invert_all;
use crate::field52::modulus::{Modulus, difference};
use crate::field52::montgomery::{enter, least, mul, square, tidy};
use crate::field52::{Columns, LANES, Mask, Num, V, store};
use metaslot_awslc_wrapper::Failed;

/// Fewer new keys than this are not worth their multiples at once.
const FEW: usize = 4;

/// Checks all requests.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(crate) fn verify<C: Curve<N>, const N: usize>(requests: &mut [VerifyRequest<'_, N>]) {
    for batch in requests.chunks_mut(BATCH) {
        prepare::<C, N>(batch);
        verify_batch::<C, N>(batch);
    }
}

/// Gives the keys their multiples, eight at a time; but when there are few new ones, only to those that were seen
/// before: the multiples cost as much as a signature or two.
#[target_feature(enable = "avx512f,avx512ifma")]
fn prepare<C: Curve<N>, const N: usize>(batch: &[VerifyRequest<'_, N>]) {
    let mut fresh: Vec<&PublicKey<N>> = Vec::new();
    for request in batch {
        let known = |key: &&PublicKey<N>| std::ptr::eq(*key, request.key);
        if request.key.multiples.get().is_none() && !fresh.iter().any(known) {
            fresh.push(request.key);
        }
    }
    if fresh.len() < FEW {
        fresh.retain(|key| key.seen_before());
    }
    for keys in fresh.chunks(LANES) {
        let mut points = [C::BASE; LANES];
        let mut good = [false; LANES];
        for (lane, key) in keys.iter().enumerate() {
            if let Ok(point) = key.coordinates() {
                (points[lane], good[lane]) = (point, true);
            }
        }
        let all = Multiples::eight::<C::Field>(&points, C::LENGTH);
        for ((key, multiples), good) in keys.iter().zip(all).zip(good) {
            if good {
                key.multiples.get_or_init(|| multiples);
            }
        }
    }
}

/// Eight signatures, and what they sign.
struct Eight<'a, const N: usize> {
    r: Columns<N>,
    /// r + n where that is below p, else r.
    other_r: Columns<N>,
    s: Columns<N>,
    digests: Columns<N>,
    /// A lane without a key is not for the kernel.
    keys: [Option<&'a Multiples<N>>; LANES],
    /// The signature cannot be good.
    refused: [bool; LANES],
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn verify_batch<C: Curve<N>, const N: usize>(batch: &mut [VerifyRequest<'_, N>]) {
    let read: Vec<Eight<'_, N>> = batch.chunks(LANES).map(read::<C, N>).collect();
    let mut inverses = Vec::with_capacity(read.len());
    for eight in &read {
        inverses.push(enter::<C::Order, N>(&Num::load(&eight.s)));
    }
    let mut scratch = inverses.clone();
    invert_all::<C::Order, N>(&mut inverses, &mut scratch, |_, _| ());
    for ((requests, eight), inverse) in batch.chunks_mut(LANES).zip(&read).zip(&inverses) {
        let (good, exceptions) = check::<C, N>(eight, inverse);
        for (lane, request) in requests.iter_mut().enumerate() {
            if eight.refused[lane] {
                request.result = Err(Failed);
            } else if eight.keys[lane].is_none() || has(exceptions, lane) {
                request.by_library(C::LENGTH);
            } else {
                request.result = if has(good, lane) { Ok(()) } else { Err(Failed) };
            }
        }
    }
}

/// The numbers of eight requests; 1 in a lane that is not for the kernel.
fn read<'a, C: Curve<N>, const N: usize>(requests: &[VerifyRequest<'a, N>]) -> Eight<'a, N> {
    let mut ones = [[0; LANES]; N];
    ones[0] = [1; LANES];
    let refused = [true; LANES];
    let mut eight =
        Eight { r: ones, other_r: ones, s: ones, digests: ones, keys: [None; LANES], refused };
    let (gap, _) = difference(&C::Field::M, &C::Order::M);
    for (lane, request) in requests.iter().enumerate() {
        let Some((r, s)) = request.signature.split_at_checked(C::LENGTH) else { continue };
        if s.len() != C::LENGTH {
            continue;
        }
        let (r, s) = (big_endian(r), big_endian(s));
        if !in_range::<C::Order, N>(&r) || !in_range::<C::Order, N>(&s) {
            continue;
        }
        eight.refused[lane] = false;
        let Some(key) = request.key.multiples.get() else { continue };
        put(&mut eight.r, lane, &r);
        put(&mut eight.s, lane, &s);
        put(&mut eight.digests, lane, &digest(request.digest, C::LENGTH));
        let (below, _) = difference(&r, &gap);
        let other = if less(&r, &gap) { difference(&C::Field::M, &negated(&below)).0 } else { r };
        put(&mut eight.other_r, lane, &other);
        eight.keys[lane] = Some(key);
    }
    eight
}

/// The positive number whose negative, modulo 2^(52·N), this is.
fn negated<const N: usize>(a: &[u64; N]) -> [u64; N] {
    difference(&[0; N], a).0
}

/// The lanes that are good, and those where an exception was met.
#[target_feature(enable = "avx512f,avx512ifma")]
fn check<C: Curve<N>, const N: usize>(eight: &Eight<'_, N>, inverse: &Num<N>) -> (Mask, Mask) {
    if eight.keys.iter().all(Option::is_none) {
        return (0, 0);
    }
    let r = Num::load(&eight.r);
    let times = |number: &Num<N>| least::<C::Order, N>(&mul::<C::Order, N>(number, inverse));
    let (base_scalar, key_scalar) = (times(&Num::load(&eight.digests)), times(&r));
    let sum = times_key::<C, N>(&key_scalar, &eight.keys);
    let sum = plus_times_base::<C, N>(&sum, &base_scalar);
    let squared = square::<C::Field, N>(&sum.z);
    let mut good = 0;
    for r in [&r, &Num::load(&eight.other_r)] {
        let expected = mul::<C::Field, N>(&enter::<C::Field, N>(r), &squared);
        good |= vanishes::<C::Field, N>(&tidy::<C::Field, N>(&expected.minus(&sum.x)));
    }
    (good, vanishes::<C::Field, N>(&sum.z))
}

/// The scalar's parts share the doublings: each part has its own multiples.
#[target_feature(enable = "avx512f,avx512ifma")]
fn times_key<C: Curve<N>, const N: usize>(
    scalar: &Num<N>,
    keys: &[Option<&Multiples<N>>; LANES],
) -> Point<N> {
    let count = part_windows(C::LENGTH);
    let (scalar, flipped) = odd::<C::Order, N>(scalar);
    let windows = recoded(&scalar, WINDOW, PARTS * count);
    let mut sum = None;
    for window in (0..count).rev() {
        if let Some(so_far) = &mut sum {
            for _ in 0..WINDOW {
                *so_far = double::<C::Field, N>(so_far);
            }
        }
        for part in 0..PARTS {
            let (index, negative) = digit(&windows, part * count + window, WINDOW);
            let negative = negative ^ flipped;
            let entry = gather::<C, N>(keys, part, index);
            sum = Some(match &sum {
                None => entry.to_point::<C::Field>(negative),
                Some(so_far) => add_affine::<C::Field, N>(so_far, &entry, negative),
            });
        }
    }
    sum.unwrap_or_else(|| Point::from_plain::<C::Field>(&Num::splat(&[0; N]), &Num::splat(&[0; N])))
}

/// Each lane's entry from its own key's multiples; the base point where there is no key.
#[target_feature(enable = "avx512f,avx512ifma")]
fn gather<C: Curve<N>, const N: usize>(
    keys: &[Option<&Multiples<N>>; LANES],
    part: usize,
    index: V,
) -> Affine<N> {
    let mut columns = [[[0; LANES]; N]; 2];
    for (lane, (key, index)) in keys.iter().zip(store(index)).enumerate() {
        #[expect(clippy::cast_possible_truncation, reason = "below the number of entries")]
        let entry = key.map_or(&C::BASE, |key| key.entry(part, index as usize));
        for (column, limbs) in columns.iter_mut().zip(entry) {
            put(column, lane, limbs);
        }
    }
    Affine { x: Num::load(&columns[0]), y: Num::load(&columns[1]) }
}

/// sum + scalar·G.
#[target_feature(enable = "avx512f,avx512ifma")]
fn plus_times_base<C: Curve<N>, const N: usize>(sum: &Point<N>, scalar: &Num<N>) -> Point<N> {
    let base = C::base();
    let (scalar, flipped) = odd::<C::Order, N>(scalar);
    let windows = recoded(&scalar, BASE_WINDOW, base.len());
    let mut sum = *sum;
    for window in 0..base.len() {
        let (index, negative) = digit(&windows, window, BASE_WINDOW);
        sum = add_affine::<C::Field, N>(&sum, &base.select(window, index), negative ^ flipped);
    }
    sum
}
