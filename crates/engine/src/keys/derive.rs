// SPDX-License-Identifier: Apache-2.0
//! `C_DeriveKey` (PKCS#11 3.2 §5.18.5).

use super::set_parity;
use crate::engine::Engine;
use crate::object::Object;
use crate::operation::recover::Never;
use crate::operation::{Active, Chosen, Later, Lock, OperationKind, Streams};
use crate::output::Room;
use crate::session::SessionGuard;
use crate::token::Token;
use metaslot_ck::attribute;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_rules::Typed;
use metaslot_rules::{self as rules, Birth, Origin};
use metaslot_spi::provider::{Derive, Keys};
use metaslot_spi::store::Making;
use metaslot_spi::{Attributes, Key, NewObject, Params, Template, Value};
use std::iter;
use std::sync::Arc;

impl Streams for dyn Derive {
    type Stream = Never;
}

impl Engine {
    /// `C_DeriveKey`: the derived key, then those that [`Params::take_further`] names.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.18.5 names them.
    pub fn derive_key(
        &self,
        session: SessionHandle,
        mechanism: CK_MECHANISM_TYPE,
        mut params: Params,
        base: ObjectHandle,
        template: Template,
    ) -> Result<(ObjectHandle, Vec<ObjectHandle>)> {
        let mut session = self.session(session)?;
        session.operations.derive.free()?;
        let token = self.token(session.slot)?;
        if mechanism == CKM_PUB_KEY_FROM_PRIV_KEY {
            let made = self.public_of(&mut session, token, base, template)?;
            return Ok((made, Vec::new()));
        }
        let (base, approved) = self.parent(&mut session, token, base, mechanism, &params)?;
        let login = token.login_state();
        let own = (base.attributes(), CKA_DERIVE_TEMPLATE);
        let templates = iter::once(template).chain(params.take_further());
        let of = |all| rules::derived_template((mechanism, &params), own, all, login);
        let mut templates = templates.map(of).collect::<Result<Vec<_>>>()?;
        let by = self.key(&base)?;
        let (count, algorithm) = self
            .route_with(&base, mechanism, |row| row.derive.filter(|row| row.serves(by)))
            .map_err(|_| match self.kept_here(&base) {
                Ok(()) => self.refused(mechanism, |row| row.derive, Error::KEY_SIZE_RANGE),
                Err(kept) => kept,
            })?;
        algorithm.check(by, &params)?;
        let keys = SessionKeys { engine: self, session: &session, mechanism };
        let beside = match &params {
            Params::Key(handle) => Some(keys.object(*handle)?),
            _ => None,
        };
        let natural = match &beside {
            Some(other) => rules::both_lengths(base.attributes(), other.attributes()),
            None => algorithm.natural_length(by, &params),
        };
        let permitted =
            |all| rules::permitted_length(token.policy(), base.facts(), &params, natural, all);
        let lengths = templates.iter().map(permitted).collect::<Result<Vec<_>>>()?;
        let parents = [Some(&*base), beside.as_deref()];
        for all in &mut templates {
            let parents = parents.into_iter().flatten().map(Object::attributes);
            rules::oblige(mechanism, &params, parents, all)?;
        }
        if let [all] = &mut templates[..]
            && let Some(home) = self.home_for(token, &base, all)
        {
            let (mut all, at) = (std::mem::take(all), (&session, token, home));
            rules::inherit(base.subject(), &mut all, CKO_SECRET_KEY);
            let purposes = token.policy().purposes_of_derived(base.subject(), &params, &all)?;
            token.policy().derived(base.subject(), &all)?;
            let making = (count, purposes, Making::Derived);
            let made = self.make_at_home(at, &base, making, (mechanism, &params), all)?;
            session.recent.completes(approved);
            return Ok((made, Vec::new()));
        }
        let watch = metaslot_counters::begin();
        // What cannot be begun is answered at once, as in any other session.
        if session.asynchronous
            && let &[bytes] = &lengths[..]
            && let Ok(Some(work)) = algorithm.derive_later(by, &params, bytes)
        {
            session.uses(&base, OperationKind::Derive, &*token.store);
            let (object, lock) = (Some(base), Lock::Open);
            let chosen = Chosen { count, mechanism, algorithm, params, object, lock, approved };
            let later = Later { work, room: Room::default(), bytes, watch };
            session.operations.derive = Active::Pending(chosen, later);
            session.operations.derived = templates.remove(0);
            return Err(Error::PENDING);
        }
        let values = algorithm.derive(by, &params, &lengths, &keys);
        count.done(lengths.iter().sum(), values.is_ok(), watch);
        let mut objects = Vec::new();
        for (all, value) in templates.into_iter().zip(values?) {
            objects.push(self.derived(token, parents, &params, all, value)?);
        }
        session.recent.keep(Some(base));
        let mut handles = self.add(&mut session, objects)?;
        session.recent.completes(approved);
        let first = handles.remove(0);
        Ok((first, handles))
    }

    /// `C_AsyncComplete` of `C_DeriveKey`: the mechanism, and the derived key. All that a derivation may be refused for is asked
    /// again, of the base key, the login and the policy that there are by now.
    ///
    /// # Errors
    /// `CKR_PENDING`; `CKR_OPERATION_NOT_INITIALIZED` when nothing is pending; those of [`Self::derive_key`].
    pub fn derived_key(&self, session: SessionHandle) -> Result<(CK_MECHANISM_TYPE, ObjectHandle)> {
        let mut session = self.session(session)?;
        let token = self.token(session.slot)?;
        let (chosen, later) = session.operations.derive.arrived()?;
        let Chosen { count, mechanism, algorithm, params, object, approved, .. } = chosen;
        let Later { work, bytes, watch, .. } = later;
        let all = std::mem::take(&mut session.operations.derived);
        let value = Secret::try_zeroed(bytes).ok_or(Error::DEVICE_MEMORY);
        let computed = value.and_then(|mut value| Ok((work.finish(value.expose_mut())?, value)));
        count.done(bytes, computed.is_ok(), watch);
        let base = object.as_ref().map_or(ObjectHandle(0), |object| object.handle);
        session.recent.keep(object);
        let (base, still) = self.parent(&mut session, token, base, mechanism, &params)?;
        let class = all.ulong(CKA_CLASS).ok_or(Error::TEMPLATE_INCOMPLETE)?;
        let said = Typed { attributes: all, ..Typed::default() };
        rules::check(&said, class, attribute::MAKE, token.login_state())?;
        let natural = algorithm.natural_length(self.key(&base)?, &params);
        let (policy, facts) = (token.policy(), base.facts());
        let length = rules::permitted_length(policy, facts, &params, natural, &said.attributes)?;
        let (written, value) = computed?;
        if length != written {
            return Err(Error::FUNCTION_FAILED);
        }
        let parents = [Some(&*base), None];
        let object = self.derived(token, parents, &params, said.attributes, value)?;
        session.recent.keep(Some(base));
        let handles = self.add(&mut session, vec![object])?;
        session.recent.completes(approved && still);
        Ok((mechanism, handles[0]))
    }

    /// The base key, if this may be derived from it by the policy, and whether that approves.
    fn parent(
        &self,
        session: &mut SessionGuard<'_>,
        token: &Token,
        base: ObjectHandle,
        mechanism: CK_MECHANISM_TYPE,
        params: &Params,
    ) -> Result<(Arc<Object>, bool)> {
        let base = self
            .key_for(session, base, CKA_DERIVE, mechanism)
            .map_err(|error| self.refused(mechanism, |row| row.derive, error))?;
        let (policy, facts) = (token.policy(), base.facts());
        let approved = policy.approving(mechanism, CKF_DERIVE, Some(facts.key_type))?;
        policy.approving_params(params, false)?;
        policy.deriving(mechanism, facts)?;
        Ok((base, approved))
    }

    fn derived(
        &self,
        token: &Token,
        parents: [Option<&Object>; 2],
        params: &Params,
        mut all: Attributes,
        mut value: Secret,
    ) -> Result<NewObject> {
        let base = parents[0].ok_or(Error::KEY_HANDLE_INVALID)?;
        all.remove(CKA_VALUE_LEN);
        let class = all.ulong(CKA_CLASS).ok_or(Error::TEMPLATE_INCOMPLETE)?;
        let made = if class == CKO_DATA {
            let mut made = NewObject::default();
            made.attributes.set(CKA_VALUE, Value::Bytes(value.expose().to_vec()));
            made
        } else {
            set_parity(all.ulong(CKA_KEY_TYPE), value.expose_mut());
            self.secret_key(&all, value)?
        };
        rules::inherit(base.subject(), &mut all, class);
        let purposes = token.policy().purposes_of_derived(base.subject(), params, &all)?;
        let both =
            |attribute| parents.into_iter().flatten().all(|by| by.attributes().bool(attribute));
        let origin = Origin::Derived {
            always_sensitive: both(CKA_ALWAYS_SENSITIVE),
            never_extractable: both(CKA_NEVER_EXTRACTABLE),
        };
        let birth = Birth::new(origin, purposes, token.login_state());
        let mut object = rules::complete(birth, class, all, made)?;
        token.policy().derived(base.subject(), &object.attributes)?;
        token.policy().unseal(base.subject(), &mut object.attributes);
        Ok(object)
    }
}

/// The other keys of a derivation, as this session may use them.
struct SessionKeys<'a, 'b> {
    engine: &'a Engine,
    session: &'a SessionGuard<'b>,
    mechanism: CK_MECHANISM_TYPE,
}

impl SessionKeys<'_, '_> {
    fn object(&self, handle: ObjectHandle) -> Result<Arc<Object>> {
        self.engine.object_in(self.session, handle).map_err(|_| Error::KEY_HANDLE_INVALID)
    }
}

impl Keys for SessionKeys<'_, '_> {
    fn key(&self, handle: ObjectHandle) -> Result<Arc<Key>> {
        let object = self.object(handle)?;
        self.engine.kept_here(&object)?;
        self.engine.policy(self.session)?.salting(object.facts())?;
        if !object.subject().allows(self.mechanism) {
            return Err(Error::MECHANISM_INVALID);
        }
        self.engine.key(&object).cloned()
    }
}
