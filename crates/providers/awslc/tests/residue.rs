// SPDX-License-Identifier: Apache-2.0
//! Nothing of a private key stays in the process once the key is gone: not on the heap, not on the
//! stack, not in the arena.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{Pair, algorithm, key, pair, provider};
use curve25519_dalek::EdwardsPoint;
use curve25519_dalek::scalar::{Scalar, clamp_integer};
#[allow(unused_imports, reason = "where another provider includes this file, it is that one")]
use metaslot_awslc::AWSLC as PROVIDER;
use metaslot_awslc::AWSLC;
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_memory::wiping;
use metaslot_spi::provider::{Direction, Keys, Provider};
use metaslot_spi::{Bytes, Key, Params, Tls, Value};
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, Scope};
use std::time::Duration;

/// Patterns are kept masked, so that the search does not find itself.
const MASK: u8 = 0xa5;
/// As much of a secret as is looked for, in bytes.
const WINDOW: usize = 16;
const PAGE: usize = 4096;

/// The beginning, middle and end of each secret, as they are and as the library's numbers have
/// them. (The middle, because X25519 clamps both ends.)
fn patterns(key: &Key) -> Vec<(u64, [u8; WINDOW])> {
    let mut found = Vec::new();
    if key.key_type() == CKK_EC_MONTGOMERY
        && let Ok(value) = <&[u8; 32]>::try_from(key.secret(CKA_VALUE).unwrap())
    {
        let masked = wiping(|| xeddsa_numbers(value).map(forms));
        for form in masked.iter().flatten() {
            found.push((CKA_VALUE, *form));
        }
    }
    for (attribute, value) in key.secrets().iter() {
        let value = match (key.key_type(), attribute) {
            // An expanded key of ML-DSA begins with ρ, as the public one does.
            (CKK_ML_DSA, CKA_VALUE) => &value[32..],
            // Behind the vector s an expanded key of ML-KEM has the public one.
            (CKK_ML_KEM, CKA_VALUE) => &value[..(value.len() - 96) / 2],
            _ => value,
        };
        let masked: Vec<u8> = value.iter().map(|byte| byte ^ MASK).collect();
        let backwards: Vec<u8> = masked.iter().rev().copied().collect();
        // One in the form of Montgomery is a power of two less the prime: but for the lowest byte, every bit is the other.
        let less: Vec<u8> = match attribute {
            CKA_PRIME_1 | CKA_PRIME_2 => backwards.iter().skip(1).map(|byte| !byte).collect(),
            _ => backwards.clone(),
        };
        for form in [&masked, &backwards, &less] {
            for start in [0, (form.len() - WINDOW) / 2, form.len() - WINDOW] {
                found.push((attribute, *form[start..].first_chunk().unwrap()));
            }
        }
    }
    found
}

/// The numbers of which XEdDSA signs with one.
fn xeddsa_numbers(value: &[u8]) -> [Scalar; 2] {
    let number = Scalar::from_bytes_mod_order(clamp_integer(value.try_into().unwrap()));
    [number, -number]
}

/// Both ends of a number as bytes, and the first four of its five limbs of 52 bits.
fn forms(number: Scalar) -> [[u8; WINDOW]; 4] {
    let bytes = number.to_bytes();
    let limb = |at: usize| {
        let word = u64::from_le_bytes(*bytes[52 * at / 8..].first_chunk().unwrap());
        (word >> (52 * at % 8) & ((1 << 52) - 1)).to_le_bytes()
    };
    let limbs = |at| *[limb(at), limb(at + 1)].as_flattened().first_chunk().unwrap();
    let ends = [*bytes.first_chunk().unwrap(), *bytes.last_chunk().unwrap()];
    let all: [[u8; WINDOW]; 4] = [ends[0], ends[1], limbs(0), limbs(2)];
    all.map(|form| form.map(|byte| byte ^ MASK))
}

/// Where the patterns are in writable memory.
fn search(patterns: &[(u64, [u8; WINDOW])]) -> Vec<String> {
    let memory = File::open("/proc/self/mem").unwrap();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mut starts = vec![false; 1 << 16];
    for (_, pattern) in patterns {
        starts[usize::from(u16::from_le_bytes([pattern[0] ^ MASK, pattern[1] ^ MASK]))] = true;
    }
    let mut buffer = vec![0; PAGE + WINDOW - 1];
    let own = buffer.as_ptr() as u64..buffer.as_ptr() as u64 + buffer.len() as u64;
    let mut hits = Vec::new();
    for line in maps.lines().filter(|line| line.contains(" rw")) {
        let (range, name) = line.split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let (start, end) =
            (u64::from_str_radix(start, 16).unwrap(), u64::from_str_radix(end, 16).unwrap());
        for page in (start..end).step_by(PAGE) {
            // A little of the next page too, for what crosses the boundary.
            let Ok(length) = memory.read_at(&mut buffer, page) else { break };
            let bytes = &buffer[..length];
            if bytes.starts_with(&[0; PAGE]) {
                continue;
            }
            for at in 0..length.saturating_sub(WINDOW - 1) {
                if starts[usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))]
                    && let Some(attribute) = matching(patterns, &bytes[at..at + WINDOW])
                    && !own.contains(&(page + at as u64))
                {
                    hits.push(format!("{attribute:x} at {:x} in {name}", page + at as u64));
                }
            }
        }
    }
    hits
}

fn matching(patterns: &[(u64, [u8; WINDOW])], window: &[u8]) -> Option<u64> {
    let fits = |pattern: &[u8; WINDOW]| window.iter().zip(pattern).all(|(a, b)| a ^ MASK == *b);
    patterns.iter().find(|(_, pattern)| fits(pattern)).map(|(attribute, _)| *attribute)
}

#[derive(Debug)]
struct NoKeys;

impl Keys for NoKeys {
    fn key(&self, _: ObjectHandle) -> Result<Arc<Key>> {
        Err(Error::KEY_HANDLE_INVALID)
    }
}

pub(crate) fn signs(keys: &Pair, mechanism: CK_MECHANISM_TYPE) {
    let sign = algorithm(mechanism).sign.unwrap();
    sign.check(Direction::Forward, &keys.private, &Params::None).unwrap();
    let mut out = vec![0; sign.length(&keys.private, &Params::None)];
    sign.sign(&keys.private, &Params::None, b"message", &mut out).unwrap();
}

/// Or begins to.
fn signs_by_xeddsa(keys: &Pair, hash: CK_MECHANISM_TYPE, ends: bool) {
    let (sign, params) = (algorithm(CKM_XEDDSA).sign.unwrap(), Params::XEdDsa { hash });
    match ends {
        true => drop(sign.sign(&keys.private, &params, b"message", &mut [0; 64]).unwrap()),
        false => sign.check(Direction::Forward, &keys.private, &params).unwrap(),
    }
}

pub(crate) fn agrees(keys: &Pair) {
    let public = Bytes::from_slice(keys.public.bytes(CKA_EC_POINT).unwrap());
    let params = Params::Ecdh1 { kdf: CKD_NULL, shared: Bytes::new(), public };
    let derive = algorithm(CKM_ECDH1_DERIVE).derive.unwrap();
    derive.check(&keys.private, &params).unwrap();
    drop(derive.derive(&keys.private, &params, &[24], &NoKeys).unwrap());
}

fn decrypts(keys: &Pair) {
    let row = algorithm(CKM_RSA_PKCS);
    let (encrypt, decrypt) = (row.encrypt.unwrap(), row.decrypt.unwrap());
    let mut sealed = vec![0; keys.public.bytes(CKA_MODULUS).unwrap().len()];
    encrypt.run(Direction::Forward, &keys.public, &Params::None, b"message", &mut sealed).unwrap();
    let mut opened = vec![0; sealed.len() - 11];
    decrypt.run(Direction::Backward, &keys.private, &Params::None, &sealed, &mut opened).unwrap();
}

/// Does each thing in a thread of its own, which then waits: its stack is as that has left it, whatever comes after.
struct Stacks<'scope, 'env>(&'scope Scope<'scope, 'env>, Arc<AtomicBool>);

impl<'scope> Stacks<'scope, '_> {
    fn on_one<T: Send + 'scope>(&self, work: impl FnOnce() -> T + Send + 'scope) -> T {
        let (done, is_done) = channel();
        let over = Arc::clone(&self.1);
        self.0.spawn(move || {
            done.send(below(work)).unwrap();
            while !over.load(Ordering::Relaxed) {
                thread::park_timeout(Duration::from_millis(1));
            }
        });
        is_done.recv().unwrap()
    }
}

/// Further down than what the thread does afterwards.
#[inline(never)]
fn below<T>(work: impl FnOnce() -> T) -> T {
    black_box(&mut [0_u8; 4 * PAGE]);
    work()
}

/// So that the threads end though something has failed.
impl Drop for Stacks<'_, '_> {
    fn drop(&mut self) {
        self.1.store(true, Ordering::Relaxed);
    }
}

/// Uses the keys of `make` in every way, drops them and looks for what is left.
pub(crate) fn leaves_nothing(
    key_type: u64,
    make: impl FnOnce() -> Pair + Send,
    operations: &[&(dyn Fn(&Pair) + Sync)],
) {
    thread::scope(|scope| {
        let stacks = Stacks(scope, Arc::default());
        let patterns = {
            let keys = Arc::new(stacks.on_one(make));
            let use_it = |keys: &Arc<Pair>| {
                for operation in operations {
                    let keys = Arc::clone(keys);
                    stacks.on_one(move || operation(&keys));
                }
            };
            use_it(&keys);
            let (same, public) = (Arc::clone(&keys), Arc::clone(&keys.public));
            let again = stacks.on_one(move || {
                let who: [&dyn Provider; 2] = [provider(), &AWSLC];
                let mut encoded = who.iter().map(|who| who.encode_private_key(&same.private));
                let der = encoded.find_map(Result::ok).unwrap();
                let mut decoded = who.iter().map(|who| who.decode_private_key(der.expose()));
                let back = decoded.find_map(Result::ok).unwrap();
                Pair { public, private: key(CKO_PRIVATE_KEY, key_type, back) }
            });
            use_it(&Arc::new(again));
            let private = Arc::clone(&keys.private);
            let patterns = stacks.on_one(move || patterns(&private));
            assert!(!search(&patterns).is_empty(), "a living key is found");
            patterns
        };
        let left = search(&patterns);
        assert!(left.is_empty(), "{left:#?}");
    });
}

pub(crate) fn on(mechanism: CK_MECHANISM_TYPE, key_type: u64, params: &[u8]) -> Pair {
    pair(mechanism, key_type, &[(CKA_EC_PARAMS, Value::Bytes(params.to_vec()))])
}

#[test]
fn a_dropped_rsa_key_leaves_nothing() {
    for bits in [1024, 2048] {
        let bits = [(CKA_MODULUS_BITS, Value::Ulong(bits))];
        leaves_nothing(
            CKK_RSA,
            || pair(CKM_RSA_PKCS_KEY_PAIR_GEN, CKK_RSA, &bits),
            &[&|keys| signs(keys, CKM_SHA256_RSA_PKCS), &decrypts],
        );
    }
}

#[test]
fn a_dropped_ec_key_leaves_nothing() {
    for params in [
        &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7][..],
        &[6, 5, 0x2b, 0x81, 4, 0, 0x22],
        &[6, 5, 0x2b, 0x81, 4, 0, 0x0a],
    ] {
        leaves_nothing(
            CKK_EC,
            || on(CKM_EC_KEY_PAIR_GEN, CKK_EC, params),
            &[&|keys| signs(keys, CKM_ECDSA_SHA256), &agrees],
        );
    }
}

#[test]
fn a_dropped_ed25519_key_leaves_nothing() {
    leaves_nothing(
        CKK_EC_EDWARDS,
        || on(CKM_EC_EDWARDS_KEY_PAIR_GEN, CKK_EC_EDWARDS, &[6, 3, 0x2b, 0x65, 0x70]),
        &[&|keys| signs(keys, CKM_EDDSA)],
    );
}

#[test]
fn a_dropped_ml_dsa_key_leaves_nothing() {
    let set = [(CKA_PARAMETER_SET, Value::Ulong(CKP_ML_DSA_87))];
    leaves_nothing(
        CKK_ML_DSA,
        || pair(CKM_ML_DSA_KEY_PAIR_GEN, CKK_ML_DSA, &set),
        &[&|keys| signs(keys, CKM_ML_DSA)],
    );
}

#[test]
fn a_dropped_ml_kem_key_leaves_nothing() {
    let set = [(CKA_PARAMETER_SET, Value::Ulong(CKP_ML_KEM_1024))];
    leaves_nothing(
        CKK_ML_KEM,
        || pair(CKM_ML_KEM_KEY_PAIR_GEN, CKK_ML_KEM, &set),
        &[&|Pair { public, private }| {
            let row = algorithm(CKM_ML_KEM);
            let mut ciphertext = [0; 1568];
            let seal = row.encapsulate.unwrap();
            let mut sealed = Secret::zeroed(32);
            seal.encapsulate(public, &Params::None, sealed.expose_mut(), &mut ciphertext).unwrap();
            let open = row.decapsulate.unwrap();
            let opened = open.decapsulate(private, &Params::None, None, &ciphertext).unwrap();
            assert_eq!(sealed.expose(), opened.expose());
        }],
    );
}

const X25519: [u8; 5] = [6, 3, 0x2b, 0x65, 0x6e];

#[test]
fn a_dropped_x25519_key_leaves_nothing() {
    leaves_nothing(
        CKK_EC_MONTGOMERY,
        || on(CKM_EC_MONTGOMERY_KEY_PAIR_GEN, CKK_EC_MONTGOMERY, &X25519),
        &[
            &agrees,
            // What it signs with is made by the first check.
            &|keys| signs_by_xeddsa(keys, CKM_SHA512, false),
            &|keys| signs_by_xeddsa(keys, CKM_SHA512, true),
            &|keys| signs_by_xeddsa(keys, CKM_SHA3_512, true),
            &|keys| signs_by_xeddsa(keys, CKM_BLAKE2B_512, true),
        ],
    );
}

/// Who knows that number knows the key by the signature.
#[test]
fn a_signature_leaves_nothing_of_the_random_number_in_it() {
    thread::scope(|scope| {
        let stacks = Stacks(scope, Arc::default());
        let make = || on(CKM_EC_MONTGOMERY_KEY_PAIR_GEN, CKK_EC_MONTGOMERY, &X25519);
        let (keys, params) = (Arc::new(stacks.on_one(make)), Params::XEdDsa { hash: CKM_SHA512 });
        let private = Arc::clone(&keys.private);
        let signature = stacks.on_one(move || {
            let (sign, mut out) = (algorithm(CKM_XEDDSA).sign.unwrap(), [0; 64]);
            sign.sign(&private, &params, b"message", &mut out).unwrap();
            out
        });
        let of_both = move || {
            let (point, sum) = signature.split_at(32);
            let sum = Scalar::from_canonical_bytes(sum.try_into().unwrap()).unwrap();
            xeddsa_numbers(keys.private.secret(CKA_VALUE).unwrap()).map(|number| {
                let mut public = EdwardsPoint::mul_base(&number).compress().to_bytes();
                public[31] &= 0x7f;
                let mut challenge = [0; 64];
                let hashed = [point, &public, b"message"].concat();
                Hash::Sha512.digest(&hashed, &mut challenge).unwrap();
                forms(sum - Scalar::from_bytes_mod_order_wide(&challenge) * number)
            })
        };
        let both = stacks.on_one(move || wiping(of_both));
        let left = search(&both.as_flattened().iter().map(|form| (0, *form)).collect::<Vec<_>>());
        assert!(left.is_empty(), "{left:#?}");
    });
}

/// A group of 512 bits with a subgroup of 160, for speed.
const GROUP: [(CK_ATTRIBUTE_TYPE, &str); 3] = [
    (
        CKA_PRIME,
        "fca682ce8e12caba26efccf7110e526db078b05edecbcd1eb4a208f3ae1617ae01f35b91a47e6df63413c5e12ed0899bcd132acd50d99151bdc43ee737592e17",
    ),
    (CKA_SUBPRIME, "962eddcc369cba8ebb260ee6b6a126d9346e38c5"),
    (
        CKA_BASE,
        "678471b27a9cf44ee91a49c5147db1a9aaf244f05a434d6486931d2d14271b9e35030b71fd73da179069b32e2935630e1c2062354d0da20a6c416e50be794ca4",
    ),
];

fn in_group(mechanism: CK_MECHANISM_TYPE, key_type: u64) -> Pair {
    let number = |hex: &str| {
        let digits = hex.as_bytes().chunks(2);
        let byte = |two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
        Value::Bytes(digits.map(byte).collect())
    };
    let template = GROUP.map(|(attribute, hex)| (attribute, number(hex)));
    pair(mechanism, key_type, &template)
}

#[test]
fn a_dropped_key_in_a_group_leaves_nothing() {
    leaves_nothing(
        CKK_DSA,
        || in_group(CKM_DSA_KEY_PAIR_GEN, CKK_DSA),
        &[&|keys| signs(keys, CKM_DSA_SHA256)],
    );
    for (generate, key_type) in
        [(CKM_DH_PKCS_KEY_PAIR_GEN, CKK_DH), (CKM_X9_42_DH_KEY_PAIR_GEN, CKK_X9_42_DH)]
    {
        leaves_nothing(
            key_type,
            || in_group(generate, key_type),
            &[&|keys| {
                let public = Bytes::from_slice(keys.public.bytes(CKA_VALUE).unwrap());
                let params = Params::Ecdh1 { kdf: CKD_NULL, shared: Bytes::new(), public };
                let derive = algorithm(CKM_DH_PKCS_DERIVE).derive.unwrap();
                derive.check(&keys.private, &params).unwrap();
                drop(derive.derive(&keys.private, &params, &[64], &NoKeys).unwrap());
            }],
        );
    }
}

/// Everything that a symmetric key can do, then nothing of it is left.
fn symmetric_leaves_nothing(generate: CK_MECHANISM_TYPE, key_type: u64, length: u64) {
    let template = [(CKA_VALUE_LEN, Value::Ulong(length))].into_iter().collect();
    let patterns = {
        let made =
            algorithm(generate).generate.unwrap().generate(&Params::None, &template).unwrap();
        let key = key(CKO_SECRET_KEY, key_type, made);
        let used = AWSLC.algorithms().iter().filter(|row| uses(row.mechanism, &key)).count();
        assert!(used > 0);
        let mut patterns = patterns(&key);
        // As the two pads of HMAC have it.
        for pad in [0x36_u8, 0x5c] {
            let plain = patterns.iter().filter(|(form, _)| *form == CKA_VALUE);
            let padded: Vec<_> =
                plain.map(|(_, value)| (u64::from(pad), value.map(|byte| byte ^ pad))).collect();
            patterns.extend(padded);
        }
        assert!(!search(&patterns).is_empty(), "a living key is found");
        patterns
    };
    let left = search(&patterns);
    assert!(left.is_empty(), "{} {length}: {left:#?}", mechanism_name(generate).unwrap());
}

fn length(key: &Key) -> usize {
    key.secret(CKA_VALUE).map_or(0, <[u8]>::len)
}

fn tls(prf: CK_MECHANISM_TYPE) -> Params {
    let (label, seed, further) = (Bytes::from_slice(b"label"), Bytes::new(), Vec::new());
    Params::Tls(Box::new(Tls { prf, label, seed, mac_length: 12, further, beside: None }))
}

/// Uses the key with a mechanism, in one call and in parts, where parameters for it are known.
fn uses(mechanism: CK_MECHANISM_TYPE, key: &Arc<Key>) -> bool {
    let (row, iv) = (algorithm(mechanism), Bytes::from_slice(&[1; 16]));
    let nonce = Bytes::from_slice(&[2; 12]);
    let params = match (key.key_type(), mechanism) {
        (
            CKK_AES,
            CKM_AES_ECB
            | CKM_AES_CMAC
            | CKM_AES_MAC
            | CKM_AES_KEY_WRAP
            | CKM_AES_KEY_WRAP_KWP
            | CKM_AES_KEY_WRAP_PKCS7,
        )
        | (
            CKK_GENERIC_SECRET,
            CKM_SHA256_HMAC | CKM_SHA512_HMAC | CKM_SHA3_256_HMAC | CKM_BLAKE2B_512_HMAC
            | CKM_RIPEMD160_HMAC,
        )
        | (CKK_POLY1305, CKM_POLY1305) => Params::None,
        (CKK_GENERIC_SECRET, CKM_TLS_MAC) => tls(CKM_SHA256),
        (CKK_GENERIC_SECRET, CKM_TLS10_MAC_CLIENT) => tls(CKM_TLS_PRF),
        (CKK_GENERIC_SECRET, CKM_SSL3_MD5_MAC | CKM_SSL3_SHA1_MAC) => Params::Ulong(8),
        (
            CKK_AES,
            CKM_AES_CBC | CKM_AES_CBC_PAD | CKM_AES_GMAC | CKM_AES_CTS | CKM_AES_OFB | CKM_AES_CFB1
            | CKM_AES_CFB8 | CKM_AES_CFB64,
        )
        | (CKK_AES_XTS, CKM_AES_XTS) => Params::Iv(iv),
        (CKK_AES, CKM_AES_XCBC_MAC) if length(key) == 16 => Params::None,
        (CKK_CHACHA20, CKM_CHACHA20) => Params::ChaCha20 { counter: 3, nonce },
        (CKK_RC4, CKM_RC4) | (CKK_DES3, CKM_DES3_ECB) => Params::None,
        (CKK_DES3, CKM_DES3_CBC | CKM_DES3_CBC_PAD) => Params::Iv(Bytes::from_slice(&[1; 8])),
        (CKK_AES, CKM_AES_CTR) => Params::Ctr { bits: 64, block: [3; 16] },
        (CKK_AES, CKM_AES_GCM) => Params::Gcm { iv: nonce, aad: iv, tag_bits: 96 },
        (CKK_AES, CKM_AES_CCM) => Params::Ccm { data_length: 512, nonce, aad: iv, mac_length: 16 },
        (CKK_CHACHA20, CKM_CHACHA20_POLY1305) => Params::ChaCha20Poly1305 { nonce, aad: iv },
        _ => return false,
    };
    let data = [0x42; 512];
    if let (Some(encrypt), Some(decrypt)) = (row.encrypt, row.decrypt) {
        let length = encrypt.length(Direction::Forward, key, &params, data.len()).unwrap();
        let mut sealed = vec![0; length];
        encrypt.run(Direction::Forward, key, &params, &data, &mut sealed).unwrap();
        let mut opened =
            vec![0; decrypt.length(Direction::Backward, key, &params, length).unwrap()];
        decrypt.run(Direction::Backward, key, &params, &sealed, &mut opened).unwrap();
        if let Ok(mut stream) = encrypt.start(Direction::Forward, key, &params) {
            let mut out = vec![0; stream.update_length(data.len())];
            stream.update(&data, &mut out).unwrap();
            // Left in the middle.
        }
    }
    if let Some(sign) = row.sign {
        let mut out = vec![0; sign.length(key, &params)];
        sign.sign(key, &params, &data, &mut out).unwrap();
        let mut stream = sign.start(Direction::Forward, key, &params).unwrap();
        stream.update(&data).unwrap();
    }
    true
}

#[test]
fn a_dropped_secret_key_leaves_nothing() {
    for (generate, key_type, length) in [
        (CKM_AES_KEY_GEN, CKK_AES, 16),
        (CKM_AES_KEY_GEN, CKK_AES, 32),
        (CKM_AES_XTS_KEY_GEN, CKK_AES_XTS, 32),
        (CKM_AES_XTS_KEY_GEN, CKK_AES_XTS, 64),
        (CKM_CHACHA20_KEY_GEN, CKK_CHACHA20, 32),
        (CKM_POLY1305_KEY_GEN, CKK_POLY1305, 32),
        (CKM_RC4_KEY_GEN, CKK_RC4, 16),
        (CKM_DES3_KEY_GEN, CKK_DES3, 24),
        (CKM_GENERIC_SECRET_KEY_GEN, CKK_GENERIC_SECRET, 32),
    ] {
        symmetric_leaves_nothing(generate, key_type, length);
    }
}
