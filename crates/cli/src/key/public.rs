// SPDX-License-Identifier: Apache-2.0
//! Public keys in the form that others read.

use super::{ED25519_OID, Family, Key, X25519_OID};
use crate::encoding::der;
use crate::failure::{Failure, Result};
use metaslot_ck::*;
use metaslot_client::Session;

/// `CKA_PUBLIC_KEY_INFO` where the module has it, else made from the key's numbers.
pub(crate) fn public_key(session: &Session, key: &Key, handle: ObjectHandle) -> Result<Vec<u8>> {
    if let Ok(info) = session.attribute(handle, CKA_PUBLIC_KEY_INFO)
        && !info.is_empty()
    {
        return Ok(info);
    }
    let attribute = |number| session.attribute(handle, number);
    let point =
        |length| -> Result<Vec<u8>> { Ok(der::point(&attribute(CKA_EC_POINT)?, length).to_vec()) };
    match key.kind.family {
        Family::Rsa => {
            let modulus = attribute(CKA_MODULUS)?;
            Ok(der::rsa_public_key(&modulus, &attribute(CKA_PUBLIC_EXPONENT)?))
        }
        Family::Ec => {
            let params = attribute(CKA_EC_PARAMS)?;
            Ok(der::ec_public_key(&params, &point(1 + 2 * key.kind.size)?))
        }
        Family::Ed25519 => Ok(der::edwards_public_key(ED25519_OID, &point(32)?)),
        Family::X25519 => Ok(der::edwards_public_key(X25519_OID, &point(32)?)),
        _ => Err(Failure::failed(format!("{} keys have no known public form", key.kind))),
    }
}
