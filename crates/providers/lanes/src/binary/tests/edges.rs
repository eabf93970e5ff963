// SPDX-License-Identifier: Apache-2.0
//! Keys, points and signatures at the edges of what is valid.

use super::{derive_each, sign_each, verify_each};
use crate::binary::bytes::to_bytes;
use crate::binary::curve::{Curve, Kind, Task, on};
use crate::binary::field::Field;
use crate::binary::form::Form;
use crate::binary::key::public_keys_with;
use crate::binary::params::Params;
use crate::binary::point::{are_valid, decompress};
use crate::binary::{BATCH, Derive, Error, PrivateKey, PublicKey, Sign, Verify};
use crate::binary::{derive, generate, public_keys, sign, verify};
use crate::testing::Random;

/// The order less `less`, in its bytes.
fn order_less(curve: Curve, less: u64) -> Vec<u8> {
    struct Less(u64);
    impl Task for Less {
        type Answer = Vec<u8>;
        fn run<A: Form<F, W>, F: Field<W>, const W: usize>(
            self,
            _: A,
            curve: &'static Params<W>,
        ) -> Vec<u8> {
            let mut words = curve.order.n;
            words[0] = words[0].checked_sub(self.0).unwrap();
            let mut out = vec![0; curve.order.length()];
            to_bytes(&words, &mut out);
            out
        }
    }
    on(curve, Kind::Portable, Less(less))
}

#[test]
fn private_keys_lie_between_0_and_the_order() {
    for curve in Curve::ALL {
        let length = curve.order_length();
        for bad in [vec![], vec![0; length], order_less(curve, 0), vec![255; length], vec![1; 100]]
        {
            assert_eq!(PrivateKey::from_bytes(curve, &bad).err(), Some(Error::Key));
        }
        let long = [&[0; 80], order_less(curve, 1).as_slice()].concat();
        for good in [vec![1], order_less(curve, 1), long] {
            let key = PrivateKey::from_bytes(curve, &good).unwrap();
            let padded = [vec![0; length], good].concat();
            assert_eq!(key.to_bytes().expose(), &padded[padded.len() - length..]);
        }
    }
}

#[test]
fn opposite_keys_have_opposite_points() {
    for curve in Curve::ALL {
        for kind in Kind::all() {
            let small = [1, 2, 3].map(|d| PrivateKey::from_bytes(curve, &[d]).unwrap());
            let large =
                [1, 2, 3].map(|d| PrivateKey::from_bytes(curve, &order_less(curve, d)).unwrap());
            let keys: Vec<_> = small.iter().chain(&large).collect();
            let public = public_keys_with(kind, &keys);
            for (p, q) in public[..3].iter().zip(&public[3..]) {
                let (p, q) = (p.point::<9>(), q.point::<9>());
                assert_eq!(p.x, q.x, "{curve:?} {kind:?}");
                for at in 0..9 {
                    assert_eq!(p.y[at] ^ q.y[at], p.x[at]);
                }
            }
            // d = n - 1 with the peer n - 1: the base point itself, in either way.
            let square = derive_each(kind, &[(&large[0], &public[3])], false);
            assert_eq!(square[0], public[0].to_bytes()[1..=curve.field_length()]);
        }
    }
}

struct Subgroup<'a>(&'a mut Random);

impl Task for Subgroup<'_> {
    type Answer = [u32; 2];

    /// Compares the check of the order with a multiplication by it; returns how many points are not of that order, and are.
    fn run<A: Form<F, W>, F: Field<W>, const W: usize>(
        self,
        form: A,
        curve: &'static Params<W>,
    ) -> [u32; 2] {
        let mut counts = [0; 2];
        for _ in 0..24 {
            let x = super::forms::element::<F, W>(self.0);
            for bit in 0..2 {
                let Some(point) = decompress(form, curve, &x, bit) else { continue };
                let valid = are_valid(form, curve, &[point])[0];
                let end = form.ladder(curve, &form.load(&[x]), &[curve.order.n]);
                assert_eq!(valid, form.store(&end.z1)[0] == [0; W]);
                counts[usize::from(valid)] += 1;
                let mut off = point;
                off.y[0] ^= 2;
                assert!(!are_valid(form, curve, &[off])[0]);
            }
        }
        counts
    }
}

#[test]
fn a_point_is_valid_if_the_order_takes_it_to_infinity() {
    let mut random = Random::new();
    for kind in Kind::all() {
        let mut sum = [0; 2];
        for curve in Curve::ALL {
            let counts = on(curve, kind, Subgroup(&mut random));
            sum = [sum[0] + counts[0], sum[1] + counts[1]];
        }
        assert!(sum[0] > 100 && sum[1] > 20, "{sum:?}");
    }
}

#[test]
fn bad_encodings_do_not_disturb_their_neighbours() {
    for curve in Curve::ALL {
        let (_, good) = generate(curve, 1).unwrap().pop().unwrap();
        let encoding = good.to_bytes();
        let length = curve.field_length();
        let (x, y) = encoding[1..].split_at(length);
        let mut flipped = encoding.clone();
        flipped[length] ^= 1;
        let mut beyond = encoding.clone();
        beyond[1] |= 0x80;
        let bad = [
            vec![],
            vec![0],
            vec![4],
            vec![0; 1 + 2 * length],
            [&[4], vec![0; 2 * length].as_slice()].concat(),
            [&[5], &encoding[1..]].concat(),
            [&encoding, [0].as_slice()].concat(),
            encoding[..2 * length].to_vec(),
            [&[4], y, x].concat(),
            flipped,
            beyond,
            [&[2], vec![0; length].as_slice()].concat(),
        ];
        let mut all: Vec<&[u8]> = bad.iter().map(Vec::as_slice).collect();
        all.insert(5, &encoding);
        for kind in Kind::all() {
            let keys = PublicKey::parse_with(kind, curve, &all);
            for (at, key) in keys.into_iter().enumerate() {
                assert_eq!(
                    key,
                    if at == 5 { Ok(good) } else { Err(Error::Point) },
                    "{curve:?} {at}"
                );
            }
            let compressed = [2, 3].map(|tag| [&[tag], x].concat());
            let both = compressed.each_ref().map(Vec::as_slice);
            let keys = PublicKey::parse_with(kind, curve, &both);
            assert_eq!(keys.iter().filter(|key| **key == Ok(good)).count(), 1);
        }
    }
}

#[test]
fn a_batch_may_mix_curves_and_errors() {
    let mut random = Random::new();
    let pairs: Vec<_> =
        (0..40).flat_map(|_| generate(Curve::ALL[random.below(11)], 1).unwrap()).collect();
    let digests: Vec<_> = (0..40).map(|at| random.bytes(2 * at)).collect();
    let curve = |at: usize| pairs[at].0.curve();
    let length = |at: usize| 2 * curve(at).order_length() - usize::from(at % 7 == 3);
    let mut signatures: Vec<_> = (0..40).map(|at| vec![0; length(at)]).collect();
    let places = pairs.iter().zip(&digests).zip(&mut signatures);
    let mut requests: Vec<_> =
        places.map(|(((key, _), digest), out)| Sign::new(key, digest, out)).collect();
    sign(&mut requests);
    for (at, request) in requests.iter().enumerate() {
        assert_eq!(request.answer, if at % 7 == 3 { Err(Error::Length) } else { Ok(()) });
    }
    for signature in signatures.iter_mut().step_by(5) {
        let bit = random.below(8 * signature.len());
        signature[bit / 8] ^= 1 << (bit % 8);
    }
    let things = pairs.iter().zip(&digests).zip(&signatures);
    let mut requests: Vec<_> =
        things.map(|(((_, key), digest), made)| Verify::new(key, digest, made)).collect();
    verify(&mut requests);
    for (at, request) in requests.iter().enumerate() {
        let expected = match at {
            _ if at % 7 == 3 => Err(Error::Length),
            _ if at % 5 == 0 => Err(Error::Signature),
            _ => Ok(()),
        };
        assert_eq!(request.answer, expected);
    }
    let keys: Vec<_> = pairs.iter().map(|(key, _)| key).collect();
    let public: Vec<_> = pairs.iter().map(|(_, public)| *public).collect();
    assert_eq!(public_keys(&keys), public);
}

#[test]
fn both_sides_derive_the_same_secret_or_are_told_why_not() {
    for curve in Curve::ALL {
        let pairs = generate(curve, BATCH + 1).unwrap();
        for kind in Kind::all() {
            for cofactor in [false, true] {
                let mine: Vec<_> = (0..BATCH).map(|at| (&pairs[at].0, &pairs[at + 1].1)).collect();
                let theirs: Vec<_> =
                    (0..BATCH).map(|at| (&pairs[at + 1].0, &pairs[at].1)).collect();
                let secrets = derive_each(kind, &mine, cofactor);
                assert_eq!(secrets, derive_each(kind, &theirs, cofactor));
            }
        }
    }
    let (key, public) = generate(Curve::Sect163k1, 1).unwrap().pop().unwrap();
    let (_, other) = generate(Curve::Sect163r2, 1).unwrap().pop().unwrap();
    let (mut short, mut first, mut second) = ([0; 20], [0; 21], [0; 21]);
    let mut requests = [
        Derive::new(&key, &public, false, &mut short),
        Derive::new(&key, &other, false, &mut first),
        Derive::new(&key, &public, false, &mut second),
    ];
    assert_eq!(requests[0].answer, Err(Error::Pending));
    derive(&mut requests);
    let answers = requests.map(|request| request.answer);
    assert_eq!(answers, [Err(Error::Length), Err(Error::Curve), Ok(())]);
    assert!(first == [0; 21] && second != [0; 21]);
}

/// The order's leftmost bits of a digest that are r.
fn digest_of(curve: Curve, r: &[u8]) -> Vec<u8> {
    let surplus = 8 * r.len() - curve.order_bits();
    let shifted = |at: usize| {
        let next = r.get(at + 1).copied().unwrap_or(0);
        (u16::from_be_bytes([r[at], next]) << surplus).to_be_bytes()[0]
    };
    (0..r.len()).map(shifted).collect()
}

/// The signature with the key 1, the nonce 1 and the digest r: s is 2r.
struct Doubled;

impl Task for Doubled {
    type Answer = Vec<u8>;

    fn run<A: Form<F, W>, F: Field<W>, const W: usize>(
        self,
        _: A,
        curve: &'static Params<W>,
    ) -> Vec<u8> {
        let r = curve.order.reduce(&curve.base.x);
        let mut out = vec![0; 2 * curve.order.length()];
        let (left, right) = out.split_at_mut(curve.order.length());
        curve.order.write(&r, left);
        curve.order.write(&curve.order.add(&r, &r), right);
        out
    }
}

#[test]
fn signatures_at_the_edges_are_judged_rightly() {
    for curve in Curve::ALL {
        for kind in Kind::all() {
            let one = PrivateKey::from_bytes(curve, &[1]).unwrap();
            let minus_one = PrivateKey::from_bytes(curve, &order_less(curve, 1)).unwrap();
            let public = public_keys_with(kind, &[&one, &minus_one]);
            // A digest of zeros leaves the key's multiple alone.
            let zeros = sign_each(kind, &[&one], &[0; 32]).pop().unwrap();
            // The key 1 and the digest r give two equal points to add; with the key n - 1 they are opposite.
            let doubled = on(curve, kind, Doubled);
            let digest = digest_of(curve, &doubled[..curve.order_length()]);
            let length = curve.order_length();
            let zero_r = [&vec![0; length], &zeros[length..]].concat();
            let zero_s = [&zeros[..length], vec![0; length].as_slice()].concat();
            let large_s = [&zeros[..length], order_less(curve, 0).as_slice()].concat();
            let what: [(&PublicKey, &[u8], &[u8]); 7] = [
                (&public[0], &[0; 32], &zeros),
                (&public[0], &digest, &doubled),
                (&public[1], &digest, &doubled),
                (&public[1], &[0; 32], &zero_r),
                (&public[0], &[0; 32], &zero_s),
                (&public[0], &[0; 32], &large_s),
                (&public[1], &[0; 32], &zeros),
            ];
            let answers = verify_each(kind, &what).into_iter().map(|answer| answer.is_ok());
            // The last: -P has the same x as P.
            let expected = [true, true, false, false, false, false, true];
            assert_eq!(answers.collect::<Vec<_>>(), expected, "{curve:?} {kind:?}");
        }
    }
}

#[test]
fn a_small_stack_is_enough() {
    let run = || {
        for kind in Kind::all() {
            let pairs = generate(Curve::Sect571r1, BATCH).unwrap();
            let keys: Vec<_> = pairs.iter().map(|(key, _)| key).collect();
            let signatures = sign_each(kind, &keys, &[1; 64]);
            let what: Vec<_> = pairs
                .iter()
                .zip(&signatures)
                .map(|((_, key), made)| (key, [1; 64].as_slice(), made.as_slice()))
                .collect();
            assert!(verify_each(kind, &what).iter().all(Result::is_ok));
        }
    };
    let small = std::thread::Builder::new().stack_size(96 * 1024).spawn(run).unwrap();
    small.join().unwrap();
}
