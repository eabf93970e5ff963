// SPDX-License-Identifier: Apache-2.0
//! Object management functions (PKCS#11 3.2 §5.7).

use crate::attributes::{Attributes, NewObject, Secrets, Value};
use crate::engine::Engine;
use crate::object::attribute::{self, CKA_BIRTH_ROLES};
use crate::object::rules::{self, Origin};
use crate::object::session_objects::SessionObjects;
use crate::object::{Object, Place, terms};
use crate::session::SessionGuard;
use crate::store::{Change, Record};
use crate::template::{Template, Typed, class_of, typed};
use crate::token::Login;
use metaslot_ck::*;
use std::sync::Arc;

impl Engine {
    /// `C_CreateObject`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.7.1 names them.
    pub fn create_object(
        &self,
        session: SessionHandle,
        template: Template,
    ) -> Result<ObjectHandle> {
        let mut session = self.session(session)?;
        let token = self.token(session.slot)?;
        let class = class_of(&template).ok_or(Error::TEMPLATE_INCOMPLETE)?;
        let login = token.login_state();
        let Typed { attributes, secrets } = {
            let typed = typed(template, Some(class))?;
            rules::check(&typed, class, attribute::CREATE, login, &token.policy)?;
            typed
        };
        let mut made = NewObject { attributes, secrets };
        if attribute::class_bit(class).is_some_and(|bit| bit >= attribute::PUBLIC) {
            made.attributes.ulong(CKA_KEY_TYPE).ok_or(Error::TEMPLATE_INCOMPLETE)?;
            let said = made.attributes.remove(CKA_VALUE_LEN);
            self.complete(&mut made)?;
            if said.is_some_and(|said| made.attributes.get(CKA_VALUE_LEN) != Some(&said)) {
                return Err(Error::TEMPLATE_INCONSISTENT);
            }
            token.policy.making(&made.attributes, false)?;
        }
        let object = rules::complete(Origin::Created, class, Attributes::new(), made, login)?;
        self.add(&mut session, vec![object]).map(|handles| handles[0])
    }

    /// Puts new objects where their templates say, all or none.
    pub(crate) fn add(
        &self,
        session: &mut SessionGuard<'_>,
        objects: Vec<NewObject>,
    ) -> Result<Vec<ObjectHandle>> {
        let token = self.token(session.slot)?;
        let login = token.login_state();
        let mut objects = objects;
        for object in &mut objects {
            if object.attributes.bool(CKA_PRIVATE) && login != Login::User {
                return Err(Error::USER_NOT_LOGGED_IN);
            }
            object.attributes.set(CKA_UNIQUE_ID, Value::Bytes(self.unique_id()?));
        }
        let on_token = objects.iter().filter(|o| o.attributes.bool(CKA_TOKEN)).count();
        if on_token != 0 && !session.write {
            return Err(Error::SESSION_READ_ONLY);
        }
        if on_token != 0 && on_token != objects.len() {
            // A key pair may be split between token and session: two steps, the durable one last.
            let (rows, memory) =
                objects.into_iter().partition(|object| object.attributes.bool(CKA_TOKEN));
            return self.add_split(session, rows, memory);
        }
        if on_token == 0 {
            return Ok(objects
                .into_iter()
                .map(|object| self.add_to_memory(session, object))
                .collect());
        }
        let privates: Vec<bool> = objects.iter().map(|o| o.attributes.bool(CKA_PRIVATE)).collect();
        let changes = objects.iter().map(|o| Change::Insert(record(&o.attributes, &o.secrets)));
        let ids = token.store.write(changes.collect())?;
        Ok(ids.iter().zip(privates).map(|(id, private)| token.handles.name(*id, private)).collect())
    }

    /// A pair of which one half is on the token: the public key comes first in the result.
    fn add_split(
        &self,
        session: &mut SessionGuard<'_>,
        rows: Vec<NewObject>,
        memory: Vec<NewObject>,
    ) -> Result<Vec<ObjectHandle>> {
        let public = |objects: &[NewObject]| {
            objects.first().and_then(|o| o.attributes.ulong(CKA_CLASS)) == Some(CKO_PUBLIC_KEY)
        };
        let memory_first = public(&memory);
        let mut rows = self.add(session, rows)?;
        let mut memory = self.add(session, memory)?;
        if memory_first {
            memory.append(&mut rows);
            Ok(memory)
        } else {
            rows.append(&mut memory);
            Ok(rows)
        }
    }

    fn add_to_memory(&self, session: &mut SessionGuard<'_>, object: NewObject) -> ObjectHandle {
        let handle = SessionObjects::next_handle();
        let NewObject { attributes, secrets } = object;
        let object =
            Object::with_secrets(handle, session.slot, Place::Session, attributes, secrets);
        self.session_objects.put(Arc::new(object));
        session.owned.push(handle);
        handle
    }

    fn unique_id(&self) -> Result<Vec<u8>> {
        let mut random = [0; 16];
        self.random_bytes(&mut random)?;
        let digits = |byte: u8| {
            [
                b"0123456789abcdef"[usize::from(byte >> 4)],
                b"0123456789abcdef"[usize::from(byte & 15)],
            ]
        };
        Ok(random.iter().flat_map(|byte| digits(*byte)).collect())
    }

    /// `C_CopyObject`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.7.2 names them.
    pub fn copy_object(
        &self,
        session: SessionHandle,
        object: ObjectHandle,
        template: Template,
    ) -> Result<ObjectHandle> {
        let mut session = self.session(session)?;
        let token = self.token(session.slot)?;
        let object = self.object_in(&session, object)?;
        if !object.attributes().bool(CKA_COPYABLE) {
            return Err(Error::ACTION_PROHIBITED);
        }
        let changes = typed(template, Some(object.class()))?;
        let login = token.login_state();
        let mut attributes =
            rules::change(object.attributes(), &changes, attribute::COPY, login, &token.policy)?;
        if attributes.bool(CKA_PRIVATE) && login != Login::User {
            return Err(Error::USER_NOT_LOGGED_IN);
        }
        attributes.set(CKA_UNIQUE_ID, Value::Bytes(self.unique_id()?));
        let material = Arc::clone(token.key(&object)?.material());
        if attributes.bool(CKA_TOKEN) {
            if !session.write {
                return Err(Error::SESSION_READ_ONLY);
            }
            let private = attributes.bool(CKA_PRIVATE);
            let record = record(&attributes, material.secrets());
            let ids = token.store.write(vec![Change::Insert(record)])?;
            return Ok(token.handles.name(ids[0], private));
        }
        let handle = SessionObjects::next_handle();
        let copy =
            Object::new(handle, session.slot, Place::Session, attributes, object.has_secrets());
        copy.attach(material);
        self.session_objects.put(Arc::new(copy));
        session.owned.push(handle);
        Ok(handle)
    }

    /// `C_DestroyObject`: after it no copy of a key remains in the process.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.7.3 names them.
    pub fn destroy_object(&self, session: SessionHandle, object: ObjectHandle) -> Result<()> {
        let (object, write) = {
            let session = self.session(session)?;
            (self.object_in(&session, object)?, session.write)
        };
        if !object.attributes().bool(CKA_DESTROYABLE) {
            return Err(Error::ACTION_PROHIBITED);
        }
        match object.place {
            Place::Session => {
                self.session_objects.take(object.handle).ok_or(Error::OBJECT_HANDLE_INVALID)?;
            }
            Place::Token { id, .. } => {
                if !write {
                    return Err(Error::SESSION_READ_ONLY);
                }
                let token = self.token(object.slot)?;
                token.store.write(vec![Change::Delete { id }])?;
                token.forget(id);
            }
        }
        self.sweep(object);
        Ok(())
    }

    /// Lets every session go of a retired object. The caller holds no session's lock.
    fn sweep(&self, object: Arc<Object>) {
        object.retire();
        if Arc::strong_count(&object) > 1 {
            self.sessions.each(super::session::Session::drop_stale);
        }
    }

    /// `C_GetObjectSize`: bytes of its stored form, roughly.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.7.4 names them.
    pub fn object_size(&self, session: SessionHandle, object: ObjectHandle) -> Result<u64> {
        let session = self.session(session)?;
        let object = self.object_in(&session, object)?;
        Ok(object.attributes().encode().len() as u64)
    }

    /// The object for `C_GetAttributeValue`, ready to [`Object::answer`].
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.7.5 names them.
    pub fn object(&self, session: SessionHandle, object: ObjectHandle) -> Result<Arc<Object>> {
        let session = self.session(session)?;
        let object = self.object_in(&session, object)?;
        if object.has_secrets() && object.shows_secrets() {
            self.key(&object)?;
        }
        Ok(object)
    }

    /// `C_SetAttributeValue`: all changes or none.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.7.6 names them.
    pub fn set_attributes(
        &self,
        session: SessionHandle,
        object: ObjectHandle,
        template: Template,
    ) -> Result<()> {
        let session = self.session(session)?;
        let token = self.token(session.slot)?;
        let object = self.object_in(&session, object)?;
        if object.on_token() && !session.write {
            return Err(Error::SESSION_READ_ONLY);
        }
        if !object.attributes().bool(CKA_MODIFIABLE) {
            return Err(Error::ACTION_PROHIBITED);
        }
        let changes = typed(template, Some(object.class()))?;
        let login = token.login_state();
        let new =
            rules::change(object.attributes(), &changes, attribute::CHANGE, login, &token.policy)?;
        drop(session);
        match object.place {
            Place::Session => {
                let copy = Object::new(
                    object.handle,
                    object.slot,
                    object.place,
                    new,
                    object.has_secrets(),
                );
                if let Some(key) = object.key() {
                    copy.attach(Arc::clone(key.material()));
                }
                self.session_objects.put(Arc::new(copy));
            }
            Place::Token { id, version, .. } => {
                let record = record(&new, &Secrets::new());
                token.store.write(vec![Change::Update { id, version, record }])?;
                token.forget(id);
            }
        }
        Ok(())
    }
}

/// A row of the store. `CKA_TOKEN` and `CKA_PRIVATE` stand in it like any other attribute.
fn record(attributes: &Attributes, secrets: &Secrets) -> Record {
    Record {
        private: attributes.bool(CKA_PRIVATE),
        attributes: attributes.encode(),
        secrets: (!secrets.is_empty()).then(|| secrets.encode()),
        terms: terms(attributes),
    }
}

/// Both halves of a pair know what either may do: a public key may not wrap what its private twin
/// could decrypt (policy).
pub(crate) fn pair_roles(public: &mut NewObject, private: &mut NewObject) {
    let roles = rules::roles(&public.attributes) | rules::roles(&private.attributes);
    public.attributes.set(CKA_BIRTH_ROLES, Value::Ulong(roles));
    private.attributes.set(CKA_BIRTH_ROLES, Value::Ulong(roles));
}
