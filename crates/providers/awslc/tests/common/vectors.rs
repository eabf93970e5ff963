// SPDX-License-Identifier: Apache-2.0
//! Project Wycheproof's vectors, read from `testdata/wycheproof`.
#![allow(dead_code, reason = "each test binary uses its part")]

use metaslot_ck::*;
use serde_json::Value;

/// What a vector says of itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    Valid,
    Invalid,
    Acceptable,
}

/// Calls `test` with each group and each vector of a file; returns how many there were.
pub(crate) fn each(name: &str, mut test: impl FnMut(&Value, &Value, Verdict)) -> usize {
    let path = format!("{}/../../../testdata/wycheproof/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let mut count = 0;
    for group in file["testGroups"].as_array().unwrap() {
        for vector in group["tests"].as_array().unwrap() {
            let verdict = match vector["result"].as_str().unwrap() {
                "valid" => Verdict::Valid,
                "invalid" => Verdict::Invalid,
                "acceptable" => Verdict::Acceptable,
                other => panic!("{name}: {other}"),
            };
            test(group, vector, verdict);
            count += 1;
        }
    }
    assert_eq!(Some(count as u64), file["numberOfTests"].as_u64(), "{name}");
    count
}

/// The bytes of a hexadecimal string.
pub(crate) fn hex(value: &Value) -> Vec<u8> {
    let digits = value.as_str().unwrap().as_bytes();
    assert!(digits.len().is_multiple_of(2));
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// The bytes of a base64url string without padding.
pub(crate) fn base64url(value: &Value) -> Vec<u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    for letter in value.as_str().unwrap().bytes() {
        let six = ALPHABET.iter().position(|known| *known == letter).unwrap();
        bits = bits << 6 | u32::try_from(six).unwrap();
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    bytes
}

/// Whether the vector carries a flag.
pub(crate) fn flag(vector: &Value, flag: &str) -> bool {
    vector["flags"].as_array().unwrap().iter().any(|found| found == flag)
}

/// The digest mechanism and the mask generation function of a name; 0 where there is none.
pub(crate) fn hash(name: &Value) -> (CK_MECHANISM_TYPE, u64) {
    match name.as_str().unwrap() {
        "SHA-1" => (CKM_SHA_1, CKG_MGF1_SHA1),
        "SHA-224" => (CKM_SHA224, CKG_MGF1_SHA224),
        "SHA-256" => (CKM_SHA256, CKG_MGF1_SHA256),
        "SHA-384" => (CKM_SHA384, CKG_MGF1_SHA384),
        "SHA-512" => (CKM_SHA512, CKG_MGF1_SHA512),
        "SHA-512/224" => (CKM_SHA512_224, 0),
        "SHA-512/256" => (CKM_SHA512_256, 0),
        "SHA3-224" => (CKM_SHA3_224, CKG_MGF1_SHA3_224),
        "SHA3-256" => (CKM_SHA3_256, CKG_MGF1_SHA3_256),
        "SHA3-384" => (CKM_SHA3_384, CKG_MGF1_SHA3_384),
        "SHA3-512" => (CKM_SHA3_512, CKG_MGF1_SHA3_512),
        other => panic!("unknown hash {other}"),
    }
}
