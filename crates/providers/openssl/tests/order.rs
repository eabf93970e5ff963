// SPDX-License-Identifier: Apache-2.0
//! Of two providers that have a mechanism the first is asked whether the parameters are right: AWS-LC takes whatever this one takes.
//! What it takes alone stands here.
#![cfg(feature = "library")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../awslc/tests/common/mod.rs"]
mod common;

use metaslot_awslc::AWSLC;
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_openssl::OPENSSL as PROVIDER;
use metaslot_spi::provider::Direction::{self, Backward, Forward};
use metaslot_spi::provider::{Algorithm, Provider};
use metaslot_spi::{Bytes, Key, NewObject, Params, Value};
use std::sync::Arc;

fn bytes(length: usize) -> Bytes {
    Bytes::from_elem(5, length)
}

/// Parameters of every form that both know, right ones and wrong ones.
fn parameters() -> Vec<Params> {
    let mut all = vec![Params::None];
    all.extend([0, 4, 8, 12, 15, 16, 17].map(|length| Params::Iv(bytes(length))));
    all.extend((0..=65).map(Params::Ulong));
    all.extend([0, 1, 32, 127, 128, 129].map(|bits| Params::Ctr { bits, block: [0xff; 16] }));
    all.extend(
        [0, 8, 12, 16, 24, 32]
            .map(|length| Params::ChaCha20Poly1305 { nonce: bytes(length), aad: Bytes::new() }),
    );
    for length in [0, 1, 12, 16, 127, 128, 129, 256] {
        all.extend([0, 8, 31, 32, 33, 64, 96, 104, 128, 136].map(|tag_bits| Params::Gcm {
            iv: bytes(length),
            aad: bytes(3),
            tag_bits,
        }));
    }
    for (length, data_length) in [(6, 48), (7, 48), (12, 1 << 24), (13, 1 << 16), (14, 48)] {
        all.extend((0..=18).map(|mac_length| Params::Ccm {
            data_length,
            nonce: bytes(length),
            aad: Bytes::new(),
            mac_length,
        }));
    }
    for hash in [CKM_MD5, CKM_SHA_1, CKM_SHA256, CKM_SHA512_256, CKM_SHA3_384, CKM_RIPEMD160] {
        for mgf in [0, CKG_MGF1_SHA1, CKG_MGF1_SHA256, CKG_MGF1_SHA3_512] {
            all.push(Params::Oaep { hash, mgf, label: bytes(9) });
            all.extend([0, 20, 94, 95, 222, u64::MAX].map(|salt_length| Params::Pss {
                hash,
                mgf,
                salt_length,
            }));
        }
    }
    for prehash in [false, true] {
        all.extend(
            [0, 1, 255, 256].map(|length| Params::EdDsa { prehash, context: bytes(length) }),
        );
    }
    all
}

/// A key for each size that matters; of pairs both halves.
fn keys() -> Vec<(CK_KEY_TYPE, Arc<Key>)> {
    let secret = |(kind, length): (CK_KEY_TYPE, u8)| {
        let mut object = NewObject::default();
        object.secrets.set(CKA_VALUE, Secret::copy_of(&Vec::from_iter(0..length)));
        (kind, common::key(CKO_SECRET_KEY, kind, object))
    };
    let secrets = [(CKK_AES, 16), (CKK_AES, 31), (CKK_AES, 32), (CKK_AES_XTS, 32)];
    let others = [(CKK_AES_XTS, 64), (CKK_CHACHA20, 32), (CKK_GENERIC_SECRET, 200)];
    let mut all: Vec<_> = secrets.into_iter().chain(others).map(secret).collect();
    let rsa = |bits| (CKK_RSA, CKM_RSA_PKCS_KEY_PAIR_GEN, CKA_MODULUS_BITS, Value::Ulong(bits));
    let named = |kind, by, oid: &[u8]| (kind, by, CKA_EC_PARAMS, Value::Bytes(oid.to_vec()));
    let p256 = &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
    for (kind, by, attribute, value) in [
        rsa(512),
        rsa(1031),
        named(CKK_EC, CKM_EC_KEY_PAIR_GEN, p256),
        named(CKK_EC_EDWARDS, CKM_EC_EDWARDS_KEY_PAIR_GEN, &[6, 3, 0x2b, 0x65, 0x70]),
    ] {
        let row = AWSLC.algorithms().iter().find(|row| row.mechanism == by).unwrap();
        let template = [(attribute, value)].into_iter().collect();
        let made = row.generate_pair.unwrap().generate_pair(&Params::None, &template).unwrap();
        all.push((kind, common::key(CKO_PUBLIC_KEY, kind, made.0)));
        all.push((kind, common::key(CKO_PRIVATE_KEY, kind, made.1)));
    }
    all
}

/// Whether each operation of a row takes a key and parameters; `None` where it does not have it.
fn takes(row: &Algorithm, key: &Key, params: &Params) -> [Option<bool>; 6] {
    let cipher = |direction: Direction| {
        let found = if direction == Forward { row.encrypt } else { row.decrypt };
        found.map(|row| row.serves(key) && row.check(direction, key, params).is_ok())
    };
    let signature = |direction: Direction| {
        let found = if direction == Forward { row.sign } else { row.verify };
        found.map(|row| row.serves(key) && row.check(direction, key, params).is_ok())
    };
    let wrap = |direction: Direction| {
        let found = if direction == Forward { row.wrap } else { row.unwrap };
        found.map(|row| row.check(direction, key, params).is_ok())
    };
    let [encrypts, decrypts] = [Forward, Backward].map(cipher);
    let [signs, verifies] = [Forward, Backward].map(signature);
    [encrypts, decrypts, signs, verifies, wrap(Forward), wrap(Backward)]
}

#[test]
fn who_is_asked_first_takes_what_the_next_one_takes() {
    let (parameters, keys, mut compared) = (parameters(), keys(), [0; 2]);
    for row in MechanismRow::all() {
        let of = |provider: &'static dyn Provider| {
            provider.algorithms().iter().find(|own| own.mechanism == row.number)
        };
        let Some((first, next)) = of(&AWSLC).zip(of(&PROVIDER)) else { continue };
        for (_, key) in keys.iter().filter(|key| row.keys.contains(&key.0)) {
            for params in &parameters {
                let [first, next] = [first, next].map(|row| takes(row, key, params));
                for both in first.into_iter().zip(next) {
                    let name = mechanism_name(row.number);
                    assert_ne!(both, (Some(false), Some(true)), "{name:?} {params:?}");
                    compared[0] += usize::from(both == (Some(true), Some(true)));
                    // Nonces of 192 bits, and long ones of GCM.
                    compared[1] += usize::from(both == (Some(true), Some(false)));
                }
            }
        }
    }
    assert!(compared.iter().all(|count| *count > 0), "{compared:?}");
}

#[test]
fn a_key_that_is_used_in_every_mode_leaves_the_others_room_for_theirs() {
    let (kind, key) = &keys()[0];
    let is_for = |row: &MechanismRow| row.keys.contains(kind);
    let served = |row: &&Algorithm| MechanismRow::find(row.mechanism).is_some_and(is_for);
    for row in PROVIDER.algorithms().iter().filter(served) {
        for params in parameters() {
            takes(row, key, &params);
        }
    }
    let row = AWSLC.algorithms().iter().find(|row| row.mechanism == CKM_AES_GMAC).unwrap();
    let checked = row.sign.unwrap().check(Forward, key, &Params::Iv(bytes(12)));
    assert_eq!(checked, Ok(()), "its form for GCM is made");
}
