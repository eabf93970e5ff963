// SPDX-License-Identifier: Apache-2.0
//! New groups: the numbers of NIST's seeds, and what is made here made again.

use metaslot_awslc::AWSLC;
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_awslc_wrapper::domain::{Primes, base, probable, provable};
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::*;
use metaslot_spi::provider::Provider;
use metaslot_spi::{Attributes, Beside, Bytes, DsaSeed, NewObject, Params, Value};
use std::sync::{Arc, OnceLock};

fn hex(text: &serde_json::Value) -> Vec<u8> {
    let digits = text.as_str().expect("a text").as_bytes().chunks(2);
    let byte = |two| u8::from_str_radix(str::from_utf8(two).ok()?, 16).ok();
    digits.map(byte).collect::<Option<Vec<u8>>>().expect("hexadecimal digits")
}

#[test]
fn numbers_are_those_of_their_seeds() {
    let file = include_str!("../../../../testdata/nist/dsa_parameters.json");
    let file: serde_json::Value = serde_json::from_str(file).unwrap();
    let mut seen = [0; 3];
    for vector in file["vectors"].as_array().unwrap() {
        let hash = match vector["hash"].as_str().unwrap() {
            "sha1" => Hash::Sha1,
            "sha224" => Hash::Sha224,
            "sha256" => Hash::Sha256,
            "sha384" => Hash::Sha384,
            _ => Hash::Sha512,
        };
        let (prime, order) = (hex(&vector["p"]), hex(&vector["q"]));
        let lengths = [8 * prime.len(), 8 * order.len()];
        let counter = |name: &str| usize::try_from(vector[name].as_u64().unwrap()).unwrap();
        let seed = hex(&vector["seed"]);
        match vector["kind"].as_str().unwrap() {
            "probable" => {
                let found = probable(hash, lengths, &seed).unwrap().unwrap();
                let counters = [counter("counter"), 0];
                assert_eq!(found, Primes { prime, order, seed: vec![], counters });
                seen[0] += 1;
            }
            "provable" => {
                let found = provable(hash, lengths, &seed).unwrap().unwrap();
                let counters = [counter("pgen_counter"), counter("qgen_counter")];
                let seed = [hex(&vector["pseed"]), hex(&vector["qseed"])].concat();
                assert_eq!(found, Primes { prime, order, seed, counters });
                seen[1] += 1;
            }
            _ => {
                let index = u8::try_from(vector["index"].as_u64().unwrap()).unwrap();
                let found = base(hash, &prime, &order, &seed, index).unwrap();
                assert_eq!(found, hex(&vector["g"]));
                assert_ne!(base(hash, &prime, &order, &seed, index ^ 1).unwrap(), found);
                let mut other = order.clone();
                other[0] ^= 1;
                assert!(base(hash, &prime, &other, &seed, index).is_err());
                seen[2] += 1;
            }
        }
    }
    assert!(seen.iter().all(|count| *count > 2), "{seen:?}");
}

fn make(
    mechanism: CK_MECHANISM_TYPE,
    params: &Params,
    said: &[(CK_ATTRIBUTE_TYPE, Value)],
) -> Result<Attributes> {
    let row = AWSLC.algorithms().iter().find(|row| row.mechanism == mechanism);
    let key_type = MechanismRow::find(mechanism).expect("it is known").keys[0];
    let mut template: Attributes = said.iter().cloned().collect();
    template.set(CKA_KEY_TYPE, Value::Ulong(key_type));
    let makes = row.and_then(|row| row.generate).expect("it makes something");
    let made = makes.generate(params, &template)?;
    assert!(made.secrets.is_empty());
    Ok(made.attributes)
}

fn sizes(prime: u64, order: Option<u64>) -> Vec<(CK_ATTRIBUTE_TYPE, Value)> {
    let order = order.map(|order| (CKA_SUBPRIME_BITS, Value::Ulong(order)));
    [(CKA_PRIME_BITS, Value::Ulong(prime))].into_iter().chain(order).collect()
}

/// Whether a provider takes these numbers for a group, whose base then has the order that it says.
fn is_group(made: &Attributes, key_type: u64) -> bool {
    let mut object = NewObject { attributes: made.clone(), ..NewObject::default() };
    object.attributes.set(CKA_CLASS, Value::Ulong(CKO_DOMAIN_PARAMETERS));
    object.attributes.set(CKA_KEY_TYPE, Value::Ulong(key_type));
    let taken = AWSLC.complete(&mut object).is_ok();
    assert!(!taken || object.attributes.ulong(CKA_PRIME_BITS) == made.ulong(CKA_PRIME_BITS));
    taken
}

fn seeded(
    hash: CK_MECHANISM_TYPE,
    seed: &[u8],
    index: u64,
    length: usize,
) -> (Params, Arc<Beside>) {
    let beside = Arc::new(Beside { length, told: OnceLock::new() });
    let seed = Bytes::from_slice(seed);
    let by = DsaSeed { hash, seed, index, beside: Arc::clone(&beside) };
    (Params::DsaSeed(Box::new(by)), beside)
}

#[test]
fn groups_have_the_lengths_that_were_asked_for() {
    for (mechanism, key_type, prime, order, expected) in [
        (CKM_DSA_PARAMETER_GEN, CKK_DSA, 512, None, 160),
        (CKM_DSA_PARAMETER_GEN, CKK_DSA, 1024, Some(160), 160),
        (CKM_X9_42_DH_PARAMETER_GEN, CKK_X9_42_DH, 1024, Some(300), 300),
        (CKM_X9_42_DH_PARAMETER_GEN, CKK_X9_42_DH, 1025, Some(161), 161),
    ] {
        let made = make(mechanism, &Params::None, &sizes(prime, order)).unwrap();
        assert_eq!(made.ulong(CKA_PRIME_BITS), Some(prime));
        assert_eq!(made.ulong(CKA_SUBPRIME_BITS), Some(expected));
        assert!(is_group(&made, key_type));
        let again = make(mechanism, &Params::None, &sizes(prime, order)).unwrap();
        assert_ne!(again.bytes(CKA_PRIME), made.bytes(CKA_PRIME));
        // Primes of a length and a base, from its seed, are looked at by it: both are prime, and one divides the other's predecessor.
        let number = |attribute| made.bytes(attribute).unwrap();
        base(Hash::Sha256, number(CKA_PRIME), number(CKA_SUBPRIME), b"seed", 1).unwrap();
    }
    let made = make(CKM_DH_PKCS_PARAMETER_GEN, &Params::None, &sizes(512, None)).unwrap();
    assert!(is_group(&made, CKK_DH) && made.ulong(CKA_PRIME_BITS) == Some(512));
    // 4 has the order that is half of the predecessor.
    let prime = made.bytes(CKA_PRIME).unwrap();
    let mut carry = 0;
    let half: Vec<u8> = prime
        .iter()
        .map(|byte| {
            let half = carry << 7 | byte >> 1;
            carry = byte & 1;
            half
        })
        .collect();
    base(Hash::Sha256, prime, &half, b"seed", 1).unwrap();
    let mut of_order = made.clone();
    of_order.set(CKA_SUBPRIME, Value::Bytes(half));
    assert!(is_group(&of_order, CKK_X9_42_DH));
}

#[test]
fn what_is_told_of_new_primes_makes_them_again() {
    for (mechanism, count) in
        [(CKM_DSA_PROBABLISTIC_PARAMETER_GEN, 1), (CKM_DSA_SHAWE_TAYLOR_PARAMETER_GEN, 3)]
    {
        let (params, beside) = seeded(CKM_SHA256, &[], 0, 20 * count);
        let made = make(mechanism, &params, &sizes(1024, Some(160))).unwrap();
        assert!(made.get(CKA_BASE).is_none());
        let (prime, order) = (made.bytes(CKA_PRIME).unwrap(), made.bytes(CKA_SUBPRIME).unwrap());
        let seed = beside.told.get().unwrap();
        assert_eq!(seed.len(), 20 * count);
        let by = if count == 1 { probable } else { provable };
        let again = by(Hash::Sha256, [1024, 160], &seed[..20]).unwrap().unwrap();
        assert_eq!((&*again.prime, &*again.order, &*again.seed), (prime, order, &seed[20..]));

        let said = [
            (CKA_PRIME, Value::Bytes(prime.to_vec())),
            (CKA_SUBPRIME, Value::Bytes(order.to_vec())),
        ];
        let (params, _) = seeded(CKM_SHA256, seed, 7, 0);
        let whole = make(CKM_DSA_FIPS_G_GEN, &params, &said).unwrap();
        let expected = base(Hash::Sha256, prime, order, seed, 7).unwrap();
        assert_eq!(whole.bytes(CKA_BASE), Some(&*expected));
        assert!(is_group(&whole, CKK_DSA));
        let (params, _) = seeded(CKM_SHA256, seed, 256, 0);
        let made = make(CKM_DSA_FIPS_G_GEN, &params, &said);
        assert_eq!(made, Err(Error::MECHANISM_PARAM_INVALID));
        // Another number of the same length, and one of another.
        let other = [&order[..19], &[order[19] ^ 2]].concat();
        for (order, expected) in
            [(&*other, Error::ATTRIBUTE_VALUE_INVALID), (prime, Error::KEY_SIZE_RANGE)]
        {
            let said = [said[0].clone(), (CKA_SUBPRIME, Value::Bytes(order.to_vec()))];
            let (params, _) = seeded(CKM_SHA256, seed, 1, 0);
            assert_eq!(make(CKM_DSA_FIPS_G_GEN, &params, &said), Err(expected));
        }

        let invalid = Err(Error::MECHANISM_PARAM_INVALID);
        for (hash, room, short) in [
            (CKM_SHA256, 20 * count - 1, 160),
            (CKM_MD5, 99, 160),
            (CKM_SHA3_256, 99, 160),
            (CKM_SHA_1, 99, 224),
        ] {
            let (params, _) = seeded(hash, &[], 0, room);
            let long = if short == 160 { 1024 } else { 2048 };
            assert_eq!(make(mechanism, &params, &sizes(long, Some(short))), invalid, "{hash:#x}");
        }
    }
}

#[test]
fn lengths_that_the_standard_does_not_have_are_refused() {
    for (mechanism, prime, order, expected) in [
        (CKM_DSA_PARAMETER_GEN, 448, None, Error::KEY_SIZE_RANGE),
        (CKM_DSA_PARAMETER_GEN, 1000, None, Error::KEY_SIZE_RANGE),
        (CKM_DSA_PARAMETER_GEN, 1024, Some(224), Error::KEY_SIZE_RANGE),
        (CKM_DSA_PARAMETER_GEN, 2048, Some(160), Error::KEY_SIZE_RANGE),
        (CKM_DSA_PARAMETER_GEN, 4096, None, Error::KEY_SIZE_RANGE),
        (CKM_X9_42_DH_PARAMETER_GEN, 1024, None, Error::TEMPLATE_INCOMPLETE),
        (CKM_X9_42_DH_PARAMETER_GEN, 1024, Some(159), Error::KEY_SIZE_RANGE),
        (CKM_X9_42_DH_PARAMETER_GEN, 512, Some(512), Error::KEY_SIZE_RANGE),
        (CKM_X9_42_DH_PARAMETER_GEN, 4097, Some(256), Error::KEY_SIZE_RANGE),
        (CKM_DH_PKCS_PARAMETER_GEN, 511, None, Error::KEY_SIZE_RANGE),
        (CKM_DH_PKCS_PARAMETER_GEN, 1 << 40, None, Error::KEY_SIZE_RANGE),
    ] {
        let made = make(mechanism, &Params::None, &sizes(prime, order));
        assert_eq!(made, Err(expected), "{mechanism:#x} {prime}");
    }
}
