// SPDX-License-Identifier: Apache-2.0
//! Key management functions (PKCS#11 3.2 §5.18).

use crate::attributes::{Attributes, NewObject, Value};
use crate::engine::Engine;
use crate::mechanism::Mechanism;
use crate::object::Object;
use crate::object::attribute::{self, AttributeRow};
use crate::object::rules::{self, Origin};
use crate::objects::pair_roles;
use crate::output::{Output, Written};
use crate::provider::{Direction, Keys};
use crate::session::SessionGuard;
use crate::template::{Template, Typed, typed};
use crate::token::Token;
use crate::{Key, Params};
use metaslot_ck::*;
use metaslot_memory::Secret;
use std::sync::Arc;

impl Engine {
    /// A template for making a key of `class`: checked, with class and key type in it.
    fn make(
        &self,
        token: &Token,
        mechanism: CK_MECHANISM_TYPE,
        class: u64,
        template: Template,
    ) -> Result<Attributes> {
        let typed = typed(template, Some(class))?;
        rules::check(&typed, class, attribute::MAKE, token.login_state(), &token.policy)?;
        let Typed { attributes: mut all, .. } = typed;
        if all.ulong(CKA_CLASS).is_some_and(|said| said != class) {
            return Err(Error::TEMPLATE_INCONSISTENT);
        }
        all.set(CKA_CLASS, Value::Ulong(class));
        let rows = Mechanism::find(mechanism).ok_or(Error::MECHANISM_INVALID)?.keys;
        match (all.ulong(CKA_KEY_TYPE), rows) {
            (None, [first, ..]) => all.set(CKA_KEY_TYPE, Value::Ulong(*first)),
            (Some(said), rows) if mechanism != CKM_PKCS5_PBKD2 && !rows.contains(&said) => {
                return Err(Error::TEMPLATE_INCONSISTENT);
            }
            _ => {}
        }
        Ok(all)
    }

    /// `C_GenerateKey`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.18.1 names them.
    pub fn generate_key(
        &self,
        session: SessionHandle,
        mechanism: CK_MECHANISM_TYPE,
        params: Params,
        template: Template,
    ) -> Result<ObjectHandle> {
        let mut session = self.session(session)?;
        let token = self.token(session.slot)?;
        let (count, algorithm) = self.route(mechanism, |row| row.generate)?;
        let template = self.make(token, mechanism, CKO_SECRET_KEY, template)?;
        token.policy.making(&template, true)?;
        let watch = metaslot_counters::begin();
        let made = algorithm.generate(&params, &template).and_then(|mut made| {
            made.attributes
                .set(CKA_KEY_TYPE, template.get(CKA_KEY_TYPE).cloned().unwrap_or(Value::Ulong(0)));
            if let Some(value) = made.secrets.get_mut(CKA_VALUE) {
                set_parity(template.ulong(CKA_KEY_TYPE), value);
            }
            rules::complete(
                Origin::Generated(mechanism),
                CKO_SECRET_KEY,
                template,
                made,
                token.login_state(),
            )
        });
        count.done(0, made.is_ok(), watch);
        self.add(&mut session, vec![made?]).map(|handles| handles[0])
    }

    /// `C_GenerateKeyPair`: the public key's handle first.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.18.2 names them.
    pub fn generate_key_pair(
        &self,
        session: SessionHandle,
        mechanism: CK_MECHANISM_TYPE,
        params: Params,
        public: Template,
        private: Template,
    ) -> Result<(ObjectHandle, ObjectHandle)> {
        let mut session = self.session(session)?;
        let token = self.token(session.slot)?;
        self.route(mechanism, |row| row.generate_pair)?;
        let public = self.make(token, mechanism, CKO_PUBLIC_KEY, public)?;
        let (count, algorithm) = self
            .route(mechanism, |row| row.generate_pair.filter(|algorithm| algorithm.serves(&public)))
            .map_err(|_| Error::CURVE_NOT_SUPPORTED)?;
        let private = self.make(token, mechanism, CKO_PRIVATE_KEY, private)?;
        token.policy.making(&public, true)?;
        let watch = metaslot_counters::begin();
        let made = algorithm.generate_pair(&params, &public);
        count.done(0, made.is_ok(), watch);
        let (first, second) = made?;
        let (origin, login) = (Origin::Generated(mechanism), token.login_state());
        let mut first = rules::complete(origin, CKO_PUBLIC_KEY, public, first, login)?;
        let mut second = rules::complete(origin, CKO_PRIVATE_KEY, private, second, login)?;
        pair_roles(&mut first, &mut second);
        let handles = self.add(&mut session, vec![first, second])?;
        Ok((handles[0], handles[1]))
    }

    /// `C_WrapKey`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.18.3 names them.
    pub fn wrap_key(
        &self,
        session: SessionHandle,
        mechanism: CK_MECHANISM_TYPE,
        params: Params,
        wrapping: ObjectHandle,
        key: ObjectHandle,
        out: &mut Output<'_>,
    ) -> Result<()> {
        let mut session = self.session(session)?;
        let token = self.token(session.slot)?;
        let (count, algorithm) = self.route(mechanism, |row| row.wrap)?;
        let wrapping = self
            .key_for(&mut session, wrapping, CKA_WRAP, mechanism)
            .map_err(|error| other(error, Error::WRAPPING_KEY_HANDLE_INVALID))?;
        let key = self.object_in(&session, key).map_err(|_| Error::KEY_HANDLE_INVALID)?;
        let trusted = wrapping.attributes().bool(CKA_TRUSTED);
        wrappable(&key, trusted, wrapping.attributes())?;
        let plain = self.plain(token, &key)?;
        token.policy.using(mechanism, &params, wrapping.facts(), Direction::Forward, false)?;
        token.policy.wrapping(
            mechanism,
            wrapping.attributes(),
            trusted,
            key.attributes(),
            plain.len(),
        )?;
        let by = self.key(&wrapping)?;
        algorithm.check(Direction::Forward, by, &params)?;
        let watch = metaslot_counters::begin();
        let length = algorithm.length(by, &params, plain.len())?;
        let result =
            out.exact(length, |room| algorithm.wrap(by, &params, plain.expose(), room).map(drop));
        if result != Ok(Written::Asked) {
            count.done(plain.len(), result.is_ok(), watch);
        }
        session.keep(wrapping);
        result.map(drop)
    }

    /// What is wrapped: the value of a secret key, the PKCS#8 form of a private one.
    fn plain(&self, token: &Token, object: &Object) -> Result<Secret> {
        let key = token.key(object)?;
        match object.class() {
            CKO_SECRET_KEY => Ok(Secret::copy_of(key.secret(CKA_VALUE)?)),
            CKO_PRIVATE_KEY => self.first(|provider| provider.encode_private_key(key)),
            _ => Err(Error::KEY_NOT_WRAPPABLE),
        }
    }

    /// `C_UnwrapKey`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.18.4 names them.
    pub fn unwrap_key(
        &self,
        session: SessionHandle,
        mechanism: CK_MECHANISM_TYPE,
        params: Params,
        unwrapping: ObjectHandle,
        wrapped: &[u8],
        template: Template,
    ) -> Result<ObjectHandle> {
        let mut session = self.session(session)?;
        let token = self.token(session.slot)?;
        let (count, algorithm) = self.route(mechanism, |row| row.unwrap)?;
        let unwrapping = self
            .key_for(&mut session, unwrapping, CKA_UNWRAP, mechanism)
            .map_err(|error| other(error, Error::UNWRAPPING_KEY_HANDLE_INVALID))?;
        let mut all = self.arriving(token, template)?;
        imposed(&mut all, unwrapping.attributes(), CKA_UNWRAP_TEMPLATE)?;
        token.policy.using(mechanism, &params, unwrapping.facts(), Direction::Backward, false)?;
        token.policy.unwrapping(mechanism, unwrapping.attributes(), &all)?;
        let by = self.key(&unwrapping)?;
        algorithm.check(Direction::Backward, by, &params)?;
        let watch = metaslot_counters::begin();
        let plain = algorithm.unwrap(by, &params, wrapped);
        count.done(wrapped.len(), plain.is_ok(), watch);
        let made = self.opened(token, &mut all, plain?, algorithm.key_at_end())?;
        session.keep(unwrapping);
        let class = all.ulong(CKA_CLASS).ok_or(Error::TEMPLATE_INCOMPLETE)?;
        let object = rules::complete(Origin::Unwrapped, class, all, made, token.login_state())?;
        self.add(&mut session, vec![object]).map(|handles| handles[0])
    }

    /// A template of a key that arrives: class and (for secret keys) type must be said.
    fn arriving(&self, token: &Token, template: Template) -> Result<Attributes> {
        let class = crate::template::class_of(&template).ok_or(Error::TEMPLATE_INCOMPLETE)?;
        if !matches!(class, CKO_SECRET_KEY | CKO_PRIVATE_KEY) {
            return Err(Error::TEMPLATE_INCONSISTENT);
        }
        let typed = typed(template, Some(class))?;
        rules::check(&typed, class, attribute::MAKE, token.login_state(), &token.policy)?;
        if typed.attributes.get(CKA_KEY_TYPE).is_none() {
            return Err(Error::TEMPLATE_INCOMPLETE);
        }
        Ok(typed.attributes)
    }

    /// The key in unwrapped bytes: a secret one at their beginning, or `at_end`.
    fn opened(
        &self,
        token: &Token,
        all: &mut Attributes,
        plain: Secret,
        at_end: bool,
    ) -> Result<NewObject> {
        if all.ulong(CKA_CLASS) == Some(CKO_PRIVATE_KEY) {
            let made = self.first(|provider| provider.decode_private_key(plain.expose()))?;
            token.policy.making(&made.attributes, false)?;
            return Ok(made);
        }
        let length = match all.remove(CKA_VALUE_LEN) {
            Some(Value::Ulong(length)) => usize::try_from(length).unwrap_or(usize::MAX),
            _ => plain.len(),
        };
        if length > plain.len() || length == 0 {
            return Err(Error::WRAPPED_KEY_LEN_RANGE);
        }
        token.policy.arriving(length)?;
        let value = match plain.len() - length {
            0 => plain,
            surplus if at_end => Secret::copy_of(&plain.expose()[surplus..]),
            _ => plain.truncated(length),
        };
        self.secret_key(all, value)
    }

    /// A secret key of these bytes, checked by the provider.
    fn secret_key(&self, all: &Attributes, value: Secret) -> Result<NewObject> {
        let mut made = NewObject::default();
        made.attributes.set(CKA_CLASS, Value::Ulong(CKO_SECRET_KEY));
        let kind = all.get(CKA_KEY_TYPE).cloned().ok_or(Error::TEMPLATE_INCOMPLETE)?;
        made.attributes.set(CKA_KEY_TYPE, kind);
        made.secrets.set(CKA_VALUE, value);
        self.complete(&mut made)?;
        Ok(made)
    }

    /// `C_DeriveKey`: the derived key, then those that [`Params::Sp800108`] asks for besides.
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
        let token = self.token(session.slot)?;
        let refused = |error| self.refused(mechanism, |row| row.derive, error);
        let base = self.key_for(&mut session, base, CKA_DERIVE, mechanism).map_err(refused)?;
        let mut templates = vec![self.derived_template(token, mechanism, template)?];
        if let Params::Sp800108 { additional, .. } = &mut params {
            for template in std::mem::take(additional) {
                templates.push(self.derived_template(token, mechanism, template)?);
            }
        }
        let by = self.key(&base)?;
        let (count, algorithm) = self
            .route(mechanism, |row| row.derive.filter(|algorithm| algorithm.serves(by)))
            .map_err(|_| refused(Error::KEY_SIZE_RANGE))?;
        algorithm.check(by, &params)?;
        let natural = algorithm.natural_length(by, &params);
        let mut lengths = Vec::new();
        for all in &mut templates {
            imposed(all, base.attributes(), CKA_DERIVE_TEMPLATE)?;
            lengths.push(derived_length(all, natural)?);
            if all.ulong(CKA_CLASS) == Some(CKO_SECRET_KEY) {
                token.policy.making(all, true)?;
                token.policy.arriving(*lengths.last().unwrap_or(&0))?;
            }
        }
        let keys = SessionKeys { engine: self, session: &session };
        let watch = metaslot_counters::begin();
        let values = algorithm.derive(by, &params, &lengths, &keys);
        count.done(lengths.iter().sum(), values.is_ok(), watch);
        let mut objects = Vec::new();
        for (all, value) in templates.into_iter().zip(values?) {
            objects.push(self.derived(token, &base, all, value)?);
        }
        session.keep(base);
        let mut handles = self.add(&mut session, objects)?;
        let first = handles.remove(0);
        Ok((first, handles))
    }

    fn derived_template(
        &self,
        token: &Token,
        mechanism: CK_MECHANISM_TYPE,
        template: Template,
    ) -> Result<Attributes> {
        let natural = if mechanism == CKM_HKDF_DATA { CKO_DATA } else { CKO_SECRET_KEY };
        let class = crate::template::class_of(&template).unwrap_or(natural);
        if class != natural {
            return Err(Error::TEMPLATE_INCONSISTENT);
        }
        // A data object has no CKA_VALUE_LEN of its own; a derivation says its length by it.
        let (lengths, rest): (Template, Template) =
            template.into_iter().partition(|(attribute, _)| *attribute == CKA_VALUE_LEN);
        let typed_rest = typed(rest, Some(class))?;
        rules::check(&typed_rest, class, attribute::MAKE, token.login_state(), &token.policy)?;
        let mut all = typed_rest.attributes;
        if let Some(length) = typed(lengths, Some(class))?.attributes.remove(CKA_VALUE_LEN) {
            all.set(CKA_VALUE_LEN, length);
        }
        all.set(CKA_CLASS, Value::Ulong(class));
        if class == CKO_SECRET_KEY && all.get(CKA_KEY_TYPE).is_none() {
            all.set(CKA_KEY_TYPE, Value::Ulong(CKK_GENERIC_SECRET));
        }
        Ok(all)
    }

    fn derived(
        &self,
        token: &Token,
        base: &Object,
        mut all: Attributes,
        mut value: Secret,
    ) -> Result<NewObject> {
        let from = base.attributes();
        let login = token.login_state();
        all.remove(CKA_VALUE_LEN);
        let origin = Origin::Derived {
            always_sensitive: from.bool(CKA_ALWAYS_SENSITIVE),
            never_extractable: from.bool(CKA_NEVER_EXTRACTABLE),
        };
        let class = all.ulong(CKA_CLASS).ok_or(Error::TEMPLATE_INCOMPLETE)?;
        let made = if class == CKO_DATA {
            let mut made = NewObject::default();
            made.attributes.set(CKA_VALUE, Value::Bytes(value.expose().to_vec()));
            made
        } else {
            set_parity(all.ulong(CKA_KEY_TYPE), value.expose_mut());
            self.secret_key(&all, value)?
        };
        let object = rules::complete(origin, class, all, made, login)?;
        token.policy.deriving(from, &object.attributes)?;
        Ok(object)
    }
}

/// The other keys of a derivation, as this session may use them.
struct SessionKeys<'a, 'b> {
    engine: &'a Engine,
    session: &'a SessionGuard<'b>,
}

impl Keys for SessionKeys<'_, '_> {
    fn key(&self, handle: ObjectHandle) -> Result<Arc<Key>> {
        let object =
            self.engine.object_in(self.session, handle).map_err(|_| Error::KEY_HANDLE_INVALID)?;
        self.engine.key(&object).cloned()
    }
}

/// The same failure, told of the key that wraps.
fn other(error: Error, invalid: Error) -> Error {
    if error == Error::KEY_HANDLE_INVALID { invalid } else { error }
}

/// What the key itself says of being wrapped (PKCS#11 3.2 §5.18.3).
fn wrappable(key: &Object, trusted: bool, wrapping: &Attributes) -> Result<()> {
    let attributes = key.attributes();
    if !attributes.bool(CKA_EXTRACTABLE) {
        return Err(Error::KEY_UNEXTRACTABLE);
    }
    if attributes.bool(CKA_WRAP_WITH_TRUSTED) && !trusted {
        return Err(Error::KEY_NOT_WRAPPABLE);
    }
    if let Some(Value::Template(wanted)) = wrapping.get(CKA_WRAP_TEMPLATE)
        && !key.matches(wanted)
    {
        return Err(Error::KEY_NOT_WRAPPABLE);
    }
    Ok(())
}

/// Adds what the key imposes on its offspring; a contradiction fails (PKCS#11 3.2 §4.10).
fn imposed(all: &mut Attributes, by: &Attributes, template: CK_ATTRIBUTE_TYPE) -> Result<()> {
    let Some(Value::Template(wanted)) = by.get(template) else { return Ok(()) };
    for (attribute, value) in wanted.iter() {
        if AttributeRow::find(attribute).is_none_or(|row| row.may & attribute::MAKE == 0) {
            return Err(Error::TEMPLATE_INCONSISTENT);
        }
        match all.get(attribute) {
            Some(said) if said != value => return Err(Error::TEMPLATE_INCONSISTENT),
            _ => all.set(attribute, value.clone()),
        }
    }
    Ok(())
}

/// DES keys that are made here have odd parity in every byte (PKCS#11 3.2 §6.18.2).
fn set_parity(key_type: Option<u64>, value: &mut [u8]) {
    if let Some(CKK_DES2 | CKK_DES3) = key_type {
        for byte in value {
            *byte ^= u8::from(byte.count_ones().is_multiple_of(2));
        }
    }
}

/// How many bytes to derive: what the template says, what the key type fixes, or what comes out.
fn derived_length(all: &Attributes, natural: Option<usize>) -> Result<usize> {
    let length = match (all.ulong(CKA_VALUE_LEN), all.ulong(CKA_KEY_TYPE)) {
        (Some(length), _) => usize::try_from(length).unwrap_or(usize::MAX),
        (None, Some(CKK_CHACHA20)) => 32,
        (None, Some(CKK_DES3)) => 24,
        (None, Some(CKK_DES2)) => 16,
        (None, Some(CKK_GENERIC_SECRET | CKK_HKDF) | None) => {
            natural.ok_or(Error::TEMPLATE_INCOMPLETE)?
        }
        (None, Some(_)) => return natural.ok_or(Error::TEMPLATE_INCOMPLETE),
    };
    if length == 0 || length > MOST_DERIVED { Err(Error::KEY_SIZE_RANGE) } else { Ok(length) }
}

/// No derivation gives more than this, in bytes.
const MOST_DERIVED: usize = 1 << 16;
