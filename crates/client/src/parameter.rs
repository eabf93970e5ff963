// SPDX-License-Identifier: Apache-2.0
//! Parameters of mechanisms, typed, and what their C layouts are made of.

use metaslot_ck::*;
use std::ptr;

/// The parameter of a mechanism. Lengths are in bytes unless their name says bits.
///
/// The tag is a whole word, so that moving a counter block copies words.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
pub enum Params<'a> {
    /// NULL and 0.
    None,
    /// The bytes themselves: an IV, or a vendor's structure.
    Bytes(&'a [u8]),
    /// One `CK_ULONG`: the length of a MAC.
    Ulong(CK_ULONG),
    /// `CK_AES_CTR_PARAMS`
    Ctr {
        /// Width of the counter, in bits.
        bits: CK_ULONG,
        /// The first counter block.
        block: [u8; 16],
    },
    /// `CK_GCM_PARAMS`
    Gcm {
        /// The IV.
        iv: &'a [u8],
        /// Additional authenticated data.
        aad: &'a [u8],
        /// Length of the tag, in bits.
        tag_bits: CK_ULONG,
    },
    /// `CK_CCM_PARAMS`
    Ccm {
        /// Length of the data, declared beforehand.
        data_length: CK_ULONG,
        /// 7 to 13 bytes.
        nonce: &'a [u8],
        /// Additional authenticated data.
        aad: &'a [u8],
        /// Length of the MAC.
        mac_length: CK_ULONG,
    },
    /// `CK_SALSA20_CHACHA20_POLY1305_PARAMS`
    ChaCha20Poly1305 {
        /// The nonce.
        nonce: &'a [u8],
        /// Additional authenticated data.
        aad: &'a [u8],
    },
    /// `CK_RSA_PKCS_OAEP_PARAMS`
    Oaep {
        /// `CKM_SHA…`
        hash: CK_MECHANISM_TYPE,
        /// `CKG_MGF1_…`
        mgf: CK_ULONG,
        /// The label, often empty.
        label: &'a [u8],
    },
    /// `CK_RSA_PKCS_PSS_PARAMS`
    Pss {
        /// `CKM_SHA…`
        hash: CK_MECHANISM_TYPE,
        /// `CKG_MGF1_…`
        mgf: CK_ULONG,
        /// Length of the salt.
        salt_length: CK_ULONG,
    },
    /// `CK_ECDH1_DERIVE_PARAMS`
    Ecdh1 {
        /// `CKD_…`
        kdf: CK_ULONG,
        /// Shared data for the KDF.
        shared: &'a [u8],
        /// The other side's public point.
        public: &'a [u8],
    },
    /// `CK_EDDSA_PARAMS`
    EdDsa {
        /// Ed25519ph
        prehash: bool,
        /// Up to 255 bytes.
        context: &'a [u8],
    },
    /// `CK_SIGN_ADDITIONAL_CONTEXT`
    SignContext {
        /// `CKH_HEDGE_…`, `CKH_DETERMINISTIC_REQUIRED`
        hedge: CK_ULONG,
        /// Up to 255 bytes.
        context: &'a [u8],
    },
    /// `CK_HASH_SIGN_ADDITIONAL_CONTEXT`
    HashSignContext {
        /// `CKH_HEDGE_…`, `CKH_DETERMINISTIC_REQUIRED`
        hedge: CK_ULONG,
        /// Up to 255 bytes.
        context: &'a [u8],
        /// `CKM_SHA…`
        hash: CK_MECHANISM_TYPE,
    },
    /// `CK_HKDF_PARAMS`
    Hkdf {
        /// Run the extract step.
        extract: bool,
        /// Run the expand step.
        expand: bool,
        /// `CKM_SHA…`
        prf: CK_MECHANISM_TYPE,
        /// `CKF_HKDF_SALT_…`
        salt_type: CK_ULONG,
        /// The salt, for `CKF_HKDF_SALT_DATA`.
        salt: &'a [u8],
        /// The salt, for `CKF_HKDF_SALT_KEY`.
        salt_key: ObjectHandle,
        /// `pInfo`, of the expand step (RFC 5869 §2.3).
        info: &'a [u8],
    },
    /// `CK_PKCS5_PBKD2_PARAMS2`
    Pbkd2 {
        /// `CKP_PKCS5_PBKD2_HMAC_…`
        prf: CK_ULONG,
        /// The salt.
        salt: &'a [u8],
        /// `iterations`: c of RFC 8018 §5.2.
        iterations: CK_ULONG,
        /// The password.
        password: &'a [u8],
    },
    /// `CK_SP800_108_KDF_PARAMS`: counter and double pipeline mode.
    Sp800108 {
        /// The PRF's mechanism.
        prf: CK_MECHANISM_TYPE,
        /// The input of each step, in order.
        data: &'a [KdfParam<'a>],
    },
    /// `CK_SP800_108_FEEDBACK_KDF_PARAMS`
    Sp800108Feedback {
        /// The PRF's mechanism.
        prf: CK_MECHANISM_TYPE,
        /// The input of each step, in order.
        data: &'a [KdfParam<'a>],
        /// `pIV`: K(0) of SP 800-108r1 §4.2.
        iv: &'a [u8],
    },
    /// `CK_RSA_AES_KEY_WRAP_PARAMS`
    RsaAes {
        /// Length of the AES key, in bits.
        bits: CK_ULONG,
        /// `CKM_SHA…`
        hash: CK_MECHANISM_TYPE,
        /// `CKG_MGF1_…`
        mgf: CK_ULONG,
        /// The label of OAEP, often empty.
        label: &'a [u8],
    },
    /// `CK_ECDH_AES_KEY_WRAP_PARAMS`
    EcdhAes {
        /// Length of the AES key, in bits.
        bits: CK_ULONG,
        /// `CKD_…`
        kdf: CK_ULONG,
        /// Shared data for the KDF.
        shared: &'a [u8],
    },
    /// `CK_X9_42_DH1_DERIVE_PARAMS`
    X942 {
        /// `CKD_…`
        kdf: CK_ULONG,
        /// Other information for the KDF.
        info: &'a [u8],
        /// The other side's public value.
        public: &'a [u8],
    },
    /// `CK_KEY_DERIVATION_STRING_DATA`
    StringData {
        /// The string.
        data: &'a [u8],
    },
    /// `CK_AES_CBC_ENCRYPT_DATA_PARAMS`, or with an IV of 8 bytes `CK_DES_CBC_ENCRYPT_DATA_PARAMS`
    CbcData {
        /// The IV.
        iv: &'a [u8],
        /// Whole blocks.
        data: &'a [u8],
    },
    /// `CK_CHACHA20_PARAMS`
    ChaCha20 {
        /// Of the first block: of 32 bits where the nonce has 12 bytes.
        counter: u64,
        /// 8, 12 or 24 bytes.
        nonce: &'a [u8],
    },
    /// `CK_XEDDSA_PARAMS`
    XEdDsa {
        /// `CKM_SHA…`
        hash: CK_MECHANISM_TYPE,
    },
    /// `CK_IKE_PRF_DERIVE_PARAMS` (PKCS#11 3.2 §6.64)
    IkePrf {
        /// `CKM_…HMAC` or an AES MAC.
        prf: CK_MECHANISM_TYPE,
        /// `bDataAsKey`: the nonces are the PRF's key, and the base key its message.
        data_as_key: bool,
        /// `hNewKey`, with which `bRekey` is true: the new g^ir (RFC 7296 §2.18).
        new_key: Option<ObjectHandle>,
        /// `pNi`: the initiator's nonce.
        initiator: &'a [u8],
        /// `pNr`: the responder's nonce.
        responder: &'a [u8],
    },
    /// `CK_IKE1_PRF_DERIVE_PARAMS` (PKCS#11 3.2 §6.64)
    Ike1Prf {
        /// `CKM_…HMAC` or an AES MAC.
        prf: CK_MECHANISM_TYPE,
        /// `hPrevKey`, with which `bHasPrevKey` is true: SKEYID_d for SKEYID_a, and SKEYID_a for SKEYID_e.
        previous: Option<ObjectHandle>,
        /// `hKeygxy`: the secret of the Diffie-Hellman exchange.
        agreed: ObjectHandle,
        /// `pCKYi`: the initiator's cookie.
        initiator: &'a [u8],
        /// `pCKYr`: the responder's cookie.
        responder: &'a [u8],
        /// `keyNumber`: 0 for SKEYID_d, 1 for SKEYID_a, 2 for SKEYID_e (RFC 2409 §5).
        number: u8,
    },
    /// `CK_IKE1_EXTENDED_DERIVE_PARAMS` (PKCS#11 3.2 §6.64)
    Ike1Extended {
        /// `CKM_…HMAC` or an AES MAC.
        prf: CK_MECHANISM_TYPE,
        /// `hKeygxy`, with which `bHasKeygxy` is true: the secret of the Diffie-Hellman exchange.
        agreed: Option<ObjectHandle>,
        /// `pExtraData`: what follows that secret in the PRF's message (RFC 2409 §5.5).
        extra: &'a [u8],
    },
    /// `CK_IKE2_PRF_PLUS_DERIVE_PARAMS` (PKCS#11 3.2 §6.64)
    Ike2PrfPlus {
        /// `CKM_…HMAC` or an AES MAC.
        prf: CK_MECHANISM_TYPE,
        /// `hSeedKey`, with which `bHasSeedKey` is true: a key whose value comes first in the seed.
        seed_key: Option<ObjectHandle>,
        /// `pSeedData`: the seed of prf+, after that key (RFC 7296 §2.13).
        seed: &'a [u8],
    },
    /// `CK_SSL3_MASTER_KEY_DERIVE_PARAMS`, whose version is not asked for
    TlsMaster {
        /// The client's random value.
        client: &'a [u8],
        /// The server's random value.
        server: &'a [u8],
    },
    /// `CK_TLS12_MASTER_KEY_DERIVE_PARAMS`, whose version is not asked for
    Tls12Master {
        /// `CKM_SHA…`
        prf: CK_MECHANISM_TYPE,
        /// The client's random value.
        client: &'a [u8],
        /// The server's random value.
        server: &'a [u8],
    },
    /// `CK_TLS12_EXTENDED_MASTER_KEY_DERIVE_PARAMS`, whose version is not asked for
    Tls12Extended {
        /// `CKM_SHA…`
        prf: CK_MECHANISM_TYPE,
        /// `pSessionHash` (RFC 7627 §3).
        hash: &'a [u8],
    },
    /// `CK_TLS_KDF_PARAMS`
    TlsKdf {
        /// `CKM_SHA…` or `CKM_TLS_PRF`
        prf: CK_MECHANISM_TYPE,
        /// `pLabel` (RFC 5705 §4).
        label: &'a [u8],
        /// The client's random value.
        client: &'a [u8],
        /// The server's random value.
        server: &'a [u8],
        /// `pContextData` (RFC 5705 §4): an empty context is not the same as none.
        context: Option<&'a [u8]>,
    },
    /// `CK_TLS_MAC_PARAMS`
    TlsMac {
        /// `CKM_SHA…` or `CKM_TLS_PRF`
        prf: CK_MECHANISM_TYPE,
        /// `ulMacLength`, in bytes.
        length: CK_ULONG,
        /// `ulServerOrClient`: 1 for the server's Finished, 2 for the client's (RFC 5246 §7.4.9).
        side: CK_ULONG,
    },
}

/// One `CK_PRF_DATA_PARAM`.
#[derive(Clone, Copy, Debug)]
pub enum KdfParam<'a> {
    /// `CK_SP800_108_ITERATION_VARIABLE` without a format: the previous block.
    Previous,
    /// `CK_SP800_108_ITERATION_VARIABLE` with the counter's format.
    Iteration {
        /// Little-endian counter.
        little_endian: bool,
        /// Width of the counter, in bits.
        bits: CK_ULONG,
    },
    /// `CK_SP800_108_COUNTER`
    Counter {
        /// Little-endian counter.
        little_endian: bool,
        /// Width of the counter, in bits.
        bits: CK_ULONG,
    },
    /// `CK_SP800_108_DKM_LENGTH`
    DkmLength {
        /// Sum of segments rather than of keys.
        sum_of_segments: bool,
        /// Little-endian.
        little_endian: bool,
        /// Width, in bits.
        bits: CK_ULONG,
    },
    /// `CK_SP800_108_BYTE_ARRAY`
    Bytes(&'a [u8]),
}

/// Address and length of one structure.
pub(crate) const fn of<T>(params: &mut T) -> (*mut std::ffi::c_void, usize) {
    (ptr::from_mut(params).cast(), size_of::<T>())
}

/// A pointer for the standard's structures, which do not know `const`; empty bytes become NULL.
pub(crate) const fn pointer(bytes: &[u8]) -> *mut u8 {
    if bytes.is_empty() { ptr::null_mut() } else { bytes.as_ptr().cast_mut() }
}

/// `CK_TRUE` or `CK_FALSE`.
pub(crate) fn bool(value: bool) -> CK_BBOOL {
    u8::from(value)
}
