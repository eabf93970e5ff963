// SPDX-License-Identifier: Apache-2.0
//! What a row of the table of mechanisms says.

use crate::{CK_KEY_TYPE, CK_MECHANISM_TYPE, CK_OBJECT_CLASS};

/// One mechanism of the standard.
#[derive(Clone, Copy, Debug)]
pub struct MechanismRow {
    /// `CKM_…`
    pub number: CK_MECHANISM_TYPE,
    /// How the edge decodes its parameter.
    pub shape: Shape,
    /// Key types it works with (or makes); empty for digests.
    pub keys: &'static [CK_KEY_TYPE],
    /// The unit in which the standard gives its key sizes.
    pub unit: Unit,
    /// Section of PKCS#11 3.2.
    pub section: &'static str,
    /// The class of what `C_GenerateKey` makes by it.
    pub makes: CK_OBJECT_CLASS,
}

impl MechanismRow {
    /// The same, which makes no secret keys, but objects of this class.
    pub(super) const fn makes(self, makes: CK_OBJECT_CLASS) -> Self {
        Self { makes, ..self }
    }
}

/// Units of `ulMinKeySize`: a known trap, so every row says which.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Unit {
    /// No key.
    None,
    /// Bits: RSA, EC, RC4.
    Bits,
    /// Bytes: AES, generic secrets.
    Bytes,
}

/// How the raw parameter of a mechanism is laid out; the edge decodes by this.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shape {
    /// No parameter: NULL and 0.
    None,
    /// Exactly so many bytes, usually an IV.
    Iv(usize),
    /// One `CK_ULONG`: a MAC length (`CK_MAC_GENERAL_PARAMS`).
    Ulong,
    /// An optional IV of exactly so many bytes (key wrap: absent means the standard's own).
    OptionalIv(usize),
    /// `CK_AES_CTR_PARAMS`
    Ctr,
    /// `CK_GCM_PARAMS` (40 or 48 bytes long).
    Gcm,
    /// `CK_GCM_PARAMS` without additional data, or the bare IV: GMAC.
    Nonce,
    /// `CK_CCM_PARAMS`
    Ccm,
    /// `CK_SALSA20_CHACHA20_POLY1305_PARAMS`
    ChaCha20Poly1305,
    /// `CK_RSA_PKCS_OAEP_PARAMS`
    Oaep,
    /// `CK_RSA_AES_KEY_WRAP_PARAMS`
    RsaAes,
    /// `CK_ECDH_AES_KEY_WRAP_PARAMS`
    EcdhAes,
    /// `CK_RSA_PKCS_PSS_PARAMS`
    Pss,
    /// `CK_ECDH1_DERIVE_PARAMS`
    Ecdh1,
    /// The other side's public value, bare.
    PublicValue,
    /// `CK_X9_42_DH1_DERIVE_PARAMS`
    X942,
    /// `CK_SSL3_MASTER_KEY_DERIVE_PARAMS`
    TlsMaster,
    /// `CK_TLS12_MASTER_KEY_DERIVE_PARAMS`
    Tls12Master,
    /// `CK_TLS12_EXTENDED_MASTER_KEY_DERIVE_PARAMS`
    Tls12Extended,
    /// `CK_SSL3_KEY_MAT_PARAMS`
    TlsKeys,
    /// `CK_TLS12_KEY_MAT_PARAMS`
    Tls12Keys,
    /// `CK_TLS_KDF_PARAMS`
    TlsKdf,
    /// `CK_TLS_MAC_PARAMS`
    TlsMac,
    /// None: TLS 1.0's own, of which the mechanism says the side.
    Tls10Mac,
    /// `CK_EDDSA_PARAMS`, or nothing.
    EdDsa,
    /// `CK_XEDDSA_PARAMS`
    XEdDsa,
    /// `CK_SIGN_ADDITIONAL_CONTEXT`, or nothing.
    SignContext,
    /// `CK_HASH_SIGN_ADDITIONAL_CONTEXT`
    HashSignContext,
    /// `CK_HKDF_PARAMS`
    Hkdf,
    /// `CK_PKCS5_PBKD2_PARAMS2`, or the older form.
    Pbkd2,
    /// `CK_SP800_108_KDF_PARAMS`
    Sp800108Counter,
    /// `CK_SP800_108_FEEDBACK_KDF_PARAMS`
    Sp800108Feedback,
    /// `CK_SP800_108_KDF_PARAMS` for the double pipeline mode.
    Sp800108DoublePipeline,
    /// `CK_KEY_DERIVATION_STRING_DATA`
    StringData,
    /// An IV of so many bytes before a string: `CK_AES_CBC_ENCRYPT_DATA_PARAMS`, `CK_DES_CBC_ENCRYPT_DATA_PARAMS`.
    CbcData(usize),
    /// One `CK_OBJECT_HANDLE`.
    Handle,
    /// `CK_CHACHA20_PARAMS`
    ChaCha20,
    /// `CK_SALSA20_PARAMS`
    Salsa20,
    /// `CK_PBE_PARAMS`, of a key with an IV, which is written to where it points, or without.
    Pbe {
        /// Whether there is an IV.
        iv: bool,
    },
    /// `CK_DSA_PARAMETER_GEN_PARAM`, into which the seed of new parameters is written, or with a seed.
    DsaSeed {
        /// Whether it is there.
        given: bool,
    },
    /// `CK_OTP_PARAMS`, or nothing.
    Otp,
    /// `CK_RC2_PARAMS`
    Rc2,
    /// `CK_RC2_CBC_PARAMS`
    Rc2Cbc,
    /// `CK_RC2_MAC_GENERAL_PARAMS`
    Rc2Mac,
    /// `CK_RC5_PARAMS`
    Rc5,
    /// `CK_RC5_CBC_PARAMS`
    Rc5Cbc,
    /// `CK_RC5_MAC_GENERAL_PARAMS`
    Rc5Mac,
    /// `CK_IKE_PRF_DERIVE_PARAMS`
    IkePrf,
    /// `CK_IKE1_PRF_DERIVE_PARAMS`
    Ike1Prf,
    /// `CK_IKE1_EXTENDED_DERIVE_PARAMS`
    Ike1Extended,
    /// `CK_IKE2_PRF_PLUS_DERIVE_PARAMS`
    Ike2PrfPlus,
}
