// SPDX-License-Identifier: Apache-2.0
//! Agreement with other public keys, by private keys of a token.
//!
//! What is agreed on becomes a session key, and those are ours: the module makes it readable, it is read
//! and destroyed there at once.

use crate::mechanism::{Mechanism, field};
use crate::value::wipe;
use metaslot_ck::*;
use metaslot_client::{self as client, Result as Called, Session, Template};
use metaslot_memory::Secret;
use metaslot_spi::agreement::Agreement;
use metaslot_spi::provider::{Derive, Keys};
use metaslot_spi::{Key, Params};

impl Derive for Mechanism {
    fn check(&self, _: &Key, params: &Params) -> Result<()> {
        Agreement::read(params).map(drop)
    }

    fn natural_length(&self, key: &Key, params: &Params) -> Option<usize> {
        let plain = Agreement::read(params).is_ok_and(Agreement::is_plain);
        key.attributes().bytes(CKA_EC_PARAMS).filter(|_| plain).and_then(field)
    }

    fn derive(
        &self,
        key: &Key,
        params: &Params,
        lengths: &[usize],
        _: &dyn Keys,
    ) -> Result<Vec<Secret>> {
        let agreement = Agreement::read(params)?;
        if !agreement.is_plain() {
            let &[length] = lengths else { return Err(Error::KEY_SIZE_RANGE) };
            return self.agreed(key, params, Some(length)).map(|secret| vec![secret]);
        }
        // Modules do not agree on which end of the secret they cut.
        let whole = || self.agreed(key, params, self.natural_length(key, params));
        agreement.derive(lengths, whole, |_, _, _, _| Err(Error::MECHANISM_PARAM_INVALID))
    }
}

impl Mechanism {
    fn agreed(&self, key: &Key, params: &Params, length: Option<usize>) -> Result<Secret> {
        let Params::Ecdh1 { kdf, shared, public } = params else {
            return Err(Error::MECHANISM_PARAM_INVALID);
        };
        let params = client::Params::Ecdh1 { kdf: *kdf, shared, public };
        let mechanism = client::Mechanism::with(self.number, params);
        let length = length.ok_or(Error::KEY_TYPE_INCONSISTENT)?;
        let template = Template::new()
            .class(CKO_SECRET_KEY)
            .key_type(CKK_GENERIC_SECRET)
            .token(false)
            .bool(CKA_SENSITIVE, false)
            .bool(CKA_EXTRACTABLE, true)
            .ulong(CKA_VALUE_LEN, length as u64);
        let row = Self::row(key)?;
        let derive = |session: &Session| -> Called<Vec<u8>> {
            let base = self.token.handle(session, row)?;
            let secret = session.derive(&mechanism, base, &template)?;
            let mut value = session.attribute(secret, CKA_VALUE);
            if let Err(failure) = session.destroy(secret) {
                value.iter_mut().for_each(|value| wipe(value));
                return Err(failure);
            }
            value
        };
        let mut value = self.token.with(derive)?;
        let secret = Secret::try_copy_of(&value).ok_or(Error::DEVICE_MEMORY);
        wipe(&mut value);
        let secret = secret?;
        match secret.len() == length {
            true => Ok(secret),
            false => Err(self.token.lied("a secret of another length than it must have")),
        }
    }
}
