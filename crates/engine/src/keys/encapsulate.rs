// SPDX-License-Identifier: Apache-2.0
//! `C_EncapsulateKey` and `C_DecapsulateKey` (PKCS#11 3.2 §5.18.8, §5.18.9).

use super::{UNWRAPPING, set_parity, told_of};
use crate::engine::Engine;
use crate::object::Object;
use crate::output::{Output, Written};
use crate::session::SessionGuard;
use crate::token::Token;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_router::Count;
use metaslot_rules::{self as rules, Birth, Origin, Subject};
use metaslot_spi::provider::{Algorithm, Direction, Encapsulation};
use metaslot_spi::store::Making;
use metaslot_spi::{Attributes, Params, Template};
use std::cell::Cell;
use std::sync::Arc;

/// One of the two functions.
struct Way {
    direction: Direction,
    usage: CK_ATTRIBUTE_TYPE,
    /// What the key imposes on the secret.
    imposes: CK_ATTRIBUTE_TYPE,
    /// What may be wrong with the key.
    wrong: [Error; 3],
    flag: CK_FLAGS,
    of: fn(&'static Algorithm) -> Option<&'static dyn Encapsulation>,
}

const ENCAPSULATE: Way = Way {
    direction: Direction::Forward,
    usage: CKA_ENCAPSULATE,
    imposes: CKA_ENCAPSULATE_TEMPLATE,
    wrong: [Error::KEY_HANDLE_INVALID, Error::KEY_TYPE_INCONSISTENT, Error::KEY_SIZE_RANGE],
    flag: CKF_ENCAPSULATE,
    of: |row| row.encapsulate,
};
const DECAPSULATE: Way = Way {
    direction: Direction::Backward,
    usage: CKA_DECAPSULATE,
    imposes: CKA_DECAPSULATE_TEMPLATE,
    wrong: UNWRAPPING,
    flag: CKF_DECAPSULATE,
    of: |row| row.decapsulate,
};

/// What is there before any cryptography is done.
struct Ready {
    by: Arc<Object>,
    template: Attributes,
    algorithm: &'static dyn Encapsulation,
    /// Of the secret, where it is known.
    length: Option<usize>,
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
        let home = self.home_for(token, &ready.by, &ready.template);
        let mut made = None;
        // What fails after the secret is there leaves no ciphertext behind.
        let written = out.exact(length, |room| {
            let mut ciphertext = vec![0; length];
            if let Some(home) = home {
                let (count, _) = home.find(mechanism, ENCAPSULATE.of)?;
                let told = Cell::from_mut(&mut ciphertext[..]).as_slice_of_cells();
                let (of, mut all) = (ready.by.subject(), std::mem::take(&mut ready.template));
                let imposes = ENCAPSULATE.imposes;
                let purposes = token.policy().agreed_elsewhere(of, imposes, params, &mut all)?;
                let making = (count, purposes, Making::Encapsulated(told));
                let (at, with) = ((&session, token, home), (mechanism, params));
                made = Some(self.make_at_home(at, &ready.by, making, with, all)?);
                room.copy_from_slice(&ciphertext);
                return Ok(());
            }
            let secret = Secret::try_zeroed(ready.length.unwrap_or(0));
            let mut secret = secret.ok_or(Error::DEVICE_MEMORY)?;
            if ready.algorithm.carries() {
                self.random_bytes(secret.expose_mut())?;
                set_parity(ready.template.ulong(CKA_KEY_TYPE), secret.expose_mut());
            }
            let watch = metaslot_counters::begin();
            let done =
                ready.algorithm.encapsulate(key, params, secret.expose_mut(), &mut ciphertext);
            ready.count.done(length, done.is_ok(), watch);
            done?;
            // The mechanism says how long it is.
            let with = (ready.by.subject(), params, Error::TEMPLATE_INCONSISTENT);
            let template = std::mem::take(&mut ready.template);
            made = Some(self.agreed(&mut session, token, &ENCAPSULATE, with, template, secret)?);
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
        if let Some(home) = self.home_for(token, &ready.by, &ready.template) {
            let (of, mut all) = (ready.by.subject(), ready.template);
            let imposes = DECAPSULATE.imposes;
            let purposes = token.policy().agreed_elsewhere(of, imposes, params, &mut all)?;
            let making = (ready.count, purposes, Making::Decapsulated(ciphertext));
            let (at, with) = ((&session, token, home), (mechanism, params));
            let made = self.make_at_home(at, &ready.by, making, with, all)?;
            session.recent.completes(ready.approved);
            return Ok(made);
        }
        let key = self.key(&ready.by)?;
        let watch = metaslot_counters::begin();
        let secret = ready.algorithm.decapsulate(key, params, ready.length, ciphertext);
        ready.count.done(ciphertext.len(), secret.is_ok(), watch);
        // The mechanism says how long it is, or the ciphertext.
        let wrong = match ready.algorithm.carries() {
            true => Error::WRAPPED_KEY_LEN_RANGE,
            false => Error::TEMPLATE_INCONSISTENT,
        };
        let with = (ready.by.subject(), params, wrong);
        let template = std::mem::take(&mut ready.template);
        let made = self.agreed(&mut session, token, &DECAPSULATE, with, template, secret?)?;
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
        let wrong = told_of(way.wrong);
        let refused = |error| wrong(self.refused(mechanism, way.of, error));
        let by = self.key_for(session, key, way.usage, mechanism).map_err(refused)?;
        let policy = token.policy();
        let approved = policy.approving(mechanism, way.flag, Some(by.facts().key_type))?;
        policy.approving_params(params, false)?;
        policy.agreeing(mechanism, way.direction, by.subject()).map_err(&wrong)?;
        let (with, own) = ((mechanism, params), (by.attributes(), way.imposes));
        let template = rules::derived_template(with, own, template, token.login_state())?;
        let key = self.key(&by)?;
        let of = |row| (way.of)(row).filter(|row| row.serves(key));
        let (count, algorithm) = self
            .route_with(&by, mechanism, of)
            .map_err(|_| refused(self.kept_here(&by).err().unwrap_or(Error::KEY_SIZE_RANGE)))?;
        algorithm.check(way.direction, key, params).map_err(wrong)?;
        let (what, with) = ((algorithm, way.direction), (by.facts(), &**key));
        let length = rules::agreed_length(policy, what, with, params, &template)?;
        Ok(Ready { by, template, algorithm, length, count, approved })
    }

    /// The key of a secret that was agreed on; the error is for one of a length that its type has not.
    fn agreed(
        &self,
        session: &mut SessionGuard<'_>,
        token: &Token,
        way: &Way,
        (by, params, wrong): (&Subject, &Params, Error),
        mut template: Attributes,
        mut secret: Secret,
    ) -> Result<ObjectHandle> {
        template.remove(CKA_VALUE_LEN);
        set_parity(template.ulong(CKA_KEY_TYPE), secret.expose_mut());
        let made = self.secret_key(&template, secret).map_err(|error| match error {
            Error::ATTRIBUTE_VALUE_INVALID | Error::KEY_SIZE_RANGE => wrong,
            other => other,
        })?;
        let policy = token.policy();
        let purposes = policy.purposes_of_agreed(by, way.imposes, params, &template)?;
        // The other side knows it.
        let origin = Origin::Derived { always_sensitive: false, never_extractable: false };
        let birth = Birth::new(origin, purposes, token.login_state());
        rules::may_leave(&mut template);
        let object = rules::complete(birth, CKO_SECRET_KEY, template, made)?;
        policy.agreed(by, way.imposes, &object.attributes)?;
        self.add(session, vec![object]).map(|handles| handles[0])
    }
}
