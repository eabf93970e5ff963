// SPDX-License-Identifier: Apache-2.0

use super::batch;
use super::*;
use crate::cpu::Cpu;
use crate::testing::{self, Random};
use metaslot_awslc_wrapper::hmac;
use serde_json::Value;

/// The processors that this machine can play.
fn cpus() -> Vec<Cpu> {
    [Cpu::AVX512.and(Cpu::AVX2), Cpu::AVX2].into_iter().filter(|one| cpu().has(*one)).collect()
}

/// Runs requests as a processor with `on` would.
fn run_on<J: Job>(on: Cpu, hash: Hash, jobs: &mut [J]) {
    let shape = Shape::of(hash);
    batch::run(shape, Kernel::choose(shape.core, on, jobs.len()).unwrap(), jobs);
}

fn digests(on: Cpu, hash: Hash, messages: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut outputs = vec![vec![0; hash.length()]; messages.len()];
    let mut requests: Vec<_> =
        messages.iter().zip(&mut outputs).map(|(data, output)| Request { data, output }).collect();
    run_on(on, hash, &mut requests);
    outputs
}

fn expected(hash: Hash, message: &[u8]) -> Vec<u8> {
    let mut out = vec![0; hash.length()];
    hash.digest(message, &mut out).unwrap();
    out
}

/// A length where something might happen, or any.
fn length(random: &mut Random, hash: Hash) -> usize {
    match random.below(4) {
        0 => (random.below(7) * hash.block() + random.below(40)).saturating_sub(20),
        1 => random.below(100),
        _ => random.below(1001),
    }
}

#[test]
fn digests_are_those_of_aws_lc() {
    let mut random = Random::new();
    let mut left = testing::inputs(100_000);
    let pool = random.bytes(1 << 16);
    while left > 0 {
        let hash = Hash::ALL[random.below(Hash::ALL.len())];
        for on in cpus() {
            let count = 1 + random.below(40);
            let messages: Vec<&[u8]> = (0..count)
                .map(|_| {
                    let start = random.below(pool.len() - 2000);
                    &pool[start..start + length(&mut random, hash)]
                })
                .collect();
            for (message, got) in messages.iter().zip(digests(on, hash, &messages)) {
                assert_eq!(got, expected(hash, message), "{hash:?} of {} bytes", message.len());
            }
            left = left.saturating_sub(count);
        }
    }
}

#[test]
fn macs_are_those_of_aws_lc() {
    let mut random = Random::new();
    let mut left = testing::inputs(100_000);
    let pool = random.bytes(1 << 16);
    while left > 0 {
        let hash = Hash::ALL[random.below(Hash::ALL.len())];
        let keys: Vec<_> = (0..8)
            .map(|_| {
                let length = random.below(2 * hash.block() + 20);
                let key = random.bytes(length);
                (Key::new(hash, &key).unwrap(), hmac::Key::new(hash, &key).unwrap())
            })
            .collect();
        for on in cpus() {
            for _ in 0..4 {
                let count = 1 + random.below(40);
                let cases: Vec<_> = (0..count)
                    .map(|_| {
                        let start = random.below(pool.len() - 2000);
                        (random.below(8), &pool[start..start + length(&mut random, hash)])
                    })
                    .collect();
                let short = random.below(hash.length()) + 1;
                let mut outputs = vec![vec![0; short]; count];
                let mut requests: Vec<_> = cases
                    .iter()
                    .zip(&mut outputs)
                    .map(|((key, data), output)| MacRequest { key: &keys[*key].0, data, output })
                    .collect();
                run_on(on, hash, &mut requests);
                for ((key, data), got) in cases.iter().zip(outputs) {
                    let mut expected = vec![0; short];
                    keys[*key].1.mac(&[data], &mut expected).unwrap();
                    assert_eq!(got, expected, "{hash:?} of {} bytes", data.len());
                }
                left = left.saturating_sub(count);
            }
        }
    }
}

#[test]
fn every_length_around_a_block_is_hashed_right_with_every_number_of_lanes() {
    let pool: Vec<u8> = (0..=255).cycle().take(1000).collect();
    for hash in Hash::ALL {
        for on in cpus() {
            for count in 1..=33 {
                let messages: Vec<&[u8]> =
                    (0..count).map(|i| &pool[i..i + (hash.block() - 20 + 3 * i)]).collect();
                for (message, got) in messages.iter().zip(digests(on, hash, &messages)) {
                    assert_eq!(got, expected(hash, message), "{hash:?} of {}", message.len());
                }
            }
            for length in 0..=2 * hash.block() + 1 {
                let message = &pool[..length];
                assert_eq!(digests(on, hash, &[message]), [expected(hash, message)]);
            }
        }
    }
}

#[test]
fn nothing_beyond_a_message_is_read() {
    for hash in Hash::ALL {
        for on in cpus() {
            // The end of the message is the end of a page, and the next one may not be read.
            let guarded = Guarded::new();
            for length in [0, 1, 7, 8, 55, 63, 64, 65, 72, 104, 127, 128, 136, 144, 200, 4096] {
                let message = guarded.end(length);
                let messages = vec![message; 5];
                let all = digests(on, hash, &messages);
                assert!(all.iter().all(|one| *one == expected(hash, message)), "{hash:?} {length}");
            }
        }
    }
}

/// A page before one that may not be read.
struct Guarded(*mut libc::c_void);

const PAGE: usize = 4096;

impl Guarded {
    fn new() -> Self {
        let (rights, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping, wherever there is room.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), 2 * PAGE, rights, kind, -1, 0) };
        assert_ne!(start, libc::MAP_FAILED);
        let second = start.wrapping_byte_add(PAGE);
        // SAFETY: the second page of the mapping, which is not in use.
        let done = unsafe { libc::mprotect(second, PAGE, libc::PROT_NONE) };
        assert_eq!(done, 0);
        Self(start)
    }

    /// The last bytes of the page.
    fn end(&self, length: usize) -> &[u8] {
        // SAFETY: the first page is mapped as long as `self` lives, and zero.
        let page = unsafe { std::slice::from_raw_parts(self.0.cast::<u8>(), PAGE) };
        &page[PAGE - length..]
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`; `end` borrows `self`.
        unsafe { libc::munmap(self.0, 2 * PAGE) };
    }
}

#[test]
fn a_long_message_beside_short_ones_is_hashed_right() {
    let long: Vec<u8> = (0..=250).cycle().take(100_000).collect();
    for hash in Hash::ALL {
        let mut messages: Vec<&[u8]> = (0..50).map(|i| &long[i..7 * i]).collect();
        messages[20] = &long;
        for on in cpus() {
            for (message, got) in messages.iter().zip(digests(on, hash, &messages)) {
                assert_eq!(got, expected(hash, message), "{hash:?} of {}", message.len());
            }
        }
    }
}

#[test]
fn no_request_is_no_work() {
    for hash in Hash::ALL {
        if lanes(hash) > 0 {
            digest(hash, &mut []);
            hmac(hash, &mut []);
        }
    }
}

#[test]
#[should_panic(expected = "request.key.hash() == hash")]
fn a_key_for_another_function_is_refused() {
    let key = Key::new(Hash::Sha1, b"key").unwrap();
    let mut output = [0; 16];
    hmac(Hash::Sha256, &mut [MacRequest { key: &key, data: b"", output: &mut output }]);
}

#[test]
fn stored_vectors_of_hashes_hold() {
    let text = include_str!("../../../../../testdata/openssl/digest.json");
    let vectors: Value = serde_json::from_str(text).unwrap();
    let tests = vectors["tests"].as_array().unwrap();
    for (name, hash) in NAMES {
        let cases: Vec<_> = tests.iter().filter(|test| test["hash"] == name).collect();
        let messages: Vec<_> = cases.iter().map(|test| bytes(&test["msg"])).collect();
        let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
        assert!(!messages.is_empty(), "no vectors for {name}");
        for on in cpus() {
            for (case, got) in cases.iter().zip(digests(on, hash, &messages)) {
                assert_eq!(got, bytes(&case["digest"]), "{name}");
            }
        }
    }
}

#[test]
fn stored_vectors_of_macs_hold() {
    let text = include_str!("../../../../../testdata/openssl/hmac.json");
    let vectors: Value = serde_json::from_str(text).unwrap();
    for (name, hash) in NAMES {
        let tests = vectors["tests"].as_array().unwrap().iter();
        let cases: Vec<_> = tests.filter(|test| test["hash"] == name).collect();
        assert!(!cases.is_empty(), "no vectors for {name}");
        check_macs(hash, &cases);
    }
}

#[test]
fn wycheproof_vectors_of_macs_hold() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../testdata/wycheproof");
    let mut files = 0;
    for (name, hash) in NAMES {
        let Ok(text) = std::fs::read_to_string(format!("{folder}/hmac_{name}_test.json")) else {
            continue;
        };
        files += 1;
        let vectors: Value = serde_json::from_str(&text).unwrap();
        for group in vectors["testGroups"].as_array().unwrap() {
            check_macs(hash, &group["tests"].as_array().unwrap().iter().collect::<Vec<_>>());
        }
    }
    assert_eq!(files, 11, "all but MD5");
}

const NAMES: [(&str, Hash); 12] = [
    ("md5", Hash::Md5),
    ("sha1", Hash::Sha1),
    ("sha224", Hash::Sha224),
    ("sha256", Hash::Sha256),
    ("sha384", Hash::Sha384),
    ("sha512", Hash::Sha512),
    ("sha512_224", Hash::Sha512_224),
    ("sha512_256", Hash::Sha512_256),
    ("sha3_224", Hash::Sha3_224),
    ("sha3_256", Hash::Sha3_256),
    ("sha3_384", Hash::Sha3_384),
    ("sha3_512", Hash::Sha3_512),
];

/// All cases in one call; those that are not said to be valid must give another MAC.
fn check_macs(hash: Hash, cases: &[&Value]) {
    let keys: Vec<_> =
        cases.iter().map(|case| Key::new(hash, &bytes(&case["key"])).unwrap()).collect();
    let messages: Vec<_> = cases.iter().map(|case| bytes(&case["msg"])).collect();
    let tags: Vec<_> = cases.iter().map(|case| bytes(&case["tag"])).collect();
    for on in cpus() {
        let mut outputs: Vec<_> = tags.iter().map(|tag| vec![0; tag.len()]).collect();
        let mut requests: Vec<_> = keys
            .iter()
            .zip(&messages)
            .zip(&mut outputs)
            .map(|((key, data), output)| MacRequest { key, data, output })
            .collect();
        run_on(on, hash, &mut requests);
        for ((case, tag), output) in cases.iter().zip(&tags).zip(&outputs) {
            let valid = case["result"].as_str().is_none_or(|result| result == "valid");
            assert_eq!(tag == output, valid, "{hash:?} {}", case["tcId"]);
        }
    }
}

fn bytes(hex: &Value) -> Vec<u8> {
    let digits = hex.as_str().unwrap();
    let starts = (0..digits.len()).step_by(2);
    starts.map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

#[test]
fn time_does_not_depend_on_the_key_or_the_message() {
    let mut random = Random::new();
    for hash in [Hash::Md5, Hash::Sha256, Hash::Sha512, Hash::Sha3_256] {
        let keys = [Key::new(hash, &[0; 32]).unwrap(), Key::new(hash, &random.bytes(32)).unwrap()];
        let messages = [vec![0; 100], random.bytes(100)];
        // In one place: equal messages in two had t up to 15, as one may lie in more lines of the cache.
        let mut data = [0; 100];
        testing::judge(&format!("{hash:?}"), &mut random, 20_000, |class| {
            data.copy_from_slice(&messages[class]);
            let mut outputs = [[0; 16]; 4];
            let [a, b, c, d] = &mut outputs;
            let mut requests =
                [a, b, c, d].map(|output| MacRequest { key: &keys[class], data: &data, output });
            hmac(hash, &mut requests);
        });
    }
}

#[test]
fn inner_loops_stay_in_registers() {
    // MD5, Keccak and chains have their block in memory, where it belongs; the rest has little to put there.
    for (kernel, limit) in [
        ("kernel::md5_zmm>", 40),
        ("kernel::md5_zmm_pair>", 100),
        ("kernel::sha1_zmm>", 10),
        ("kernel::sha256_zmm>", 45),
        ("kernel::chain_zmm>", 160),
        ("kernel::keyed_chain_zmm>", 300),
        ("kernel::sha512_zmm>", 45),
        ("kernel::keccak_zmm>", 130),
    ] {
        let spills = testing::spills(kernel);
        println!("{kernel} {spills}");
        assert!(spills <= limit, "{kernel} touches the stack {spills} times");
    }
}
