// SPDX-License-Identifier: Apache-2.0
//! What keys of a token agree on with other public keys, and what is derived from them.
//!
//! What comes out becomes a session key, and those are ours: the module makes it readable, it is read
//! and destroyed there at once.

mod steps;

use crate::keyless::Hash;
use crate::mechanism::{Mechanism, field};
use crate::params;
use crate::value::wipe;
use metaslot_ck::*;
use metaslot_client::{Result as Called, Session, Template};
use metaslot_memory::Secret;
use metaslot_spi::agreement::Agreement;
use metaslot_spi::provider::{Derive, Keys};
use metaslot_spi::{Key, Params, Value, detail};

/// Derivations whose parameters can be told to a module, and which give one secret.
pub(crate) const fn derives(mechanism: CK_MECHANISM_TYPE) -> bool {
    agrees(mechanism)
        || steps::gives(mechanism)
        || matches!(
            mechanism,
            CKM_HKDF_DERIVE
                | CKM_SP800_108_COUNTER_KDF
                | CKM_SP800_108_FEEDBACK_KDF
                | CKM_SP800_108_DOUBLE_PIPELINE_KDF
        )
}

/// Those with a public key.
pub(crate) const fn agrees(mechanism: CK_MECHANISM_TYPE) -> bool {
    matches!(
        mechanism,
        CKM_ECDH1_DERIVE | CKM_ECDH1_COFACTOR_DERIVE | CKM_DH_PKCS_DERIVE | CKM_X9_42_DH_DERIVE
    )
}

impl Derive for Mechanism {
    fn check(&self, _: &Key, params: &Params) -> Result<()> {
        match agrees(self.number) {
            true => Agreement::in_group(params).map(drop),
            false if !steps::has_data(self.number, params) => Err(Error::MECHANISM_PARAM_INVALID),
            false => params::deriving(self.number, params, &[]).map(drop),
        }
    }

    fn natural_length(&self, key: &Key, params: &Params) -> Option<usize> {
        if let Params::Hkdf { expand: false, prf, .. } = params {
            return Hash::of(self.token, *prf).map(Hash::length);
        }
        if !agrees(self.number) {
            return steps::length(self.number, key, params);
        }
        let plain = Agreement::in_group(params).is_ok_and(Agreement::is_plain);
        plain.then(|| secret_length(key))?
    }

    fn derive(
        &self,
        key: &Key,
        params: &Params,
        lengths: &[usize],
        _: &dyn Keys,
    ) -> Result<Vec<Secret>> {
        let data = params::data(params);
        let mechanism = params::deriving(self.number, params, &data)?;
        let derived = |length| {
            let derive = |session: &Session, base, template: &Template| {
                session.derive(&mechanism, base, template)
            };
            self.taken_out((key, CKA_DERIVE_TEMPLATE), length, &derive)
        };
        let agreement = Agreement::in_group(params).ok().filter(|agreement| agreement.is_plain());
        let Some(agreement) = agreement else {
            let &[length] = lengths else {
                detail::set(format_args!("another module is asked for one key at a time"));
                return Err(Error::MECHANISM_PARAM_INVALID);
            };
            return derived(Some(length)).map(|secret| vec![secret]);
        };
        // Modules do not agree on which end of the secret they cut.
        let length = secret_length(key).ok_or(Error::KEY_TYPE_INCONSISTENT)?;
        let whole = || derived(Some(length));
        agreement.derive(lengths, whole, |_, _, _, _| Err(Error::MECHANISM_PARAM_INVALID))
    }
}

/// Bytes of what a private key agrees on: of its field, or its group.
fn secret_length(key: &Key) -> Option<usize> {
    let part = |attribute| key.attributes().bytes(attribute);
    part(CKA_EC_PARAMS).and_then(field).or_else(|| part(CKA_PRIME).map(<[u8]>::len))
}

/// Bytes of the public values that such a key agrees with: of uncompressed points, or numbers.
pub(crate) fn public_length(key: &Key) -> Result<usize> {
    let length = secret_length(key).ok_or(Error::KEY_TYPE_INCONSISTENT)?;
    Ok(if key.key_type() == CKK_EC { 1 + 2 * length } else { length })
}

/// Makes a session's secret key of another key.
pub(crate) type Make<'a> = &'a dyn Fn(&Session, ObjectHandle, &Template) -> Called<ObjectHandle>;

impl Mechanism {
    /// The value of a secret that is made by a key: of this length, or as long as it comes. By its template of this
    /// name the module imposes what it says on this secret, too: a type of key that it names has to be the secret's.
    pub(crate) fn taken_out(
        &self,
        (key, imposing): (&Key, CK_ATTRIBUTE_TYPE),
        length: Option<usize>,
        make: Make<'_>,
    ) -> Result<Secret> {
        let imposed = match key.attributes().get(imposing) {
            Some(Value::Template(imposed)) => imposed.ulong(CKA_KEY_TYPE),
            _ => None,
        };
        let kind = imposed.unwrap_or(CKK_GENERIC_SECRET);
        let mut template = secret_of(kind).bool(CKA_SENSITIVE, false).bool(CKA_EXTRACTABLE, true);
        if let Some(length) = length {
            template = template.ulong(CKA_VALUE_LEN, length as u64);
        }
        let row = Self::row(key)?;
        let mut value = self.token.with(|session| {
            let base = self.token.handle(session, row)?;
            let secret = make(session, base, &template)?;
            let mut value = session.attribute(secret, CKA_VALUE);
            if let Err(failure) = session.destroy(secret) {
                value.iter_mut().for_each(|value| wipe(value));
                return Err(failure);
            }
            value
        })?;
        let secret = Secret::try_copy_of(&value).ok_or(Error::DEVICE_MEMORY);
        wipe(&mut value);
        let secret = secret?;
        match length.is_none_or(|length| secret.len() == length) {
            true => Ok(secret),
            false => Err(self.token.lied("a secret of another length than it must have")),
        }
    }
}

/// A secret of a session, of no more than its bytes.
pub(crate) fn secret() -> Template {
    secret_of(CKK_GENERIC_SECRET)
}

pub(crate) fn secret_of(kind: u64) -> Template {
    Template::new().class(CKO_SECRET_KEY).key_type(kind).token(false)
}
