// SPDX-License-Identifier: Apache-2.0
//! OpenSSL and the other providers as judges of each other: every operation that two of them have, with the same keys,
//! parameters and inputs of awkward lengths, in one call and in random parts. Results that do not depend on chance are equal,
//! errors too, and signatures are good for each other.
#![cfg(feature = "library")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use metaslot_awslc::AWSLC;
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::*;
use metaslot_lanes::provider::Lanes;
use metaslot_memory::Secret;
use metaslot_openssl::OPENSSL;
use metaslot_spi::provider::{Algorithm, Cipher, Digest, Direction, Provider, Signature};
use metaslot_spi::{Attributes, Bytes, Key, Material, NewObject, Params, Secrets, Value};
use std::sync::Arc;

static LANES: Lanes = Lanes::beside(&AWSLC);

const LENGTHS: [usize; 11] = [0, 1, 15, 16, 17, 63, 64, 65, 100, 1000, 65_537];

/// Bytes that differ from run to run; how they begin is said when something is wrong.
struct Chance(u64);

impl Chance {
    fn new() -> Self {
        let mut seed = [0; 8];
        AWSLC.random(&mut seed).unwrap();
        let seed = u64::from_le_bytes(seed);
        println!("seed {seed:#x}");
        Self(seed)
    }

    fn next(&mut self) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap()
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next().to_le_bytes()[0]).collect()
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

/// The rows of OpenSSL, each with one of another provider.
fn both() -> Vec<(&'static Algorithm, &'static str, &'static Algorithm)> {
    let mut found = Vec::new();
    for own in OPENSSL.algorithms() {
        let others: [&'static dyn Provider; 2] = [&AWSLC, &LANES];
        for other in others {
            let mut rows = other.algorithms().iter();
            let row = rows.find(|row| row.mechanism == own.mechanism);
            found.extend(row.map(|row| (own, other.name(), row)));
        }
    }
    found
}

fn name(row: &Algorithm) -> &'static str {
    mechanism_name(row.mechanism).unwrap_or("?")
}

fn key(class: u64, key_type: u64, object: NewObject) -> Arc<Key> {
    let NewObject { mut attributes, secrets } = object;
    attributes.set(CKA_CLASS, Value::Ulong(class));
    attributes.set(CKA_KEY_TYPE, Value::Ulong(key_type));
    Arc::new(Key::new(Arc::new(attributes), Arc::new(Material::new(secrets))))
}

fn secret(key_type: u64, value: &[u8]) -> Arc<Key> {
    let mut secrets = Secrets::new();
    secrets.set(CKA_VALUE, Secret::copy_of(value));
    key(CKO_SECRET_KEY, key_type, NewObject { attributes: Attributes::new(), secrets })
}

/// Keys that a mechanism is for, and some that it is not.
fn secrets(mechanism: CK_MECHANISM_TYPE, chance: &mut Chance) -> Vec<Arc<Key>> {
    let key_type = MechanismRow::find(mechanism).unwrap().keys[0];
    let lengths = [1, 16, 20, 24, 32, 64, 65, 128, 137, 200];
    lengths.iter().map(|length| secret(key_type, &chance.bytes(*length))).collect()
}

#[test]
fn digests_are_equal() {
    let mut chance = Chance::new();
    for (own, other_name, other) in both() {
        let (Some(own_digest), Some(other_digest)) = (own.digest, other.digest) else { continue };
        for length in LENGTHS {
            let data = chance.bytes(length);
            let mut results = Vec::new();
            for digest in [own_digest, other_digest] {
                let mut out = vec![0; digest.length()];
                digest.digest(&data, &mut out).unwrap();
                results.push(out);
                results.push(digest_in_parts(digest, &data, &mut chance));
            }
            let equal = results.windows(2).all(|two| two[0] == two[1]);
            assert!(equal, "{} {length} {other_name}: {results:x?}", name(own));
        }
    }
}

fn digest_in_parts(digest: &dyn Digest, data: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut stream = digest.start().unwrap();
    for part in chance.parts(data) {
        stream.update(part).unwrap();
        if let Ok(saved) = stream.save() {
            stream = digest.restore(&saved).unwrap();
        }
    }
    let mut out = vec![0; digest.length()];
    stream.finish(&mut out).unwrap();
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

/// What each of both says of a signature, in one call and in parts.
fn verdicts(
    verify: [&dyn Signature; 2],
    key: &Arc<Key>,
    params: &Params,
    (data, signature): (&[u8], &[u8]),
    chance: &mut Chance,
) -> Result<()> {
    let mut all = Vec::new();
    for verify in verify {
        all.push(verify.verify(key, params, data, signature));
        match verify.start(Direction::Backward, key, params) {
            Err(Error::FUNCTION_NOT_SUPPORTED) => {}
            stream => {
                let mut stream = stream.unwrap();
                for part in chance.parts(data) {
                    stream.update(part).unwrap();
                }
                all.push(stream.verify(signature));
            }
        }
    }
    assert!(all.windows(2).all(|two| two[0] == two[1]), "{all:?}");
    all[0]
}

fn signature_params(chance: &mut Chance) -> Vec<Params> {
    let gcm = |iv: Bytes, tag_bits| Params::Gcm { iv, aad: Bytes::new(), tag_bits };
    vec![
        Params::None,
        Params::Ulong(1),
        Params::Ulong(10),
        Params::Ulong(16),
        Params::Ulong(100),
        Params::Iv(chance.nonce(12)),
        Params::Iv(chance.nonce(61)),
        gcm(chance.nonce(12), 96),
    ]
}

#[test]
fn macs_are_equal_and_good_for_each_other() {
    let (mut chance, mut compared) = (Chance::new(), 0);
    for (own, other_name, other) in both() {
        let (Some(own_sign), Some(other_sign)) = (own.sign, other.sign) else { continue };
        for key in secrets(own.mechanism, &mut chance) {
            for params in signature_params(&mut chance) {
                let what = format!("{} {other_name} {params:?}", name(own));
                let checks = [own_sign, other_sign]
                    .map(|sign| sign.check(Direction::Forward, &key, &params));
                assert_eq!(checks[0], checks[1], "{what}");
                if checks[0].is_err() || !other_sign.serves(&key) {
                    continue;
                }
                for length in LENGTHS {
                    let data = chance.bytes(length);
                    let parts = chance.parts(&data);
                    let mut macs = Vec::new();
                    for sign in [own_sign, other_sign] {
                        macs.push(signed(sign, &key, &params, &[&data]).unwrap());
                        macs.push(signed(sign, &key, &params, &parts).unwrap());
                    }
                    assert!(macs.windows(2).all(|two| two[0] == two[1]), "{what} {length}");
                    let mut mac = macs.remove(0);
                    let pair = [own.verify.unwrap(), other.verify.unwrap()];
                    let mut judge =
                        |mac: &[u8]| verdicts(pair, &key, &params, (&data, mac), &mut chance);
                    assert_eq!(judge(&mac), Ok(()), "{what} {length}");
                    assert_eq!(judge(&mac[1..]), Err(Error::SIGNATURE_LEN_RANGE), "{what}");
                    mac[0] ^= 1;
                    assert_eq!(judge(&mac), Err(Error::SIGNATURE_INVALID), "{what} {length}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 5000, "{compared}");
}

fn cipher_params(length: usize, chance: &mut Chance) -> Vec<Params> {
    let gcm = |iv, aad, tag_bits| Params::Gcm { iv, aad, tag_bits };
    let ccm = |nonce, aad, mac_length, data_length: usize| Params::Ccm {
        data_length: data_length as u64,
        nonce,
        aad,
        mac_length,
    };
    let ctr = |bits, block: Vec<u8>| Params::Ctr { bits, block: block.try_into().unwrap() };
    let mut low = chance.bytes(16);
    low[12..].fill(0);
    vec![
        Params::None,
        Params::Iv(chance.nonce(16)),
        Params::Iv(chance.nonce(8)),
        Params::Iv(chance.nonce(4)),
        Params::Iv(Bytes::new()),
        ctr(128, chance.bytes(16)),
        ctr(32, low),
        ctr(3, vec![0xff; 16]),
        ctr(0, vec![0; 16]),
        gcm(chance.nonce(12), Bytes::new(), 128),
        gcm(chance.nonce(1), chance.nonce(17), 96),
        gcm(chance.nonce(61), chance.nonce(1000), 32),
        gcm(chance.nonce(12), Bytes::new(), 100),
        gcm(Bytes::new(), Bytes::new(), 128),
        ccm(chance.nonce(7), Bytes::new(), 16, length),
        ccm(chance.nonce(12), chance.nonce(17), 4, length),
        ccm(chance.nonce(13), chance.nonce(1000), 8, length),
        ccm(chance.nonce(12), Bytes::new(), 16, length + 1),
        Params::ChaCha20Poly1305 { nonce: chance.nonce(12), aad: chance.nonce(19) },
        Params::ChaCha20Poly1305 { nonce: chance.nonce(8), aad: Bytes::new() },
    ]
}

fn run(
    cipher: &dyn Cipher,
    direction: Direction,
    key: &Key,
    params: &Params,
    input: &[u8],
) -> Result<Vec<u8>> {
    let mut out = vec![0xee; cipher.length(direction, key, params, input.len())?];
    let length = cipher.run(direction, key, params, input, &mut out)?;
    out.truncate(length);
    Ok(out)
}

fn run_in_parts(
    cipher: &dyn Cipher,
    direction: Direction,
    key: &Arc<Key>,
    params: &Params,
    parts: &[&[u8]],
) -> Result<Vec<u8>> {
    let (mut stream, mut all) = (cipher.start(direction, key, params)?, Vec::new());
    for part in parts {
        let mut out = vec![0xee; stream.update_length(part.len())];
        stream.update(part, &mut out)?;
        all.extend(out);
    }
    let mut out = vec![0xee; stream.finish_length()];
    let length = stream.finish(&mut out)?;
    all.extend(&out[..length]);
    Ok(all)
}

/// Two ciphers say the same of an input, in one call and in parts.
fn same(
    ciphers: [&dyn Cipher; 2],
    direction: Direction,
    (key, params): (&Arc<Key>, &Params),
    input: &[u8],
    chance: &mut Chance,
) -> Result<Vec<u8>> {
    let parts = chance.parts(input);
    let whole = ciphers.map(|cipher| run(cipher, direction, key, params, input));
    assert_eq!(whole[0], whole[1], "{direction:?}");
    let in_parts = ciphers.map(|cipher| run_in_parts(cipher, direction, key, params, &parts));
    assert_eq!(in_parts[0], in_parts[1], "{direction:?} in {} parts", parts.len());
    let [whole, _] = whole;
    let [in_parts, _] = in_parts;
    if in_parts != Err(Error::FUNCTION_NOT_SUPPORTED) {
        assert_eq!(in_parts, whole, "{direction:?}");
    }
    whole
}

#[test]
fn ciphers_are_equal_in_both_directions_and_in_their_errors() {
    let (mut chance, mut compared) = (Chance::new(), 0);
    for (own, other_name, other) in both() {
        let (Some(own_cipher), Some(other_cipher)) = (own.encrypt, other.encrypt) else { continue };
        let forward = [own_cipher, other_cipher];
        let backward = [own.decrypt.unwrap(), other.decrypt.unwrap()];
        for key in secrets(own.mechanism, &mut chance) {
            for length in LENGTHS {
                for params in cipher_params(length, &mut chance) {
                    let checks = forward.map(|row| row.check(Direction::Forward, &key, &params));
                    println!("{} {other_name} {length} {params:?}", name(own));
                    assert_eq!(checks[0], checks[1]);
                    if checks[0].is_err() || !other_cipher.serves(&key) {
                        continue;
                    }
                    let data = chance.bytes(length);
                    let with = (&key, &params);
                    // What is no ciphertext is none for both.
                    drop(same(backward, Direction::Backward, with, &data, &mut chance));
                    let sealed = same(forward, Direction::Forward, with, &data, &mut chance);
                    let Ok(mut sealed) = sealed else { continue };
                    let opened = same(backward, Direction::Backward, with, &sealed, &mut chance);
                    assert_eq!(opened, Ok(data));
                    compared += 1;
                    if let Some(byte) = sealed.last_mut() {
                        *byte ^= 1;
                        drop(same(backward, Direction::Backward, with, &sealed, &mut chance));
                    }
                }
            }
        }
    }
    assert!(compared > 500, "{compared}");
}

/// Both halves of a pair.
struct Pair {
    public: Arc<Key>,
    private: Arc<Key>,
}

fn rsa(bits: u64) -> Pair {
    let mut rows = AWSLC.algorithms().iter();
    let row = rows.find(|row| row.mechanism == CKM_RSA_PKCS_KEY_PAIR_GEN).unwrap();
    let template: Attributes = [(CKA_MODULUS_BITS, Value::Ulong(bits))].into_iter().collect();
    let made = row.generate_pair.unwrap().generate_pair(&Params::None, &template).unwrap();
    Pair {
        public: key(CKO_PUBLIC_KEY, CKK_RSA, made.0),
        private: key(CKO_PRIVATE_KEY, CKK_RSA, made.1),
    }
}

/// Each function with its mask, and one with the mask of another.
fn hashes() -> Vec<(u64, u64)> {
    vec![
        (CKM_SHA_1, CKG_MGF1_SHA1),
        (CKM_SHA224, CKG_MGF1_SHA224),
        (CKM_SHA256, CKG_MGF1_SHA256),
        (CKM_SHA384, CKG_MGF1_SHA384),
        (CKM_SHA512, CKG_MGF1_SHA512),
        (CKM_SHA3_224, CKG_MGF1_SHA3_224),
        (CKM_SHA3_256, CKG_MGF1_SHA3_256),
        (CKM_SHA3_384, CKG_MGF1_SHA3_384),
        (CKM_SHA3_512, CKG_MGF1_SHA3_512),
        (CKM_SHA256, CKG_MGF1_SHA1),
        (CKM_MD5, CKG_MGF1_SHA1),
        (CKM_SHA256, 0),
    ]
}

#[test]
fn rsa_signatures_are_good_for_each_other() {
    let (mut chance, mut compared) = (Chance::new(), 0);
    let pss = |salt_length| move |(hash, mgf)| Params::Pss { hash, mgf, salt_length };
    let mut all_params = vec![Params::None];
    for salt in [0, 20, 200] {
        all_params.extend(hashes().into_iter().map(pss(salt)));
    }
    for Pair { public, private } in [512, 1000, 1024].map(rsa) {
        for (own, other_name, other) in both() {
            let (Some(own_sign), Some(other_sign)) = (own.sign, other.sign) else { continue };
            for params in &all_params {
                let what = format!("{} {other_name} {params:?}", name(own));
                let signers = [own_sign, other_sign];
                let checks = signers.map(|sign| sign.check(Direction::Forward, &private, params));
                assert_eq!(checks[0], checks[1], "{what}");
                if checks[0].is_err() || !other_sign.serves(&private) {
                    continue;
                }
                for length in [0, 20, 32, 53, 64, 1000] {
                    let data = chance.bytes(length);
                    let signatures = signers.map(|sign| signed(sign, &private, params, &[&data]));
                    let is_pss = matches!(params, Params::Pss { salt_length: 1.., .. });
                    match &signatures {
                        [Ok(_), Ok(_)] if is_pss => {}
                        [one, two] => assert_eq!(one, two, "{what} {length}"),
                    }
                    for signature in signatures.into_iter().flatten() {
                        let pair = [own.verify.unwrap(), other.verify.unwrap()];
                        let mut judge = |signature: &[u8]| {
                            verdicts(pair, &public, params, (&data, signature), &mut chance)
                        };
                        assert_eq!(judge(&signature), Ok(()), "{what} {length}");
                        assert_eq!(judge(&signature[1..]), Err(Error::SIGNATURE_LEN_RANGE));
                        for at in [0, length % signature.len(), signature.len() - 1] {
                            let mut changed = signature.clone();
                            changed[at] ^= 1;
                            assert_eq!(judge(&changed), Err(Error::SIGNATURE_INVALID), "{what}");
                        }
                        compared += 1;
                    }
                }
            }
        }
    }
    assert!(compared > 1000, "{compared}");
}

#[test]
fn rsa_decryption_is_equal_whatever_is_decrypted() {
    let (mut chance, mut compared) = (Chance::new(), 0);
    let oaep = |label: Bytes| move |(hash, mgf)| Params::Oaep { hash, mgf, label: label.clone() };
    let mut all_params = vec![Params::None];
    all_params.extend(hashes().into_iter().map(oaep(Bytes::new())));
    all_params.extend(hashes().into_iter().map(oaep(chance.nonce(33))));
    for Pair { public, private } in [512, 1024, 1032, 2048].map(rsa) {
        let modulus = public.bytes(CKA_MODULUS).unwrap();
        for (own, other_name, other) in both() {
            let (Some(own_row), Some(other_row)) = (own.encrypt, other.encrypt) else { continue };
            let encrypt = [own_row, other_row];
            let decrypt = [own.decrypt.unwrap(), other.decrypt.unwrap()];
            for params in &all_params {
                println!("{} {other_name} {params:?}", name(own));
                let checks = encrypt.map(|row| row.check(Direction::Forward, &public, params));
                assert_eq!(checks[0], checks[1]);
                if checks[0].is_err() || !other_row.serves(&public) {
                    continue;
                }
                let mut decrypted = |sealed: &[u8]| {
                    same(decrypt, Direction::Backward, (&private, params), sealed, &mut chance)
                };
                for length in [0_usize, 1, 16, 32, 53, 100, 117, 245, 300] {
                    let message = vec![length.to_le_bytes()[0]; length];
                    let sealed =
                        encrypt.map(|row| run(row, Direction::Forward, &public, params, &message));
                    assert_eq!(sealed[0].as_ref().err(), sealed[1].as_ref().err(), "{length}");
                    for mut sealed in sealed.into_iter().flatten() {
                        assert_eq!(decrypted(&sealed).as_ref(), Ok(&message));
                        // A bad padding is an error or a message, and for both the same.
                        let last = sealed.len() - 1;
                        sealed[last] ^= 1;
                        drop(decrypted(&sealed));
                        compared += 1;
                    }
                }
                let mut last = modulus.to_vec();
                *last.last_mut().unwrap() -= 1;
                let mut one = vec![0; modulus.len()];
                one[modulus.len() - 1] = 1;
                for odd in [&vec![0; modulus.len()], &one, &last, &modulus.to_vec()] {
                    drop(decrypted(odd));
                }
            }
        }
    }
    assert!(compared > 100, "{compared}");
}
