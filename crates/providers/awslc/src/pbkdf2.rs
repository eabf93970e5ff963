// SPDX-License-Identifier: Apache-2.0
//! PBKDF2 as a way to generate a key (PKCS#11 3.2 §6.37).

use crate::failure::device_error;
use crate::generate::{LONGEST, secret_key};
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_awslc_wrapper::pbkdf2;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Generate};
use metaslot_spi::{Attributes, NewObject, Params, detail};

/// One row.
pub(crate) const ROWS: [Algorithm; 1] = [Algorithm {
    mechanism: CKM_PKCS5_PBKD2,
    key_sizes: (1, LONGEST),
    generate: Some(&Pbkdf2),
    ..Algorithm::NONE
}];

#[derive(Debug)]
struct Pbkdf2;

/// So many iterations, which take a minute: a call that nothing can end must end by itself.
pub(crate) const MOST_WORK: u64 = 100_000_000;

const fn hash(prf: u64) -> Option<Hash> {
    Some(match prf {
        CKP_PKCS5_PBKD2_HMAC_SHA1 => Hash::Sha1,
        CKP_PKCS5_PBKD2_HMAC_SHA224 => Hash::Sha224,
        CKP_PKCS5_PBKD2_HMAC_SHA256 => Hash::Sha256,
        CKP_PKCS5_PBKD2_HMAC_SHA384 => Hash::Sha384,
        CKP_PKCS5_PBKD2_HMAC_SHA512 => Hash::Sha512,
        CKP_PKCS5_PBKD2_HMAC_SHA512_224 => Hash::Sha512_224,
        CKP_PKCS5_PBKD2_HMAC_SHA512_256 => Hash::Sha512_256,
        _ => return None,
    })
}

impl Generate for Pbkdf2 {
    fn generate(&self, params: &Params, template: &Attributes) -> Result<NewObject> {
        let Params::Pbkd2 { prf, salt, iterations, password } = params else {
            return Err(Error::MECHANISM_PARAM_INVALID);
        };
        let hash = hash(*prf).ok_or(Error::MECHANISM_PARAM_INVALID)?;
        let iterations = match u32::try_from(*iterations) {
            Ok(0) | Err(_) => return Err(Error::MECHANISM_PARAM_INVALID),
            Ok(iterations) => iterations,
        };
        let length = match template.ulong(CKA_VALUE_LEN) {
            None => return Err(Error::TEMPLATE_INCOMPLETE),
            Some(length @ 1..=LONGEST) => length,
            Some(_) => return Err(Error::KEY_SIZE_RANGE),
        };
        // Each block of the result takes all of them.
        if u64::from(iterations).saturating_mul(length.div_ceil(hash.length() as u64)) > MOST_WORK {
            detail::set(format_args!(
                "more than {MOST_WORK} iterations, over all blocks of the key"
            ));
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        let mut out = Secret::zeroed(usize::try_from(length).map_err(|_| Error::KEY_SIZE_RANGE)?);
        pbkdf2::derive(hash, password.expose(), salt, iterations, out.expose_mut())
            .map_err(device_error)?;
        Ok(secret_key(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_spi::Value;

    #[test]
    fn iterations_that_would_take_hours_are_refused() {
        let refused = |iterations, length| {
            let (prf, salt) = (CKP_PKCS5_PBKD2_HMAC_SHA256, vec![1; 16].into());
            let password = Secret::copy_of(b"password");
            let params = Params::Pbkd2 { prf, salt, iterations, password };
            let mut template = Attributes::default();
            template.set(CKA_VALUE_LEN, Value::Ulong(length));
            Pbkdf2.generate(&params, &template).err()
        };
        assert_eq!(refused(u64::from(u32::MAX), 32), Some(Error::MECHANISM_PARAM_INVALID));
        assert_eq!(refused(1_000_000, LONGEST), Some(Error::MECHANISM_PARAM_INVALID));
        assert_eq!(refused(1_000, 32), None);
    }
}
