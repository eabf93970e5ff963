// SPDX-License-Identifier: Apache-2.0
//! Encapsulation by agreement (PKCS#11 3.2 §6.3.17, §6.3.18, §6.4): a new pair agrees with the public key, and its public half is
//! the ciphertext; for every provider that makes pairs and agrees.

use crate::agreement::{Agreement, MAX_LENGTH};
use crate::key_info::{ec_point, number};
use crate::provider::{Derive, Direction, Encapsulation, GeneratePair, Keys};
use crate::{Attributes, Bytes, Key, Material, Params, Value};
use metaslot_ck::*;
use metaslot_memory::Secret;
use std::fmt;
use std::sync::Arc;

/// Agreement with a pair that lives for one ciphertext.
pub struct Ephemeral {
    /// Agrees; `CKR_MECHANISM_PARAM_INVALID` of a public value that is none.
    pub derive: &'static dyn Derive,
    /// Makes pairs of the type of a key.
    pub pairs: fn(&Key) -> &'static dyn GeneratePair,
    /// Length of public values of the curve or group of a key, in bytes.
    pub length: fn(&Key) -> Result<usize>,
}

impl fmt::Debug for Ephemeral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ephemeral").finish_non_exhaustive()
    }
}

/// What says the curve or the group of a key.
const DOMAIN: [CK_ATTRIBUTE_TYPE; 5] =
    [CKA_KEY_TYPE, CKA_EC_PARAMS, CKA_PRIME, CKA_BASE, CKA_SUBPRIME];

/// The public value, in the attributes of a public key.
fn value(key_type: CK_KEY_TYPE, length: usize, public: &Attributes) -> Result<&[u8]> {
    let said = |attribute| public.bytes(attribute).ok_or(Error::KEY_TYPE_INCONSISTENT);
    match key_type {
        CKK_EC => said(CKA_EC_POINT).map(|point| ec_point(field(length), point)),
        CKK_EC_MONTGOMERY => {
            number(length, said(CKA_EC_POINT)?).ok_or(Error::KEY_TYPE_INCONSISTENT)
        }
        _ => said(CKA_VALUE),
    }
}

/// Length of an element of the field, of that of an uncompressed point.
const fn field(point: usize) -> usize {
    point / 2
}

impl Ephemeral {
    /// A secret with the holder of a public value.
    fn agree(&self, key: &Key, params: &Params, length: usize, public: &[u8]) -> Result<Secret> {
        let Params::Ecdh1 { kdf, shared, .. } = params else {
            return Err(Error::MECHANISM_PARAM_INVALID);
        };
        let public = Bytes::from_slice(public);
        let params = Params::Ecdh1 { kdf: *kdf, shared: shared.clone(), public };
        let mut made = self.derive.derive(key, &params, &[length], &NoKeys)?;
        made.pop().ok_or(Error::DEVICE_ERROR)
    }
}

impl Encapsulation for Ephemeral {
    fn serves(&self, key: &Key) -> bool {
        self.derive.serves(key)
    }

    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        // The one public value is the key's, the other the ciphertext.
        if !Agreement::in_group(params)?.public.is_empty() {
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        match (direction, key.class()) {
            (Direction::Forward, CKO_PUBLIC_KEY) => (self.length)(key).map(drop),
            (Direction::Backward, CKO_PRIVATE_KEY) => self.derive.check(key, params),
            _ => Err(Error::KEY_TYPE_INCONSISTENT),
        }
    }

    fn ciphertext_length(&self, key: &Key, _: &Params) -> Result<usize> {
        (self.length)(key)
    }

    fn natural_length(&self, key: &Key, params: &Params) -> Option<usize> {
        let plain = Agreement::in_group(params).ok()?.is_plain();
        let length = (self.length)(key).ok().filter(|_| plain)?;
        Some(if key.key_type() == CKK_EC { field(length) } else { length })
    }

    fn gives(&self, key: &Key, params: &Params, length: usize) -> bool {
        (1..=self.natural_length(key, params).unwrap_or(MAX_LENGTH)).contains(&length)
    }

    fn encapsulate(
        &self,
        key: &Key,
        params: &Params,
        secret: &mut [u8],
        out: &mut [u8],
    ) -> Result<()> {
        let there = |number| Some((number, key.attributes().get(number)?.clone()));
        let domain: Attributes = DOMAIN.into_iter().filter_map(there).collect();
        let (public, mut own) = (self.pairs)(key).generate_pair(&Params::None, &domain)?;
        domain.iter().for_each(|(number, value)| own.attributes.set(number, value.clone()));
        own.attributes.set(CKA_CLASS, Value::Ulong(CKO_PRIVATE_KEY));
        let own = Key::new(Arc::new(own.attributes), Arc::new(Material::new(own.secrets)));
        let public = value(key.key_type(), out.len(), &public.attributes)?;
        // Numbers come without the zeros that they begin with.
        let zeros = out.len().checked_sub(public.len()).ok_or(Error::DEVICE_ERROR)?;
        let peer = value(key.key_type(), out.len(), key.attributes())?;
        let made = self.agree(&own, params, secret.len(), peer).map_err(|error| match error {
            // The parameter has been read: what is wrong is the key, of a small order say.
            Error::MECHANISM_PARAM_INVALID => Error::PUBLIC_KEY_INVALID,
            other => other,
        })?;
        out[..zeros].fill(0);
        out[zeros..].copy_from_slice(public);
        secret.copy_from_slice(made.expose());
        Ok(())
    }

    fn decapsulate(
        &self,
        key: &Key,
        params: &Params,
        length: Option<usize>,
        ciphertext: &[u8],
    ) -> Result<Secret> {
        let whole = (self.length)(key)?;
        let fits = match key.key_type() {
            CKK_EC => {
                let point = ec_point(field(whole), ciphertext).len();
                point == whole || point == 1 + field(whole)
            }
            CKK_EC_MONTGOMERY => number(whole, ciphertext).is_some(),
            _ => (1..=whole).contains(&ciphertext.len()),
        };
        if !fits {
            return Err(Error::WRAPPED_KEY_LEN_RANGE);
        }
        let length = length.or_else(|| self.natural_length(key, params));
        let length = length.ok_or(Error::TEMPLATE_INCOMPLETE)?;
        self.agree(key, params, length, ciphertext).map_err(|error| match error {
            Error::MECHANISM_PARAM_INVALID => Error::WRAPPED_KEY_INVALID,
            other => other,
        })
    }
}

/// An agreement names no other keys.
#[derive(Debug)]
pub struct NoKeys;

impl Keys for NoKeys {
    fn key(&self, _: ObjectHandle) -> Result<Arc<Key>> {
        Err(Error::KEY_HANDLE_INVALID)
    }
}
