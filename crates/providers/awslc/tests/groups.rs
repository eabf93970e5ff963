// SPDX-License-Identifier: Apache-2.0
//! Pairs of Diffie-Hellman and DSA: those that are made here, and those that OpenSSL wrote.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod common;
#[path = "common/vectors.rs"]
mod vectors;

use common::{algorithm, imported, key};
use metaslot_awslc::AWSLC;
use metaslot_awslc::AWSLC as PROVIDER;
use metaslot_ck::*;
use metaslot_spi::known_groups::{is_known_group, is_known_prime};
use metaslot_spi::provider::{Direction, Keys, Provider};
use metaslot_spi::{Attributes, Bytes, Key, NewObject, Params};
use std::sync::Arc;
use vectors::hex;

const KINDS: [(&str, CK_KEY_TYPE, CK_MECHANISM_TYPE); 3] = [
    ("CKK_DH", CKK_DH, CKM_DH_PKCS_KEY_PAIR_GEN),
    ("CKK_X9_42_DH", CKK_X9_42_DH, CKM_X9_42_DH_KEY_PAIR_GEN),
    ("CKK_DSA", CKK_DSA, CKM_DSA_KEY_PAIR_GEN),
];

fn file() -> serde_json::Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../testdata/openssl/groups.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[derive(Debug)]
struct NoKeys;

impl Keys for NoKeys {
    fn key(&self, _: ObjectHandle) -> Result<Arc<Key>> {
        Err(Error::KEY_HANDLE_INVALID)
    }
}

/// A private key that OpenSSL wrote, as the provider completes it.
fn written(name: &str) -> NewObject {
    AWSLC.decode_private_key(&hex(&file()["keys"][name]["privateKeyInfo"])).unwrap()
}

fn pair(of: &NewObject, key_type: CK_KEY_TYPE, mechanism: CK_MECHANISM_TYPE) -> [Arc<Key>; 2] {
    let maker = algorithm(mechanism).generate_pair.unwrap();
    let (public, private) = maker.generate_pair(&Params::None, &of.attributes).unwrap();
    [key(CKO_PUBLIC_KEY, key_type, public), key(CKO_PRIVATE_KEY, key_type, private)]
}

#[test]
fn encodings_are_those_of_openssl() {
    let file = file();
    for (name, key_type, _) in KINDS {
        let private = key(CKO_PRIVATE_KEY, key_type, written(name));
        let said = &file["keys"][name];
        assert_eq!(
            private.bytes(CKA_PUBLIC_KEY_INFO).unwrap(),
            hex(&said["publicKeyInfo"]),
            "{name}"
        );
        let encoded = AWSLC.encode_private_key(&private).unwrap();
        assert_eq!(encoded.expose(), hex(&said["privateKeyInfo"]), "{name}");
        let cut = &encoded.expose()[..encoded.len() - 1];
        assert_eq!(AWSLC.decode_private_key(cut).err(), Some(Error::WRAPPED_KEY_INVALID));
    }
}

#[test]
fn pairs_agree_or_sign_and_are_new_each_time() {
    for (name, key_type, mechanism) in KINDS {
        let of = written(name);
        let [public, private] = pair(&of, key_type, mechanism);
        let [other_public, other] = pair(&of, key_type, mechanism);
        assert_ne!(public.bytes(CKA_VALUE).unwrap(), other_public.bytes(CKA_VALUE).unwrap());
        if key_type == CKK_DSA {
            let row = algorithm(CKM_DSA_SHA256);
            let (sign, verify) = (row.sign.unwrap(), row.verify.unwrap());
            sign.check(Direction::Forward, &private, &Params::None).unwrap();
            assert!(sign.check(Direction::Forward, &public, &Params::None).is_err());
            let mut signature = vec![0; sign.length(&private, &Params::None)];
            sign.sign(&private, &Params::None, b"data", &mut signature).unwrap();
            let by = |key| verify.verify(key, &Params::None, b"data", &signature);
            assert_eq!(by(&public), Ok(()));
            assert_eq!(by(&other_public), Err(Error::SIGNATURE_INVALID));
            continue;
        }
        let derive = algorithm(CKM_DH_PKCS_DERIVE).derive.unwrap();
        let agree = |key: &Key, peer: &[u8]| {
            let public = Bytes::from_slice(peer);
            let params = Params::Ecdh1 { kdf: CKD_NULL, shared: Bytes::new(), public };
            derive.check(key, &params)?;
            let length = derive.natural_length(key, &params).unwrap();
            derive.derive(key, &params, &[length], &NoKeys).map(|mut made| made.remove(0))
        };
        let shared = agree(&private, other_public.bytes(CKA_VALUE).unwrap()).unwrap();
        let again = agree(&other, public.bytes(CKA_VALUE).unwrap()).unwrap();
        assert_eq!(shared.expose(), again.expose());
        assert_eq!(shared.len(), 256);
        for wrong in [&[][..], &[1], private.bytes(CKA_PRIME).unwrap()] {
            assert_eq!(agree(&private, wrong).err(), Some(Error::MECHANISM_PARAM_INVALID));
        }
        assert!(derive.check(&public, &Params::None).is_err());
    }
}

#[test]
fn a_private_value_is_as_long_as_the_template_says() {
    let of = written("CKK_DH");
    let maker = algorithm(CKM_DH_PKCS_KEY_PAIR_GEN).generate_pair.unwrap();
    for (said, is) in [(None, 512), (Some(225), 225), (Some(2047), 2047)] {
        let mut template = Attributes::default();
        if let Some(bits) = said {
            template.set(CKA_VALUE_BITS, metaslot_spi::Value::Ulong(bits));
        }
        let made = maker.generate_halves(&Params::None, &of.attributes, &template).unwrap().1;
        assert_eq!(made.attributes.ulong(CKA_VALUE_BITS), Some(is));
        let value = made.secrets.get(CKA_VALUE).unwrap();
        assert_eq!(value.len() as u64 * 8 - u64::from(value[0].leading_zeros()), is);
    }
    let mut template = Attributes::default();
    template.set(CKA_VALUE_BITS, metaslot_spi::Value::Ulong(2048));
    let made = maker.generate_halves(&Params::None, &of.attributes, &template);
    assert_eq!(made.err(), Some(Error::ATTRIBUTE_VALUE_INVALID));
}

#[test]
fn known_groups_are_known_by_value_and_others_are_not() {
    for vector in file()["tests"].as_array().unwrap() {
        let key = &vector["private"];
        if key["CKA_KEY_TYPE"] != "CKK_DH" {
            continue;
        }
        let prime = hex(&key["CKA_PRIME"]);
        assert_eq!(is_known_prime(&prime), prime.len() >= 256, "{} bytes", prime.len());
        let half = halved(&prime);
        assert_eq!(is_known_group(&prime, &[2], Some(&half)), prime.len() >= 256);
        assert!(!is_known_group(&prime, &[2], Some(&prime)));
        assert!(!is_known_group(&prime, &[2], Some(&half[1..])));
        assert!(!is_known_group(&prime, &[4], None));
        for at in [0, 8, 100, prime.len() - 13, prime.len() - 12, prime.len() - 9, prime.len() - 1]
        {
            let mut other = prime.clone();
            other[at] ^= 1;
            assert!(!is_known_prime(&other), "{at}");
        }
    }
    assert!(!is_known_prime(&[]));
}

fn halved(number: &[u8]) -> Vec<u8> {
    let before = [0].iter().chain(number);
    before.zip(number).map(|(before, byte)| before << 7 | byte >> 1).collect()
}

#[test]
fn keys_that_are_none_are_refused() {
    let of = written("CKK_DSA");
    let group: Vec<_> = [CKA_PRIME, CKA_SUBPRIME, CKA_BASE]
        .map(|attribute| (attribute, of.attributes.bytes(attribute).unwrap().to_vec()))
        .to_vec();
    let public = |value: &[u8]| {
        let shown = [group.clone(), vec![(CKA_VALUE, value.to_vec())]].concat();
        imported(CKO_PUBLIC_KEY, CKK_DSA, &shown, &[]).map(drop)
    };
    // 2 is not of the order.
    for wrong in [&[][..], &[0], &[1], &[2], &group[0].1] {
        assert_eq!(public(wrong), Err(Error::ATTRIBUTE_VALUE_INVALID));
    }
    let private =
        |value: &[u8]| imported(CKO_PRIVATE_KEY, CKK_DSA, &group, &[(CKA_VALUE, value)]).map(drop);
    assert_eq!(private(&[5]), Ok(()));
    for wrong in [&[][..], &[0], &group[1].1] {
        assert_eq!(private(wrong), Err(Error::ATTRIBUTE_VALUE_INVALID));
    }
    let less = imported(CKO_PRIVATE_KEY, CKK_DSA, &group[..2], &[(CKA_VALUE, &[5])]);
    assert_eq!(less.err(), Some(Error::TEMPLATE_INCOMPLETE));
}
