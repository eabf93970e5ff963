// SPDX-License-Identifier: Apache-2.0
//! `CKM_PUB_KEY_FROM_PRIV_KEY`: the public half of a private key, made of what the private one shows.

use crate::engine::Engine;
use crate::session::SessionGuard;
use crate::token::Token;
use metaslot_ck::attribute;
use metaslot_ck::*;
use metaslot_rules::{self as rules, Birth, Origin, Purposes};
use metaslot_rules::{class_of, typed};
use metaslot_spi::field_key::public_value;
use metaslot_spi::{NewObject, Template, Value};

/// What both halves show; where it says nothing of the key itself, `CKA_PUBLIC_KEY_INFO` does.
const SHOWN: [CK_ATTRIBUTE_TYPE; 9] = [
    CKA_KEY_TYPE,
    CKA_PRIME,
    CKA_SUBPRIME,
    CKA_BASE,
    CKA_MODULUS,
    CKA_PUBLIC_EXPONENT,
    CKA_EC_PARAMS,
    CKA_EC_POINT,
    CKA_PARAMETER_SET,
];

impl Engine {
    /// The public half as a new object. Nothing secret comes out, so that the key need not be one for derivation.
    pub(super) fn public_of(
        &self,
        session: &mut SessionGuard<'_>,
        token: &Token,
        base: ObjectHandle,
        template: Template,
    ) -> Result<ObjectHandle> {
        let mechanism = CKM_PUB_KEY_FROM_PRIV_KEY;
        self.route(mechanism, |row| row.derive)?;
        let base = self.object_in(session, base).map_err(|_| Error::KEY_HANDLE_INVALID)?;
        if base.class() != CKO_PRIVATE_KEY {
            return Err(Error::KEY_TYPE_INCONSISTENT);
        }
        if !base.subject().allows(mechanism) {
            return Err(Error::MECHANISM_INVALID);
        }
        let approved =
            token.policy().approving(mechanism, CKF_DERIVE, Some(base.facts().key_type))?;
        let class = CKO_PUBLIC_KEY;
        if class_of(&template).is_some_and(|said| said != class) {
            return Err(Error::TEMPLATE_INCONSISTENT);
        }
        let typed = typed(template, Some(class))?;
        let login = token.login_state();
        rules::check(&typed, class, attribute::MAKE, login)?;
        let mut all = typed.attributes;
        all.set(CKA_CLASS, Value::Ulong(class));
        let mut made = NewObject::default();
        made.attributes.set(CKA_CLASS, Value::Ulong(class));
        for attribute in SHOWN {
            if let Some(value) = base.attributes().get(attribute) {
                made.attributes.set(attribute, value.clone());
            }
        }
        let by_value = [CKA_PARAMETER_SET, CKA_PRIME, CKA_HSS_LEVELS];
        if by_value.iter().any(|said| base.attributes().get(*said).is_some()) {
            let key_type = Some(base.facts().key_type);
            let info = base.attributes().bytes(CKA_PUBLIC_KEY_INFO);
            let info = info.and_then(|info| public_value(key_type, info));
            let value = info.ok_or(Error::KEY_TYPE_INCONSISTENT)?.to_vec();
            made.attributes.set(CKA_VALUE, Value::Bytes(value));
        }
        self.complete(&mut made)?;
        token.policy().making(&made.attributes, false)?;
        let purposes = Purposes::at_birth(&all, class);
        let origin = Origin::Derived { always_sensitive: false, never_extractable: false };
        let object = rules::complete(Birth::new(origin, purposes, login), class, all, made)?;
        let handles = self.add(session, vec![object])?;
        session.recent.completes(approved);
        Ok(handles[0])
    }
}
