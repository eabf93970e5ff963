// SPDX-License-Identifier: Apache-2.0
//! A forked child begins anew: whatever the library keeps between calls was wiped with its memory, and
//! must not be missed.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;

use common::{algorithm, key, pair};
#[allow(unused_imports, reason = "where another provider includes this file, it is that one")]
use metaslot_awslc::AWSLC as PROVIDER;
use metaslot_ck::*;
use metaslot_spi::provider::Direction;
use metaslot_spi::{Bytes, Params, Value};

const P256: &[u8] = &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const P521: &[u8] = &[6, 5, 0x2b, 0x81, 4, 0, 0x23];
const SECP256K1: &[u8] = &[6, 5, 0x2b, 0x81, 4, 0, 0x0a];
const ED25519: &[u8] = &[6, 3, 0x2b, 0x65, 0x70];

/// Makes keys of every kind and uses them.
fn everything() {
    let bits = [(CKA_MODULUS_BITS, Value::Ulong(1024))];
    let curve = |params: &[u8]| [(CKA_EC_PARAMS, Value::Bytes(params.to_vec()))];
    for (keys, mechanism) in [
        (pair(CKM_RSA_PKCS_KEY_PAIR_GEN, CKK_RSA, &bits), CKM_SHA256_RSA_PKCS),
        (pair(CKM_EC_KEY_PAIR_GEN, CKK_EC, &curve(P256)), CKM_ECDSA_SHA256),
        (pair(CKM_EC_KEY_PAIR_GEN, CKK_EC, &curve(P521)), CKM_ECDSA_SHA512),
        (pair(CKM_EC_KEY_PAIR_GEN, CKK_EC, &curve(SECP256K1)), CKM_ECDSA_SHA3_256),
        (pair(CKM_EC_EDWARDS_KEY_PAIR_GEN, CKK_EC_EDWARDS, &curve(ED25519)), CKM_EDDSA),
    ] {
        let row = algorithm(mechanism);
        let (sign, verify) = (row.sign.unwrap(), row.verify.unwrap());
        sign.check(Direction::Forward, &keys.private, &Params::None).unwrap();
        let mut out = vec![0; sign.length(&keys.private, &Params::None)];
        let length = sign.sign(&keys.private, &Params::None, b"message", &mut out).unwrap();
        verify.check(Direction::Backward, &keys.public, &Params::None).unwrap();
        verify.verify(&keys.public, &Params::None, b"message", &out[..length]).unwrap();
    }
    let template = [(CKA_VALUE_LEN, Value::Ulong(32))].into_iter().collect();
    let generate = algorithm(CKM_AES_KEY_GEN).generate.unwrap();
    let aes = key(CKO_SECRET_KEY, CKK_AES, generate.generate(&Params::None, &template).unwrap());
    let gcm = algorithm(CKM_AES_GCM).encrypt.unwrap();
    let iv = Bytes::from_slice(&[1; 12]);
    let params = Params::Gcm { iv, aad: Bytes::new(), tag_bits: 128 };
    gcm.run(Direction::Forward, &aes, &params, b"message", &mut [0; 23]).unwrap();
    let mut stream = algorithm(CKM_SHA256).digest.unwrap().start().unwrap();
    stream.update(b"message").unwrap();
    stream.finish(&mut [0; 32]).unwrap();
}

/// Runs `body` in a child, which must end well.
fn in_child(body: fn()) {
    // SAFETY: the child uses this crate's own state and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let fine = std::panic::catch_unwind(body).is_ok();
        // SAFETY: ends the child without running anything of the parent's.
        unsafe { libc::_exit(i32::from(!fine)) };
    }
    let mut status = -1;
    // SAFETY: `status` is ours.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0));
}

#[test]
fn everything_works_again_in_a_child_and_in_its_child() {
    everything();
    metaslot_awslc_wrapper::fork::before();
    in_child(|| {
        everything();
        metaslot_awslc_wrapper::fork::before();
        in_child(everything);
        everything();
    });
    in_child(|| {
        // As after a fork without handlers.
        metaslot_awslc_wrapper::fork::in_child();
        everything();
    });
    everything();
}
