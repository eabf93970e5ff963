// SPDX-License-Identifier: Apache-2.0
//! The public operation, for requests and for the check of private ones.

use super::arithmetic::{Scratch, power_public, subtract_once};
use super::constants::Part;
use super::key::PublicKey;
use super::memory::{LANES, Memory, lanes, put, put_limbs, take, write};
use super::multiply::{Modulus, Number, multiply};
use super::request::PublicRequest;

/// Blocks that [`raise`] works in, for numbers of so many.
pub(super) const fn blocks_to_raise(blocks: usize) -> usize {
    7 * blocks + 1
}

/// Answers up to [`LANES`] requests of one size, all of them failed so far.
pub(super) fn batch(requests: &mut [PublicRequest<'_>]) {
    let mut good: Vec<&mut PublicRequest<'_>> = Vec::with_capacity(LANES);
    good.extend(requests.iter_mut().filter(|request| {
        let size = request.key.size();
        request.input.len() == size
            && request.output.len() == size
            && request.key.exceeds(request.input)
    }));
    let Some(first) = good.first() else {
        return;
    };
    let compute = match first.key.size() {
        128 => compute::<2>,
        256 => compute::<4>,
        384 => compute::<6>,
        _ => compute::<8>,
    };
    // SAFETY: a key is only made where the instructions are.
    unsafe { compute(&mut good) };
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn compute<const B: usize>(requests: &mut [&mut PublicRequest<'_>]) {
    let mut memory = Memory::of_blocks(B + blocks_to_raise(B));
    let mut rest = memory.blocks();
    let value: &mut Number<B> = take(&mut rest);
    let mut keys = [requests[0].key; LANES];
    for (lane, request) in requests.iter().enumerate() {
        keys[lane] = request.key;
        put(value, lane, request.input);
    }
    raise(value, &keys, rest);
    for (lane, request) in requests.iter_mut().enumerate() {
        write(value, lane, request.output);
        request.result = Ok(());
    }
}

/// Each lane to the power of its key's exponent, modulo its key's modulus, which it is below. `rest` has
/// [`blocks_to_raise`] blocks.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn raise<const B: usize>(
    value: &mut Number<B>,
    keys: &[&PublicKey; LANES],
    mut rest: &mut [super::multiply::Block],
) {
    let n: &mut Number<B> = take(&mut rest);
    let one: &mut Number<B> = take(&mut rest);
    let base: &mut Number<B> = take(&mut rest);
    let power: &mut Number<B> = take(&mut rest);
    let number: &mut Number<B> = take(&mut rest);
    let k0: &mut Number<1> = take(&mut rest);
    for (lane, key) in keys.iter().enumerate() {
        put_limbs(n, lane, key.part(Part::Modulus));
        put_limbs(one, lane, key.part(Part::One));
        put_limbs(base, lane, key.part(Part::Square));
        lanes(k0)[0][lane] = key.k0();
    }
    let modulus = Modulus { n, k0: &k0[0][0] };
    let mut scratch = Scratch { columns: rest, number };
    multiply(base, value, scratch.columns, modulus);
    // The last factor is the number itself and not its Montgomery form: that takes R off the result.
    let exponents = keys.map(|key| key.exponent() - 1);
    power_public(power, base, one, &exponents, &mut scratch, modulus);
    multiply(value, power, scratch.columns, modulus);
    subtract_once(value, n);
}
