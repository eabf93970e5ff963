// SPDX-License-Identifier: Apache-2.0
//! A job: what one operation is, in words that any process understands.

use crate::{Failure, Result};
use metaslot_ck::*;
use metaslot_client::{Mechanism, Params};
use serde::{Deserialize, Serialize};

/// One operation, to be repeated.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Job {
    /// `CKM_…`; `CK_UNAVAILABLE_INFORMATION` where none is called.
    pub(crate) mechanism: CK_MECHANISM_TYPE,
    pub(crate) function: Function,
    pub(crate) key: Key,
    pub(crate) parameter: Parameter,
    /// Bytes of one message.
    pub(crate) bytes: usize,
}

/// What a round of work is: each job so many times.
pub(crate) type Work = Vec<(Job, u64)>;

/// What is called: of most its `…Init`, and the one-shot call.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Function {
    Digest,
    Sign,
    Verify,
    Encrypt,
    /// A secret and its ciphertext, as a session object that is destroyed at once.
    Encapsulate,
    /// A secret out of a ciphertext, as a session object that is destroyed at once.
    Decapsulate,
    /// Random bytes.
    Random,
    /// A key, or a pair, as a session object.
    Generate,
    /// A session, opened and closed.
    Session,
}

/// The key that it needs.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub(crate) enum Key {
    None,
    /// An RSA pair of so many bits.
    Rsa(CK_ULONG),
    /// A pair on a curve.
    Curve(Curve),
    /// A pair of ML-DSA-65.
    MlDsa65,
    /// A pair of ML-KEM-768.
    MlKem768,
    /// A pair of SLH-DSA-SHA2-128s or SLH-DSA-SHAKE-128s; the same in every process.
    SlhDsa(Hashing),
    /// A pair of HSS: two levels of 2¹⁰ keys with digits of eight bits, SHA-256 of 192 bits.
    Hss,
    /// A pair of XMSS-SHA2_10_256.
    Xmss,
    /// A secret key of a type, `CKK_…`, and so many bytes; the same in every process.
    Secret(CK_KEY_TYPE, usize),
}

/// The curves.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub(crate) enum Curve {
    P256,
    Ed25519,
}

/// The hash functions of SLH-DSA.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
pub(crate) enum Hashing {
    Sha2,
    Shake,
}

/// The mechanism's parameter.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) enum Parameter {
    None,
    /// A signature without randomness.
    Deterministic,
    /// An IV of so many bytes, at most 16, which may come again.
    Iv(usize),
    /// An IV of 12 bytes, which may not.
    Nonce,
    /// The length of a MAC.
    Length(CK_ULONG),
    Ctr,
    Gcm,
    Ccm,
    ChaCha,
    /// The hash, and its mask generation function.
    Oaep(CK_MECHANISM_TYPE, CK_ULONG),
    /// The same, and the length of the salt.
    Pss(CK_MECHANISM_TYPE, CK_ULONG, CK_ULONG),
}

impl Job {
    /// Whether an IV must not come twice, so that no two results are equal.
    pub(crate) const fn fresh(&self) -> bool {
        use Parameter::{Ccm, ChaCha, Gcm, Nonce};
        matches!(self.parameter, Nonce | Gcm | Ccm | ChaCha)
    }

    /// Whether all that have the same key get the same result.
    pub(crate) const fn determined(&self) -> bool {
        use self::Function::{Decapsulate, Encapsulate, Generate, Random, Session};
        let made = matches!(self.function, Random | Generate | Session | Encapsulate | Decapsulate);
        !made && !self.fresh() && matches!(self.key, Key::None | Key::Secret(..) | Key::SlhDsa(_))
    }

    /// Bytes that the result may be longer than the message.
    pub(crate) const fn longer(&self) -> usize {
        match self.key {
            Key::MlDsa65 => 4096,
            Key::SlhDsa(_) => 8192,
            _ => 512,
        }
    }

    /// The mechanism with its parameter; `iv` is used where there is one.
    pub(crate) fn with<'a>(&self, iv: &'a [u8; 16]) -> Mechanism<'a> {
        let params = match self.parameter {
            Parameter::None => Params::None,
            Parameter::Deterministic => {
                Params::SignContext { hedge: CKH_DETERMINISTIC_REQUIRED, context: &[] }
            }
            Parameter::Iv(length) => Params::Bytes(&iv[..length.min(16)]),
            Parameter::Nonce => Params::Bytes(&iv[..12]),
            Parameter::Length(length) => Params::Ulong(length),
            Parameter::Ctr => Params::Ctr { bits: 128, block: *iv },
            Parameter::Gcm => Params::Gcm { iv: &iv[..12], aad: &[], tag_bits: 128 },
            Parameter::Ccm => Params::Ccm {
                data_length: self.bytes as CK_ULONG,
                nonce: &iv[..12],
                aad: &[],
                mac_length: 16,
            },
            Parameter::ChaCha => Params::ChaCha20Poly1305 { nonce: &iv[..12], aad: &[] },
            Parameter::Oaep(hash, mgf) => Params::Oaep { hash, mgf, label: &[] },
            Parameter::Pss(hash, mgf, salt_length) => Params::Pss { hash, mgf, salt_length },
        };
        Mechanism::with(self.mechanism, params)
    }
}

/// The bytes of every secret key: the same everywhere, so that results can be compared.
pub(crate) fn secret(length: usize) -> Vec<u8> {
    // Odd parity, which DES keys have, and no two neighbours alike.
    let next = |last: &u8| Some(last.wrapping_add(37));
    let odd = |byte: u8| (byte & 0xFE) | u8::from((byte & 0xFE).count_ones().is_multiple_of(2));
    std::iter::successors(Some(0x10), next).map(odd).take(length).collect()
}

/// A part of the secret bytes as an array.
pub(crate) fn secret_of<const N: usize>() -> Result<[u8; N]> {
    secret(N).try_into().map_err(|_| Failure::new("a key of another length"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_key_has_odd_parity_and_its_thirds_differ() {
        let key = secret(24);
        assert!(key.iter().all(|byte| byte.count_ones() % 2 == 1));
        assert!(key[..8] != key[8..16] && key[8..16] != key[16..]);
        assert_eq!(secret(16), secret_of::<16>().unwrap());
    }

    #[test]
    fn results_are_compared_only_where_all_must_be_equal() {
        let job = |key, parameter| Job {
            mechanism: CKM_AES_GCM,
            function: Function::Encrypt,
            key,
            parameter,
            bytes: 16,
        };
        let aes = Key::Secret(CKK_AES, 32);
        assert!(job(aes, Parameter::Iv(16)).determined() && job(aes, Parameter::Ctr).determined());
        assert!(!job(aes, Parameter::Gcm).determined());
        assert!(!job(Key::Rsa(1024), Parameter::None).determined());
    }
}
