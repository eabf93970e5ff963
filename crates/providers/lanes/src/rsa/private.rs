// SPDX-License-Identifier: Apache-2.0
//! The private operation.
//!
//! For each prime p and a random r, with the exponent d mod p−1 in the key less 1: (c·rᵉ)ᵈ⁻¹·c·rᵉ⁻¹ = cᵈ mod p. So blinding
//! needs no inverse and nothing that is kept between two operations: r is fresh each time, also in a forked child, and what is
//! raised to the secret exponent is independent of c.

use super::arithmetic::{Scratch, add, equal, power_public, subtract, subtract_once};
use super::constants::Part;
use super::key::{Prime, PrivateKey};
use super::memory::{LANES, Memory, lanes, put, put_limbs, take, write};
use super::multiply::{BLOCK, Block, MASK, Modulus, Number, multiply, product, reduce};
use super::power::{Exponentiation, Workspace};
use super::public::{blocks_to_raise, raise};
use super::request::PrivateRequest;
use core::arch::x86_64::*;
use metaslot_awslc_wrapper::random;
use metaslot_memory::{Secret, wipe_stack};

/// Answers up to [`LANES`] requests of one size, all of them failed so far.
pub(super) fn batch(requests: &mut [PrivateRequest<'_>]) {
    let mut good: Vec<&mut PrivateRequest<'_>> = Vec::with_capacity(LANES);
    good.extend(requests.iter_mut().filter(|request| {
        let key = request.key.public();
        request.input.len() == key.size()
            && request.output.len() == key.size()
            && key.exceeds(request.input)
    }));
    let Some(first) = good.first() else {
        return;
    };
    let compute = match first.key.public().size() {
        128 => compute::<1, 2>,
        256 => compute::<2, 4>,
        384 => compute::<3, 6>,
        _ => compute::<4, 8>,
    };
    // SAFETY: a key is only made where the instructions are.
    unsafe { compute(&mut good) };
    wipe_stack();
}

/// `B` is the number of blocks of a prime, `D` that of a modulus: twice as many.
#[target_feature(enable = "avx512f,avx512ifma")]
fn compute<const B: usize, const D: usize>(requests: &mut [&mut PrivateRequest<'_>]) {
    let few = requests.len() <= LANES / 2;
    let request_of = |lane| requests.len().min(1 + if few { lane % (LANES / 2) } else { lane }) - 1;
    let keys: [_; LANES] = std::array::from_fn(|lane| requests[request_of(lane)].key);
    let mut memory = Memory::of_blocks(2 * D + 2 * B + blocks_to_raise(D));
    let mut rest = memory.blocks();
    let input: &mut Number<D> = take(&mut rest);
    let result: &mut Number<D> = take(&mut rest);
    let of_p: &mut Number<B> = take(&mut rest);
    let of_q: &mut Number<B> = take(&mut rest);
    for lane in 0..LANES {
        put(input, lane, requests[request_of(lane)].input);
    }
    // Without random numbers nothing is computed, and all requests stay failed.
    let mut random = Secret::zeroed(2 * LANES * 64 * B);
    if random::fill(random.expose_mut()).is_err() {
        return;
    }
    // Up to four requests have both primes in one batch: lane 4 has the second one of lane 0.
    let half = |lane: usize| if lane < LANES / 2 { keys[lane].p() } else { keys[lane].q() };
    let primes = [keys.map(PrivateKey::p), keys.map(PrivateKey::q)];
    let primes = if few { &[std::array::from_fn(half)][..] } else { &primes };
    let mut workspaces: Vec<_> = primes.iter().map(|_| Workspace::<B>::new()).collect();
    let mut powers: Vec<_> = workspaces.iter_mut().map(Workspace::parts).collect();
    for ((power, primes), random) in
        powers.iter_mut().zip(primes).zip(random.expose().chunks_exact(LANES * 64 * B))
    {
        prepare(power, primes, random);
        blind(power, input, &keys);
    }
    Exponentiation::run(&mut powers);
    for power in &mut powers {
        unblind(power);
    }
    match &*powers {
        [p, q] => (*of_p, *of_q) = (*p.value, *q.value),
        [both, ..] => {
            *of_p = *both.value;
            for (of_q, both) in of_q.as_flattened_mut().iter_mut().zip(both.value.as_flattened()) {
                *of_q = _mm512_shuffle_i64x2::<0b01_00_11_10>(*both, *both);
            }
        }
        [] => {}
    }
    recombine(result, of_p, of_q, &keys, rest);
    let mut raised = Memory::of_blocks(D);
    let raised: &mut Number<D> = take(&mut raised.blocks());
    *raised = *result;
    raise(raised, &keys.map(PrivateKey::public), rest);
    let right = equal(raised, input);
    for (lane, request) in requests.iter_mut().enumerate() {
        if right >> lane & 1 == 1 {
            write(result, lane, request.output);
            request.result = Ok(());
        }
    }
}

/// Puts keys and random numbers into their places.
fn prepare<const B: usize>(
    power: &mut Exponentiation<'_, B>,
    primes: &[&Prime; LANES],
    random: &[u8],
) {
    let [c, blinding, _] = &mut power.others;
    for (lane, (prime, random)) in primes.iter().zip(random.chunks_exact(64 * B)).enumerate() {
        put_limbs(power.n, lane, prime.part(Part::Modulus));
        put_limbs(power.one, lane, prime.part(Part::One));
        put_limbs(*c, lane, prime.part(Part::Cube));
        put_limbs(power.k0, lane, prime.k0());
        // As many bits as the prime has: below 2p.
        put(*blinding, lane, random);
        for (digits, digit) in power.digits.iter_mut().zip(prime.digits()) {
            digits[lane] = *digit;
        }
    }
}

/// Makes c·rᵉ, to be raised, from the input, and keeps c and rᵉ⁻¹.
#[target_feature(enable = "avx512f,avx512ifma")]
fn blind<const B: usize, const D: usize>(
    power: &mut Exponentiation<'_, B>,
    input: &Number<D>,
    keys: &[&PrivateKey; LANES],
) {
    let modulus = Modulus { n: power.n, k0: &power.k0[0][0] };
    let [c, blinding, unblinding] = &mut power.others;
    // c < n < R·p: reduced it is c/R, which R³ brings into Montgomery form.
    power.columns.copy_from_slice(input);
    reduce(power.value, power.columns, modulus);
    multiply(c, power.value, power.columns, modulus);
    let exponents = keys.map(|key| key.public().exponent() - 1);
    let mut scratch = Scratch { columns: power.columns, number: power.value };
    power_public(unblinding, blinding, power.one, &exponents, &mut scratch, modulus);
    multiply(blinding, unblinding, power.columns, modulus);
    *power.value = **c;
    multiply(power.value, blinding, power.columns, modulus);
}

/// Multiplies (c·rᵉ)ᵈ⁻¹ by c·rᵉ⁻¹.
#[target_feature(enable = "avx512f,avx512ifma")]
fn unblind<const B: usize>(power: &mut Exponentiation<'_, B>) {
    let modulus = Modulus { n: power.n, k0: &power.k0[0][0] };
    let [c, _, unblinding] = &power.others;
    multiply(power.value, c, power.columns, modulus);
    multiply(power.value, unblinding, power.columns, modulus);
}

/// m = m_q + q·((m_p − m_q)/q mod p) (RFC 8017 §5.1.2), from both in Montgomery form.
#[target_feature(enable = "avx512f,avx512ifma")]
fn recombine<const B: usize, const D: usize>(
    result: &mut Number<D>,
    of_p: &mut Number<B>,
    of_q: &mut Number<B>,
    keys: &[&PrivateKey; LANES],
    mut rest: &mut [Block],
) {
    let p: &mut Number<B> = take(&mut rest);
    let q: &mut Number<B> = take(&mut rest);
    let square: &mut Number<B> = take(&mut rest);
    let coefficient: &mut Number<B> = take(&mut rest);
    let k0: &mut Number<1> = take(&mut rest);
    let columns: &mut Number<D> = take(&mut rest);
    for (lane, key) in keys.iter().enumerate() {
        put_limbs(p, lane, key.p().part(Part::Modulus));
        put_limbs(q, lane, key.q().part(Part::Modulus));
        put_limbs(square, lane, key.p().part(Part::Square));
        put_limbs(coefficient, lane, key.p().coefficient());
        put_limbs(&mut k0[..1], lane, key.p().k0());
        lanes(k0)[1][lane] = u64::from_ne_bytes(*key.q().k0().first_chunk().unwrap_or(&[0; 8]));
    }
    let modulo_p = Modulus { n: p, k0: &k0[0][0] };
    let modulo_q = Modulus { n: q, k0: &k0[0][1] };
    columns.fill([_mm512_setzero_si512(); BLOCK]);
    columns[..B].copy_from_slice(of_q);
    reduce(of_q, columns, modulo_q);
    subtract_once(of_q, q);
    // In Montgomery form modulo p, m_q is below 2p as the primes have equally many bits.
    multiply(square, of_q, columns, modulo_p);
    add(of_p, p);
    add(of_p, p);
    subtract(of_p, square);
    // The coefficient is in no Montgomery form, and so takes R off.
    multiply(of_p, coefficient, columns, modulo_p);
    subtract_once(of_p, p);
    product(result, of_p, q);
    let mask = _mm512_set1_epi64(MASK.cast_signed());
    let mut carry = _mm512_setzero_si512();
    let added =
        of_q.as_flattened().iter().copied().chain(std::iter::repeat(_mm512_setzero_si512()));
    for (limb, added) in result.as_flattened_mut().iter_mut().zip(added) {
        let sum = _mm512_add_epi64(_mm512_add_epi64(*limb, added), carry);
        carry = _mm512_srli_epi64::<52>(sum);
        *limb = _mm512_and_si512(sum, mask);
    }
}
