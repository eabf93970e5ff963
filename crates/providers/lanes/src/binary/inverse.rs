// SPDX-License-Identifier: Apache-2.0
//! Inverses modulo an odd number in constant time: Bernstein and Yang, "Fast constant-time gcd computation and modular
//! inversion" (CHES 2019). The number of division steps depends on the modulus alone, and a step on masks.
#![expect(clippy::cast_possible_truncation, reason = "sums are cut into their limbs")]

/// Bits of a limb but the last, which has the sign: 62 steps at a time fit into a word.
const LIMB: usize = 62;
const MASK: i64 = (1 << LIMB) - 1;
/// Limbs of the longest order.
const MAX_LIMBS: usize = 10;

/// A signed number: the lowest limb first, all but the last between 0 and [`MASK`].
type Number = [i64; MAX_LIMBS];

/// What 62 steps do to (f, g): 2^62 times the new f is u f + v g, the new g is q f + r g.
struct Steps {
    u: i64,
    v: i64,
    q: i64,
    r: i64,
}

/// 1/a modulo n, which is odd and has `bits` bits; a is below n and prime to it, or the result is worthless.
/// `negative_inverse` is -1/n mod 2^64.
pub(super) fn inverse<const W: usize>(
    a: &[u64; W],
    n: &[u64; W],
    bits: usize,
    negative_inverse: u64,
) -> [u64; W] {
    let length = bits.div_ceil(LIMB);
    let modulus = &split(n)[..length];
    let (mut f, mut g) = (split(n), split(a));
    let (mut d, mut e) = ([0; MAX_LIMBS], [0; MAX_LIMBS]);
    e[0] = 1;
    let (f, g) = (&mut f[..length], &mut g[..length]);
    let (d, e) = (&mut d[..length], &mut e[..length]);
    let factor = negative_inverse.wrapping_neg().cast_signed();
    // Theorem 11.2: so many steps suffice for numbers of 46 bits or more.
    let steps = (49 * bits + 57) / 17;
    let mut delta = 1;
    for _ in 0..steps.div_ceil(LIMB) {
        let steps = divide(&mut delta, f[0], g[0]);
        apply(&steps, f, g);
        apply_modulo(&steps, d, e, modulus, factor);
    }
    // f is 1 or -1, and d times a is f modulo n.
    let sign = f[length - 1] >> 63;
    normalise(d, modulus, sign);
    join(d)
}

/// 62 division steps on the lowest bits of f and g.
fn divide(delta: &mut i64, f: i64, g: i64) -> Steps {
    let (mut f, mut g) = (f, g);
    let (mut u, mut v, mut q, mut r) = (1_i64, 0_i64, 0_i64, 1_i64);
    for _ in 0..LIMB {
        let odd = (g & 1).wrapping_neg();
        let swap = odd & (delta.wrapping_neg() >> 63);
        // g + f, or g - f where they change places; nothing where g is even.
        g = g.wrapping_add(((f ^ swap) - swap) & odd);
        q = q.wrapping_add(((u ^ swap) - swap) & odd);
        r = r.wrapping_add(((v ^ swap) - swap) & odd);
        f = f.wrapping_add(g & swap);
        u = u.wrapping_add(q & swap);
        v = v.wrapping_add(r & swap);
        *delta = (*delta ^ swap) - swap + 1;
        g >>= 1;
        u = u.wrapping_shl(1);
        v = v.wrapping_shl(1);
    }
    Steps { u, v, q, r }
}

fn term(a: i64, b: i64) -> i128 {
    i128::from(a) * i128::from(b)
}

/// Both numbers after the steps.
fn apply(steps: &Steps, f: &mut [i64], g: &mut [i64]) {
    let length = f.len();
    let mut low = (term(steps.u, f[0]) + term(steps.v, g[0])) >> LIMB;
    let mut high = (term(steps.q, f[0]) + term(steps.r, g[0])) >> LIMB;
    for at in 1..length {
        low += term(steps.u, f[at]) + term(steps.v, g[at]);
        high += term(steps.q, f[at]) + term(steps.r, g[at]);
        f[at - 1] = low as i64 & MASK;
        g[at - 1] = high as i64 & MASK;
        low >>= LIMB;
        high >>= LIMB;
    }
    f[length - 1] = low as i64;
    g[length - 1] = high as i64;
}

/// The same modulo n: multiples of n are added that make the sums divisible by 2^62. Both numbers stay between -2n and n.
fn apply_modulo(steps: &Steps, d: &mut [i64], e: &mut [i64], n: &[i64], factor: i64) {
    let length = d.len();
    let (negative_d, negative_e) = (d[length - 1] >> 63, e[length - 1] >> 63);
    let lift_low = (steps.u & negative_d) + (steps.v & negative_e);
    let lift_high = (steps.q & negative_d) + (steps.r & negative_e);
    let mut low = term(steps.u, d[0]) + term(steps.v, e[0]);
    let mut high = term(steps.q, d[0]) + term(steps.r, e[0]);
    let balance =
        |sum: i128, lift: i64| lift - (factor.wrapping_mul(sum as i64).wrapping_add(lift) & MASK);
    let (times_low, times_high) = (balance(low, lift_low), balance(high, lift_high));
    low = (low + term(times_low, n[0])) >> LIMB;
    high = (high + term(times_high, n[0])) >> LIMB;
    for at in 1..length {
        low += term(steps.u, d[at]) + term(steps.v, e[at]) + term(times_low, n[at]);
        high += term(steps.q, d[at]) + term(steps.r, e[at]) + term(times_high, n[at]);
        d[at - 1] = low as i64 & MASK;
        e[at - 1] = high as i64 & MASK;
        low >>= LIMB;
        high >>= LIMB;
    }
    d[length - 1] = low as i64;
    e[length - 1] = high as i64;
}

/// d, which lies between -2n and n, or -d where `sign` is all ones, from 0 to n - 1.
fn normalise(d: &mut [i64], n: &[i64], sign: i64) {
    add_masked(d, n, negative(d));
    for limb in d.iter_mut() {
        *limb = (*limb ^ sign) - sign;
    }
    carry(d);
    add_masked(d, n, negative(d));
}

fn negative(d: &[i64]) -> i64 {
    d[d.len() - 1] >> 63
}

fn add_masked(d: &mut [i64], n: &[i64], mask: i64) {
    for (d, n) in d.iter_mut().zip(n) {
        *d += n & mask;
    }
    carry(d);
}

fn carry(d: &mut [i64]) {
    let last = d.len() - 1;
    let mut over = 0;
    for limb in &mut d[..last] {
        *limb += over;
        over = *limb >> LIMB;
        *limb &= MASK;
    }
    d[last] += over;
}

fn split<const W: usize>(words: &[u64; W]) -> Number {
    let mut out = [0; MAX_LIMBS];
    for (at, limb) in out.iter_mut().enumerate() {
        let (word, bit) = (at * LIMB / 64, at * LIMB % 64);
        let low = words.get(word).copied().unwrap_or(0);
        let high = words.get(word + 1).copied().unwrap_or(0);
        let both = u128::from(low) | u128::from(high) << 64;
        *limb = ((both >> bit) as u64).cast_signed() & MASK;
    }
    out
}

fn join<const W: usize>(limbs: &[i64]) -> [u64; W] {
    let mut out = [0; W];
    for (at, limb) in limbs.iter().enumerate() {
        let (word, bit) = (at * LIMB / 64, at * LIMB % 64);
        let both = u128::from(limb.cast_unsigned()) << bit;
        if word < W {
            out[word] |= both as u64;
        }
        if word + 1 < W {
            out[word + 1] |= (both >> 64) as u64;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binary::curve::{Curve, Kind, Task, on};
    use crate::binary::field::Field;
    use crate::binary::form::Form;
    use crate::binary::params::Params;
    use crate::testing::{Random, inputs};

    struct Inverses<'a>(&'a mut Random);

    impl Task for Inverses<'_> {
        type Answer = ();

        fn run<A: Form<F, W>, F: Field<W>, const W: usize>(self, _: A, curve: &'static Params<W>) {
            let order = &curve.order;
            let mut one = [0; W];
            one[0] = 1;
            let mut minus_one = order.n;
            minus_one[0] -= 1;
            let random = inputs(100_000) / Curve::ALL.len();
            for round in 0..random {
                let a = match round {
                    0 => one,
                    1 => minus_one,
                    _ if round % 8 == 2 => order.reduce(&[u64::MAX << (round % 64); W]),
                    _ => order.reduce(&[(); W].map(|()| self.0.word())),
                };
                let found = inverse(&a, &order.n, order.bits, order.factor);
                let product = order.mul(&order.to_montgomery(&a), &found);
                assert!(product == one && order.contains(&found), "{a:x?}");
            }
        }
    }

    #[test]
    fn a_number_times_its_inverse_is_1() {
        let mut random = Random::new();
        for curve in Curve::ALL {
            on(curve, Kind::Portable, Inverses(&mut random));
        }
    }
}
