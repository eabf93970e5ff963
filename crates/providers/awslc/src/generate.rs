// SPDX-License-Identifier: Apache-2.0
//! `C_GenerateKey` for keys that are random bytes (PKCS#11 3.2 §6.8, §6.10, §6.15, §6.18, §6.20, §6.58, §6.60, §6.62; RC4 by
//! PKCS#11 Historical Mechanisms 3.0 §2.4). Parity, which makes a DES key of them, is the engine's.

use crate::failure::device_error;
use crate::rc4;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::lengths::Lengths;
use metaslot_spi::provider::{Algorithm, Generate};
use metaslot_spi::{Attributes, NewObject, Params, Value};

/// One row per key type.
pub(crate) const ROWS: [Algorithm; 20] = [
    row(
        CKM_GENERIC_SECRET_KEY_GEN,
        (8, 8 * LONGEST),
        &RandomBytes { lengths: Lengths::Between(1, LONGEST) },
    ),
    row(CKM_AES_KEY_GEN, (16, 32), &RandomBytes { lengths: Lengths::Of(&[16, 24, 32]) }),
    row(CKM_AES_XTS_KEY_GEN, (32, 64), &RandomBytes { lengths: Lengths::Of(&[32, 64]) }),
    row(CKM_CHACHA20_KEY_GEN, (32, 32), &KEY_OF_32),
    row(CKM_POLY1305_KEY_GEN, (32, 32), &KEY_OF_32),
    row(
        CKM_RC4_KEY_GEN,
        rc4::SIZES,
        &RandomBytes { lengths: Lengths::Between(1, rc4::SIZES.1 / 8) },
    ),
    row(CKM_DES2_KEY_GEN, (16, 16), &RandomBytes { lengths: Lengths::Always(16) }),
    row(CKM_DES3_KEY_GEN, (24, 24), &RandomBytes { lengths: Lengths::Always(24) }),
    row(CKM_HKDF_KEY_GEN, (1, LONGEST), &RandomBytes { lengths: Lengths::Between(1, LONGEST) }),
    mac(CKM_SHA_1_KEY_GEN),
    mac(CKM_SHA224_KEY_GEN),
    mac(CKM_SHA256_KEY_GEN),
    mac(CKM_SHA384_KEY_GEN),
    mac(CKM_SHA512_KEY_GEN),
    mac(CKM_SHA512_224_KEY_GEN),
    mac(CKM_SHA512_256_KEY_GEN),
    mac(CKM_SHA3_224_KEY_GEN),
    mac(CKM_SHA3_256_KEY_GEN),
    mac(CKM_SHA3_384_KEY_GEN),
    mac(CKM_SHA3_512_KEY_GEN),
];

/// A key of one HMAC alone, of any length.
pub(crate) const fn mac(mechanism: CK_MECHANISM_TYPE) -> Algorithm {
    row(mechanism, (1, LONGEST), &RandomBytes { lengths: Lengths::Between(1, LONGEST) })
}

/// A key of ChaCha20 or Poly1305.
const KEY_OF_32: RandomBytes = RandomBytes { lengths: Lengths::Always(32) };

/// The longest generic secret, in bytes.
pub(crate) const LONGEST: u64 = 8192;

const fn row(
    mechanism: CK_MECHANISM_TYPE,
    key_sizes: (u64, u64),
    generate: &'static RandomBytes,
) -> Algorithm {
    Algorithm { mechanism, key_sizes, generate: Some(generate), ..Algorithm::NONE }
}

/// Fills `out` with random bytes fit for keys.
pub(crate) fn random(out: &mut [u8]) -> Result<()> {
    metaslot_awslc_wrapper::random::fill(out).map_err(device_error)
}

#[derive(Debug)]
struct RandomBytes {
    lengths: Lengths,
}

impl Generate for RandomBytes {
    fn generate(&self, params: &Params, template: &Attributes) -> Result<NewObject> {
        let Params::None = params else { return Err(Error::MECHANISM_PARAM_INVALID) };
        let length = self.lengths.choose(template.ulong(CKA_VALUE_LEN))?;
        let mut value = Secret::zeroed(usize::try_from(length).map_err(|_| Error::KEY_SIZE_RANGE)?);
        random(value.expose_mut())?;
        Ok(secret_key(value))
    }
}

/// A secret key of this value.
pub(crate) fn secret_key(value: Secret) -> NewObject {
    let mut made = NewObject::default();
    made.attributes.set(CKA_VALUE_LEN, Value::Ulong(value.len() as u64));
    made.secrets.set(CKA_VALUE, value);
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generate(mechanism: CK_MECHANISM_TYPE, length: Option<u64>) -> Result<NewObject> {
        let row = ROWS.iter().find(|row| row.mechanism == mechanism).unwrap();
        let mut template = Attributes::new();
        if let Some(length) = length {
            template.set(CKA_VALUE_LEN, Value::Ulong(length));
        }
        row.generate.unwrap().generate(&Params::None, &template)
    }

    #[test]
    fn keys_have_the_length_of_the_template_and_differ() {
        for (mechanism, length) in [
            (CKM_AES_KEY_GEN, 24),
            (CKM_AES_XTS_KEY_GEN, 64),
            (CKM_GENERIC_SECRET_KEY_GEN, 1000),
            (CKM_HKDF_KEY_GEN, 40),
            (CKM_RC4_KEY_GEN, 16),
            (CKM_DES2_KEY_GEN, 16),
            (CKM_DES3_KEY_GEN, 24),
        ] {
            let one = generate(mechanism, Some(length)).unwrap();
            let two = generate(mechanism, Some(length)).unwrap();
            assert_eq!(one.attributes.ulong(CKA_VALUE_LEN), Some(length));
            assert_eq!(one.secrets.get(CKA_VALUE).unwrap().len() as u64, length);
            assert_ne!(one.secrets.get(CKA_VALUE), two.secrets.get(CKA_VALUE));
        }
    }

    #[test]
    fn lengths_that_a_key_type_has_not_are_refused() {
        assert_eq!(generate(CKM_AES_KEY_GEN, Some(17)).err(), Some(Error::KEY_SIZE_RANGE));
        assert_eq!(generate(CKM_AES_KEY_GEN, None).err(), Some(Error::TEMPLATE_INCOMPLETE));
        assert_eq!(
            generate(CKM_GENERIC_SECRET_KEY_GEN, Some(0)).err(),
            Some(Error::KEY_SIZE_RANGE)
        );
        assert_eq!(
            generate(CKM_GENERIC_SECRET_KEY_GEN, Some(u64::MAX)).err(),
            Some(Error::KEY_SIZE_RANGE)
        );
        assert_eq!(generate(CKM_RC4_KEY_GEN, Some(257)).err(), Some(Error::KEY_SIZE_RANGE));
        assert!(generate(CKM_DES3_KEY_GEN, None).is_ok(), "one length only");
        assert!(generate(CKM_CHACHA20_KEY_GEN, None).is_ok(), "one length only");
        assert!(generate(CKM_POLY1305_KEY_GEN, None).is_ok(), "one length only");
        assert_eq!(generate(CKM_CHACHA20_KEY_GEN, Some(16)).err(), Some(Error::KEY_SIZE_RANGE));
    }
}
