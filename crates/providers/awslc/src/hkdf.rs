// SPDX-License-Identifier: Apache-2.0
//! HKDF (PKCS#11 3.2 §6.62): both steps or one of them.

use crate::digest;
use crate::failure::device_error;
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_awslc_wrapper::hkdf;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Derive, Keys};
use metaslot_spi::{Key, Params};

/// The derivation, of a key and of data.
pub(crate) const ROWS: [Algorithm; 2] = [row(CKM_HKDF_DERIVE), row(CKM_HKDF_DATA)];

const fn row(mechanism: CK_MECHANISM_TYPE) -> Algorithm {
    Algorithm { mechanism, key_sizes: (1, 8192), derive: Some(&Hkdf), ..Algorithm::NONE }
}

#[derive(Debug)]
struct Hkdf;

struct Fields<'a> {
    extract: bool,
    expand: bool,
    hash: Hash,
    salt: Salt<'a>,
    info: &'a [u8],
}

enum Salt<'a> {
    Data(&'a [u8]),
    Key(ObjectHandle),
}

fn fields(params: &Params) -> Result<Fields<'_>> {
    let Params::Hkdf { extract, expand, prf, salt_type, salt, salt_key, info } = params else {
        return Err(Error::MECHANISM_PARAM_INVALID);
    };
    let hash = digest::hash(*prf).ok_or(Error::MECHANISM_PARAM_INVALID)?;
    let salt = match *salt_type {
        CKF_HKDF_SALT_NULL => Salt::Data(&[]),
        CKF_HKDF_SALT_DATA => Salt::Data(salt),
        CKF_HKDF_SALT_KEY => Salt::Key(*salt_key),
        // Without the first step there is no salt.
        _ if !extract => Salt::Data(&[]),
        _ => return Err(Error::MECHANISM_PARAM_INVALID),
    };
    if !extract && !expand {
        return Err(Error::MECHANISM_PARAM_INVALID);
    }
    Ok(Fields { extract: *extract, expand: *expand, hash, salt, info })
}

fn extract(fields: &Fields<'_>, secret: &[u8], keys: &dyn Keys, out: &mut [u8]) -> Result<()> {
    match fields.salt {
        Salt::Data(salt) => hkdf::extract(fields.hash, secret, salt, out),
        Salt::Key(handle) => {
            let key = keys.key(handle)?;
            hkdf::extract(fields.hash, secret, key.secret(CKA_VALUE)?, out)
        }
    }
    .map_err(device_error)
}

impl Derive for Hkdf {
    fn check(&self, key: &Key, params: &Params) -> Result<()> {
        fields(params)?;
        key.secret(CKA_VALUE).map(|_| ())
    }

    fn natural_length(&self, _: &Key, params: &Params) -> Option<usize> {
        Some(fields(params).ok()?.hash.length())
    }

    fn derive(
        &self,
        key: &Key,
        params: &Params,
        lengths: &[usize],
        keys: &dyn Keys,
    ) -> Result<Vec<Secret>> {
        let fields = fields(params)?;
        let [length] = lengths else { return Err(Error::MECHANISM_PARAM_INVALID) };
        let secret = key.secret(CKA_VALUE)?;
        let hash = fields.hash.length();
        // RFC 5869 §2.3: at most 255 blocks. The first step alone gives one block.
        let most = if fields.expand { 255 * hash } else { hash };
        if *length == 0 || *length > most || (!fields.expand && *length != hash) {
            return Err(Error::KEY_SIZE_RANGE);
        }
        let mut out = Secret::zeroed(*length);
        if !fields.expand {
            extract(&fields, secret, keys, out.expose_mut())?;
        } else if fields.extract {
            let mut middle = Secret::zeroed(hash);
            extract(&fields, secret, keys, middle.expose_mut())?;
            hkdf::expand(fields.hash, middle.expose(), fields.info, out.expose_mut())
                .map_err(device_error)?;
        } else {
            hkdf::expand(fields.hash, secret, fields.info, out.expose_mut())
                .map_err(device_error)?;
        }
        Ok(vec![out])
    }
}
