// SPDX-License-Identifier: Apache-2.0
//! X25519 (RFC 7748 §5): a Montgomery ladder per lane. Each of its 255 steps does the same work; the swap is a blend.

use super::field::{
    Element, add, bytes, invert_all, least, limbs, mul, mul_small, small, square, sub,
};
use super::request::X25519Request;
use crate::field52::bytes::{put, take};
use crate::field52::{LANES, Num, V, Workspace, load, splat};
use core::arch::x86_64::*;
use metaslot_awslc_wrapper::Failed;
use metaslot_awslc_wrapper::curve25519::KEY_LENGTH;

/// How many requests share their inversion.
const BATCH: usize = 16 * LANES;

/// Computes all shared secrets.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn derive(requests: &mut [X25519Request<'_>]) {
    for batch in requests.chunks_mut(BATCH) {
        derive_batch(batch);
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn derive_batch(batch: &mut [X25519Request<'_>]) {
    let groups = batch.len().div_ceil(LANES);
    let mut workspace = Workspace::new::<5>(3 * groups);
    let (xs, rest) = workspace.numbers().split_at_mut(groups);
    let (zs, scratch) = rest.split_at_mut(groups);
    for (group, requests) in batch.chunks(LANES).enumerate() {
        let mut scalars = [[0; LANES]; 4];
        let mut points = [[0; LANES]; 5];
        for (lane, request) in requests.iter().enumerate() {
            let scalar = clamped(request.key.private());
            for (column, word) in scalars.iter_mut().zip(scalar.as_chunks().0) {
                column[lane] = u64::from_le_bytes(*word);
            }
            put(&mut points, lane, &limbs(request.peer));
        }
        let [a, b, c, d] = &scalars;
        (xs[group], zs[group]) = ladder(&[load(a), load(b), load(c), load(d)], &Num::load(&points));
    }
    let mut infinite = [0; BATCH / LANES];
    invert_all(zs, &mut scratch[..groups], |group, zeros| infinite[group] = zeros);
    for (group, requests) in batch.chunks_mut(LANES).enumerate() {
        let x = least(&mul(&xs[group], &zs[group])).blend(infinite[group], &small(0));
        let zeros = x.zeros();
        let secrets = x.store();
        for (lane, request) in requests.iter_mut().enumerate() {
            *request.secret = bytes(&take(&secrets, lane));
            request.result = if (zeros >> lane) & 1 == 1 { Err(Failed) } else { Ok(()) };
        }
    }
}

/// RFC 7748 §5.
fn clamped(scalar: &[u8; KEY_LENGTH]) -> [u8; KEY_LENGTH] {
    let mut scalar = *scalar;
    scalar[0] &= 248;
    scalar[31] = (scalar[31] & 127) | 64;
    scalar
}

/// X and Z of scalar·point.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline(never)]
pub(super) fn ladder(scalar: &[V; 4], point: &Element) -> (Element, Element) {
    let (mut x2, mut z2, mut x3, mut z3) = (small(1), small(0), *point, small(1));
    let mut last = 0;
    for bit in (0..255).rev() {
        let set = _mm512_test_epi64_mask(scalar[bit / 64], splat(1 << (bit % 64)));
        let swap = set ^ last;
        last = set;
        (x2, x3) = (x2.blend(swap, &x3), x3.blend(swap, &x2));
        (z2, z3) = (z2.blend(swap, &z3), z3.blend(swap, &z2));
        let (a, b) = (add(&x2, &z2), sub(&x2, &z2));
        let (c, d) = (add(&x3, &z3), sub(&x3, &z3));
        let (da, cb) = (mul(&d, &a), mul(&c, &b));
        let (aa, bb) = (square(&a), square(&b));
        let e = sub(&aa, &bb);
        x3 = square(&add(&da, &cb));
        z3 = mul(point, &square(&sub(&da, &cb)));
        x2 = mul(&aa, &bb);
        // RFC 7748's a24 is (486662 − 2)/4.
        z2 = mul(&e, &add(&aa, &mul_small(&e, 121_665)));
    }
    (x2.blend(last, &x3), z2.blend(last, &z3))
}
