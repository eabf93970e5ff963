// SPDX-License-Identifier: Apache-2.0
//! Beside the plain library.

use super::*;
use crate::testing::{Random, inputs, judge};
use metaslot_awslc_wrapper::ml_dsa::MlDsaKey;
use metaslot_awslc_wrapper::seeded::SeededKey;
use std::hint::black_box;

fn pair(random: &mut Random, set: Set) -> (PrivateKey, MlDsaKey) {
    let key = MlDsaKey::of_seed(set, &random.bytes(32)).unwrap();
    (PrivateKey::new(set, key.expanded().unwrap().expose()).unwrap(), key)
}

fn mu(random: &mut Random) -> [u8; MU_LENGTH] {
    random.bytes(MU_LENGTH).try_into().unwrap()
}

#[test]
fn signatures_are_those_of_the_plain_library() {
    let mut random = Random::new();
    for set in Set::ALL {
        for _ in 0..inputs(20) {
            let (key, same) = pair(&mut random, set);
            let mut signature = vec![0; set.signature_length()];
            let mut right = signature.clone();
            for _ in 0..5 {
                let mu = mu(&mut random);
                key.sign(&mu, &[0; RANDOM_LENGTH], &mut signature).unwrap();
                same.sign_deterministically(&mu, &mut right).unwrap();
                assert_eq!(signature, right, "{set:?}");
            }
        }
    }
}

#[test]
fn every_width_finds_the_same() {
    let mut random = Random::new();
    for set in Set::ALL {
        let (key, same) = pair(&mut random, set);
        let expanded = same.expanded().unwrap();
        let (mu, fresh) = (mu(&mut random), [7; RANDOM_LENGTH]);
        let mut right = vec![0; set.signature_length()];
        key.sign(&mu, &fresh, &mut right).unwrap();
        same.verify(&mu, &right).unwrap();
        for kernel in Kernel::all() {
            let mut signature = vec![0; set.signature_length()];
            let key = PrivateKey::parsed(set, expanded.expose(), kernel).unwrap();
            key.signed(kernel, &mu, &fresh, &mut signature).unwrap();
            assert_eq!(signature, right, "{set:?} {kernel:?}");
        }
    }
}

#[test]
fn other_lengths_are_refused() {
    let mut random = Random::new();
    for set in Set::ALL {
        assert!(PrivateKey::new(set, &vec![0; set.private_length() - 1]).is_err());
        let (key, _) = pair(&mut random, set);
        for length in [set.signature_length() - 1, set.signature_length() + 1] {
            assert!(key.sign(&[0; 64], &[0; 32], &mut vec![0; length]).is_err());
        }
    }
}

/// The caller's memory sees no attempt but the one that succeeds.
#[test]
fn what_is_rejected_is_not_written() {
    let (mut random, mut rejected) = (Random::new(), 0);
    for set in Set::ALL {
        let (key, _) = pair(&mut random, set);
        for _ in 0..20 {
            let (mu, paint) = (mu(&mut random), vec![0xa5; set.signature_length()]);
            let mut masks =
                Masks::new(Terms::of(set), Masks::seed(&key.secret, &mu, &[0; 32]).unwrap());
            let mut attempt = Attempt::new(&key, Kernel::best().unwrap());
            let mut signature = paint.clone();
            while !attempt.succeeds(&mut masks, &mu, &mut signature).unwrap() {
                assert!(signature == paint, "{set:?}");
                rejected += 1;
            }
        }
    }
    assert!(rejected > 0);
}

/// The rounding of the definition, with divisions (algorithms 35 and 36).
#[test]
fn numbers_are_rounded_as_by_definition() {
    for (kernel, set) in
        Kernel::all().into_iter().flat_map(|kernel| [Set::Ml44, Set::Ml65].map(|set| (kernel, set)))
    {
        let rounding = &Terms::of(set).rounding;
        let step = 2 * rounding.half;
        let mut poly = Poly::ZERO;
        let mut highs = [0; 256];
        for first in (0..Q).step_by(256) {
            for (at, number) in (first..).zip(poly.0.as_flattened_mut()) {
                *number = at % Q;
            }
            kernel.decompose(&mut poly, rounding, &mut highs);
            for (at, (low, high)) in (first..).zip(poly.0.as_flattened().iter().zip(highs)) {
                let number = at % Q;
                let rest = number % step;
                let rest = if rest > rounding.half { rest - step } else { rest };
                let whole = number - rest;
                let right = if whole == Q - 1 { (rest - 1, 0) } else { (rest, whole / step) };
                assert_eq!((*low, i32::from(high)), right, "{number} {kernel:?}");
            }
        }
    }
}

/// Two keys, and for each µs whose signatures take one attempt: how many there are is public, and everything else takes its time whatever
/// the key is.
#[test]
fn time_does_not_tell_keys_apart() {
    const MANY: usize = 32;
    let mut random = Random::new();
    let (set, fresh) = (Set::Ml44, [0; RANDOM_LENGTH]);
    let (terms, kernel) = (Terms::of(set), Kernel::best().unwrap());
    let mut signature = vec![0; set.signature_length()];
    let both = [0, 1].map(|_| {
        let (key, _) = pair(&mut random, set);
        let mut mus = Vec::new();
        while mus.len() < MANY {
            let mu = mu(&mut random);
            let mut masks = Masks::new(terms, Masks::seed(&key.secret, &mu, &fresh).unwrap());
            let mut attempt = Attempt::new(&key, kernel);
            if attempt.succeeds(&mut masks, &mu, &mut signature).unwrap() {
                mus.push(mu);
            }
        }
        (key, mus)
    });
    let mut turn = 0;
    judge("ML-DSA", &mut Random::new(), 10_000, |class| {
        turn += 1;
        let (key, mus) = &both[class];
        black_box(key.sign(&mus[turn % MANY], &fresh, &mut signature)).unwrap();
    });
}
