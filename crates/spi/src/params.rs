// SPDX-License-Identifier: Apache-2.0
//! Mechanism parameters, decoded: owned values, because the caller may free its own after `*Init`.

use crate::Template;
use crate::direction::Direction;
use metaslot_ck::{
    CK_MECHANISM_TYPE, CKH_DETERMINISTIC_REQUIRED, CKH_HEDGE_PREFERRED, CKH_HEDGE_REQUIRED,
    CKM_SSL3_MASTER_KEY_DERIVE, CKM_SSL3_MASTER_KEY_DERIVE_DH, CKM_TLS_PRE_MASTER_KEY_GEN,
    CKM_TLS_PRF, CKM_TLS10_MAC_SERVER, CKM_TLS12_KEY_SAFE_DERIVE, CKM_TLS12_MAC, Error,
    ObjectHandle, Result,
};
use metaslot_memory::Secret;
use smallvec::SmallVec;
use std::sync::{Arc, OnceLock};

/// Short byte strings (IVs, nonces, labels) without an allocation up to 16 bytes.
pub type Bytes = SmallVec<[u8; 16]>;

/// One decoded parameter.
///
/// The tag is a whole word, so that every field is aligned and a move copies words: with a tag of one
/// byte the counter block began at an odd address, and reading what was just written there in
/// other pieces cost more than all the rest of `C_EncryptInit`.
#[derive(Debug)]
#[repr(u64)]
pub enum Params {
    /// Nothing was given.
    None,
    /// An IV or other fixed-length bytes ([`Shape::Iv`], [`Shape::OptionalIv`], [`Shape::Nonce`]).
    Iv(Bytes),
    /// A number ([`Shape::Ulong`]).
    Ulong(u64),
    /// Counter mode: the low `bits` of the block count (1–128).
    Ctr {
        /// Width of the counter, in bits.
        bits: u64,
        /// The first counter block.
        block: [u8; 16],
    },
    /// AES-GCM (PKCS#11 3.2 §6.13).
    Gcm {
        /// Any length from 1 byte.
        iv: Bytes,
        /// Additional authenticated data.
        aad: Bytes,
        /// Length of the tag, in bits.
        tag_bits: u64,
    },
    /// AES-CCM.
    Ccm {
        /// Length of the plaintext, in bytes, declared beforehand.
        data_length: u64,
        /// 7 to 13 bytes.
        nonce: Bytes,
        /// Additional authenticated data.
        aad: Bytes,
        /// Length of the MAC, in bytes.
        mac_length: u64,
    },
    /// ChaCha20-Poly1305.
    ChaCha20Poly1305 {
        /// 12 bytes, or (`XChaCha20`) 24.
        nonce: Bytes,
        /// Additional authenticated data.
        aad: Bytes,
    },
    /// RSA OAEP; hash 0 and mgf 0 were already read as SHA-1.
    Oaep {
        /// `CKM_SHA…`
        hash: CK_MECHANISM_TYPE,
        /// `CKG_MGF1_…`
        mgf: u64,
        /// The encoding parameter (label).
        label: Bytes,
    },
    /// RSA PSS.
    Pss {
        /// `CKM_SHA…`
        hash: CK_MECHANISM_TYPE,
        /// `CKG_MGF1_…`
        mgf: u64,
        /// In bytes.
        salt_length: u64,
    },
    /// ECDH with one key pair a side.
    Ecdh1 {
        /// `CKD_…`
        kdf: u64,
        /// Shared data for the KDF.
        shared: Bytes,
        /// The other side's public point, raw or as a DER OCTET STRING.
        public: Bytes,
    },
    /// EdDSA: absent parameters mean plain Ed25519.
    EdDsa {
        /// Ed25519ph
        prehash: bool,
        /// Up to 255 bytes.
        context: Bytes,
    },
    /// XEdDSA (PKCS#11 3.2 §6.3.15).
    XEdDsa {
        /// `CKM_SHA512` and others.
        hash: CK_MECHANISM_TYPE,
    },
    /// ML-DSA and SLH-DSA (PKCS#11 3.2 §6.67).
    SignContext {
        /// `CKH_HEDGE_…`, `CKH_DETERMINISTIC_REQUIRED`
        hedge: u64,
        /// Up to 255 bytes.
        context: Bytes,
    },
    /// HashML-DSA of a digest (PKCS#11 3.2 §6.67.6).
    HashSignContext {
        /// `CKH_HEDGE_…`, `CKH_DETERMINISTIC_REQUIRED`
        hedge: u64,
        /// Up to 255 bytes.
        context: Bytes,
        /// `CKM_SHA…`, of which the digest is.
        hash: u64,
    },
    /// HKDF (PKCS#11 3.2 §6.62).
    Hkdf {
        /// Run the extract step.
        extract: bool,
        /// Run the expand step.
        expand: bool,
        /// `CKM_SHA…` of the PRF.
        prf: CK_MECHANISM_TYPE,
        /// `CKF_HKDF_SALT_…`
        salt_type: u64,
        /// The salt, for `CKF_HKDF_SALT_DATA`.
        salt: Bytes,
        /// The salt, for `CKF_HKDF_SALT_KEY`.
        salt_key: ObjectHandle,
        /// Context of the expand step.
        info: Bytes,
    },
    /// PKCS#5 PBKDF2.
    Pbkd2 {
        /// `CKP_PKCS5_PBKD2_HMAC_…`
        prf: u64,
        /// The salt.
        salt: Bytes,
        /// How often.
        iterations: u64,
        /// The password; absent when the base key is one.
        password: Secret,
    },
    /// Keys from passwords as PKCS #5 and PKCS #12 had them at first.
    Pbe {
        /// The password, byte by byte.
        password: Secret,
        /// The salt.
        salt: Bytes,
        /// How often.
        iterations: u64,
        /// The IV that comes with the key, for the caller; of no length where none does.
        beside: Arc<Beside>,
    },
    /// SP 800-108 in any of its three modes.
    Sp800108 {
        /// `CKM_…HMAC` or `CKM_AES_CMAC`
        prf: CK_MECHANISM_TYPE,
        /// The input of each step, in order.
        data: Vec<KdfParam>,
        /// Feedback mode: the first input.
        iv: Bytes,
        /// Templates of further keys; the engine takes them, the edge writes their handles.
        additional: Vec<Template>,
    },
    /// A wrap under a new AES key, which goes along by another mechanism.
    Transport {
        /// Length of the AES key, in bits.
        bits: u64,
        /// [`Self::Oaep`], or [`Self::Ecdh1`] without a public point.
        by: Box<Self>,
    },
    /// What is put beside a key's value, or encrypted under it.
    Data {
        /// Of CBC; empty elsewhere.
        iv: Bytes,
        /// The string.
        data: Bytes,
    },
    /// Another key.
    Key(ObjectHandle),
    /// A cipher that has several forms: RC2 and RC5.
    Tuned {
        /// RC2: how many bits of the key count, and 0. RC5: bytes of a word, and rounds.
        by: [u64; 2],
        /// Of CBC; empty elsewhere.
        iv: Bytes,
        /// Length of a MAC, in bytes; 0 where nothing says it.
        mac: u64,
    },
    /// ChaCha20 without a tag.
    ChaCha20 {
        /// Of the first block: of 32 bits where the nonce has 12 bytes.
        counter: u64,
        /// 8, 12 or (`XChaCha20`) 24 bytes.
        nonce: Bytes,
    },
    /// Salsa20.
    Salsa20 {
        /// Of the first block.
        counter: u64,
        /// 8 or 24 bytes.
        nonce: Bytes,
    },
    /// A step of IKE.
    Ike {
        /// `CKM_…HMAC` or an AES MAC.
        prf: CK_MECHANISM_TYPE,
        /// Nonces, cookies or other data, one after the other.
        data: Bytes,
        /// Whether the data are the key, and the base key the message.
        data_as_key: bool,
        /// Keys whose values come before the data.
        before: SmallVec<[ObjectHandle; 2]>,
    },
    /// A step of TLS.
    Tls(Box<Tls>),
    /// A one-time password.
    Otp(Otp),
    /// How new parameters of DSA are made.
    DsaSeed(Box<DsaSeed>),
}

/// By which hash function, and of which seed or to which place (FIPS 186-4 appendix A).
#[derive(Debug)]
pub struct DsaSeed {
    /// `CKM_SHA…`
    pub hash: CK_MECHANISM_TYPE,
    /// That of the primes, where it is there.
    pub seed: Bytes,
    /// Which of the bases that there are for it.
    pub index: u64,
    /// The seed of new primes, for the caller, who has room for so many bytes.
    pub beside: Arc<Beside>,
}

/// What is asked of a one-time password, or said of one (PKCS#11 3.2 §6.53). What HOTP does not use is left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Otp {
    /// Which one; the key's next one where nothing is said.
    pub counter: Option<u64>,
    /// How many digits.
    pub length: Option<u64>,
    /// `CK_OTP_FORMAT_…`
    pub format: Option<u64>,
    /// `CKF_NEXT_OTP`, `CKF_EXCLUDE_…`, `CKF_USER_FRIENDLY_OTP`
    pub flags: Option<u64>,
}

/// What TLS makes of a secret (RFC 5246 §5, §6.3, §8.1).
#[derive(Debug)]
pub struct Tls {
    /// `CKM_SHA…` in TLS 1.2; `CKM_TLS_PRF` before it, and `CKM_SSL3_MASTER_KEY_DERIVE` in SSL 3.0.
    pub prf: CK_MECHANISM_TYPE,
    /// What it is for.
    pub label: Bytes,
    /// Random values of both sides, or a hash.
    pub seed: Bytes,
    /// Length of a MAC, in bytes.
    pub mac_length: usize,
    /// Templates of further keys; the engine takes them, the edge writes their handles.
    pub further: Vec<Template>,
    /// What the caller is told besides.
    pub beside: Option<Arc<Beside>>,
}

/// The shortest MAC at the end of a handshake, and the only one before TLS 1.2 (RFC 5246 §7.4.9), in bytes.
const SHORTEST_FINISHED: u64 = 12;
/// No such MAC is longer, in bytes.
const LONGEST_FINISHED: u64 = 255;

impl Tls {
    /// No label and no seed is longer, in bytes: each block of the result hashes both.
    pub const LONGEST_STRING: usize = 1 << 17;

    /// The parameter of a mechanism of TLS or SSL, which tells the caller `beside` bytes besides.
    ///
    /// # Errors
    /// `CKR_MECHANISM_PARAM_INVALID` for a function of another version, and longer strings than are hashed.
    pub fn params(
        mechanism: CK_MECHANISM_TYPE,
        prf: CK_MECHANISM_TYPE,
        [label, seed]: [Bytes; 2],
        (mac_length, beside): (usize, usize),
    ) -> Result<Params> {
        // Mechanisms with the version in their names have no function of another; that of SSL 3.0 has no name, and takes no label.
        let other = match prf {
            CKM_TLS_PRF => matches!(mechanism, CKM_TLS12_MAC..=CKM_TLS12_KEY_SAFE_DERIVE),
            CKM_SSL3_MASTER_KEY_DERIVE => {
                mechanism < prf || mechanism > CKM_SSL3_MASTER_KEY_DERIVE_DH
            }
            _ => false,
        };
        if other || label.len().max(seed.len()) > Self::LONGEST_STRING {
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        let beside = Beside { length: beside, told: OnceLock::new() };
        let beside = (beside.length > 0).then(|| Arc::new(beside));
        Ok(Params::Tls(Box::new(Self {
            prf,
            label,
            seed,
            mac_length,
            further: Vec::new(),
            beside,
        })))
    }

    /// The function of a mechanism that is older than TLS 1.2.
    #[must_use]
    pub const fn old_function(mechanism: CK_MECHANISM_TYPE) -> CK_MECHANISM_TYPE {
        match mechanism < CKM_TLS_PRE_MASTER_KEY_GEN {
            true => CKM_SSL3_MASTER_KEY_DERIVE,
            false => CKM_TLS_PRF,
        }
    }

    /// The parameter of the MAC at the end of a handshake, of so many bytes, by a side: 1 is the server, 2 the client (PKCS#11 3.2
    /// §6.40).
    ///
    /// # Errors
    /// `CKR_MECHANISM_PARAM_INVALID` for another length or side, and as [`Self::params`].
    pub fn finished(
        mechanism: CK_MECHANISM_TYPE,
        prf: CK_MECHANISM_TYPE,
        (length, side): (u64, u64),
    ) -> Result<Params> {
        let label: &[u8] = match side {
            1 => b"server finished",
            2 => b"client finished",
            _ => return Err(Error::MECHANISM_PARAM_INVALID),
        };
        let length = Some(length)
            .filter(|length| (SHORTEST_FINISHED..=LONGEST_FINISHED).contains(length))
            .and_then(|length| usize::try_from(length).ok());
        let length = length.ok_or(Error::MECHANISM_PARAM_INVALID)?;
        Self::params(mechanism, prf, [Bytes::from_slice(label), Bytes::new()], (length, 0))
    }

    /// The same of TLS 1.0, where the side is that of the mechanism.
    ///
    /// # Errors
    /// As [`Self::finished`].
    pub fn finished_of_old(mechanism: CK_MECHANISM_TYPE) -> Result<Params> {
        let side = if mechanism == CKM_TLS10_MAC_SERVER { 1 } else { 2 };
        Self::finished(mechanism, CKM_TLS_PRF, (SHORTEST_FINISHED, side))
    }

    /// What both random values and a context are for the function of `CKM_TLS_KDF` (RFC 5705 §4).
    ///
    /// # Errors
    /// `CKR_MECHANISM_PARAM_INVALID` for a longer context than its length can say.
    pub fn exported(mut random: Bytes, context: Option<&[u8]>) -> Result<Bytes> {
        if let Some(context) = context {
            let length = u16::try_from(context.len());
            let length = length.map_err(|_| Error::MECHANISM_PARAM_INVALID)?;
            random.extend_from_slice(&length.to_be_bytes());
            random.extend_from_slice(context);
        }
        Ok(random)
    }
}

/// Bytes that come out beside keys: the version in a secret, IVs, or a seed.
#[derive(Debug, Default)]
pub struct Beside {
    /// How many.
    pub length: usize,
    /// The bytes, once they are known.
    pub told: OnceLock<Bytes>,
}

impl Params {
    /// The function that is said to be under the mechanism, by the number of its own mechanism.
    #[must_use]
    pub fn function(&self) -> Option<CK_MECHANISM_TYPE> {
        match self {
            Self::Transport { by, .. } => by.function(),
            Self::Ike { prf, .. } => Some(*prf),
            Self::Tls(tls) => Some(tls.prf),
            Self::DsaSeed(by) => Some(by.hash),
            Self::Pss { hash, .. } | Self::Oaep { hash, .. } => Some(*hash),
            Self::Hkdf { prf, .. } | Self::Sp800108 { prf, .. } => Some(*prf),
            Self::HashSignContext { hash, .. } | Self::XEdDsa { hash } => Some(*hash),
            _ => None,
        }
    }

    /// What the caller is told besides, if anything.
    #[must_use]
    pub const fn beside(&self) -> Option<&Arc<Beside>> {
        match self {
            Self::Pbe { beside, .. } => Some(beside),
            Self::DsaSeed(by) => Some(&by.beside),
            Self::Tls(tls) => tls.beside.as_ref(),
            _ => None,
        }
    }

    /// The templates of further keys, which are taken out.
    pub fn take_further(&mut self) -> Vec<Template> {
        match self {
            Self::Sp800108 { additional, .. } => std::mem::take(additional),
            Self::Tls(tls) => std::mem::take(&mut tls.further),
            _ => Vec::new(),
        }
    }

    /// Length in bytes of the tag that stands at the end of what is encrypted; 0 where none does.
    #[must_use]
    pub const fn tag_length(&self) -> u64 {
        match self {
            Self::Gcm { tag_bits, .. } => *tag_bits / 8,
            Self::Ccm { mac_length, .. } => *mac_length,
            Self::ChaCha20Poly1305 { .. } => 16,
            _ => 0,
        }
    }

    /// Length of a MAC in bytes: all of it, or what the parameter of a `_GENERAL` mechanism says.
    ///
    /// # Errors
    /// `CKR_MECHANISM_PARAM_INVALID` for none or for more than there is, and for another parameter.
    pub fn mac_length(&self, whole: usize, is_general: bool) -> Result<usize> {
        let length = match self {
            Self::None if !is_general => Some(whole),
            Self::Ulong(length) if is_general => usize::try_from(*length).ok(),
            _ => None,
        };
        let length = length.filter(|length| (1..=whole).contains(length));
        length.ok_or(Error::MECHANISM_PARAM_INVALID)
    }

    /// What ML-DSA and SLH-DSA are asked for by their parameters, or by none.
    ///
    /// # Errors
    /// `CKR_MECHANISM_PARAM_INVALID` for a context of more than 255 bytes, and a hedge that is none.
    pub fn signing(&self, direction: Direction) -> Result<Signing<'_>> {
        let (hedge, context) = match self {
            Self::None => (CKH_HEDGE_PREFERRED, &[][..]),
            Self::SignContext { hedge, context } | Self::HashSignContext { hedge, context, .. } => {
                (*hedge, &**context)
            }
            _ => return Err(Error::MECHANISM_PARAM_INVALID),
        };
        let deterministic = match hedge {
            CKH_HEDGE_PREFERRED | CKH_HEDGE_REQUIRED => false,
            CKH_DETERMINISTIC_REQUIRED => true,
            // To verify, it is all the same how it was signed (§6.67.5).
            _ if direction == Direction::Backward => false,
            _ => return Err(Error::MECHANISM_PARAM_INVALID),
        };
        match u8::try_from(context.len()) {
            Ok(length) => Ok(Signing { context, length, deterministic }),
            Err(_) => Err(Error::MECHANISM_PARAM_INVALID),
        }
    }
}

/// How ML-DSA or SLH-DSA sign, or have signed.
#[derive(Clone, Copy, Debug)]
pub struct Signing<'a> {
    /// What a signature is bound to beside its message.
    pub context: &'a [u8],
    length: u8,
    /// Two signatures of one message are equal.
    pub deterministic: bool,
}

impl Signing<'_> {
    /// What stands before the context (FIPS 204, algorithms 2 and 4; FIPS 205, algorithms 22 and 23).
    #[must_use]
    pub fn prefix(&self, prehashed: bool) -> [u8; 2] {
        [u8::from(prehashed), self.length]
    }
}

/// One `CK_PRF_DATA_PARAM`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum KdfParam {
    /// `CK_SP800_108_ITERATION_VARIABLE`: the counter, or (feedback modes) the previous block.
    Iteration {
        /// Little-endian counter.
        little_endian: bool,
        /// Width of the counter, in bits; 0 where the variable is the previous block.
        bits: u64,
    },
    /// `CK_SP800_108_COUNTER` (feedback and double pipeline): an optional counter.
    Counter {
        /// Little-endian counter.
        little_endian: bool,
        /// Width, in bits.
        bits: u64,
    },
    /// `CK_SP800_108_DKM_LENGTH`: the length of the derived keys.
    DkmLength {
        /// Sum of segments rather than of keys.
        sum_of_segments: bool,
        /// Little-endian.
        little_endian: bool,
        /// Width, in bits.
        bits: u64,
    },
    /// `CK_SP800_108_BYTE_ARRAY`
    Bytes(Bytes),
}
