// SPDX-License-Identifier: Apache-2.0
//! One mechanism of one token, and what follows from its number: how long results are.

use crate::token::Token;
use metaslot_ck::*;
use metaslot_spi::key_info::EcParams;
use metaslot_spi::{Key, Params};

/// One mechanism of one token. It lives as long as the token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mechanism {
    pub(crate) token: &'static Token,
    pub(crate) number: CK_MECHANISM_TYPE,
    pub(crate) length: Length,
    pub(crate) mode: Mode,
}

impl Mechanism {
    pub(crate) const fn new(token: &'static Token, number: CK_MECHANISM_TYPE) -> Self {
        Self { token, number, length: Length::of(number), mode: Mode::of(number) }
    }

    /// With a public key others than a module that is not trusted can judge as well.
    pub(crate) fn may_use(&self, key: &Key) -> Result<()> {
        match self.token.trusted || key.class() != CKO_PUBLIC_KEY {
            true => Ok(()),
            false => Err(Error::MECHANISM_INVALID),
        }
    }

    /// Which row of the token the key is.
    pub(crate) fn row(key: &Key) -> Result<u64> {
        key.attributes().ulong(attribute::CKA_FOREIGN_ROW).ok_or(Error::KEY_HANDLE_INVALID)
    }
}

/// How long a signature is: the engine must know it before the module is asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Length {
    /// As long as the modulus.
    Modulus,
    /// Two numbers below the order of the curve.
    Pair,
    /// Two numbers below the order of the group.
    Subprime,
    /// What the parameter set fixes.
    Set,
    /// Always so many bytes.
    Fixed(usize),
    /// What the parameter says.
    Said,
    /// It makes no signatures.
    Unknown,
}

impl Length {
    pub(crate) const fn of(mechanism: CK_MECHANISM_TYPE) -> Self {
        match mechanism {
            CKM_RSA_PKCS
            | CKM_RSA_X_509
            | CKM_RSA_PKCS_PSS
            | CKM_MD5_RSA_PKCS
            | CKM_SHA1_RSA_PKCS
            | CKM_SHA224_RSA_PKCS
            | CKM_SHA256_RSA_PKCS
            | CKM_SHA384_RSA_PKCS
            | CKM_SHA512_RSA_PKCS
            | CKM_SHA1_RSA_PKCS_PSS
            | CKM_SHA224_RSA_PKCS_PSS
            | CKM_SHA256_RSA_PKCS_PSS
            | CKM_SHA384_RSA_PKCS_PSS
            | CKM_SHA512_RSA_PKCS_PSS
            | CKM_SHA3_224_RSA_PKCS
            | CKM_SHA3_256_RSA_PKCS
            | CKM_SHA3_384_RSA_PKCS
            | CKM_SHA3_512_RSA_PKCS
            | CKM_SHA3_224_RSA_PKCS_PSS
            | CKM_SHA3_256_RSA_PKCS_PSS
            | CKM_SHA3_384_RSA_PKCS_PSS
            | CKM_SHA3_512_RSA_PKCS_PSS
            | CKM_RIPEMD128_RSA_PKCS
            | CKM_RIPEMD160_RSA_PKCS => Self::Modulus,
            CKM_ECDSA | CKM_ECDSA_SHA1 | CKM_ECDSA_SHA224 | CKM_ECDSA_SHA256 | CKM_ECDSA_SHA384
            | CKM_ECDSA_SHA512 | CKM_ECDSA_SHA3_224 | CKM_ECDSA_SHA3_256 | CKM_ECDSA_SHA3_384
            | CKM_ECDSA_SHA3_512 | CKM_EDDSA | CKM_XEDDSA => Self::Pair,
            CKM_DSA | CKM_DSA_SHA1 | CKM_DSA_SHA224 | CKM_DSA_SHA256 | CKM_DSA_SHA384
            | CKM_DSA_SHA512 | CKM_DSA_SHA3_224 | CKM_DSA_SHA3_256 | CKM_DSA_SHA3_384
            | CKM_DSA_SHA3_512 => Self::Subprime,
            CKM_DES3_MAC => Self::Fixed(4),
            CKM_AES_MAC | CKM_DES3_CMAC => Self::Fixed(8),
            CKM_AES_XCBC_MAC_96 => Self::Fixed(12),
            CKM_MD5_HMAC | CKM_RIPEMD128_HMAC | CKM_AES_CMAC | CKM_AES_GMAC | CKM_AES_XCBC_MAC
            | CKM_POLY1305 => Self::Fixed(16),
            CKM_SHA_1_HMAC | CKM_RIPEMD160_HMAC | CKM_BLAKE2B_160_HMAC => Self::Fixed(20),
            CKM_SHA224_HMAC | CKM_SHA512_224_HMAC | CKM_SHA3_224_HMAC => Self::Fixed(28),
            CKM_SHA256_HMAC | CKM_SHA512_256_HMAC | CKM_SHA3_256_HMAC | CKM_BLAKE2B_256_HMAC => {
                Self::Fixed(32)
            }
            CKM_SHA384_HMAC | CKM_SHA3_384_HMAC | CKM_BLAKE2B_384_HMAC => Self::Fixed(48),
            CKM_SHA512_HMAC | CKM_SHA3_512_HMAC | CKM_BLAKE2B_512_HMAC => Self::Fixed(64),
            CKM_MD5_HMAC_GENERAL
            | CKM_RIPEMD128_HMAC_GENERAL
            | CKM_RIPEMD160_HMAC_GENERAL
            | CKM_SHA_1_HMAC_GENERAL
            | CKM_SHA224_HMAC_GENERAL
            | CKM_SHA256_HMAC_GENERAL
            | CKM_SHA384_HMAC_GENERAL
            | CKM_SHA512_HMAC_GENERAL
            | CKM_SHA512_224_HMAC_GENERAL
            | CKM_SHA512_256_HMAC_GENERAL
            | CKM_SHA3_224_HMAC_GENERAL
            | CKM_SHA3_256_HMAC_GENERAL
            | CKM_SHA3_384_HMAC_GENERAL
            | CKM_SHA3_512_HMAC_GENERAL
            | CKM_BLAKE2B_160_HMAC_GENERAL
            | CKM_BLAKE2B_256_HMAC_GENERAL
            | CKM_BLAKE2B_384_HMAC_GENERAL
            | CKM_BLAKE2B_512_HMAC_GENERAL
            | CKM_AES_MAC_GENERAL
            | CKM_AES_CMAC_GENERAL
            | CKM_DES3_MAC_GENERAL
            | CKM_DES3_CMAC_GENERAL
            | CKM_TLS10_MAC_SERVER
            | CKM_TLS10_MAC_CLIENT
            | CKM_TLS12_MAC
            | CKM_TLS_MAC => Self::Said,
            mechanism if has_sets(mechanism) => Self::Set,
            _ => Self::Unknown,
        }
    }

    pub(crate) fn for_key(self, key: &Key, params: &Params) -> Option<usize> {
        match (self, params) {
            (Self::Modulus, _) => key.attributes().bytes(CKA_MODULUS).map(<[u8]>::len),
            (Self::Pair, _) => order(key.attributes().bytes(CKA_EC_PARAMS)?).map(|order| 2 * order),
            (Self::Subprime, _) => {
                key.attributes().bytes(CKA_SUBPRIME).map(|order| 2 * order.len())
            }
            (Self::Set, _) => of_set(key),
            (Self::Fixed(length), _) => Some(length),
            (Self::Said, Params::Ulong(length)) => usize::try_from(*length).ok(),
            (Self::Said, Params::Tls(tls)) => Some(tls.mac_length),
            _ => None,
        }
    }
}

/// Signatures of ML-DSA and SLH-DSA.
const fn has_sets(mechanism: CK_MECHANISM_TYPE) -> bool {
    matches!(
        mechanism,
        CKM_ML_DSA
            | CKM_HASH_ML_DSA
            | CKM_HASH_ML_DSA_SHA224
            | CKM_HASH_ML_DSA_SHA256
            | CKM_HASH_ML_DSA_SHA384
            | CKM_HASH_ML_DSA_SHA512
            | CKM_HASH_ML_DSA_SHA3_224
            | CKM_HASH_ML_DSA_SHA3_256
            | CKM_HASH_ML_DSA_SHA3_384
            | CKM_HASH_ML_DSA_SHA3_512
            | CKM_HASH_ML_DSA_SHAKE128
            | CKM_HASH_ML_DSA_SHAKE256
            | CKM_SLH_DSA
            | CKM_HASH_SLH_DSA
            | CKM_HASH_SLH_DSA_SHA224
            | CKM_HASH_SLH_DSA_SHA256
            | CKM_HASH_SLH_DSA_SHA384
            | CKM_HASH_SLH_DSA_SHA512
            | CKM_HASH_SLH_DSA_SHA3_224
            | CKM_HASH_SLH_DSA_SHA3_256
            | CKM_HASH_SLH_DSA_SHA3_384
            | CKM_HASH_SLH_DSA_SHA3_512
            | CKM_HASH_SLH_DSA_SHAKE128
            | CKM_HASH_SLH_DSA_SHAKE256
    )
}

/// Bytes of a signature by a lattice or by hashes (FIPS 204 §4, FIPS 205 §11). The sets of SLH-DSA are counted in pairs of SHA-2 and SHAKE.
fn of_set(key: &Key) -> Option<usize> {
    const ML_DSA: [usize; 3] = [2420, 3309, 4627];
    const SLH_DSA: [usize; 6] = [7856, 17_088, 16_224, 35_664, 29_792, 49_856];
    let place = usize::try_from(key.attributes().ulong(CKA_PARAMETER_SET)?.checked_sub(1)?).ok()?;
    match key.key_type() {
        CKK_ML_DSA => ML_DSA.get(place).copied(),
        CKK_SLH_DSA => SLH_DSA.get(place / 2).copied(),
        _ => None,
    }
}

/// Bytes of a secret that is agreed on by a key with these parameters.
pub(crate) fn field(params: &[u8]) -> Option<usize> {
    order(params)
}

/// Bytes of the order of a curve, and of its field: both are as long on these curves. (Edwards curves have
/// signatures of twice that.)
fn order(params: &[u8]) -> Option<usize> {
    /// Object identifier or name, and bytes.
    const CURVES: [(&[u8], &[&str], usize); 16] = [
        (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 1], &["secp192r1", "prime192v1"], 24),
        (&[0x2b, 0x81, 4, 0, 33], &["secp224r1"], 28),
        (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7], &["secp256r1", "prime256v1"], 32),
        (&[0x2b, 0x81, 4, 0, 10], &["secp256k1"], 32),
        (&[0x2b, 0x81, 4, 0, 34], &["secp384r1"], 48),
        (&[0x2b, 0x81, 4, 0, 35], &["secp521r1"], 66),
        (&[0x2b, 0x24, 3, 3, 2, 8, 1, 1, 7], &["brainpoolP256r1"], 32),
        (&[0x2b, 0x24, 3, 3, 2, 8, 1, 1, 8], &["brainpoolP256t1"], 32),
        (&[0x2b, 0x24, 3, 3, 2, 8, 1, 1, 11], &["brainpoolP384r1"], 48),
        (&[0x2b, 0x24, 3, 3, 2, 8, 1, 1, 12], &["brainpoolP384t1"], 48),
        (&[0x2b, 0x24, 3, 3, 2, 8, 1, 1, 13], &["brainpoolP512r1"], 64),
        (&[0x2b, 0x24, 3, 3, 2, 8, 1, 1, 14], &["brainpoolP512t1"], 64),
        (&[0x2b, 0x65, 0x6e], &["curve25519", "X25519"], 32),
        (&[0x2b, 0x65, 0x6f], &["curve448", "X448"], 56),
        (&[0x2b, 0x65, 0x70], &["edwards25519", "Ed25519"], 32),
        (&[0x2b, 0x65, 0x71], &["edwards448", "Ed448"], 57),
    ];
    let params = EcParams::parse(params).ok()?;
    let found = CURVES.iter().find(|(oid, names, _)| match &params {
        EcParams::Oid(bytes) => bytes == oid,
        EcParams::Name(name) => names.iter().any(|known| known.as_bytes() == *name),
    });
    found.map(|row| row.2)
}

/// How long results are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mode {
    /// Whole blocks of so many bytes.
    Blocks(usize),
    /// Padded to blocks of so many bytes.
    Padded(usize),
    /// As long as the data.
    Stream,
    /// The same, but for all of them together: its last block changes the one before.
    Whole,
    /// Eight bytes more than the data, which are filled to whole blocks of eight by at least so many (RFC 3394, RFC 5649).
    Wrapped(usize),
    /// By one of two paddings: what a token gives is how long it is. It wraps keys, and does not encrypt.
    Asked,
    /// As RFC 5649 has it, behind what brings its key: a number below the modulus, or a public value. It wraps keys, and does not
    /// encrypt.
    Carried,
    /// A tag longer than the data.
    Tagged,
    /// One number below the modulus.
    Rsa,
    /// It does not encrypt.
    Unknown,
}

impl Mode {
    pub(crate) const fn of(mechanism: CK_MECHANISM_TYPE) -> Self {
        match mechanism {
            CKM_AES_ECB | CKM_AES_CBC | CKM_CAMELLIA_ECB | CKM_CAMELLIA_CBC | CKM_ARIA_ECB
            | CKM_ARIA_CBC | CKM_SEED_ECB | CKM_SEED_CBC | CKM_TWOFISH_CBC => Self::Blocks(16),
            CKM_DES_ECB | CKM_DES_CBC | CKM_DES3_ECB | CKM_DES3_CBC | CKM_BLOWFISH_CBC => {
                Self::Blocks(8)
            }
            CKM_AES_CBC_PAD | CKM_CAMELLIA_CBC_PAD | CKM_ARIA_CBC_PAD | CKM_SEED_CBC_PAD
            | CKM_TWOFISH_CBC_PAD => Self::Padded(16),
            CKM_DES_CBC_PAD | CKM_DES3_CBC_PAD | CKM_BLOWFISH_CBC_PAD => Self::Padded(8),
            CKM_AES_CTR | CKM_AES_OFB | CKM_AES_CFB8 | CKM_AES_CFB64 | CKM_AES_CFB128 | CKM_RC4
            | CKM_CHACHA20 => Self::Stream,
            CKM_AES_CTS | CKM_AES_XTS => Self::Whole,
            CKM_AES_KEY_WRAP | CKM_AES_KEY_WRAP_KWP => Self::Wrapped(0),
            CKM_AES_KEY_WRAP_PKCS7 => Self::Wrapped(1),
            CKM_AES_KEY_WRAP_PAD => Self::Asked,
            CKM_RSA_AES_KEY_WRAP
            | CKM_ECDH_AES_KEY_WRAP
            | CKM_ECDH_COF_AES_KEY_WRAP
            | CKM_ECDH_X_AES_KEY_WRAP => Self::Carried,
            CKM_AES_GCM | CKM_AES_CCM | CKM_CHACHA20_POLY1305 => Self::Tagged,
            CKM_RSA_PKCS | CKM_RSA_PKCS_OAEP | CKM_RSA_X_509 => Self::Rsa,
            _ => Self::Unknown,
        }
    }
}
