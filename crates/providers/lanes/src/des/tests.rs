// SPDX-License-Identifier: Apache-2.0
//! Triple DES against AWS-LC and published vectors.

use super::circuits::{s1, s2, s3, s4, s5, s6, s7, s8};
use super::*;
use crate::data::{Data, Way};
use crate::testing::{Random, inputs, judge, spills};

/// FIPS 46-3, appendix 1: four rows of sixteen for each box.
const BOXES: [[u64; 4]; 8] = [
    [0xe4d1_2fb8_3a6c_5907, 0x0f74_e2d1_a6cb_9538, 0x41e8_d62b_fc97_3a50, 0xfc82_4917_5b3e_a06d],
    [0xf18e_6b34_972d_c05a, 0x3d47_f28e_c01a_69b5, 0x0e7b_a4d1_58c6_932f, 0xd8a1_3f42_b67c_05e9],
    [0xa09e_63f5_1dc7_b428, 0xd709_346a_285e_cbf1, 0xd649_8f30_b12c_5ae7, 0x1ad0_6987_4fe3_b52c],
    [0x7de3_069a_1285_bc4f, 0xd8b5_6f03_472c_1ae9, 0xa690_cb7d_f13e_5284, 0x3f06_a1d8_945b_c72e],
    [0x2c41_7ab6_853f_d0e9, 0xeb2c_47d1_50fa_3986, 0x421b_ad78_f9c5_630e, 0xb8c7_1e2d_6f09_a453],
    [0xc1af_9268_0d34_e75b, 0xaf42_7c95_61de_0b38, 0x9ef5_28c3_704a_1db6, 0x432c_95fa_be17_608d],
    [0x4b2e_f08d_3c97_5a61, 0xd0b7_491a_e35c_2f86, 0x14bd_c37e_af68_0592, 0x6bd8_14a7_950f_e23c],
    [0xd284_6fb1_a93e_50c7, 0x1fd8_a374_c56b_0e92, 0x7b41_9ce2_06ad_f358, 0x21e7_4a8d_fc90_356b],
];

fn sbox(number: usize, input: usize) -> u64 {
    let (row, column) = ((input >> 5) * 2 + (input & 1), (input >> 1) & 15);
    (BOXES[number][row] >> (4 * (15 - column))) & 15
}

#[test]
fn every_circuit_is_its_table() {
    let inputs: [u64; 6] = std::array::from_fn(|bit| {
        (0..64)
            .filter(|input| (input >> (5 - bit)) & 1 == 1)
            .fold(0, |word, input| word | 1 << input)
    });
    let circuits = [s1, s2, s3, s4, s5, s6, s7, s8];
    for (number, circuit) in circuits.into_iter().enumerate() {
        let outputs = circuit(inputs);
        for input in 0..64 {
            let value = outputs.iter().fold(0, |value, bit| value << 1 | (bit >> input) & 1);
            assert_eq!(value, sbox(number, input), "S{}({input:06b})", number + 1);
        }
    }
}

/// AWS-LC: one block at a time.
fn reference_ecb(key: &[u8], way: Way, data: &mut [u8]) {
    let schedules: Vec<_> = key.as_chunks::<8>().0.iter().cycle().take(3).map(schedule).collect();
    let enc = i32::from(way == Way::Encrypt);
    for block in data.as_chunks_mut::<8>().0 {
        let input = aws_lc_sys::DES_cblock { bytes: *block };
        let mut output = aws_lc_sys::DES_cblock { bytes: [0; 8] };
        // SAFETY: blocks and schedules are readable, the output writable.
        unsafe {
            aws_lc_sys::DES_ecb3_encrypt(
                &raw const input,
                &raw mut output,
                &raw const schedules[0],
                &raw const schedules[1],
                &raw const schedules[2],
                enc,
            );
        }
        *block = output.bytes;
    }
}

fn reference_cbc(key: &[u8], way: Way, iv: &[u8; 8], data: &mut [u8]) {
    let schedules: Vec<_> = key.as_chunks::<8>().0.iter().cycle().take(3).map(schedule).collect();
    let mut iv = aws_lc_sys::DES_cblock { bytes: *iv };
    let input = data.to_vec();
    // SAFETY: as many bytes are read as written; schedules are readable, the IV writable.
    unsafe {
        aws_lc_sys::DES_ede3_cbc_encrypt(
            input.as_ptr(),
            data.as_mut_ptr(),
            input.len(),
            &raw const schedules[0],
            &raw const schedules[1],
            &raw const schedules[2],
            &raw mut iv,
            i32::from(way == Way::Encrypt),
        );
    }
}

fn schedule(key: &[u8; 8]) -> aws_lc_sys::DES_key_schedule {
    let key = aws_lc_sys::DES_cblock { bytes: *key };
    let mut schedule = std::mem::MaybeUninit::uninit();
    // SAFETY: the key is readable, the schedule writable.
    unsafe { aws_lc_sys::DES_set_key_unchecked(&raw const key, schedule.as_mut_ptr()) };
    // SAFETY: it was written.
    unsafe { schedule.assume_init() }
}

/// AVX-512 as far as the machine has it, AVX2, and plain words.
fn forms() -> Vec<Cpu> {
    let here = cpu();
    let all = [here, Cpu::AVX2, Cpu::NONE];
    all.into_iter().filter(|form| here.has(*form)).collect()
}

fn bytes(text: &str) -> Vec<u8> {
    let digits: Vec<_> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|two| u8::try_from(two[0] * 16 + two[1]).unwrap()).collect()
}

#[test]
fn the_example_of_sp_800_67_comes_out() {
    let key = bytes("0123456789abcdef 23456789abcdef01 456789abcdef0123");
    let mut data = b"The qufck brown fox jump".to_vec();
    let key = Key::new(&key).unwrap();
    key.ecb(Way::Encrypt, Data::in_place(&mut data));
    assert_eq!(data, bytes("a826fd8ce53b855f cce21c8112256fe6 68d5c05dd9b6b900"));
    key.ecb(Way::Decrypt, Data::in_place(&mut data));
    assert_eq!(data, b"The qufck brown fox jump");
}

#[test]
fn keys_of_another_length_are_refused() {
    for length in [0, 8, 15, 25, 32] {
        assert!(Key::new(&vec![0; length]).is_none());
    }
}

#[test]
fn every_form_of_ecb_and_cbc_decryption_is_what_awslc_says() {
    let mut random = Random::new();
    let mut done = 0;
    while done < inputs(100_000) {
        let count = [1500, 520, 64, 9][random.below(4)];
        let count = random.below(count);
        let key = [16, 24][random.below(2)];
        let key = random.bytes(key);
        let plain = random.bytes(8 * count);
        let iv: [u8; 8] = random.bytes(8).try_into().unwrap();
        let ours = Key::new(&key).unwrap();
        for form in forms() {
            for way in [Way::Encrypt, Way::Decrypt] {
                let (mut expected, mut out) = (plain.clone(), plain.clone());
                reference_ecb(&key, way, &mut expected);
                ours.run(way, None, Data::in_place(&mut out), form);
                assert_eq!(out, expected);
            }
            let (mut expected, mut out) = (plain.clone(), vec![0; plain.len()]);
            reference_cbc(&key, Way::Decrypt, &iv, &mut expected);
            let cut = 8 * random.below(count + 1);
            let mut chain = iv;
            let (first, second) = out.split_at_mut(cut);
            ours.run(Way::Decrypt, Some(&mut chain), Data::between(&plain[..cut], first), form);
            ours.run(Way::Decrypt, Some(&mut chain), Data::between(&plain[cut..], second), form);
            assert_eq!(out, expected);
            assert_eq!(chain, plain.last_chunk().copied().unwrap_or(iv));
        }
        done += count;
    }
}

#[test]
fn streams_of_any_lengths_are_encrypted_side_by_side() {
    let mut random = Random::new();
    let raw: Vec<_> = (0..40).map(|at| random.bytes([16, 24][at % 2])).collect();
    let keys: Vec<_> = raw.iter().map(|key| Key::new(key).unwrap()).collect();
    let mut lanes = Lanes::new();
    let mut done = 0;
    while done < inputs(100_000) {
        let count = [700, 300, 5][random.below(3)];
        let count = 1 + random.below(count);
        let most = [3, 40][random.below(2)];
        for form in forms() {
            let plain: Vec<_> = (0..count)
                .map(|_| {
                    let blocks = random.below(most);
                    random.bytes(8 * blocks)
                })
                .collect();
            let mut ivs: Vec<[u8; 8]> =
                (0..count).map(|_| random.bytes(8).try_into().unwrap()).collect();
            let mut out = plain.clone();
            let before = ivs.clone();
            let mut streams: Vec<_> = out
                .iter_mut()
                .zip(&mut ivs)
                .enumerate()
                .map(|(at, (out, iv))| Stream {
                    key: &keys[at % 40],
                    iv,
                    data: if at % 3 == 0 {
                        Data::in_place(out)
                    } else {
                        Data::between(&plain[at], out)
                    },
                })
                .collect();
            lanes.run(&mut streams, form);
            for at in 0..count {
                let mut expected = plain[at].clone();
                reference_cbc(&raw[at % 40], Way::Encrypt, &before[at], &mut expected);
                assert_eq!(out[at], expected, "stream {at} of {count}");
                assert_eq!(ivs[at], expected.last_chunk().copied().unwrap_or(before[at]));
                done += expected.len() / 8;
            }
        }
    }
}

#[test]
fn the_time_does_not_tell_keys_apart() {
    let mut random = Random::new();
    let keys = [Key::new(&[0; 24]).unwrap(), Key::new(&random.bytes(24)).unwrap()];
    let mut data = [0x5a; 4096];
    judge("triple DES", &mut random, 5_000, |class| {
        keys[class].ecb(Way::Encrypt, Data::in_place(&mut data));
    });
}

#[test]
fn little_but_the_halves_is_on_the_stack() {
    for name in ["des::message::wide", "des::lanes::wide"] {
        let spills = spills(name);
        println!("{name}: {spills} stack references");
        assert!(spills <= 320, "{name}: {spills}");
    }
}
