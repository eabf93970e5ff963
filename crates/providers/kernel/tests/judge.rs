// SPDX-License-Identifier: Apache-2.0
//! AWS-LC as the judge of the kernel: every operation that both have, with the same keys, parameters and inputs of awkward
//! lengths, in one call and in random parts. Results and errors are equal.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use metaslot_awslc::AWSLC;
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::*;
use metaslot_kernel::Kernel;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Cipher, Digest, Direction, Provider, Signature};
use metaslot_spi::{Attributes, Bytes, Key, Material, Params, Secrets, Value};
use std::sync::Arc;

static KERNEL: Kernel = Kernel::beside(&AWSLC);

/// Around a block, a page, what is given to the kernel at once, and what a socket takes.
const LENGTHS: [usize; 17] = [
    0, 1, 15, 16, 17, 64, 1000, 4095, 4096, 4097, 65_519, 65_520, 65_521, 65_535, 65_536, 65_537,
    300_000,
];

/// Bytes that differ from run to run; how they begin is said when something is wrong.
struct Chance {
    state: u64,
    bytes: Vec<u8>,
}

impl Chance {
    fn new() -> Self {
        let mut seed = [0; 8];
        AWSLC.random(&mut seed).unwrap();
        let state = u64::from_le_bytes(seed);
        println!("seed {state:#x}");
        let mut chance = Self { state, bytes: Vec::new() };
        chance.bytes = (0..1 << 16).flat_map(|_| chance.next().to_le_bytes()).collect();
        chance
    }

    fn next(&mut self) -> usize {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.state >> 33).unwrap()
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let at = self.next() % (self.bytes.len() - length);
        self.bytes[at..at + length].to_vec()
    }

    /// Short lengths, and a long one.
    fn lengths(&mut self) -> impl Iterator<Item = usize> + use<> {
        let (short, long) = LENGTHS.split_at(7);
        short.iter().copied().chain([long[self.next() % long.len()]])
    }

    fn nonce(&mut self, length: usize) -> Bytes {
        Bytes::from_vec(self.bytes(length))
    }

    /// Cuts `data` into parts, some of them empty.
    fn parts<'a>(&mut self, mut data: &'a [u8]) -> Vec<&'a [u8]> {
        let longest = data.len() / 3 + 2;
        let mut parts = Vec::new();
        while !data.is_empty() {
            let (part, rest) = data.split_at((self.next() % longest).min(data.len()));
            parts.push(part);
            data = rest;
        }
        parts
    }
}

/// The rows that the kernel has, each with AWS-LC's.
fn both() -> Vec<[&'static Algorithm; 2]> {
    let other = |own: &'static Algorithm| {
        let mut rows = AWSLC.algorithms().iter();
        rows.find(|row| row.mechanism == own.mechanism).unwrap()
    };
    KERNEL.algorithms().iter().map(|own| [own, other(own)]).collect()
}

fn name(row: &Algorithm) -> &'static str {
    mechanism_name(row.mechanism).unwrap_or("?")
}

fn secret(key_type: u64, value: &[u8]) -> Arc<Key> {
    let mut attributes = Attributes::new();
    attributes.set(CKA_CLASS, Value::Ulong(CKO_SECRET_KEY));
    attributes.set(CKA_KEY_TYPE, Value::Ulong(key_type));
    let mut secrets = Secrets::new();
    secrets.set(CKA_VALUE, Secret::copy_of(value));
    Arc::new(Key::new(Arc::new(attributes), Arc::new(Material::new(secrets))))
}

/// Keys that a mechanism is for, and some that it is not.
fn keys(mechanism: CK_MECHANISM_TYPE, chance: &mut Chance) -> Vec<Arc<Key>> {
    let key_type = MechanismRow::find(mechanism).unwrap().keys[0];
    let lengths = [1, 16, 20, 24, 32, 65, 137, 200, 8192];
    lengths.iter().map(|length| secret(key_type, &chance.bytes(*length))).collect()
}

#[test]
fn digests_are_equal() {
    let mut chance = Chance::new();
    for rows in both() {
        let [Some(own), Some(other)] = rows.map(|row| row.digest) else { continue };
        assert_eq!(own.length(), other.length());
        for length in chance.lengths().chain([4095, 4096, 4097]) {
            let data = chance.bytes(length);
            let parts = chance.parts(&data);
            let results = [&[&data[..]][..], &parts]
                .map(|parts| [own, other].map(|digest| digested(digest, parts)));
            let results = results.concat();
            assert!(results.windows(2).all(|two| two[0] == two[1]), "{} {length}", name(rows[0]));
        }
    }
}

fn digested(digest: &dyn Digest, parts: &[&[u8]]) -> Vec<u8> {
    let mut out = vec![0; digest.length()];
    match parts {
        [data] => digest.digest(data, &mut out).unwrap(),
        parts => {
            let mut stream = digest.start().unwrap();
            parts.iter().for_each(|part| stream.update(part).unwrap());
            stream.finish(&mut out).unwrap();
        }
    }
    out
}

fn signed(
    sign: &dyn Signature,
    key: &Arc<Key>,
    params: &Params,
    parts: &[&[u8]],
) -> Result<Vec<u8>> {
    let mut out = vec![0; sign.length(key, params)];
    let length = match parts {
        [data] => sign.sign(key, params, data, &mut out)?,
        parts => {
            let mut stream = sign.start(Direction::Forward, key, params)?;
            parts.iter().try_for_each(|part| stream.update(part))?;
            stream.sign(&mut out)?
        }
    };
    out.truncate(length);
    Ok(out)
}

/// What a row says of a signature, in one call and in parts.
fn verdict(
    verify: &dyn Signature,
    (key, params): (&Arc<Key>, &Params),
    parts: &[&[u8]],
    signature: &[u8],
) -> Result<()> {
    let whole = verify.verify(key, params, &parts.concat(), signature);
    let mut stream = verify.start(Direction::Backward, key, params).unwrap();
    parts.iter().for_each(|part| stream.update(part).unwrap());
    assert_eq!(stream.verify(signature), whole);
    whole
}

#[test]
fn macs_are_equal() {
    let mut chance = Chance::new();
    for rows in both() {
        let [Some(own), Some(other)] = rows.map(|row| row.sign) else { continue };
        for key in keys(rows[0].mechanism, &mut chance) {
            let numbers = [1, 10, 16, 20, 100].map(Params::Ulong);
            for params in numbers.into_iter().chain([Params::None, Params::Iv(Bytes::new())]) {
                let what = format!("{} {params:?}", name(rows[0]));
                let checks = [own, other].map(|row| row.check(Direction::Forward, &key, &params));
                assert_eq!(checks[0], checks[1], "{what}");
                if checks[0].is_err() {
                    continue;
                }
                for length in chance.lengths().skip(6) {
                    let data = chance.bytes(length);
                    let parts = chance.parts(&data);
                    let whole = [own, other].map(|row| signed(row, &key, &params, &[&data]));
                    let in_parts = [own, other].map(|row| signed(row, &key, &params, &parts));
                    let all = [whole, in_parts].concat();
                    assert!(all.windows(2).all(|two| two[0] == two[1]), "{what} {length}");
                    let mut mac = all[0].clone().unwrap();
                    let verify = rows[0].verify.unwrap();
                    let judge = |mac: &[u8]| verdict(verify, (&key, &params), &parts, mac);
                    assert_eq!(judge(&mac), Ok(()), "{what} {length}");
                    assert_eq!(judge(&mac[1..]), Err(Error::SIGNATURE_LEN_RANGE), "{what}");
                    mac[0] ^= 1;
                    assert_eq!(judge(&mac), Err(Error::SIGNATURE_INVALID), "{what} {length}");
                }
            }
        }
    }
}

fn cipher_params(chance: &mut Chance) -> Vec<Params> {
    let gcm = |iv, aad, tag_bits| Params::Gcm { iv, aad, tag_bits };
    let ctr = |bits, block: Vec<u8>| Params::Ctr { bits, block: block.try_into().unwrap() };
    let mut low = chance.bytes(16);
    low[12..].fill(0);
    let mut params = vec![
        Params::None,
        Params::Iv(chance.nonce(16)),
        Params::Iv(chance.nonce(8)),
        Params::Iv(Bytes::new()),
        ctr(128, chance.bytes(16)),
        ctr(32, low),
        ctr(128, vec![0xff; 16]),
        ctr(3, vec![0xff; 16]),
        ctr(0, vec![0; 16]),
        gcm(chance.nonce(1), chance.nonce(17), 96),
        gcm(chance.nonce(61), chance.nonce(1000), 32),
        gcm(chance.nonce(12), chance.nonce(65_536), 128),
        gcm(chance.nonce(12), Bytes::new(), 128),
        gcm(chance.nonce(12), Bytes::new(), 100),
        gcm(Bytes::new(), Bytes::new(), 128),
        Params::ChaCha20Poly1305 { nonce: chance.nonce(12), aad: chance.nonce(19) },
        Params::ChaCha20Poly1305 { nonce: chance.nonce(12), aad: Bytes::new() },
        Params::ChaCha20Poly1305 { nonce: chance.nonce(8), aad: Bytes::new() },
    ];
    let tags = (4..=16_u8).map(|bytes| (bytes, u64::from(bytes) * 8));
    params
        .extend(tags.map(|(bytes, bits)| gcm(chance.nonce(12), chance.nonce(bytes.into()), bits)));
    params
}

fn run(
    cipher: &dyn Cipher,
    direction: Direction,
    (key, params): (&Arc<Key>, &Params),
    parts: &[&[u8]],
) -> Result<Vec<u8>> {
    let mut all = Vec::new();
    let last = if let [input] = parts {
        let mut out = vec![0xee; cipher.length(direction, key, params, input.len())?];
        let length = cipher.run(direction, key, params, input, &mut out)?;
        out.truncate(length);
        out
    } else {
        let mut stream = cipher.start(direction, key, params)?;
        for part in parts {
            let mut out = vec![0xee; stream.update_length(part.len())];
            stream.update(part, &mut out)?;
            all.extend(out);
        }
        let mut out = vec![0xee; stream.finish_length()];
        let length = stream.finish(&mut out)?;
        out.truncate(length);
        out
    };
    all.extend(last);
    Ok(all)
}

/// Two ciphers say the same of an input, in one call and in parts.
fn same(
    ciphers: [&dyn Cipher; 2],
    direction: Direction,
    with: (&Arc<Key>, &Params),
    input: &[u8],
    chance: &mut Chance,
) -> Result<Vec<u8>> {
    let parts = chance.parts(input);
    let all =
        [&[input][..], &parts].map(|parts| ciphers.map(|row| run(row, direction, with, parts)));
    let all = all.concat();
    let equal = all.windows(2).all(|two| two[0] == two[1]);
    let errors: Vec<_> = all.iter().map(|one| one.as_ref().map(Vec::len)).collect();
    assert!(equal, "{direction:?} {:?} {errors:?}", with.1);
    all.into_iter().next().unwrap()
}

#[test]
fn ciphers_are_equal_in_both_directions_and_in_their_errors() {
    let (mut chance, mut compared) = (Chance::new(), 0);
    for rows in both() {
        let [Some(own), Some(other)] = rows.map(|row| row.encrypt) else { continue };
        let backward = rows.map(|row| row.decrypt.unwrap());
        for key in keys(rows[0].mechanism, &mut chance) {
            for params in cipher_params(&mut chance) {
                let checks = [own, other].map(|row| row.check(Direction::Forward, &key, &params));
                assert_eq!(checks[0], checks[1], "{} {params:?}", name(rows[0]));
                if checks[0].is_err() {
                    continue;
                }
                println!("{}", name(rows[0]));
                for length in chance.lengths() {
                    let (data, with) = (chance.bytes(length), (&key, &params));
                    // What is no ciphertext is none for both.
                    drop(same(backward, Direction::Backward, with, &data, &mut chance));
                    let sealed = same([own, other], Direction::Forward, with, &data, &mut chance);
                    let Ok(mut sealed) = sealed else { continue };
                    let opened = same(backward, Direction::Backward, with, &sealed, &mut chance);
                    assert!(opened == Ok(data));
                    compared += 1;
                    if let Some(byte) = sealed.last_mut() {
                        *byte ^= 1;
                        drop(same(backward, Direction::Backward, with, &sealed, &mut chance));
                    }
                }
            }
        }
    }
    println!("{compared} compared");
}
