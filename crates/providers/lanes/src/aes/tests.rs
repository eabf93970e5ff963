// SPDX-License-Identifier: Apache-2.0
//! AES against AWS-LC.

use super::*;
use crate::data::{Data, Way};
use crate::testing::{Random, inputs, judge, lacks, spills};
use metaslot_awslc_wrapper::aes as reference;

const SIZES: [usize; 3] = [16, 24, 32];

fn both(key: &[u8]) -> (Key, reference::Keys) {
    (Key::new(key).unwrap(), reference::Keys::new(key).unwrap())
}

fn reference_way(way: Way) -> reference::Way {
    match way {
        Way::Encrypt => reference::Way::Encrypt,
        Way::Decrypt => reference::Way::Decrypt,
    }
}

/// Random blocks, usually few.
fn text(random: &mut Random) -> Vec<u8> {
    let most = [200, 40, 40, 20, 8, 4][random.below(6)];
    let blocks = random.below(most);
    random.bytes(16 * blocks)
}

#[test]
fn a_key_of_another_length_is_refused() {
    for length in [0, 15, 17, 33, 64] {
        assert!(Key::new(&vec![0; length]).is_none());
    }
}

#[test]
fn ecb_is_what_awslc_says() {
    if lacks(NEEDS) {
        return;
    }
    let mut random = Random::new();
    for turn in 0..inputs(100_000) {
        let (ours, theirs) = both(&random.bytes(SIZES[turn % 3]));
        let way = if random.below(2) == 0 { Way::Encrypt } else { Way::Decrypt };
        let plain = text(&mut random);
        let (mut expected, mut out) = (plain.clone(), plain.clone());
        theirs.ecb(reference_way(way), &plain, &mut expected);
        if random.below(2) == 0 {
            ours.ecb(way, Data::in_place(&mut out));
        } else {
            ours.ecb(way, Data::between(&plain, &mut out));
        }
        assert_eq!(out, expected, "{turn}");
    }
}

#[test]
fn cbc_decryption_in_parts_is_what_awslc_says() {
    if lacks(NEEDS) {
        return;
    }
    let mut random = Random::new();
    for turn in 0..inputs(100_000) {
        let (ours, theirs) = both(&random.bytes(SIZES[turn % 3]));
        let sealed = text(&mut random);
        let iv: [u8; 16] = random.bytes(16).try_into().unwrap();
        let (mut expected, mut out) = (sealed.clone(), sealed.clone());
        theirs.cbc(reference::Way::Decrypt, &mut iv.clone(), &sealed, &mut expected);
        let cut = 16 * random.below(sealed.len() / 16 + 1);
        let mut chain = iv;
        if random.below(2) == 0 {
            ours.cbc_decrypt(&mut chain, Data::in_place(&mut out[..cut]));
            ours.cbc_decrypt(&mut chain, Data::in_place(&mut out[cut..]));
        } else {
            ours.cbc_decrypt(&mut chain, Data::between(&sealed[..cut], &mut out[..cut]));
            ours.cbc_decrypt(&mut chain, Data::between(&sealed[cut..], &mut out[cut..]));
        }
        assert_eq!(out, expected, "{turn}");
        assert_eq!(chain, sealed.last_chunk().copied().unwrap_or(iv));
    }
}

#[test]
fn counter_mode_in_parts_is_what_awslc_says() {
    if lacks(NEEDS) {
        return;
    }
    let mut random = Random::new();
    for turn in 0..inputs(100_000) {
        let (ours, theirs) = both(&random.bytes(SIZES[turn % 3]));
        let mut plain = text(&mut random);
        plain.resize(plain.len() + random.below(16), 0x5a);
        let mut block: [u8; 16] = random.bytes(16).try_into().unwrap();
        let ones = 16 - random.below(17);
        block[ones..].fill(255);
        let mut expected = plain.clone();
        theirs.ctr(&mut reference::Counter::new(block), &plain, &mut expected);
        let mut out = plain.clone();
        let mut counter = Counter::new(block, 128);
        let mut done = 0;
        while done < plain.len() {
            let end = (done + 1 + random.below(plain.len())).min(plain.len());
            if random.below(2) == 0 {
                ours.ctr(&mut counter, Data::in_place(&mut out[done..end]));
            } else {
                ours.ctr(&mut counter, Data::between(&plain[done..end], &mut out[done..end]));
            }
            done = end;
        }
        assert_eq!(out, expected, "{turn}");
        assert_eq!(counter.used(), plain.len() % 16);
        let next = u128::from_be_bytes(block).wrapping_add(plain.len() as u128 / 16);
        assert_eq!(counter.block(), next.to_be_bytes());
    }
}

#[test]
fn a_counter_of_any_width_wraps_within_it() {
    if lacks(NEEDS) {
        return;
    }
    let mut random = Random::new();
    let (ours, theirs) = both(&random.bytes(32));
    for bits in (1..=128).cycle().take(1000) {
        let mut block = u128::from_be_bytes(random.bytes(16).try_into().unwrap());
        let counting = u128::MAX >> (128 - bits);
        // A few blocks before the wrap.
        block |= counting;
        block -= random.below(20) as u128 & counting;
        let plain = vec![0; 16 * 40 + 5];
        let mut out = plain.clone();
        ours.ctr(&mut Counter::new(block.to_be_bytes(), bits), Data::between(&plain, &mut out));
        for (at, out) in out.chunks(16).enumerate() {
            let next = (block & !counting) | (block.wrapping_add(at as u128) & counting);
            let mut stream = next.to_be_bytes();
            theirs.block(reference::Way::Encrypt, &mut stream);
            assert_eq!(out, &stream[..out.len()], "{bits} bits, block {at}");
        }
    }
}

#[test]
fn streams_of_any_lengths_are_encrypted_side_by_side() {
    if lacks(NEEDS) {
        return;
    }
    let mut random = Random::new();
    let keys: Vec<_> = (0..24).map(|at| both(&random.bytes(SIZES[at % 3]))).collect();
    let mut done = 0;
    while done < inputs(100_000) {
        let count = 1 + random.below(40);
        let mut ivs: Vec<[u8; 16]> =
            (0..count).map(|_| random.bytes(16).try_into().unwrap()).collect();
        let plain: Vec<_> = (0..count).map(|_| text(&mut random)).collect();
        let mut out: Vec<_> = plain.clone();
        let sorts = [1, 24][random.below(2)];
        let which: Vec<_> = (0..count).map(|_| random.below(sorts)).collect();
        let expected: Vec<_> = (0..count)
            .map(|at| {
                let (mut iv, mut out) = (ivs[at], plain[at].clone());
                keys[which[at]].1.cbc(reference::Way::Encrypt, &mut iv, &plain[at], &mut out);
                (iv, out)
            })
            .collect();
        let mut streams: Vec<_> = out
            .iter_mut()
            .zip(&mut ivs)
            .enumerate()
            .map(|(at, (out, iv))| Stream {
                key: &keys[which[at]].0,
                iv,
                data: if at % 2 == 0 {
                    Data::in_place(out)
                } else {
                    Data::between(&plain[at], out)
                },
            })
            .collect();
        cbc_encrypt(&mut streams);
        for at in 0..count {
            assert_eq!((&ivs[at], &out[at]), (&expected[at].0, &expected[at].1));
        }
        done += count;
    }
}

#[test]
fn the_time_does_not_tell_keys_apart() {
    if lacks(NEEDS) {
        return;
    }
    let mut random = Random::new();
    let keys = [Key::new(&[0; 32]).unwrap(), Key::new(&random.bytes(32)).unwrap()];
    let mut data = [0x5a; 256];
    judge("counter mode", &mut random, 20_000, |class| {
        keys[class].ctr(&mut Counter::new([0; 16], 128), Data::in_place(&mut data));
    });
    let keys = [vec![0; 32], random.bytes(32)];
    judge("key expansion", &mut random, 20_000, |class| {
        std::hint::black_box(Key::new(&keys[class]));
    });
}

#[test]
fn registers_stay_off_the_stack() {
    // The bounds are for all key lengths and modes together.
    for (name, most) in [("aes::modes::message", 8), ("aes::streams::run", 450)] {
        let spills = spills(name);
        println!("{name}: {spills} stack references");
        assert!(spills <= most, "{name}: {spills}");
    }
}
