// SPDX-License-Identifier: Apache-2.0
//! Shared secrets (SEC 1 §3.3.1).
//!
//! Before the last window, the sum so far times 2^w is larger than what is added, both below n; at the last one an exception would
//! take k = n − 2·m, with m below 2^w the last digit. On P-256 no such k has that digit; on P-384 it is n − 38, that is the
//! private keys 38 and n − 38, whose secrets the library computes.

use super::super::DeriveRequest;
use super::super::curve::Curve;
use super::super::point::{Affine, Point, add_affine, double};
use super::super::table::{ENTRIES, WINDOW, digit, odd, odd_multiples, recoded, windows};
use super::{BATCH, has, vanishes};
use crate::field52::bytes::{big_endian, less, put, take, write_big_endian};
use crate::field52::inverse::invert_all;
use crate::field52::modulus::Modulus;
use crate::field52::montgomery::{leave, mul, square, tidy};
use crate::field52::{Columns, LANES, Mask, Num, V, Workspace, splat};
use core::arch::x86_64::*;
use metaslot_awslc_wrapper::Failed;
use metaslot_awslc_wrapper::ec::{EcKey, MAX_EC_BYTES};

/// The first byte of an uncompressed point.
const UNCOMPRESSED: u8 = 4;

/// Computes all shared secrets.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(crate) fn derive<C: Curve<N>, const N: usize>(requests: &mut [DeriveRequest<'_, N>]) {
    for batch in requests.chunks_mut(BATCH) {
        derive_batch::<C, N>(batch);
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn derive_batch<C: Curve<N>, const N: usize>(batch: &mut [DeriveRequest<'_, N>]) {
    let groups = batch.len().div_ceil(LANES);
    let mut workspace = Workspace::new::<N>(3 * groups);
    let (xs, rest) = workspace.numbers().split_at_mut(groups);
    let (zs, scratch) = rest.split_at_mut(groups);
    let scratch = &mut scratch[..groups];
    let mut refused = [0; BATCH / LANES];
    let mut exceptions = [0; BATCH / LANES];
    for (group, requests) in batch.chunks(LANES).enumerate() {
        let (peer, bad) = peers::<C, N>(requests);
        let mut keys = [[0; LANES]; N];
        keys[0] = [1; LANES];
        for (lane, request) in requests.iter().enumerate() {
            put(&mut keys, lane, &big_endian(request.key.scalar()));
        }
        let point = times::<C, N>(&Num::load(&keys), &peer);
        (xs[group], zs[group], refused[group]) = (point.x, point.z, bad);
    }
    invert_all::<C::Field, N>(zs, scratch, |group, zeros| exceptions[group] = zeros);
    for (group, requests) in batch.chunks_mut(LANES).enumerate() {
        let x = mul::<C::Field, N>(&xs[group], &square::<C::Field, N>(&zs[group]));
        let secrets = leave::<C::Field, N>(&x).store();
        for (lane, request) in requests.iter_mut().enumerate() {
            if has(refused[group], lane) || request.secret.len() != C::LENGTH {
                request.result = Err(Failed);
            } else if has(exceptions[group], lane) {
                request.by_library();
            } else {
                write_big_endian(&take(&secrets, lane), request.secret);
                request.result = Ok(());
            }
        }
    }
}

/// Eight points, in Montgomery form with Z = 1, and the lanes whose point is none on the curve: these hold the base
/// point.
#[target_feature(enable = "avx512f,avx512ifma")]
fn peers<C: Curve<N>, const N: usize>(requests: &[DeriveRequest<'_, N>]) -> (Point<N>, Mask) {
    let mut columns = [[[0; LANES]; N]; 2];
    let mut refused = 0;
    for lane in 0..LANES {
        let point = requests.get(lane).map_or(Some(C::BASE), |request| read::<C, N>(request.peer));
        refused |= u8::from(point.is_none()) << lane;
        for (column, limbs) in columns.iter_mut().zip(&point.unwrap_or(C::BASE)) {
            put(column, lane, limbs);
        }
    }
    let plain = |columns: &[Columns<N>; 2]| {
        Point::from_plain::<C::Field>(&Num::load(&columns[0]), &Num::load(&columns[1]))
    };
    let point = plain(&columns);
    let astray = !on_curve::<C, N>(&point);
    let base = Num::splat(&C::BASE[0]);
    let base = Point::from_plain::<C::Field>(&base, &Num::splat(&C::BASE[1]));
    let (x, y) = (point.x.blend(astray, &base.x), point.y.blend(astray, &base.y));
    (Point { x, y, z: point.z }, refused | astray)
}

/// The coordinates of an encoded point. Other forms than the uncompressed one are unpacked by the library.
fn read<C: Curve<N>, const N: usize>(bytes: &[u8]) -> Option<[[u64; N]; 2]> {
    let mut unpacked = [0; 1 + 2 * MAX_EC_BYTES];
    let unpacked = &mut unpacked[..C::LIBRARY.point_length()];
    let mut coordinates = bytes;
    if bytes.len() != unpacked.len() || bytes[0] != UNCOMPRESSED {
        EcKey::public(C::LIBRARY, bytes).and_then(|key| key.write_point(unpacked)).ok()?;
        coordinates = unpacked;
    }
    let (x, y) = coordinates[1..].split_at(C::LENGTH);
    let point = [x, y].map(big_endian);
    point.iter().all(|limbs| less(limbs, &C::Field::M)).then_some(point)
}

/// The lanes where y² = x³ − 3·x + b.
#[target_feature(enable = "avx512f,avx512ifma")]
fn on_curve<C: Curve<N>, const N: usize>(point: &Point<N>) -> Mask {
    let cube = mul::<C::Field, N>(&square::<C::Field, N>(&point.x), &point.x);
    let triple = point.x.shifted::<1>().plus(&point.x);
    let b = crate::field52::montgomery::enter::<C::Field, N>(&Num::splat(&C::B));
    let left = square::<C::Field, N>(&point.y);
    let difference = left.plus(&triple).minus(&cube).minus(&b);
    vanishes::<C::Field, N>(&tidy::<C::Field, N>(&difference))
}

/// ±k·p, with the sign that makes k odd.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline(never)]
pub(crate) fn times<C: Curve<N>, const N: usize>(k: &Num<N>, p: &Point<N>) -> Point<N> {
    let table = odd_multiples::<C::Field, N>(p, ENTRIES);
    let (k, _) = odd::<C::Order, N>(k);
    let count = windows(8 * C::LENGTH, WINDOW);
    let windows = recoded(&k, WINDOW, count);
    let (index, negative) = digit(&windows, count - 1, WINDOW);
    let mut sum = scan(&table, index).to_point::<C::Field>(negative);
    for window in (0..count - 1).rev() {
        for _ in 0..WINDOW {
            sum = double::<C::Field, N>(&sum);
        }
        let (index, negative) = digit(&windows, window, WINDOW);
        sum = add_affine::<C::Field, N>(&sum, &scan(&table, index), negative);
    }
    sum
}

/// The entry that each lane asks for, of its own table: all entries are read.
#[target_feature(enable = "avx512f,avx512ifma")]
fn scan<const N: usize>(table: &[Affine<N>], index: V) -> Affine<N> {
    let mut out = table[0];
    for (number, entry) in table.iter().enumerate().skip(1) {
        let mask = _mm512_cmpeq_epi64_mask(index, splat(number as u64));
        out.x = out.x.blend(mask, &entry.x);
        out.y = out.y.blend(mask, &entry.y);
    }
    out
}
