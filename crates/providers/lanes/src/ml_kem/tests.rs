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

/// The standard's check of a private key says nothing of its numbers from q to 4095.
#[test]
fn secret_numbers_beyond_q_count_modulo_q() {
    let mut random = Random::new();
    for sets in SETS {
        let (key, same) = pair(&mut random, sets);
        let mut bytes = same.expanded().unwrap().expose().to_vec();
        for three in bytes[..ENCODED * key.set().rank()].as_chunks_mut::<3>().0 {
            let [a, b, c] = three.map(u32::from);
            let both = [a | (b & 15) << 8, b >> 4 | c << 4];
            let [low, high] = both.map(|number| number + if number < 767 { 3329 } else { 0 });
            three.copy_from_slice(&(low | high << 12).to_le_bytes()[..3]);
        }
        let other = PrivateKey::new(key.set(), &bytes).unwrap();
        let mut ciphertext = vec![0; key.set().ciphertext_length()];
        let secret = public(&same).encapsulate(&mut ciphertext).unwrap();
        assert_eq!(other.decapsulate(&ciphertext).unwrap().expose(), secret.expose());
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
