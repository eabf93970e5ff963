// SPDX-License-Identifier: Apache-2.0
//! ECDSA signatures (SEC 1 §4.1.3).
//!
//! k·G cannot meet an exception but for a single k: below the topmost window the sum so far is smaller than what is added, both
//! as integers below n, and at the topmost one it would take k = 2·d·2^(w·(W−1)) modulo n with d the window's own digit.
//! A random nonce is that one, or gives r = 0 or s = 0, with a probability below 2^−250; such a request is signed by
//! the library with another nonce.

use super::super::SignRequest;
use super::super::curve::Curve;
use super::super::point::{Point, add_affine};
use super::super::table::{BASE_WINDOW, digit, odd, recoded};
use super::{BATCH, digest, has, in_range};
use crate::field52::bytes::{big_endian, put, take, write_big_endian};
use crate::field52::inverse::invert_all;
use crate::field52::montgomery::{enter, least, leave, mul, square};
use crate::field52::{LANES, Mask, Num, Workspace};
use metaslot_awslc_wrapper::{Result, random};
use metaslot_memory::Secret;

/// Where nonces come from: fills with random bytes.
pub(crate) type Source<'a> = &'a mut dyn FnMut(&mut [u8]) -> Result<()>;

/// Signs all requests.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(crate) fn sign<C: Curve<N>, const N: usize>(requests: &mut [SignRequest<'_, N>]) {
    sign_with::<C, N>(requests, &mut random::fill);
}

/// Signs all requests with nonces from `source`.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(crate) fn sign_with<C: Curve<N>, const N: usize>(
    requests: &mut [SignRequest<'_, N>],
    source: Source<'_>,
) {
    for batch in requests.chunks_mut(BATCH) {
        if let Err(failed) = sign_batch::<C, N>(batch, source) {
            batch.iter_mut().for_each(|request| request.result = Err(failed));
        }
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn sign_batch<C: Curve<N>, const N: usize>(
    batch: &mut [SignRequest<'_, N>],
    source: Source<'_>,
) -> Result<()> {
    let groups = batch.len().div_ceil(LANES);
    let mut workspace = Workspace::new::<N>(4 * groups);
    let (nonces, rest) = workspace.numbers().split_at_mut(groups);
    let (xs, rest) = rest.split_at_mut(groups);
    let (zs, scratch) = rest.split_at_mut(groups);
    let scratch = &mut scratch[..groups];
    draw::<C, N>(nonces, source)?;
    for group in 0..groups {
        let point = times_base::<C, N>(&nonces[group]);
        (xs[group], zs[group]) = (point.x, point.z);
        nonces[group] = enter::<C::Order, N>(&nonces[group]);
    }
    let mut exceptions = [0; BATCH / LANES];
    invert_all::<C::Field, N>(zs, scratch, |group, zeros| exceptions[group] = zeros);
    invert_all::<C::Order, N>(nonces, scratch, |_, _| ());
    for (group, requests) in batch.chunks_mut(LANES).enumerate() {
        let x = mul::<C::Field, N>(&xs[group], &square::<C::Field, N>(&zs[group]));
        let r = least::<C::Order, N>(&leave::<C::Field, N>(&x));
        complete::<C, N>(requests, &r, &nonces[group], exceptions[group]);
    }
    Ok(())
}

/// Random numbers from 1 to n − 1, by rejection (FIPS 186-5 §A.3.2).
#[target_feature(enable = "avx512f,avx512ifma")]
fn draw<C: Curve<N>, const N: usize>(nonces: &mut [Num<N>], source: Source<'_>) -> Result<()> {
    let mut bytes = Secret::zeroed(C::LENGTH * LANES * nonces.len());
    let bytes = bytes.expose_mut();
    source(bytes)?;
    for (nonce, bytes) in nonces.iter_mut().zip(bytes.chunks_mut(C::LENGTH * LANES)) {
        let mut columns = [[0; LANES]; N];
        for (lane, bytes) in bytes.chunks_mut(C::LENGTH).enumerate() {
            let mut candidate = big_endian(bytes);
            while !in_range::<C::Order, N>(&candidate) {
                source(bytes)?;
                candidate = big_endian(bytes);
            }
            put(&mut columns, lane, &candidate);
        }
        *nonce = Num::load(&columns);
    }
    Ok(())
}

/// ±k·G, with the sign that makes k odd.
#[target_feature(enable = "avx512f,avx512ifma")]
#[inline(never)]
pub(crate) fn times_base<C: Curve<N>, const N: usize>(k: &Num<N>) -> Point<N> {
    let base = C::base();
    let (k, _) = odd::<C::Order, N>(k);
    let windows = recoded(&k, BASE_WINDOW, base.len());
    let (index, negative) = digit(&windows, 0, BASE_WINDOW);
    let mut sum = base.select(0, index).to_point::<C::Field>(negative);
    for window in 1..base.len() {
        let (index, negative) = digit(&windows, window, BASE_WINDOW);
        sum = add_affine::<C::Field, N>(&sum, &base.select(window, index), negative);
    }
    sum
}

/// s = k⁻¹·(e + r·d), and the signatures written.
#[target_feature(enable = "avx512f,avx512ifma")]
fn complete<C: Curve<N>, const N: usize>(
    requests: &mut [SignRequest<'_, N>],
    r: &Num<N>,
    inverse: &Num<N>,
    exceptions: Mask,
) {
    let mut keys = [[0; LANES]; N];
    let mut digests = [[0; LANES]; N];
    for (lane, request) in requests.iter().enumerate() {
        put(&mut keys, lane, &big_endian(request.key.scalar()));
        put(&mut digests, lane, &digest(request.digest, C::LENGTH));
    }
    let key = enter::<C::Order, N>(&Num::load(&keys));
    let sum = mul::<C::Order, N>(r, &key).plus(&Num::load(&digests)).carried();
    let s = least::<C::Order, N>(&mul::<C::Order, N>(&sum, inverse));
    let bad = exceptions | r.zeros() | s.zeros();
    let (r, s) = (r.store(), s.store());
    for (lane, request) in requests.iter_mut().enumerate() {
        if has(bad, lane) || request.signature.len() != 2 * C::LENGTH {
            request.by_library();
            continue;
        }
        let (to_r, to_s) = request.signature.split_at_mut(C::LENGTH);
        write_big_endian(&take(&r, lane), to_r);
        write_big_endian(&take(&s, lane), to_s);
        request.result = Ok(());
    }
}
