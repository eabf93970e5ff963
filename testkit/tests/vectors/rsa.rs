// SPDX-License-Identifier: Apache-2.0
//! RSA: signatures of both kinds, decryption of both kinds.

use anyhow::{Context, Result};
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params, Session, Template};

use crate::file::{Vector, Verdict};
use crate::signature::tagged;

/// Hash as the vectors name it: itself, its MGF1, the PKCS#1 v1.5 and the PSS signature with it.
struct Hash {
    name: &'static str,
    number: CK_MECHANISM_TYPE,
    mgf: CK_ULONG,
    pkcs1: CK_MECHANISM_TYPE,
    pss: CK_MECHANISM_TYPE,
}

const HASHES: &[Hash] = &[
    Hash {
        name: "SHA-1",
        number: CKM_SHA_1,
        mgf: CKG_MGF1_SHA1,
        pkcs1: CKM_SHA1_RSA_PKCS,
        pss: CKM_SHA1_RSA_PKCS_PSS,
    },
    Hash {
        name: "SHA-224",
        number: CKM_SHA224,
        mgf: CKG_MGF1_SHA224,
        pkcs1: CKM_SHA224_RSA_PKCS,
        pss: CKM_SHA224_RSA_PKCS_PSS,
    },
    Hash {
        name: "SHA-256",
        number: CKM_SHA256,
        mgf: CKG_MGF1_SHA256,
        pkcs1: CKM_SHA256_RSA_PKCS,
        pss: CKM_SHA256_RSA_PKCS_PSS,
    },
    Hash {
        name: "SHA-384",
        number: CKM_SHA384,
        mgf: CKG_MGF1_SHA384,
        pkcs1: CKM_SHA384_RSA_PKCS,
        pss: CKM_SHA384_RSA_PKCS_PSS,
    },
    Hash {
        name: "SHA-512",
        number: CKM_SHA512,
        mgf: CKG_MGF1_SHA512,
        pkcs1: CKM_SHA512_RSA_PKCS,
        pss: CKM_SHA512_RSA_PKCS_PSS,
    },
    Hash {
        name: "SHA3-224",
        number: CKM_SHA3_224,
        mgf: CKG_MGF1_SHA3_224,
        pkcs1: CKM_SHA3_224_RSA_PKCS,
        pss: CKM_SHA3_224_RSA_PKCS_PSS,
    },
    Hash {
        name: "SHA3-256",
        number: CKM_SHA3_256,
        mgf: CKG_MGF1_SHA3_256,
        pkcs1: CKM_SHA3_256_RSA_PKCS,
        pss: CKM_SHA3_256_RSA_PKCS_PSS,
    },
    Hash {
        name: "SHA3-384",
        number: CKM_SHA3_384,
        mgf: CKG_MGF1_SHA3_384,
        pkcs1: CKM_SHA3_384_RSA_PKCS,
        pss: CKM_SHA3_384_RSA_PKCS_PSS,
    },
    Hash {
        name: "SHA3-512",
        number: CKM_SHA3_512,
        mgf: CKG_MGF1_SHA3_512,
        pkcs1: CKM_SHA3_512_RSA_PKCS,
        pss: CKM_SHA3_512_RSA_PKCS_PSS,
    },
];

fn hash(name: &str) -> Option<&'static Hash> {
    HASHES.iter().find(|hash| hash.name == name)
}

/// SHA-512 cut to another length: the last number of its identifier, and what hashes.
fn truncated(name: &str) -> Option<(u8, CK_MECHANISM_TYPE)> {
    match name {
        "SHA-512/224" => Some((5, CKM_SHA512_224)),
        "SHA-512/256" => Some((6, CKM_SHA512_256)),
        _ => None,
    }
}

/// A hash that OAEP names by its number alone.
fn number(name: &str) -> Option<CK_MECHANISM_TYPE> {
    truncated(name).map(|row| row.1).or_else(|| hash(name).map(|hash| hash.number))
}

/// Without the zero bytes in front that the vectors give a positive number.
fn unsigned(mut number: Vec<u8>) -> Vec<u8> {
    while number.len() > 1 && number[0] == 0 {
        number.remove(0);
    }
    number
}

/// PKCS#1 v1.5 and PSS signatures.
pub(crate) fn verify(session: &Session, vector: &Vector<'_>) -> Result<Verdict> {
    let (mut data, signature) = (vector.bytes("msg")?, vector.bytes("sig")?);
    let mechanism = if let Some(last) = truncated(vector.word("sha")) {
        // No mechanism of the standard joins these with RSA: the caller hashes, and says by what.
        let digest = session.digest(&last.1.into(), &data)?;
        let by = [6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2, last.0, 5, 0];
        data = tagged(0x30, &[tagged(0x30, &by), tagged(4, &digest)].concat());
        Mechanism::new(CKM_RSA_PKCS)
    } else if vector.is_file_of("RSASSA-PSS") {
        let hash_of = hash(vector.word("sha")).context("an unknown hash")?;
        let Some(mgf) = hash(vector.word("mgfSha")) else { return Ok(Verdict::NotApplicable) };
        let salt_length = vector.group_number("sLen");
        let params = Params::Pss { hash: hash_of.number, mgf: mgf.mgf, salt_length };
        Mechanism::with(hash_of.pss, params)
    } else {
        Mechanism::new(hash(vector.word("sha")).context("an unknown hash")?.pkcs1)
    };
    let template = Template::new()
        .class(CKO_PUBLIC_KEY)
        .key_type(CKK_RSA)
        .token(false)
        .bool(CKA_VERIFY, true)
        .bytes(CKA_MODULUS, unsigned(vector.key_part("publicKey", "modulus")?))
        .bytes(CKA_PUBLIC_EXPONENT, unsigned(vector.key_part("publicKey", "publicExponent")?));
    let key = vector.key_of_group(|| session.create(&template));
    let key = match key {
        Ok(key) => key,
        Err(error) => return Ok(Verdict::Refused(error.to_string())),
    };
    Ok(Verdict::of_check(session.verify(&mechanism, key, &data, &signature)))
}

/// The private key of a group: with its primes where the vectors give them.
fn private_key(session: &Session, vector: &Vector<'_>) -> Result<ObjectHandle> {
    let mut template = Template::new()
        .class(CKO_PRIVATE_KEY)
        .key_type(CKK_RSA)
        .token(false)
        .bool(CKA_DECRYPT, true)
        .bool(CKA_SIGN, true);
    for (attribute, name) in [
        (CKA_MODULUS, "modulus"),
        (CKA_PUBLIC_EXPONENT, "publicExponent"),
        (CKA_PRIVATE_EXPONENT, "privateExponent"),
        (CKA_PRIME_1, "prime1"),
        (CKA_PRIME_2, "prime2"),
        (CKA_EXPONENT_1, "exponent1"),
        (CKA_EXPONENT_2, "exponent2"),
        (CKA_COEFFICIENT, "coefficient"),
    ] {
        if vector.has_key_part("privateKey", name) {
            let value = unsigned(vector.key_part("privateKey", name)?);
            template = template.bytes(attribute, value);
        }
    }
    Ok(session.create(&template)?)
}

/// OAEP and PKCS#1 v1.5 decryption, and PKCS#1 v1.5 signatures made.
pub(crate) fn private(session: &Session, vector: &Vector<'_>) -> Result<Verdict> {
    if vector.word("type") == "RsassaPkcs1Generate" {
        let hash = hash(vector.word("sha")).context("an unknown hash")?;
        let key = vector.key_of_group(|| private_key(session, vector))?;
        let signature = session.sign(&Mechanism::new(hash.pkcs1), key, &vector.bytes("msg")?);
        return Ok(Verdict::of(signature, &vector.bytes("sig")?));
    }
    let label = vector.bytes("label").unwrap_or_default();
    let mechanism = if vector.is_file_of("RSAES-OAEP") {
        let (Some(hash_of), Some(mgf)) = (number(vector.word("sha")), hash(vector.word("mgfSha")))
        else {
            return Ok(Verdict::NotApplicable);
        };
        let params = Params::Oaep { hash: hash_of, mgf: mgf.mgf, label: &label };
        Mechanism::with(CKM_RSA_PKCS_OAEP, params)
    } else {
        Mechanism::new(CKM_RSA_PKCS)
    };
    let key = vector.key_of_group(|| private_key(session, vector))?;
    let opened = session.decrypt(&mechanism, key, &vector.bytes("ct")?);
    Ok(Verdict::of(opened, &vector.bytes("msg")?))
}
