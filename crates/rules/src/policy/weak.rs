// SPDX-License-Identifier: Apache-2.0
//! Cryptography that is broken, or nearly: sizes, curves, exponents, tags, ciphers.

use super::{Policy, Refusal};
use crate::facts::{Facts, MIN_EXPONENT, bits, weak_curve, weak_group};
use metaslot_ck::mechanism::{MechanismRow, OLD_CIPHERS, approved};
use metaslot_ck::*;
use metaslot_spi::provider::Direction;
use metaslot_spi::{Attributes, Params, Secrets};

/// No tag of GCM below this, in bytes: a forgery of a short one gives its hash key (SP 800-38D §5.2.1.2).
const MIN_GCM_TAG: u64 = 12;
/// No other tag and no truncated MAC below this, in bytes (SP 800-38B App. A, SP 800-38C App. B).
const MIN_TAG: u64 = 8;
/// No generated, derived, unwrapped or wrapped secret key below this (112 bits), in bytes.
pub(super) const MIN_KEY: usize = 14;
/// No RSA key below this is made or signs, in bits.
const MIN_RSA: u64 = 2048;
/// Nothing below this wraps a key, in bits of security.
const MIN_STRENGTH: u64 = 112;
impl Policy {
    /// May a key have this size, curve and exponent? `new`: it is generated or derived, or it comes
    /// out of a wrap under a key that is not readable.
    pub fn making(self, attributes: &Attributes, new: bool) -> Result<()> {
        let weak = weak_curve(attributes);
        self.refuse(Refusal::WeakCurves, new && weak, Error::ATTRIBUTE_VALUE_INVALID)?;
        let weak = weak_group(attributes, MIN_EXPONENT);
        self.refuse(Refusal::WeakGroups, new && weak, Error::ATTRIBUTE_VALUE_INVALID)?;
        let parameters = attributes.ulong(CKA_CLASS) == Some(CKO_DOMAIN_PARAMETERS);
        let group = matches!(attributes.ulong(CKA_KEY_TYPE), Some(CKK_DH | CKK_X9_42_DH));
        self.refuse(Refusal::WeakGroups, new && parameters && group, Error::MECHANISM_INVALID)?;
        let old = new && attributes.ulong(CKA_KEY_TYPE) == Some(CKK_DSA);
        self.refuse(Refusal::Dsa, old, Error::MECHANISM_INVALID)?;
        let weak = attributes.ulong(CKA_KEY_TYPE).is_some_and(weak_cipher);
        self.refuse(Refusal::WeakCiphers, new && weak, Error::MECHANISM_INVALID)?;
        if attributes.ulong(CKA_KEY_TYPE) != Some(CKK_RSA) {
            return Ok(());
        }
        let bits = attributes.ulong(CKA_MODULUS_BITS).or_else(|| modulus_bits(attributes));
        let small = new && bits.is_some_and(|bits| bits < MIN_RSA);
        self.refuse(Refusal::WeakRsa, small, Error::ATTRIBUTE_VALUE_INVALID)?;
        let weak = attributes.bytes(CKA_PUBLIC_EXPONENT).is_some_and(|e| weak_exponent(e, new));
        self.refuse(Refusal::WeakExponents, weak, Error::ATTRIBUTE_VALUE_INVALID)
    }

    /// May a DES key from outside have these bytes (PKCS#11 3.2 §6.18.2, §6.18.3)? All of them
    /// are looked at, whatever they are.
    pub fn parity(self, attributes: &Attributes, secrets: &Secrets) -> Result<()> {
        let des = matches!(attributes.ulong(CKA_KEY_TYPE), Some(CKK_DES | CKK_DES2 | CKK_DES3));
        let Some(value) = secrets.get(CKA_VALUE).filter(|_| des) else { return Ok(()) };
        let odd = value.iter().fold(1, |all, byte| all & byte.count_ones()) & 1 == 1;
        self.refuse(Refusal::DesParity, !odd, Error::ATTRIBUTE_VALUE_INVALID)
    }

    /// May this mechanism with these parameters and this key sign, or encrypt?
    pub fn using_mechanism(
        self,
        mechanism: CK_MECHANISM_TYPE,
        params: &Params,
        key: &Facts,
        direction: Direction,
        signing: bool,
    ) -> Result<()> {
        let forward = direction == Direction::Forward;
        let signs = signing && forward;
        self.approving_params(params, signs)?;
        let md5 = signs && (signs_weakly(mechanism) || params.function() == Some(CKM_MD5));
        self.refuse(Refusal::Md5Signatures, md5, Error::MECHANISM_INVALID)?;
        self.refuse(Refusal::Dsa, signs && key.key_type == CKK_DSA, Error::MECHANISM_INVALID)?;
        // Two MACs by one key of Poly1305 give the key away.
        let told = signs && mechanism == CKM_POLY1305 && !key.readable;
        let old = forward && seals_weakly(mechanism) || told;
        self.refuse(Refusal::WeakCiphers, old, Error::MECHANISM_INVALID)?;
        let small = signing && forward && (1..MIN_RSA).contains(&key.modulus_bits);
        self.refuse(Refusal::WeakRsa, small, Error::KEY_SIZE_RANGE)?;
        let weak = signing && forward && key.weak_curve;
        self.refuse(Refusal::WeakCurves, weak, Error::KEY_SIZE_RANGE)?;
        let short = match params {
            Params::Gcm { tag_bits, .. } => tag_bits / 8 < MIN_GCM_TAG,
            Params::Ccm { mac_length, .. } => *mac_length < MIN_TAG,
            Params::Ulong(length) | Params::Tuned { mac: length @ 1.., .. } => {
                signing && *length < MIN_TAG
            }
            _ => false,
        };
        self.refuse(Refusal::ShortTags, short, Error::MECHANISM_PARAM_INVALID)
    }

    /// May a public key be sent a new secret?
    pub(super) fn sealing(self, key: &Facts) -> Result<()> {
        let small = (1..MIN_RSA).contains(&key.modulus_bits);
        self.refuse(Refusal::WeakRsa, small, Error::KEY_SIZE_RANGE)?;
        self.refuse(Refusal::WeakCurves, key.weak_curve, Error::KEY_SIZE_RANGE)
    }

    /// `CKF_…` of the operations that a mechanism may be used for.
    pub fn approved(self, mechanism: CK_MECHANISM_TYPE) -> CK_FLAGS {
        if self.refuses(Refusal::NotApproved) { approved(mechanism) } else { CK_FLAGS::MAX }
    }

    /// May a mechanism be used so (`CKF_…`), with a key of this type? Whether what may is approved, not only let pass.
    pub fn approving(
        self,
        mechanism: CK_MECHANISM_TYPE,
        operation: CK_FLAGS,
        key: Option<CK_KEY_TYPE>,
    ) -> Result<bool> {
        self.refuse(Refusal::OldTls, of_old_tls(mechanism), Error::MECHANISM_INVALID)?;
        let found = self.approved(mechanism) & operation == 0 || key == Some(CKK_EC_MONTGOMERY);
        self.refuse(Refusal::NotApproved, found, Error::MECHANISM_INVALID)?;
        Ok(self.refuses(Refusal::NotApproved))
    }

    /// May parameters name this function, to sign or for something else?
    pub fn approving_params(self, params: &Params, signs: bool) -> Result<()> {
        let hash = params.function().unwrap_or(CKM_SHA256);
        self.refuse(Refusal::OldTls, of_old_tls(hash), Error::MECHANISM_PARAM_INVALID)?;
        // RFC 8247 §2.2; HKDF names the hash function of its HMAC.
        let hkdf = matches!(params, Params::Hkdf { prf: CKM_MD5, .. });
        let md5 = hkdf || hash == CKM_MD5_HMAC;
        self.refuse(Refusal::Md5Signatures, md5, Error::MECHANISM_PARAM_INVALID)?;
        // SP 800-135 §4.1: the functions of IKE are HMACs.
        let other = matches!(params, Params::Ike { prf: CKM_AES_CMAC, .. });
        let old = self.approved(hash) == 0 || (signs && hash == CKM_SHA_1) || other;
        self.refuse(Refusal::NotApproved, old, Error::MECHANISM_PARAM_INVALID)
    }

    /// May a secret key that is generated here be so short? One that can be read is not guessed.
    pub fn generated(self, key: &Attributes, length: usize) -> Result<()> {
        let readable = !key.bool(CKA_SENSITIVE) && key.bool(CKA_EXTRACTABLE);
        let parameters = key.ulong(CKA_CLASS) == Some(CKO_DOMAIN_PARAMETERS);
        if readable || parameters {
            Ok(())
        } else {
            self.long_enough(length, Error::KEY_SIZE_RANGE)
        }
    }

    /// May a secret key of this length come out of a derivation, or go through a wrap?
    pub fn long_enough(self, length: usize, error: Error) -> Result<()> {
        self.refuse(Refusal::ShortKeys, length < MIN_KEY, error)
    }

    /// May `wrapping` wrap a key of this strength? A public key is strong enough from 112 bits on,
    /// because RSA-2048 is what keys are brought to other tokens by; a secret one is never shorter
    /// than what it wraps.
    pub(super) fn strong_enough(
        self,
        wrapping: &Attributes,
        key: &Attributes,
        length: usize,
    ) -> Result<()> {
        let by = strength(wrapping, 0);
        let public = wrapping.ulong(CKA_CLASS) == Some(CKO_PUBLIC_KEY);
        let weak = if public { by < MIN_STRENGTH } else { by < strength(key, length) };
        self.refuse(Refusal::WeakWrappingKeys, weak, Error::WRAPPING_KEY_SIZE_RANGE)
    }
}

/// Triple DES, whose blocks repeat after some gigabytes (SP 800-131A rev. 2), RC4, whose key stream shows (RFC 7465), and
/// [`OLD_CIPHERS`]: no key is made for them, and nothing new is sealed with them, nor with CBC-MAC, whose MACs of messages of two lengths make others
/// (ISO/IEC 9797-1), nor with MD2, RIPEMD-128 and RIPEMD-160.
fn weak_cipher(key_type: CK_KEY_TYPE) -> bool {
    matches!(key_type, CKK_RC4 | CKK_DES2 | CKK_DES3) || OLD_CIPHERS.contains(&key_type)
}

/// What makes keys of TLS before 1.2, or computes by its function. A secret for RSA is random in any version.
const fn of_old_tls(mechanism: CK_MECHANISM_TYPE) -> bool {
    matches!(
        mechanism,
        (CKM_SSL3_MASTER_KEY_DERIVE..=CKM_SSL3_MASTER_KEY_DERIVE_DH)
            | (CKM_TLS_MASTER_KEY_DERIVE..=CKM_TLS_PRF)
            | CKM_SSL3_MD5_MAC
            | CKM_SSL3_SHA1_MAC
            | CKM_TLS10_MAC_SERVER
            | CKM_TLS10_MAC_CLIENT
    )
}

/// Over digests for which others can be found, or that are too short.
const fn signs_weakly(mechanism: CK_MECHANISM_TYPE) -> bool {
    matches!(
        mechanism,
        CKM_MD2_RSA_PKCS | CKM_MD5_RSA_PKCS | CKM_RIPEMD128_RSA_PKCS | CKM_RIPEMD160_RSA_PKCS
    )
}

pub(super) fn seals_weakly(mechanism: CK_MECHANISM_TYPE) -> bool {
    let other = matches!(
        mechanism,
        CKM_AES_MAC
            | CKM_RSA_X9_31
            | CKM_SHA1_RSA_X9_31
            | CKM_AES_MAC_GENERAL
            | CKM_MD2_HMAC
            | CKM_MD2_HMAC_GENERAL
            | CKM_RIPEMD128_HMAC
            | CKM_RIPEMD128_HMAC_GENERAL
            | CKM_RIPEMD160_HMAC
            | CKM_RIPEMD160_HMAC_GENERAL
    );
    let row = MechanismRow::find(mechanism).and_then(|row| row.keys.first());
    other || row.is_some_and(|key_type| weak_cipher(*key_type))
}

/// 1 and even exponents make no RSA. Below 65537 no key is made; keys with 3 exist, and sign.
fn weak_exponent(exponent: &[u8], new: bool) -> bool {
    let small = match *exponent {
        [] | [0 | 1] => true,
        [_] | [_, _] => new,
        _ => false,
    };
    small || exponent.last().is_some_and(|byte| byte & 1 == 0)
}

fn modulus_bits(attributes: &Attributes) -> Option<u64> {
    attributes.bytes(CKA_MODULUS).or_else(|| attributes.bytes(CKA_PRIME)).map(bits)
}

/// Security strength in bits (SP 800-57 part 1, table 2); `length` is that of a secret key.
fn strength(key: &Attributes, length: usize) -> u64 {
    match key.ulong(CKA_KEY_TYPE) {
        Some(CKK_RSA | CKK_DSA | CKK_DH | CKK_X9_42_DH) => match modulus_bits(key).unwrap_or(0) {
            0..2048 => 80,
            2048..3072 => 112,
            3072..7680 => 128,
            7680..15360 => 192,
            _ => 256,
        },
        Some(CKK_EC) => match key.bytes(CKA_EC_PARAMS).unwrap_or_default() {
            [.., 0x81, 0x04, 0x00, 1 | 2 | 15] => 80,
            [.., 0x81, 0x04, 0x00, 0x21 | 26 | 27] => 112,
            [.., 0x81, 0x04, 0x00, 0x22 | 36 | 37] => 192,
            [.., 0x81, 0x04, 0x00, 0x23 | 38 | 39] => 256,
            _ => 128,
        },
        Some(CKK_EC_EDWARDS | CKK_EC_MONTGOMERY) => 128,
        // FIPS 204, table 1: categories 2, 3 and 5.
        Some(CKK_ML_DSA) => match key.ulong(CKA_PARAMETER_SET) {
            Some(CKP_ML_DSA_44) => 128,
            Some(CKP_ML_DSA_65) => 192,
            _ => 256,
        },
        // FIPS 203, table 2: categories 1, 3 and 5.
        Some(CKK_ML_KEM) => match key.ulong(CKA_PARAMETER_SET) {
            Some(CKP_ML_KEM_512) => 128,
            Some(CKP_ML_KEM_768) => 192,
            _ => 256,
        },
        // FIPS 205, table 2: 1 to 4 are of category 1, 5 to 8 of 3, 9 to 12 of 5.
        Some(CKK_SLH_DSA) => match key.ulong(CKA_PARAMETER_SET) {
            Some(..=CKP_SLH_DSA_SHAKE_128F) => 128,
            Some(..=CKP_SLH_DSA_SHAKE_192F) => 192,
            _ => 256,
        },
        // SP 800-208 §4: as long as their hashes, which the public half alone names by one number.
        Some(CKK_HSS | CKK_XMSS | CKK_XMSSMT) => 192,
        Some(CKK_DES) => 56,
        Some(CKK_DES2 | CKK_RC4) => 80,
        Some(CKK_DES3) => 112,
        Some(CKK_AES_XTS) => key.ulong(CKA_VALUE_LEN).unwrap_or(length as u64) * 4,
        // A secret of any kind and length is worth at most what AES-256 protects.
        _ => (key.ulong(CKA_VALUE_LEN).unwrap_or(length as u64) * 8).min(256),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_spi::Value;

    #[test]
    fn ciphers_of_old_open_and_make_nothing_new() {
        let mut seen = 0;
        for row in MechanismRow::all().iter().filter(|row| row.is_old_cipher()) {
            let mut attributes = Attributes::new();
            attributes.set(CKA_KEY_TYPE, Value::Ulong(row.keys[0]));
            let facts = Facts::new(&attributes, true);
            let may = |policy: Policy, direction| {
                policy.using_mechanism(row.number, &Params::None, &facts, direction, false)
            };
            let refused = Err(Error::MECHANISM_INVALID);
            assert_eq!(may(Policy::DEFAULT, Direction::Forward), refused);
            assert_eq!(may(Policy::DEFAULT, Direction::Backward), Ok(()));
            assert_eq!(may(Policy::legacy(), Direction::Forward), Ok(()));
            assert_eq!(Policy::DEFAULT.making(&attributes, true), refused);
            assert_eq!(Policy::DEFAULT.making(&attributes, false), Ok(()));
            assert_eq!(Policy::FIPS.approved(row.number), 0);
            seen += 1;
        }
        assert!(seen > 60, "{seen}");
    }

    #[test]
    fn keys_of_hkdf_are_made_by_no_md5() {
        for (prf, default) in [(CKM_SHA256, true), (CKM_SHA_1, true), (CKM_MD5, false)] {
            let (extract, expand, salt_type) = (true, true, CKF_HKDF_SALT_NULL);
            let (salt, salt_key, info) = Default::default();
            let params = Params::Hkdf { extract, expand, prf, salt_type, salt, salt_key, info };
            let may = |policy: Policy| policy.approving_params(&params, false).is_ok();
            assert!(may(Policy::legacy()));
            assert_eq!((may(Policy::DEFAULT), may(Policy::FIPS)), (default, default), "{prf:#x}");
        }
    }

    #[test]
    fn keys_are_made_by_digests_and_ciphers_that_are_not_broken() {
        let (secret, generic) = [CKO_SECRET_KEY, CKK_GENERIC_SECRET].map(Value::Ulong).into();
        let yes = Value::Bool(true);
        let readable = [
            (CKA_CLASS, secret),
            (CKA_KEY_TYPE, generic),
            (CKA_DERIVE, yes.clone()),
            (CKA_EXTRACTABLE, yes),
        ];
        let facts = Facts::new(&readable.into_iter().collect(), true);
        for (mechanism, default) in [
            (CKM_SHA256_KEY_DERIVATION, Ok(())),
            (CKM_SHA1_KEY_DERIVATION, Ok(())),
            (CKM_MD5_KEY_DERIVATION, Err(Error::MECHANISM_INVALID)),
            (CKM_MD2_KEY_DERIVATION, Err(Error::MECHANISM_INVALID)),
            (CKM_AES_ECB_ENCRYPT_DATA, Ok(())),
            (CKM_DES_ECB_ENCRYPT_DATA, Err(Error::MECHANISM_INVALID)),
            (CKM_DES3_CBC_ENCRYPT_DATA, Err(Error::MECHANISM_INVALID)),
            (CKM_CAMELLIA_ECB_ENCRYPT_DATA, Err(Error::MECHANISM_INVALID)),
        ] {
            assert_eq!(Policy::legacy().deriving(mechanism, &facts), Ok(()));
            assert_eq!(Policy::DEFAULT.deriving(mechanism, &facts), default, "{mechanism:#x}");
        }
    }

    /// RFC 6151 §2.3; that no key is made by it is held by the two tests beside this one.
    #[test]
    fn hmac_md5_makes_macs_and_hmacs_that_nothing_asks_for_do_not() {
        let generic = [(CKA_KEY_TYPE, Value::Ulong(CKK_GENERIC_SECRET))];
        let facts = Facts::new(&generic.into_iter().collect(), true);
        let may = |mechanism, direction| {
            let (policy, none) = (Policy::DEFAULT, Params::None);
            policy.using_mechanism(mechanism, &none, &facts, direction, true).is_ok()
        };
        for (mechanism, signs) in [
            (CKM_MD5_HMAC, true),
            (CKM_MD5_HMAC_GENERAL, true),
            (CKM_SHA_1_HMAC, true),
            (CKM_MD2_HMAC, false),
            (CKM_RIPEMD160_HMAC, false),
        ] {
            assert_eq!(may(mechanism, Direction::Forward), signs, "{mechanism:#x}");
            assert!(may(mechanism, Direction::Backward), "{mechanism:#x}");
        }
    }

    #[test]
    fn keys_of_ike_are_made_by_hmacs_and_by_aes() {
        for (prf, default, fips) in [
            (CKM_SHA256_HMAC, true, true),
            (CKM_AES_CMAC, true, false),
            (CKM_AES_XCBC_MAC, true, false),
            (CKM_MD5_HMAC, false, false),
        ] {
            let (data, before) = Default::default();
            let params = Params::Ike { prf, data, data_as_key: false, before };
            let may = |policy: Policy| policy.approving_params(&params, false).is_ok();
            assert!(may(Policy::legacy()));
            assert_eq!((may(Policy::DEFAULT), may(Policy::FIPS)), (default, fips), "{prf:#x}");
        }
    }
}
