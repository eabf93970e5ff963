// SPDX-License-Identifier: Apache-2.0
//! Curves, ECDSA and Ed25519.

use anyhow::{Context, Result};
use metaslot_ck::*;
use metaslot_client::{Mechanism, Session, Template};

use crate::file::{Vector, Verdict};

/// A curve as the vectors name it.
pub(crate) struct Curve {
    pub(crate) name: &'static str,
    /// DER of its object identifier: `CKA_EC_PARAMS`.
    pub(crate) params: &'static [u8],
    /// Length of a field element.
    pub(crate) bytes: usize,
    pub(crate) key_type: CK_KEY_TYPE,
}

const P256: &[u8] = &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];

pub(crate) const CURVES: &[Curve] = &[
    certicom("secp224r1", &[6, 5, 0x2b, 0x81, 4, 0, 33], 28),
    certicom("secp256r1", P256, 32),
    certicom("secp384r1", &[6, 5, 0x2b, 0x81, 4, 0, 34], 48),
    certicom("secp521r1", &[6, 5, 0x2b, 0x81, 4, 0, 35], 66),
    certicom("secp256k1", &[6, 5, 0x2b, 0x81, 4, 0, 10], 32),
    certicom("sect163k1", &[6, 5, 0x2b, 0x81, 4, 0, 1], 21),
    certicom("sect163r1", &[6, 5, 0x2b, 0x81, 4, 0, 2], 21),
    certicom("sect163r2", &[6, 5, 0x2b, 0x81, 4, 0, 15], 21),
    certicom("sect233k1", &[6, 5, 0x2b, 0x81, 4, 0, 26], 30),
    certicom("sect233r1", &[6, 5, 0x2b, 0x81, 4, 0, 27], 30),
    certicom("sect283k1", &[6, 5, 0x2b, 0x81, 4, 0, 16], 36),
    certicom("sect283r1", &[6, 5, 0x2b, 0x81, 4, 0, 17], 36),
    certicom("sect409k1", &[6, 5, 0x2b, 0x81, 4, 0, 36], 52),
    certicom("sect409r1", &[6, 5, 0x2b, 0x81, 4, 0, 37], 52),
    certicom("sect571k1", &[6, 5, 0x2b, 0x81, 4, 0, 38], 72),
    certicom("sect571r1", &[6, 5, 0x2b, 0x81, 4, 0, 39], 72),
    Curve {
        name: "curve25519",
        params: &[6, 3, 0x2b, 0x65, 0x6e],
        bytes: 32,
        key_type: CKK_EC_MONTGOMERY,
    },
    Curve {
        name: "edwards25519",
        params: &[6, 3, 0x2b, 0x65, 0x70],
        bytes: 32,
        key_type: CKK_EC_EDWARDS,
    },
];

const fn certicom(name: &'static str, params: &'static [u8], bytes: usize) -> Curve {
    Curve { name, params, bytes, key_type: CKK_EC }
}

/// Hash as the vectors name it, and the signature that contains it.
const ECDSA: &[(&str, CK_MECHANISM_TYPE)] = &[
    ("SHA-1", CKM_ECDSA_SHA1),
    ("SHA-224", CKM_ECDSA_SHA224),
    ("SHA-256", CKM_ECDSA_SHA256),
    ("SHA-384", CKM_ECDSA_SHA384),
    ("SHA-512", CKM_ECDSA_SHA512),
    ("SHA3-224", CKM_ECDSA_SHA3_224),
    ("SHA3-256", CKM_ECDSA_SHA3_256),
    ("SHA3-384", CKM_ECDSA_SHA3_384),
    ("SHA3-512", CKM_ECDSA_SHA3_512),
];

impl Curve {
    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        // Web keys have names of their own.
        let name = match name {
            "P-256" => "secp256r1",
            "P-384" => "secp384r1",
            "P-521" => "secp521r1",
            "P-256K" => "secp256k1",
            name => name,
        };
        CURVES.iter().find(|curve| curve.name == name)
    }
}

/// DER: a tag, a length below 256, and the content.
pub(crate) fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).unwrap_or(u8::MAX);
    let mut der = if length < 128 { vec![tag, length] } else { vec![tag, 0x81, length] };
    der.extend(content);
    der
}

/// The point inside an X.509 public key, when the key is framed as it should be.
pub(crate) fn subject_point(der: &[u8], curve: &Curve) -> Option<Vec<u8>> {
    const EC_PUBLIC_KEY: &[u8] = &[6, 7, 0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
    let algorithm = tagged(0x30, &[EC_PUBLIC_KEY, curve.params].concat());
    // An uncompressed or a compressed point.
    [1 + 2 * curve.bytes, 1 + curve.bytes].into_iter().find_map(|length| {
        let point = der.get(der.len().checked_sub(length)?..)?;
        let bits = tagged(3, &[&[0], point].concat());
        (tagged(0x30, &[algorithm.as_slice(), &bits].concat()) == der).then(|| point.to_vec())
    })
}

/// Both numbers of a signature in DER, each with as many bytes as PKCS#11 has for it; of another encoding, or of a number that
/// is negative or longer, there is none: what takes it from the wire refuses that, not the module.
fn numbers(der: &[u8], bytes: usize) -> Option<Vec<u8>> {
    let first = if der.get(1) == Some(&0x81) { 3 } else { 2 };
    let number = |at: usize| der.get(at + 2..)?.get(..usize::from(*der.get(at + 1)?));
    let r = number(first)?;
    let s = number(first + 2 + r.len())?;
    if tagged(0x30, &[tagged(2, r), tagged(2, s)].concat()) != der {
        return None;
    }
    let mut both = Vec::new();
    for number in [r, s] {
        let padded = number.len() > 1 && number[0] == 0;
        if *number.first()? >= 128 || padded && number[1] < 128 {
            return None;
        }
        let number = &number[usize::from(padded)..];
        both.resize(both.len() + bytes.checked_sub(number.len())?, 0);
        both.extend(number);
    }
    Some(both)
}

/// ECDSA with the signature as two numbers or in DER, and Ed25519.
pub(crate) fn curve(session: &Session, vector: &Vector<'_>) -> Result<Verdict> {
    let curve = Curve::named(vector.key_word("publicKey", "curve")).context("an unknown curve")?;
    let (point, mechanism) = if curve.key_type == CKK_EC_EDWARDS {
        (vector.key_part("publicKey", "pk")?, Mechanism::new(CKM_EDDSA))
    } else {
        let hash = vector.word("sha");
        let (_, number) = ECDSA.iter().find(|row| row.0 == hash).context("an unknown hash")?;
        (vector.key_part("publicKey", "uncompressed")?, Mechanism::new(*number))
    };
    let key = session.create(
        &Template::new()
            .class(CKO_PUBLIC_KEY)
            .key_type(curve.key_type)
            .token(false)
            .bool(CKA_VERIFY, true)
            .bytes(CKA_EC_PARAMS, curve.params)
            .bytes(CKA_EC_POINT, tagged(4, &point)),
    )?;
    let (data, mut signature) = (vector.bytes("msg")?, vector.bytes("sig")?);
    if vector.word("type") == "EcdsaVerify" {
        let Some(both) = numbers(&signature, curve.bytes) else {
            session.destroy(key)?;
            return Ok(Verdict::NotApplicable);
        };
        signature = both;
    }
    let short = signature.len() < 2 * curve.bytes && signature.len().is_multiple_of(2);
    if short && curve.key_type == CKK_EC {
        // PKCS#11 takes both numbers without the zero bytes in front (PKCS#11 3.2 §6.3.1); IEEE
        // P1363, which these vectors follow, does not.
        session.destroy(key)?;
        return Ok(Verdict::NotApplicable);
    }
    let verdict = Verdict::of_check(session.verify(&mechanism, key, &data, &signature));
    session.destroy(key)?;
    Ok(verdict)
}

/// DSA with the signature as two numbers.
pub(crate) fn dsa(session: &Session, vector: &Vector<'_>) -> Result<Verdict> {
    let hashed = match vector.word("sha") {
        "SHA-224" => CKM_DSA_SHA224,
        _ => CKM_DSA_SHA256,
    };
    let mut template =
        Template::new().class(CKO_PUBLIC_KEY).key_type(CKK_DSA).token(false).bool(CKA_VERIFY, true);
    for (part, attribute) in
        [("p", CKA_PRIME), ("q", CKA_SUBPRIME), ("g", CKA_BASE), ("y", CKA_VALUE)]
    {
        template = template.bytes(attribute, vector.key_part("publicKey", part)?);
    }
    let key = session.create(&template)?;
    let (data, signature) = (vector.bytes("msg")?, vector.bytes("sig")?);
    let verdict = session.verify(&Mechanism::new(hashed), key, &data, &signature);
    session.destroy(key)?;
    Ok(Verdict::of_check(verdict))
}
