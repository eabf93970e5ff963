// SPDX-License-Identifier: Apache-2.0
//! Beside the plain library.

use super::*;
use crate::testing::{Random, inputs, judge};
use metaslot_awslc_wrapper::ml_kem::{self as plain, MlKemKey};
use metaslot_awslc_wrapper::seeded::SeededKey;

const SETS: [(Set, plain::Set); 2] =
    [(Set::Ml768, plain::Set::Ml768), (Set::Ml1024, plain::Set::Ml1024)];

fn pair(random: &mut Random, (set, same): (Set, plain::Set)) -> (PrivateKey, MlKemKey) {
    let key = MlKemKey::of_seed(same, &random.bytes(64)).unwrap();
    (PrivateKey::new(set, key.expanded().unwrap().expose()).unwrap(), key)
}

fn public(key: &MlKemKey) -> MlKemKey {
    MlKemKey::of_public(key.set(), &key.public_bytes().unwrap()).unwrap()
}

#[test]
fn secrets_are_those_of_the_plain_library() {
    let mut random = Random::new();
    for sets in SETS {
        for _ in 0..inputs(40) {
            let (key, same) = pair(&mut random, sets);
            let mut ciphertext = vec![0; key.set().ciphertext_length()];
            let secret = public(&same).encapsulate(&mut ciphertext).unwrap();
            assert_eq!(key.decapsulate(&ciphertext).unwrap().expose(), secret.expose());
            let at = random.below(ciphertext.len());
            ciphertext[at] ^= 1 << random.below(8);
            let (rejected, right) = (key.decapsulate(&ciphertext), same.decapsulate(&ciphertext));
            assert_eq!(rejected.unwrap().expose(), right.unwrap().expose(), "byte {at}");
            let rubbish = random.bytes(ciphertext.len());
            let (rejected, right) = (key.decapsulate(&rubbish), same.decapsulate(&rubbish));
            assert_eq!(rejected.unwrap().expose(), right.unwrap().expose());
            assert!(key.decapsulate(&rubbish[1..]).is_err());
        }
    }
}

#[test]
fn every_width_finds_the_same() {
    let mut random = Random::new();
    for sets in SETS {
        let (key, _) = pair(&mut random, sets);
        let ciphertext = random.bytes(key.set().ciphertext_length());
        let right = key.decapsulate(&ciphertext).unwrap();
        let mut secret = [0; SECRET_LENGTH];
        key.open_here(&ciphertext, &mut secret).unwrap();
        assert_eq!(secret, right.expose());
    }
}

#[test]
fn keys_of_another_length_are_none() {
    for (set, _) in SETS {
        assert!(PrivateKey::new(set, &vec![0; set.private_length() - 1]).is_err());
    }
}

/// An honest ciphertext, and one of the same length that is not.
#[test]
fn time_does_not_tell_honest_ciphertexts_from_others() {
    let mut random = Random::new();
    let (key, same) = pair(&mut random, SETS[0]);
    let mut honest = vec![0; key.set().ciphertext_length()];
    drop(public(&same).encapsulate(&mut honest).unwrap());
    let mut other = honest.clone();
    other[7] ^= 1;
    let both = [honest, other];
    let mut input = both[0].clone();
    judge("decapsulation", &mut Random::new(), 20_000, |class| {
        input.copy_from_slice(&both[class]);
        black_box(key.decapsulate(&input).unwrap());
    });
}
