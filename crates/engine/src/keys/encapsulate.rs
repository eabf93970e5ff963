// SPDX-License-Identifier: Apache-2.0
//! `C_EncapsulateKey` and `C_DecapsulateKey` (PKCS#11 3.2 §5.18.8, §5.18.9).

use crate::engine::Engine;
use crate::object::Object;
use crate::output::{Output, Written};
use crate::session::SessionGuard;
use crate::token::Token;
use metaslot_ck::attribute;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_router::Count;
use metaslot_rules::policy::purposes_of_agreed;
use metaslot_rules::{self as rules, Birth, Origin};
use metaslot_rules::{class_of, typed, with_imposed};
use metaslot_spi::provider::{Algorithm, Direction, Encapsulation};
use metaslot_spi::{Attributes, NewObject, Params, Template, Value};
use std::sync::Arc;

/// One of the two functions.
struct Way {
    direction: Direction,
    usage: CK_ATTRIBUTE_TYPE,
    /// What the key imposes on the secret.
    imposes: CK_ATTRIBUTE_TYPE,
    flag: CK_FLAGS,
    of: fn(&'static Algorithm) -> Option<&'static dyn Encapsulation>,
}

const ENCAPSULATE: Way = Way {
    direction: Direction::Forward,
    usage: CKA_ENCAPSULATE,
    imposes: CKA_ENCAPSULATE_TEMPLATE,
    flag: CKF_ENCAPSULATE,
    of: |row| row.encapsulate,
};
const DECAPSULATE: Way = Way {
    direction: Direction::Backward,
    usage: CKA_DECAPSULATE,
    imposes: CKA_DECAPSULATE_TEMPLATE,
    flag: CKF_DECAPSULATE,
    of: |row| row.decapsulate,
};

/// What is there before any cryptography is done.
struct Ready {
    by: Arc<Object>,
    template: Attributes,
    algorithm: &'static dyn Encapsulation,
    count: Count,
    approved: bool,
}

impl Engine {
    /// `C_EncapsulateKey`: the secret key, whose ciphertext is in `out`; none where the caller asks for the length only.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.18.8 names them.
    pub fn encapsulate_key(
        &self,
        session: SessionHandle,
        mechanism: CK_MECHANISM_TYPE,
        params: &Params,
        public: ObjectHandle,
        template: Template,
        out: &mut Output<'_>,
    ) -> Result<Option<ObjectHandle>> {
        let mut session = self.session(session)?;
        let token = self.token(session.slot)?;
        let mut ready =
            self.ready(&mut session, token, &ENCAPSULATE, (mechanism, params), public, template)?;
        let key = self.key(&ready.by)?;
        let length = ready.algorithm.ciphertext_length(key, params)?;
        let mut made = None;
        // What fails after the secret is there leaves no ciphertext behind.
        let written = out.exact(length, |room| {
            let mut ciphertext = vec![0; length];
            let watch = metaslot_counters::begin();
            let secret = ready.algorithm.encapsulate(key, params, &mut ciphertext);
            ready.count.done(length, secret.is_ok(), watch);
            let (by, template) = (&ready.by, std::mem::take(&mut ready.template));
            made = Some(self.agreed(&mut session, token, &ENCAPSULATE, by, template, secret?)?);
            room.copy_from_slice(&ciphertext);
            Ok(())
        })?;
        session.recent.keep(Some(ready.by));
        if made.is_some() {
            session.recent.completes(ready.approved);
        }
        Ok(if written == Written::Done { made } else { None })
    }

    /// `C_DecapsulateKey`: the secret key.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.18.9 names them.
    pub fn decapsulate_key(
        &self,
        session: SessionHandle,
        mechanism: CK_MECHANISM_TYPE,
        params: &Params,
        private: ObjectHandle,
        template: Template,
        ciphertext: &[u8],
    ) -> Result<ObjectHandle> {
        let mut session = self.session(session)?;
        let token = self.token(session.slot)?;
        let mut ready =
            self.ready(&mut session, token, &DECAPSULATE, (mechanism, params), private, template)?;
        let key = self.key(&ready.by)?;
        let watch = metaslot_counters::begin();
        let secret = ready.algorithm.decapsulate(key, params, ciphertext);
        ready.count.done(ciphertext.len(), secret.is_ok(), watch);
        let (by, template) = (&ready.by, std::mem::take(&mut ready.template));
        let made = self.agreed(&mut session, token, &DECAPSULATE, by, template, secret?)?;
        session.recent.keep(Some(ready.by));
        session.recent.completes(ready.approved);
        Ok(made)
    }

    /// The key, the template and the provider, checked.
    fn ready(
        &self,
        session: &mut SessionGuard<'_>,
        token: &Token,
        way: &Way,
        (mechanism, params): (CK_MECHANISM_TYPE, &Params),
        key: ObjectHandle,
        template: Template,
    ) -> Result<Ready> {
        let refused = |error| self.refused(mechanism, way.of, error);
        let by = self.key_for(session, key, way.usage, mechanism).map_err(refused)?;
        let policy = token.policy();
        let approved = policy.approving(mechanism, way.flag, Some(by.facts().key_type))?;
        policy.agreeing(by.facts())?;
        let mut template = secret_template(token, way, &by, template)?;
        policy.making(&template, true)?;
        let key = self.key(&by)?;
        let of = |row| (way.of)(row).filter(|row| row.serves(key));
        let (count, algorithm) = self
            .route_with(&by, mechanism, of)
            .map_err(|_| self.kept_here(&by).err().unwrap_or(Error::KEY_SIZE_RANGE))?;
        algorithm.check(way.direction, key, params)?;
        let length = algorithm.secret_length(key, params);
        policy.long_enough(length, Error::KEY_SIZE_RANGE)?;
        match template.remove(CKA_VALUE_LEN) {
            Some(said) if said != Value::Ulong(length as CK_ULONG) => {
                Err(Error::TEMPLATE_INCONSISTENT)
            }
            _ => Ok(Ready { by, template, algorithm, count, approved }),
        }
    }

    /// The key of a secret that was agreed on.
    fn agreed(
        &self,
        session: &mut SessionGuard<'_>,
        token: &Token,
        way: &Way,
        by: &Object,
        template: Attributes,
        secret: Secret,
    ) -> Result<ObjectHandle> {
        let object = self.secret_of(token, way, by, template, secret)?;
        self.add(session, vec![object]).map(|handles| handles[0])
    }

    fn secret_of(
        &self,
        token: &Token,
        way: &Way,
        by: &Object,
        template: Attributes,
        secret: Secret,
    ) -> Result<NewObject> {
        let made = self.secret_key(&template, secret).map_err(|error| match error {
            // The mechanism says how long it is.
            Error::ATTRIBUTE_VALUE_INVALID | Error::KEY_SIZE_RANGE => Error::TEMPLATE_INCONSISTENT,
            other => other,
        })?;
        let policy = token.policy();
        let purposes = purposes_of_agreed(by.subject(), way.imposes, &template);
        // The other side knows it.
        let origin = Origin::Derived { always_sensitive: false, never_extractable: false };
        let birth = Birth::new(origin, purposes, token.login_state());
        let object = rules::complete(birth, CKO_SECRET_KEY, template, made)?;
        policy.agreed(by.subject(), way.imposes, &object.attributes)?;
        Ok(object)
    }
}

/// A template of an agreed secret, with class and key type, and with what the key imposes.
fn secret_template(
    token: &Token,
    way: &Way,
    by: &Object,
    template: Template,
) -> Result<Attributes> {
    if class_of(&template).is_some_and(|class| class != CKO_SECRET_KEY) {
        return Err(Error::TEMPLATE_INCONSISTENT);
    }
    let login = token.login_state();
    let typed = typed(template, Some(CKO_SECRET_KEY))?;
    rules::check(&typed, CKO_SECRET_KEY, attribute::MAKE, login)?;
    let mut all = typed.attributes;
    all.set(CKA_CLASS, Value::Ulong(CKO_SECRET_KEY));
    let mut all = with_imposed(all, by.attributes(), way.imposes, login)?;
    if all.get(CKA_KEY_TYPE).is_none() {
        all.set(CKA_KEY_TYPE, Value::Ulong(CKK_GENERIC_SECRET));
    }
    Ok(all)
}
