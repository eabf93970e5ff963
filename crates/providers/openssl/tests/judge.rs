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
use metaslot_spi::provider::{Algorithm, Cipher, Digest, Direction, Keys, Provider, Signature};
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
            let rows = other.algorithms().iter().filter(|row| row.mechanism == own.mechanism);
            found.extend(rows.map(|row| (own, other.name(), row)));
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
            if !takes(own, &private) {
                continue;
            }
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

/// DER of the object identifiers of P-224, P-256, P-384, P-521 and secp256k1.
const PRIME: [&[u8]; 5] = [
    &[6, 5, 0x2b, 0x81, 4, 0, 0x21],
    &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7],
    &[6, 5, 0x2b, 0x81, 4, 0, 0x22],
    &[6, 5, 0x2b, 0x81, 4, 0, 0x23],
    &[6, 5, 0x2b, 0x81, 4, 0, 0x0a],
];
/// Of those over binary fields, by the same.
const BINARY: [&[u8]; 4] = [
    &[6, 5, 0x2b, 0x81, 4, 0, 2],
    &[6, 5, 0x2b, 0x81, 4, 0, 0x1a],
    &[6, 5, 0x2b, 0x81, 4, 0, 0x11],
    &[6, 5, 0x2b, 0x81, 4, 0, 0x26],
];
const ED25519: &[u8] = &[6, 3, 0x2b, 0x65, 0x70];
const X25519: &[u8] = &[6, 3, 0x2b, 0x65, 0x6e];

/// A pair that a provider makes on a curve, where it has it.
fn on_curve(provider: &'static dyn Provider, curve: &[u8]) -> Option<Pair> {
    let (mechanism, key_type) = match curve {
        ED25519 => (CKM_EC_EDWARDS_KEY_PAIR_GEN, CKK_EC_EDWARDS),
        X25519 => (CKM_EC_MONTGOMERY_KEY_PAIR_GEN, CKK_EC_MONTGOMERY),
        _ => (CKM_EC_KEY_PAIR_GEN, CKK_EC),
    };
    let params = (CKA_EC_PARAMS, Value::Bytes(curve.to_vec()));
    let template: Attributes = [params].into_iter().collect();
    let rows = provider.algorithms().iter().filter(|row| row.mechanism == mechanism);
    let mut rows = rows.filter_map(|row| row.generate_pair);
    let row = rows.find(|row| row.serves(&template))?;
    let made = row.generate_pair(&Params::None, &template).unwrap();
    Some(Pair {
        public: key(CKO_PUBLIC_KEY, key_type, made.0),
        private: key(CKO_PRIVATE_KEY, key_type, made.1),
    })
}

/// Pairs on these curves, some made by each provider.
fn on_curves(curves: &[&[u8]]) -> Vec<Pair> {
    let makers: [&'static dyn Provider; 3] = [&OPENSSL, &AWSLC, &LANES];
    let made = |maker: &&'static dyn Provider| {
        let maker = *maker;
        curves.iter().filter_map(move |curve| on_curve(maker, curve))
    };
    makers.iter().flat_map(made).collect()
}

fn takes(row: &Algorithm, key: &Key) -> bool {
    MechanismRow::find(row.mechanism).unwrap().keys.contains(&key.key_type())
}

#[test]
fn signatures_on_curves_are_good_for_each_other() {
    let (mut chance, mut compared) = (Chance::new(), 0);
    let curves: Vec<_> = PRIME.iter().chain(&BINARY).copied().chain([ED25519]).collect();
    let eddsa = |prehash, context: Bytes| Params::EdDsa { prehash, context };
    let all_params = [
        Params::None,
        eddsa(false, Bytes::new()),
        eddsa(false, chance.nonce(255)),
        eddsa(false, chance.nonce(256)),
        eddsa(true, Bytes::new()),
        eddsa(true, chance.nonce(7)),
        eddsa(true, chance.nonce(256)),
        Params::Ulong(1),
    ];
    for Pair { public, private } in on_curves(&curves) {
        for (own, other_name, other) in both() {
            let (Some(own_sign), Some(other_sign)) = (own.sign, other.sign) else { continue };
            if !takes(own, &private) || !other_sign.serves(&private) {
                continue;
            }
            let is_eddsa = own.mechanism == CKM_EDDSA;
            for params in all_params.iter().take(if is_eddsa { all_params.len() } else { 1 }) {
                let what = format!("{} {other_name} {params:?}", name(own));
                let signers = [own_sign, other_sign];
                let checks = signers.map(|sign| sign.check(Direction::Forward, &private, params));
                assert_eq!(checks[0], checks[1], "{what}");
                let lengths = signers.map(|sign| sign.length(&private, params));
                assert_eq!(lengths[0], lengths[1], "{what}");
                for length in [0, 1, 20, 32, 64, 67, 1000] {
                    if checks[0].is_err() {
                        continue;
                    }
                    let data = chance.bytes(length);
                    let signatures = signers.map(|sign| signed(sign, &private, params, &[&data]));
                    assert_eq!(signatures[0].as_ref().err(), signatures[1].as_ref().err());
                    if is_eddsa {
                        assert_eq!(signatures[0], signatures[1], "{what} {length}");
                    }
                    let pair = [own.verify.unwrap(), other.verify.unwrap()];
                    let mut judge = |signature: &[u8]| {
                        verdicts(pair, &public, params, (&data, signature), &mut chance)
                    };
                    for signature in signatures.into_iter().flatten() {
                        assert_eq!(judge(&signature), Ok(()), "{what} {length}");
                        compared += 1;
                        let (half, whole) = (signature.len() / 2, signature.len());
                        for at in [0, half - 1, half, whole - 1] {
                            let mut changed = signature.clone();
                            changed[at] ^= 1;
                            assert_eq!(judge(&changed), Err(Error::SIGNATURE_INVALID), "{what}");
                        }
                        // What is no signature is none for both: without r, without s, with both swapped, too short, too long.
                        let (r, s) = signature.split_at(half);
                        let zeros = &vec![0; half][..];
                        for odd in [[zeros, s], [r, zeros], [s, r], [r, &s[1..]]] {
                            assert!(judge(&odd.concat()).is_err(), "{what}");
                        }
                        // That of P-521 may begin with zeros, and be good without.
                        judge(&[&r[1..], &s[1..]].concat()).ok();
                        judge(&vec![0xff; whole]).ok();
                        let long = [&signature[..], &[0, 0]].concat();
                        assert_eq!(judge(&long), Err(Error::SIGNATURE_LEN_RANGE), "{what}");
                        assert_eq!(judge(&[]), Err(Error::SIGNATURE_LEN_RANGE), "{what}");
                    }
                }
            }
        }
    }
    assert!(compared > 1000, "{compared}");
}

#[derive(Debug)]
struct NoKeys;

impl Keys for NoKeys {
    fn key(&self, _: ObjectHandle) -> Result<Arc<Key>> {
        Err(Error::KEY_HANDLE_INVALID)
    }
}

/// Points that a peer may send, most of them none of the curve.
fn peers(Pair { public, .. }: &Pair, chance: &mut Chance) -> Vec<Vec<u8>> {
    let der = public.bytes(CKA_EC_POINT).unwrap();
    let header = if der[1] & 0x80 == 0 { 2 } else { 3 };
    let point = der[header..].to_vec();
    let mut peers = vec![der.to_vec(), point.clone(), Vec::new(), vec![0], vec![4, 1, 0]];
    peers.extend([[&point[..], &[0]].concat(), point[1..].to_vec(), der[1..].to_vec()]);
    peers.push(chance.bytes(point.len()));
    for byte in [0, 1, 0xff, 0xec, 0xed, 0xee] {
        let mut other = vec![byte; point.len()];
        peers.push(other.clone());
        other[0] = point[0];
        peers.push(other);
    }
    if public.key_type() == CKK_EC {
        let (x, y) = point[1..].split_at(point.len() / 2);
        let odd = y[y.len() - 1] & 1;
        // Compressed, with the wrong sign too, and hybrid, with the wrong sign too.
        peers.extend([2, 3].map(|form| [&[form], x].concat()));
        peers.extend([6 + odd, 7 - odd].map(|form| [&[form], x, y].concat()));
        peers.push([&[4], y, x].concat());
        let mut off = point;
        *off.last_mut().unwrap() ^= 1;
        peers.push(off);
    } else {
        // Small order (RFC 7748 §6.1, and its twist), and numbers that are not below 2^255 - 19.
        for (first, others, last) in [
            (0, 0, 0),
            (1, 0, 0),
            (0xec, 0xff, 0x7f),
            (0xed, 0xff, 0x7f),
            (0xee, 0xff, 0x7f),
            (0xef, 0xff, 0x7f),
            (0xec, 0xff, 0xff),
            (0xed, 0xff, 0xff),
            (9, 0, 0x80),
        ] {
            let mut other = vec![others; 32];
            (other[0], other[31]) = (first, last);
            peers.push(other);
        }
    }
    peers
}

#[test]
fn secrets_that_are_agreed_on_are_equal_and_bad_points_are_refused_alike() {
    let (mut chance, mut compared, mut refused) = (Chance::new(), 0, 0);
    let curves: Vec<_> = PRIME.iter().chain(&BINARY).copied().chain([X25519]).collect();
    let all = on_curves(&curves);
    for Pair { public, private } in &all {
        // Points of every curve, its own among them.
        let points: Vec<_> = all.iter().flat_map(|pair| peers(pair, &mut chance)).collect();
        let kdfs = [CKD_NULL, CKD_SHA1_KDF, CKD_SHA256_KDF_SP800, CKD_SHA3_512_KDF, 0x1234];
        for (own, other_name, other) in both() {
            let (Some(own_derive), Some(other_derive)) = (own.derive, other.derive) else {
                continue;
            };
            if !takes(own, private) || !other_derive.serves(private) {
                continue;
            }
            let both = [own_derive, other_derive];
            let own_peers = public.bytes(CKA_EC_POINT).map(<[u8]>::to_vec).unwrap();
            for (at, point) in [own_peers].iter().chain(&points).enumerate() {
                // All functions for the first, one for the others.
                for kdf in kdfs.iter().take(if at == 0 { kdfs.len() } else { 1 }) {
                    let (kdf, public) = (*kdf, Bytes::from_slice(point));
                    let shared = if at == 0 { chance.nonce(5) } else { Bytes::new() };
                    let params = Params::Ecdh1 { kdf, shared, public };
                    let what = format!("{} {other_name} {kdf} {point:x?}", name(own));
                    let checks = both.map(|derive| derive.check(private, &params));
                    assert_eq!(checks[0], checks[1], "{what}");
                    let natural = both.map(|derive| derive.natural_length(private, &params));
                    assert_eq!(natural[0], natural[1], "{what}");
                    let length = natural[0].unwrap_or(100);
                    let secrets = both.map(|derive| {
                        let secrets = derive.derive(private, &params, &[length], &NoKeys)?;
                        Ok::<_, Error>(secrets[0].expose().to_vec())
                    });
                    assert_eq!(secrets[0], secrets[1], "{what}");
                    match &secrets[0] {
                        Ok(_) => compared += 1,
                        Err(error) => {
                            assert_eq!(*error, Error::MECHANISM_PARAM_INVALID, "{what}");
                            refused += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(compared > 100 && refused > 1000, "{compared} {refused}");
}

#[test]
fn keys_on_curves_are_completed_and_encoded_alike() {
    let mut chance = Chance::new();
    let curves: Vec<_> = PRIME.iter().copied().chain([X25519, ED25519]).collect();
    let completed = |provider: &dyn Provider, class, kind, curve: &[u8], bytes: &[u8]| {
        let mut object = NewObject::default();
        object.attributes.set(CKA_CLASS, Value::Ulong(class));
        object.attributes.set(CKA_KEY_TYPE, Value::Ulong(kind));
        object.attributes.set(CKA_EC_PARAMS, Value::Bytes(curve.to_vec()));
        match class {
            CKO_PUBLIC_KEY => object.attributes.set(CKA_EC_POINT, Value::Bytes(bytes.to_vec())),
            _ => object.secrets.set(CKA_VALUE, Secret::copy_of(bytes)),
        }
        provider.complete(&mut object)?;
        let secret = object.secrets.get(CKA_VALUE).map(<[u8]>::to_vec);
        Ok::<_, Error>((object.attributes, secret))
    };
    for pair in on_curves(&curves) {
        let Pair { public, private } = &pair;
        let (kind, curve) = (public.key_type(), public.bytes(CKA_EC_PARAMS).unwrap());
        let same = |class, bytes: &[u8]| {
            let each = [&OPENSSL as &dyn Provider, &AWSLC]
                .map(|provider| completed(provider, class, kind, curve, bytes));
            assert_eq!(each[0], each[1], "{class} {curve:x?} {bytes:x?}");
        };
        for point in peers(&pair, &mut chance) {
            same(CKO_PUBLIC_KEY, &point);
        }
        let value = private.secret(CKA_VALUE).unwrap();
        let long = [&[0], value].concat();
        let ff = vec![0xff; value.len()];
        for value in [value, &value[1..], &long, &ff, &[], &[0], &[1], &[0; 32], &[0; 66]] {
            same(CKO_PRIVATE_KEY, value);
        }
        let encoded = [&OPENSSL as &dyn Provider, &AWSLC]
            .map(|provider| provider.encode_private_key(private).unwrap().expose().to_vec());
        assert_eq!(encoded[0], encoded[1]);
        for at in 0..encoded[0].len() {
            let mut changed = encoded[0].clone();
            changed[at] ^= 1;
            let each = [&OPENSSL as &dyn Provider, &AWSLC].map(|provider| {
                let object = provider.decode_private_key(&changed)?;
                let secret = object.secrets.get(CKA_VALUE).map(<[u8]>::to_vec);
                Ok::<_, Error>((object.attributes, secret))
            });
            assert_eq!(each[0], each[1], "{changed:x?}");
        }
    }
}
