// SPDX-License-Identifier: Apache-2.0
//! ML-KEM against Project Wycheproof's vectors.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;
#[path = "common/vectors.rs"]
mod vectors;

use common::{algorithm, key};
#[allow(unused_imports, reason = "where another provider includes this file, it is that one")]
use metaslot_awslc::AWSLC as PROVIDER;
use metaslot_awslc::AWSLC;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Direction, Encapsulation, Provider};
use metaslot_spi::{Attributes, Key, NewObject, Params, Value};
use std::sync::Arc;
use vectors::{Verdict, each, hex};

/// Each parameter set, the length of its ciphertexts, and its files: of decapsulation, of key generation, of expanded keys, of
/// public keys.
const SETS: [(CK_ML_KEM_PARAMETER_SET_TYPE, usize, [&str; 4]); 3] = [
    (
        CKP_ML_KEM_512,
        768,
        [
            "mlkem_512_test",
            "mlkem_512_keygen_seed_test",
            "mlkem_512_semi_expanded_decaps_test",
            "mlkem_512_encaps_test",
        ],
    ),
    (
        CKP_ML_KEM_768,
        1088,
        [
            "mlkem_768_test",
            "mlkem_768_keygen_seed_test",
            "mlkem_768_semi_expanded_decaps_test",
            "mlkem_768_encaps_test",
        ],
    ),
    (
        CKP_ML_KEM_1024,
        1568,
        [
            "mlkem_1024_test",
            "mlkem_1024_keygen_seed_test",
            "mlkem_1024_semi_expanded_decaps_test",
            "mlkem_1024_encaps_test",
        ],
    ),
];

fn brought(
    class: CK_OBJECT_CLASS,
    set: u64,
    shown: &[(CK_ATTRIBUTE_TYPE, &[u8])],
    secrets: &[(CK_ATTRIBUTE_TYPE, &[u8])],
) -> Result<Arc<Key>> {
    let mut object = NewObject::default();
    object.attributes.set(CKA_CLASS, Value::Ulong(class));
    object.attributes.set(CKA_KEY_TYPE, Value::Ulong(CKK_ML_KEM));
    object.attributes.set(CKA_PARAMETER_SET, Value::Ulong(set));
    for (attribute, bytes) in shown {
        object.attributes.set(*attribute, Value::Bytes(bytes.to_vec()));
    }
    for (attribute, bytes) in secrets {
        object.secrets.set(*attribute, Secret::copy_of(bytes));
    }
    AWSLC.complete(&mut object)?;
    Ok(key(class, CKK_ML_KEM, object))
}

fn opener() -> &'static dyn Encapsulation {
    algorithm(CKM_ML_KEM).decapsulate.unwrap()
}

fn opens(key: &Key, ciphertext: &[u8]) -> Result<Vec<u8>> {
    opener().check(Direction::Backward, key, &Params::None)?;
    let secret = opener().decapsulate(key, &Params::None, None, ciphertext)?;
    Ok(secret.expose().to_vec())
}

fn seals(key: &Key, length: usize) -> Result<(Vec<u8>, Vec<u8>)> {
    let row = algorithm(CKM_ML_KEM).encapsulate.unwrap();
    row.check(Direction::Forward, key, &Params::None)?;
    assert_eq!(row.ciphertext_length(key, &Params::None), Ok(length));
    let mut ciphertext = vec![0; length];
    let mut secret = vec![0; row.natural_length(key, &Params::None).unwrap()];
    row.encapsulate(key, &Params::None, &mut secret, &mut ciphertext)?;
    Ok((secret, ciphertext))
}

#[test]
fn ciphertexts_are_opened_as_wycheproof_does() {
    for (set, _, [seeds, _, expanded, _]) in SETS {
        for (name, attribute, form) in [(seeds, CKA_SEED, "seed"), (expanded, CKA_VALUE, "dk")] {
            each(name, |_, vector, verdict| {
                let private =
                    brought(CKO_PRIVATE_KEY, set, &[], &[(attribute, &hex(&vector[form]))]);
                let opened = private.and_then(|key| opens(&key, &hex(&vector["c"])));
                match verdict {
                    Verdict::Valid => {
                        assert_eq!(opened, Ok(hex(&vector["K"])), "{name} {}", vector["tcId"]);
                    }
                    _ => assert!(opened.is_err(), "{name} {}", vector["tcId"]),
                }
            });
        }
    }
}

#[test]
fn keys_grow_from_their_seeds_as_wycheproof_has_them() {
    for (set, length, [_, name, ..]) in SETS {
        let count = each(name, |_, vector, _| {
            let (seed, value) = (hex(&vector["seed"]), hex(&vector["dk"]));
            let private = brought(CKO_PRIVATE_KEY, set, &[], &[(CKA_SEED, &seed)]).unwrap();
            assert_eq!(private.secret(CKA_VALUE), Ok(&*value), "{name} {}", vector["tcId"]);
            let public = [(CKA_VALUE, &*hex(&vector["ek"]))];
            let public = brought(CKO_PUBLIC_KEY, set, &public, &[]).unwrap();
            let info = public.bytes(CKA_PUBLIC_KEY_INFO);
            assert_eq!(private.bytes(CKA_PUBLIC_KEY_INFO), info, "{name} {}", vector["tcId"]);
            let (secret, ciphertext) = seals(&public, length).unwrap();
            assert_eq!(opens(&private, &ciphertext), Ok(secret), "{name} {}", vector["tcId"]);
        });
        assert_eq!(count, 100, "{name}");
    }
}

#[test]
fn public_keys_are_judged_as_wycheproof_does() {
    for (set, length, [.., name]) in SETS {
        each(name, |_, vector, verdict| {
            let public = [(CKA_VALUE, &*hex(&vector["ek"]))];
            let sealed = brought(CKO_PUBLIC_KEY, set, &public, &[])
                .and_then(|public| seals(&public, length).map(drop));
            match verdict {
                Verdict::Valid => assert_eq!(sealed, Ok(()), "{name} {}", vector["tcId"]),
                _ => assert_eq!(
                    sealed,
                    Err(Error::ATTRIBUTE_VALUE_INVALID),
                    "{name} {}",
                    vector["tcId"]
                ),
            }
        });
    }
}

fn generated(set: u64) -> [Arc<Key>; 2] {
    let mut template = Attributes::default();
    template.set(CKA_PARAMETER_SET, Value::Ulong(set));
    let pair = algorithm(CKM_ML_KEM_KEY_PAIR_GEN).generate_pair.unwrap();
    let (public, private) = pair.generate_pair(&Params::None, &template).unwrap();
    [key(CKO_PUBLIC_KEY, CKK_ML_KEM, public), key(CKO_PRIVATE_KEY, CKK_ML_KEM, private)]
}

#[test]
fn a_pair_opens_what_it_seals_and_survives_its_encoding() {
    for (set, length, _) in SETS {
        let [public, private] = generated(set);
        let decoded =
            AWSLC.decode_private_key(AWSLC.encode_private_key(&private).unwrap().expose());
        let again = key(CKO_PRIVATE_KEY, CKK_ML_KEM, decoded.unwrap());
        for attribute in [CKA_SEED, CKA_VALUE] {
            assert_eq!(again.secret(attribute), private.secret(attribute));
        }
        let info = public.bytes(CKA_PUBLIC_KEY_INFO).unwrap();
        assert_eq!(again.bytes(CKA_PUBLIC_KEY_INFO), Ok(info));
        let (secret, mut ciphertext) = seals(&public, length).unwrap();
        assert_eq!(opens(&again, &ciphertext).as_ref(), Ok(&secret));
        // One that was changed gives a secret, and always the same one.
        ciphertext[7] ^= 1;
        let other = opens(&private, &ciphertext).unwrap();
        assert_ne!(other, secret);
        assert_eq!(opens(&again, &ciphertext), Ok(other));
        // A key that came without its seed is encoded without.
        let alone = [(CKA_VALUE, private.secret(CKA_VALUE).unwrap())];
        let alone = brought(CKO_PRIVATE_KEY, set, &[], &alone).unwrap();
        let decoded = AWSLC.decode_private_key(AWSLC.encode_private_key(&alone).unwrap().expose());
        let decoded = decoded.unwrap();
        assert!(decoded.secrets.get(CKA_SEED).is_none());
        assert_eq!(decoded.secrets.get(CKA_VALUE), Some(private.secret(CKA_VALUE).unwrap()));
    }
}

#[test]
fn what_does_not_belong_together_is_refused() {
    let [first, other] = [generated(CKP_ML_KEM_768), generated(CKP_ML_KEM_768)];
    let (seed, value) = (first[1].secret(CKA_SEED).unwrap(), other[1].secret(CKA_VALUE).unwrap());
    let made = |set, secrets: &[(CK_ATTRIBUTE_TYPE, &[u8])]| {
        brought(CKO_PRIVATE_KEY, set, &[], secrets).map(|_| ())
    };
    let both = [(CKA_SEED, seed), (CKA_VALUE, value)];
    assert_eq!(made(CKP_ML_KEM_768, &both), Err(Error::TEMPLATE_INCONSISTENT));
    assert_eq!(made(CKP_ML_KEM_512, &both[1..]), Err(Error::ATTRIBUTE_VALUE_INVALID));
    assert_eq!(made(CKP_ML_KEM_768, &[]), Err(Error::TEMPLATE_INCOMPLETE));
    assert_eq!(made(4, &both[..1]), Err(Error::PARAMETER_SET_NOT_SUPPORTED));
    // The private half, the public half inside it, its hash: a change of each is seen.
    for at in [100, 1500, 2320] {
        let mut broken = value.to_vec();
        broken[at] ^= 1;
        let refused = made(CKP_ML_KEM_768, &[(CKA_VALUE, &broken)]);
        assert_eq!(refused, Err(Error::ATTRIBUTE_VALUE_INVALID), "{at}");
    }
    let shown = [(CKA_VALUE, first[0].bytes(CKA_VALUE).unwrap())];
    let public = brought(CKO_PUBLIC_KEY, CKP_ML_KEM_512, &shown, &[]);
    assert_eq!(public.map(|_| ()), Err(Error::ATTRIBUTE_VALUE_INVALID));
    let [public, private] = first;
    assert_eq!(opens(&public, &[0; 1088]), Err(Error::KEY_TYPE_INCONSISTENT));
    assert_eq!(seals(&private, 1088), Err(Error::KEY_TYPE_INCONSISTENT));
    assert_eq!(opens(&private, &[0; 1087]), Err(Error::WRAPPED_KEY_LEN_RANGE));
}
