// SPDX-License-Identifier: Apache-2.0
//! ML-DSA and ML-KEM in fewer lanes: a process of its own, for all of it has fewer then.
#![cfg(target_arch = "x86_64")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../awslc/tests/common/mod.rs"]
mod common;

use common::{Pair, algorithm, pair};
use metaslot_awslc_wrapper::ml_dsa::MlDsaKey;
use metaslot_awslc_wrapper::ml_kem::MlKemKey;
use metaslot_awslc_wrapper::seeded::SeededKey;
use metaslot_ck::*;
use metaslot_lanes::cpu::{self, Cpu};
use metaslot_lanes::provider::Lanes;
use metaslot_lanes::{ml_dsa, ml_kem};
use metaslot_spi::provider::Direction;
use metaslot_spi::{Params, Value};

static PROVIDER: Lanes = Lanes::beside(&metaslot_awslc::AWSLC);

#[test]
fn every_width_finds_the_same() {
    for without in [Cpu::NONE, Cpu::AVX512] {
        cpu::mask(without);
        if ml_dsa::available() {
            ml_dsa::Set::ALL.into_iter().for_each(signs);
            [ml_kem::Set::Ml512, ml_kem::Set::Ml768, ml_kem::Set::Ml1024]
                .into_iter()
                .for_each(opens);
        }
    }
    cpu::mask(Cpu::AVX2);
    let set = ml_dsa::Set::Ml44;
    let bytes = MlDsaKey::of_seed(set, &[7; 32]).unwrap().expanded().unwrap();
    assert!(!ml_dsa::available() && ml_dsa::PrivateKey::new(set, bytes.expose()).is_err());
    what_lanes_cannot_is_no_fault_of_the_key();
}

/// So that the plain provider does it instead.
fn what_lanes_cannot_is_no_fault_of_the_key() {
    let of = |mechanism, key_type, set| {
        pair(mechanism, key_type, &[(CKA_PARAMETER_SET, Value::Ulong(set))])
    };
    let Pair { private, .. } = of(CKM_ML_DSA_KEY_PAIR_GEN, CKK_ML_DSA, CKP_ML_DSA_44);
    let sign = algorithm(CKM_ML_DSA).sign.unwrap();
    sign.check(Direction::Forward, &private, &Params::None).unwrap();
    let signed = sign.sign(&private, &Params::None, b"message", &mut [0; 2420]);
    assert_eq!(signed, Err(Error::DEVICE_ERROR));
    let Pair { public, private } = of(CKM_ML_KEM_KEY_PAIR_GEN, CKK_ML_KEM, CKP_ML_KEM_512);
    let row = algorithm(CKM_ML_KEM);
    let (seal, open) = (row.encapsulate.unwrap(), row.decapsulate.unwrap());
    let sealed = seal.encapsulate(&public, &Params::None, &mut [0; 32], &mut [0; 768]);
    assert_eq!(sealed, Err(Error::DEVICE_ERROR));
    let opened = open.decapsulate(&private, &Params::None, None, &[0; 768]).map(drop);
    assert_eq!(opened, Err(Error::DEVICE_ERROR));
}

fn signs(set: ml_dsa::Set) {
    for number in 0..10 {
        let plain = MlDsaKey::of_seed(set, &[number; 32]).unwrap();
        let key = ml_dsa::PrivateKey::new(set, plain.expanded().unwrap().expose()).unwrap();
        let mut signature = vec![0; set.signature_length()];
        let mut right = signature.clone();
        key.sign(&[number; 64], &[0; 32], &mut signature).unwrap();
        plain.sign_deterministically(&[number; 64], &mut right).unwrap();
        assert!(signature == right, "{set:?}");
    }
}

fn opens(set: ml_kem::Set) {
    for number in 0..10 {
        let plain = MlKemKey::of_seed(set, &[number; 64]).unwrap();
        let key = ml_kem::PrivateKey::new(set, plain.expanded().unwrap().expose()).unwrap();
        let public = ml_kem::PublicKey::new(set, &plain.public_bytes().unwrap()).unwrap();
        let mut ciphertext = vec![0; set.ciphertext_length()];
        let secret = public.encapsulate(&mut ciphertext).unwrap();
        assert_eq!(key.decapsulate(&ciphertext).unwrap().expose(), secret.expose());
        assert_eq!(plain.decapsulate(&ciphertext).unwrap().expose(), secret.expose());
    }
}
