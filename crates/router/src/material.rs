// SPDX-License-Identifier: Apache-2.0
//! Keys and parameters that operations are measured with: they protect nothing.

use crate::Job;
use crate::key::ML_DSA;
use metaslot_ck::mechanism::{MechanismRow, Shape};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::lengths::Lengths;
use metaslot_spi::provider::Provider;
use metaslot_spi::{Attributes, Bytes, Key, Material, NewObject, Params, Tls, Value};
use std::sync::{Arc, Mutex, PoisonError};

/// Key pairs that were made so far, for they take long: type, bits, public and private key.
#[derive(Debug, Default)]
pub(crate) struct Pairs(Mutex<Vec<(CK_KEY_TYPE, u32, Pair)>>);

/// A public key and its private one; twice the same secret key.
pub(crate) type Pair = [Arc<Key>; 2];

/// Bits of curves and what names them (`CKA_EC_PARAMS`).
const CURVES: [(CK_KEY_TYPE, u32, &[u8]); 5] = [
    (CKK_EC, 256, &[6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7]),
    (CKK_EC, 384, &[6, 5, 0x2b, 0x81, 4, 0, 0x22]),
    (CKK_EC, 521, &[6, 5, 0x2b, 0x81, 4, 0, 0x23]),
    (CKK_EC_EDWARDS, 256, &[6, 3, 0x2b, 0x65, 0x70]),
    (CKK_EC_MONTGOMERY, 256, &[6, 3, 0x2b, 0x65, 0x6e]),
];

/// PSS of a message: which hash, its mask generation function, and its length.
const PSS: [(CK_MECHANISM_TYPE, CK_MECHANISM_TYPE, u64, u64); 10] = [
    (CKM_RSA_PKCS_PSS, CKM_SHA256, CKG_MGF1_SHA256, 32),
    (CKM_SHA1_RSA_PKCS_PSS, CKM_SHA_1, CKG_MGF1_SHA1, 20),
    (CKM_SHA224_RSA_PKCS_PSS, CKM_SHA224, CKG_MGF1_SHA224, 28),
    (CKM_SHA256_RSA_PKCS_PSS, CKM_SHA256, CKG_MGF1_SHA256, 32),
    (CKM_SHA384_RSA_PKCS_PSS, CKM_SHA384, CKG_MGF1_SHA384, 48),
    (CKM_SHA512_RSA_PKCS_PSS, CKM_SHA512, CKG_MGF1_SHA512, 64),
    (CKM_SHA3_224_RSA_PKCS_PSS, CKM_SHA3_224, CKG_MGF1_SHA3_224, 28),
    (CKM_SHA3_256_RSA_PKCS_PSS, CKM_SHA3_256, CKG_MGF1_SHA3_256, 32),
    (CKM_SHA3_384_RSA_PKCS_PSS, CKM_SHA3_384, CKG_MGF1_SHA3_384, 48),
    (CKM_SHA3_512_RSA_PKCS_PSS, CKM_SHA3_512, CKG_MGF1_SHA3_512, 64),
];

impl Pairs {
    /// Keys for a job; `None` for a digest.
    ///
    /// # Errors
    /// `CKR_MECHANISM_INVALID` for keys that are not made here, and what the provider says.
    pub(crate) fn of(
        &self,
        row: &MechanismRow,
        job: Job,
        providers: &[&'static dyn Provider],
    ) -> Result<Option<Pair>> {
        let Some(kind) = row.keys.iter().copied().find(|kind| job.key_bits == 0 || sized(*kind))
        else {
            return if row.keys.is_empty() { Ok(None) } else { Err(Error::MECHANISM_INVALID) };
        };
        if !sized(kind) {
            let key = Arc::new(secret_key(kind, row.number));
            return Ok(Some([Arc::clone(&key), key]));
        }
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let there = made.iter().find(|(of, bits, _)| (*of, *bits) == (kind, job.key_bits));
        if let Some((_, _, pair)) = there {
            return Ok(Some(pair.clone()));
        }
        let pair = pair(kind, job.key_bits, providers)?;
        made.push((kind, job.key_bits, pair.clone()));
        Ok(Some(pair))
    }
}

/// Whether keys of a type are pairs, of sizes that matter.
pub(crate) const fn sized(kind: CK_KEY_TYPE) -> bool {
    matches!(kind, CKK_RSA | CKK_EC | CKK_EC_EDWARDS | CKK_EC_MONTGOMERY | CKK_ML_DSA)
}

pub(crate) fn secret_key(kind: CK_KEY_TYPE, mechanism: CK_MECHANISM_TYPE) -> Key {
    let length = match Lengths::of(kind) {
        // AES-128 only.
        _ if matches!(mechanism, CKM_AES_XCBC_MAC | CKM_AES_XCBC_MAC_96) => 16,
        Some(Lengths::Between(..)) => 16,
        Some(lengths) => u8::try_from(lengths.range().1).unwrap_or(32),
        None => 32,
    };
    // Of odd parity, as keys of DES are, and no two neighbours alike.
    let odd = |byte: u8| (byte << 1) | u8::from(byte.count_ones().is_multiple_of(2));
    let value: Vec<u8> = (0..length).map(|at| odd(at ^ 0x55)).collect();
    let mut new = NewObject::default();
    new.secrets.set(CKA_VALUE, Secret::copy_of(&value));
    new.attributes.set(CKA_VALUE_LEN, Value::Ulong(u64::from(length)));
    key(CKO_SECRET_KEY, kind, new)
}

pub(crate) fn key(
    class: u64,
    kind: CK_KEY_TYPE,
    NewObject { mut attributes, secrets }: NewObject,
) -> Key {
    attributes.set(CKA_CLASS, Value::Ulong(class));
    attributes.set(CKA_KEY_TYPE, Value::Ulong(kind));
    Key::new(Arc::new(attributes), Arc::new(Material::new(secrets)))
}

fn pair(kind: CK_KEY_TYPE, bits: u32, providers: &[&'static dyn Provider]) -> Result<Pair> {
    let mut template = Attributes::default();
    let mechanism = match kind {
        CKK_RSA => {
            template.set(CKA_MODULUS_BITS, Value::Ulong(u64::from(bits)));
            template.set(CKA_PUBLIC_EXPONENT, Value::Bytes(vec![1, 0, 1]));
            CKM_RSA_PKCS_KEY_PAIR_GEN
        }
        CKK_ML_DSA => {
            let set = ML_DSA.iter().find(|row| row.1 == bits).ok_or(Error::MECHANISM_INVALID)?;
            template.set(CKA_PARAMETER_SET, Value::Ulong(set.0));
            CKM_ML_DSA_KEY_PAIR_GEN
        }
        _ => {
            let curve = CURVES.iter().find(|(of, size, _)| (*of, *size) == (kind, bits));
            let params = curve.ok_or(Error::MECHANISM_INVALID)?.2;
            template.set(CKA_EC_PARAMS, Value::Bytes(params.to_vec()));
            match kind {
                CKK_EC => CKM_EC_KEY_PAIR_GEN,
                CKK_EC_EDWARDS => CKM_EC_EDWARDS_KEY_PAIR_GEN,
                _ => CKM_EC_MONTGOMERY_KEY_PAIR_GEN,
            }
        }
    };
    let rows = providers.iter().flat_map(|provider| provider.algorithms());
    let mut makers = rows.filter(|row| row.mechanism == mechanism);
    let maker = makers.find_map(|row| row.generate_pair.filter(|maker| maker.serves(&template)));
    let maker = maker.ok_or(Error::MECHANISM_INVALID)?;
    let (public, private) = maker.generate_pair(&Params::None, &template)?;
    Ok([key(CKO_PUBLIC_KEY, kind, public), key(CKO_PRIVATE_KEY, kind, private)].map(Arc::new))
}

/// A parameter for a job; `None` where a mechanism of this shape is not measured.
pub(crate) fn params(row: &MechanismRow, job: Job) -> Option<Params> {
    let bytes = |length| Bytes::from_elem(9, length);
    Some(match row.shape {
        Shape::None | Shape::OptionalIv(_) | Shape::EdDsa | Shape::SignContext => Params::None,
        Shape::XEdDsa => Params::XEdDsa { hash: CKM_SHA512 },
        // It takes digests of one length.
        Shape::HashSignContext => Params::HashSignContext {
            hash: CKM_SHA256,
            hedge: CKH_HEDGE_PREFERRED,
            context: bytes(0),
        },
        Shape::Iv(length) => Params::Iv(bytes(length)),
        Shape::Nonce => Params::Iv(bytes(12)),
        Shape::Ulong => Params::Ulong(8),
        Shape::Ctr => Params::Ctr { bits: 128, block: [9; 16] },
        Shape::Gcm => Params::Gcm { iv: bytes(12), aad: bytes(0), tag_bits: 128 },
        Shape::Ccm => Params::Ccm {
            data_length: job.bytes as u64,
            nonce: bytes(12),
            aad: bytes(0),
            mac_length: 16,
        },
        Shape::ChaCha20Poly1305 => Params::ChaCha20Poly1305 { nonce: bytes(12), aad: bytes(0) },
        Shape::Oaep => Params::Oaep { hash: CKM_SHA256, mgf: CKG_MGF1_SHA256, label: bytes(0) },
        Shape::Pss => {
            let (_, hash, mgf, salt_length) =
                *PSS.iter().find(|(mechanism, ..)| *mechanism == row.number)?;
            Params::Pss { hash, mgf, salt_length }
        }
        Shape::Ecdh1
        | Shape::PublicValue
        | Shape::X942
        | Shape::TlsMaster
        | Shape::Tls12Master
        | Shape::Tls12Extended
        | Shape::TlsKeys
        | Shape::Tls12Keys
        | Shape::TlsKdf
        | Shape::Hkdf
        | Shape::Pbkd2
        | Shape::Sp800108Counter
        | Shape::Sp800108Feedback
        | Shape::Sp800108DoublePipeline
        | Shape::RsaAes
        | Shape::EcdhAes
        | Shape::StringData
        | Shape::CbcData(_)
        | Shape::Handle
        | Shape::Pbe { .. }
        | Shape::Rc2
        | Shape::Rc2Cbc
        | Shape::Rc2Mac
        | Shape::Rc5
        | Shape::Rc5Cbc
        | Shape::Rc5Mac
        | Shape::IkePrf
        | Shape::Ike1Prf
        | Shape::Ike1Extended
        | Shape::Otp
        | Shape::DsaSeed { .. }
        | Shape::Ike2PrfPlus => return None,
        Shape::TlsMac => finished(CKM_SHA256),
        Shape::Tls10Mac => finished(CKM_TLS_PRF),
        Shape::Salsa20 => Params::Salsa20 { counter: 0, nonce: bytes(8) },
        Shape::ChaCha20 => {
            Params::ChaCha20 { counter: 0x0909_0909, nonce: Bytes::from_elem(9, 12) }
        }
    })
}

/// What a handshake of TLS ends with (RFC 5246 §7.4.9).
fn finished(prf: CK_MECHANISM_TYPE) -> Params {
    Params::Tls(Box::new(Tls {
        prf,
        label: Bytes::from_slice(b"client finished"),
        seed: Bytes::new(),
        mac_length: 12,
        further: Vec::new(),
        beside: None,
    }))
}
