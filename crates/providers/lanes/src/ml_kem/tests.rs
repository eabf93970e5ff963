// SPDX-License-Identifier: Apache-2.0
//! Beside the plain library.

use super::*;
use crate::peak::{Port, count};
use crate::testing::{Random, inputs, judge};
use crate::weierstrass::vectors;
use metaslot_awslc_wrapper::ml_kem::MlKemKey;
use metaslot_awslc_wrapper::seeded::SeededKey;

const SETS: [Set; 3] = [Set::Ml512, Set::Ml768, Set::Ml1024];

/// A pair, and the plain library's; `None` where the processor lacks the instructions.
fn pair(random: &mut Random, set: Set) -> Option<(PrivateKey, PublicKey, MlKemKey)> {
    let key = MlKemKey::of_seed(set, &random.bytes(64)).unwrap();
    let (bytes, public) = (key.expanded().unwrap(), key.public_bytes().unwrap());
    let (private, public) = (PrivateKey::new(set, bytes.expose()), PublicKey::new(set, &public));
    assert_eq!(private.is_ok() && public.is_ok(), available());
    Some((private.ok()?, public.ok()?, key))
}

fn public(key: &MlKemKey) -> MlKemKey {
    MlKemKey::of_public(key.set(), &key.public_bytes().unwrap()).unwrap()
}

#[test]
fn secrets_are_those_of_the_plain_library() {
    let mut random = Random::new();
    for set in SETS {
        for _ in 0..inputs(40) {
            let Some((key, _, same)) = pair(&mut random, set) else { return };
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
fn the_plain_library_opens_what_is_made_here() {
    let mut random = Random::new();
    for set in SETS {
        let mut before = Vec::new();
        for _ in 0..inputs(40) {
            let Some((key, public, same)) = pair(&mut random, set) else { return };
            let mut ciphertext = vec![0; set.ciphertext_length()];
            let secret = public.encapsulate(&mut ciphertext).unwrap();
            assert_eq!(same.decapsulate(&ciphertext).unwrap().expose(), secret.expose());
            assert_eq!(key.decapsulate(&ciphertext).unwrap().expose(), secret.expose());
            assert_ne!(secret.expose(), before, "the message is random");
            before = secret.expose().to_vec();
            assert!(public.encapsulate(&mut ciphertext[1..]).is_err());
        }
    }
}

#[test]
fn wycheproof_messages_have_the_right_ciphertexts() {
    let mut found = 0;
    for (set, number) in SETS.into_iter().zip([512, 768, 1024]) {
        let file = vectors::file(&format!("mlkem_{number}_encaps_test.json"));
        for (_, case) in vectors::cases(&file) {
            let [message, key, ciphertext, shared] =
                ["m", "ek", "c", "K"].map(|name| vectors::bytes(&case[name]));
            let Ok(key) = PublicKey::new(set, &key) else { continue };
            // Keys that are not reduced are for who checks them.
            if case["result"] == "valid" {
                let mut out = vec![0; ciphertext.len()];
                let secret = key.encapsulate_this(&message, &mut out).unwrap();
                assert_eq!((secret.expose(), out), (&*shared, ciphertext), "{}", case["tcId"]);
                found += 1;
            }
        }
    }
    assert!(found > 300 || !available());
}

#[test]
fn keys_of_another_length_are_none() {
    for set in SETS {
        assert!(PrivateKey::new(set, &vec![0; set.private_length() - 1]).is_err());
        assert!(PublicKey::new(set, &vec![0; set.public_length() + 1]).is_err());
    }
}

/// The standard's check of a private key says nothing of its numbers from q to 4095.
#[test]
fn secret_numbers_beyond_q_count_modulo_q() {
    let mut random = Random::new();
    for set in SETS {
        let Some((_, _, same)) = pair(&mut random, set) else { return };
        let mut bytes = same.expanded().unwrap().expose().to_vec();
        for three in bytes[..ENCODED * set.rank()].as_chunks_mut::<3>().0 {
            let [a, b, c] = three.map(u32::from);
            let both = [a | (b & 15) << 8, b >> 4 | c << 4];
            let [low, high] = both.map(|number| number + if number < 767 { 3329 } else { 0 });
            three.copy_from_slice(&(low | high << 12).to_le_bytes()[..3]);
        }
        let other = PrivateKey::new(set, &bytes).unwrap();
        let mut ciphertext = vec![0; set.ciphertext_length()];
        let secret = public(&same).encapsulate(&mut ciphertext).unwrap();
        assert_eq!(other.decapsulate(&ciphertext).unwrap().expose(), secret.expose());
    }
}

/// The port's limit is stated for what is executed: no less than Keccak takes, 95 for each of 24 rounds of nine permutations, and little
/// more than what the polynomials take beside it.
#[test]
fn a_decapsulation_executes_as_many_vector_instructions_as_its_limit_says() {
    if !Port::ShortVector.available() {
        return;
    }
    let Some((key, public, _)) = pair(&mut Random::new(), Set::Ml768) else { return };
    let mut ciphertext = vec![0; key.set().ciphertext_length()];
    drop(public.encapsulate(&mut ciphertext).unwrap());
    let kinds = [Port::ShortVector, Port::Multiply16, Port::Vector];
    let counted = count(&kinds, || drop(key.decapsulate(&ciphertext).unwrap())).unwrap();
    println!("{counted:?}");
    let keccak = 9 * 24 * 95;
    assert!((keccak + 8_000..keccak + 13_000).contains(&counted[0]), "{counted:?}");
    assert!((3_000..4_500).contains(&counted[1]), "{counted:?}");
    // The library's copies have some.
    assert!(counted[2] < 100, "{counted:?}");
}

/// An honest ciphertext, and one of the same length that is not.
#[test]
fn time_does_not_tell_honest_ciphertexts_from_others() {
    let mut random = Random::new();
    for set in SETS {
        let Some((key, public, _)) = pair(&mut random, set) else { return };
        let mut honest = vec![0; set.ciphertext_length()];
        drop(public.encapsulate(&mut honest).unwrap());
        let mut other = honest.clone();
        other[7] ^= 1;
        let both = [honest, other];
        let mut input = both[0].clone();
        judge(&format!("decapsulation, {set:?}"), &mut Random::new(), 20_000, |class| {
            input.copy_from_slice(&both[class]);
            black_box(key.decapsulate(&input).unwrap());
        });
    }
}

/// A message of zeros, and random ones, copied to their place in the same way. A mask over them became a branch of the optimised test:
/// zeros were written as two vectors and others byte by byte, and who reads such bytes as a word waits for the last one. That alone was
/// t = −5 to −17, beyond −40 on a full machine. So copied, or before the clock starts, |t| is below 4 for zeros, one message or many, as
/// either class.
#[test]
fn time_does_not_tell_messages_apart() {
    let mut random = Random::new();
    for set in SETS {
        let Some((_, key, _)) = pair(&mut random, set) else { return };
        let messages = [vec![0; 32 * 64], random.bytes(32 * 64)].concat();
        let mut ciphertext = vec![0; set.ciphertext_length()];
        let mut message = [0; 32];
        judge(&format!("encapsulation, {set:?}"), &mut Random::new(), 20_000, |class| {
            let drawn = 64 * class + random.below(64);
            message.copy_from_slice(&messages[32 * drawn..][..32]);
            black_box(key.encapsulate_this(&message, &mut ciphertext).unwrap());
        });
    }
}
