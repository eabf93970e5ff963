// SPDX-License-Identifier: Apache-2.0
//! Object management functions (PKCS#11 3.2 §5.7).

use crate::engine::Engine;
use crate::object::session_objects::SessionObjects;
use crate::object::{Location, Object, record, term};
use crate::session::SessionGuard;
use crate::token::epoch::Epoch;
use crate::token::handles::Handles;
use crate::token::{Login, Token};
use metaslot_ck::attribute;
use metaslot_ck::*;
use metaslot_rules::Purposes;
use metaslot_rules::counted;
use metaslot_rules::series::SeriesOfKey;
use metaslot_rules::{self as rules, Birth, Origin};
use metaslot_rules::{Typed, class_of, typed};
use metaslot_spi::Template;
use metaslot_spi::store::Change;
use metaslot_spi::{Attributes, NewObject, Secrets, Value};
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
            rules::check(&typed, class, attribute::CREATE, login)?;
            typed
        };
        if let Some(home) = token.home.filter(|_| attributes.bool(CKA_TOKEN)) {
            return self.create_at_home(&session, token, home, attributes, &secrets);
        }
        let mut made = NewObject { attributes, secrets };
        if attribute::class_bit(class)
            .is_some_and(|bit| bit & (attribute::KEYS | attribute::DOMAIN) != 0)
        {
            made.attributes.ulong(CKA_KEY_TYPE).ok_or(Error::TEMPLATE_INCOMPLETE)?;
            let said = made.attributes.remove(CKA_VALUE_LEN);
            self.complete(&mut made)?;
            if said.is_some_and(|said| made.attributes.get(CKA_VALUE_LEN) != Some(&said)) {
                return Err(Error::TEMPLATE_INCONSISTENT);
            }
            token.policy().making(&made.attributes, false)?;
            token.policy().parity(&made.attributes, &made.secrets)?;
        }
        let purposes = Purposes::at_birth(&made.attributes, class);
        let birth = Birth::new(Origin::Created, purposes, login);
        let object = rules::complete(birth, class, Attributes::new(), made)?;
        self.add(&mut session, vec![object]).map(|handles| handles[0])
    }

    /// Puts new objects where their templates say, all or none.
    pub(crate) fn add(
        &self,
        session: &mut SessionGuard<'_>,
        mut objects: Vec<NewObject>,
    ) -> Result<Vec<ObjectHandle>> {
        let token = self.token(session.slot)?;
        let epoch = token.epoch();
        for object in &mut objects {
            if object.attributes.bool(CKA_PRIVATE) && epoch.login() != Login::User {
                return Err(Error::USER_NOT_LOGGED_IN);
            }
            object.attributes.set(CKA_UNIQUE_ID, Value::Bytes(self.unique_id()?));
        }
        if objects.iter().any(|o| o.attributes.bool(CKA_TOKEN)) && !session.write {
            return Err(Error::SESSION_READ_ONLY);
        }
        // What is durable when it is written comes last: those in memory can be taken back.
        let (slot, mut changes, mut put) = (session.slot, Vec::new(), Vec::new());
        let mut ready = |mut object: NewObject| {
            if !object.attributes.bool(CKA_TOKEN) {
                put.push(self.put(session, in_memory(object, slot, epoch))?);
                return Ok(None);
            }
            counted::born(&mut object.attributes, &*token.store)?;
            changes.push(Change::Insert(record(&object.attributes, &object.secrets)?));
            Ok(Some(object.attributes.bool(CKA_PRIVATE)))
        };
        let ready = objects.into_iter().map(&mut ready).collect::<Result<Vec<_>>>();
        let ids = ready.and_then(|ready| match changes.is_empty() {
            true => Ok((ready, Vec::new())),
            false => Ok((ready, token.store.write(changes)?)),
        });
        if ids.is_err() {
            for handle in &put {
                drop(self.session_objects.take(*handle, &token.clock, |_| Ok(())));
            }
        }
        let (ready, ids) = ids?;
        let (mut ids, mut put) = (ids.into_iter(), put.into_iter());
        let handle = |private: Option<bool>| match private {
            // After a logout meanwhile there is no handle by which it could be used.
            Some(private) => ids
                .next()
                .map(|id| token.name(id, private, epoch).unwrap_or_else(|| token.handles.dead())),
            None => put.next(),
        };
        ready.into_iter().map(handle).collect::<Option<Vec<_>>>().ok_or(Error::GENERAL_ERROR)
    }

    /// Puts an object of this session where it is seen. A private one whose login has just ended is
    /// as dead as if the logout had come a moment later.
    fn put(&self, session: &mut SessionGuard<'_>, object: Object) -> Result<ObjectHandle> {
        let (token, handle) = (self.token(session.slot)?, object.handle);
        session.own(handle, &self.session_objects)?;
        self.session_objects.put(object, |object| token.shows(object, token.epoch()))?;
        Ok(handle)
    }

    fn unique_id(&self) -> Result<Vec<u8>> {
        let mut random = [0; 16];
        self.random_bytes(&mut random)?;
        let digit = |half: u8| b"0123456789abcdef"[usize::from(half)];
        Ok(random.map(|byte| [digit(byte >> 4), digit(byte & 15)]).as_flattened().to_vec())
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
        let epoch = token.epoch();
        let object = self.object_in(&session, object)?;
        if !object.attributes().bool(CKA_COPYABLE) {
            return Err(Error::ACTION_PROHIBITED);
        }
        let changes = typed(template, Some(object.class()))?;
        let login = epoch.login();
        let mut attributes =
            rules::change(object.subject(), &changes, attribute::COPY, login, token.policy())?;
        let its_token = token.home.filter(|_| attributes.bool(CKA_TOKEN));
        if let Some(home) = self.home_of(&object).or(its_token) {
            return self.copy_at_home(&session, token, home, &object, &attributes);
        }
        if attributes.bool(CKA_PRIVATE) && login != Login::User {
            return Err(Error::USER_NOT_LOGGED_IN);
        }
        attributes.set(CKA_UNIQUE_ID, Value::Bytes(self.unique_id()?));
        token.policy().unseal(object.subject(), &mut attributes);
        if object.class() == CKO_SECRET_KEY {
            let series = SeriesOfKey::of_copy().encode();
            attributes.set(attribute::CKA_IV_SERIES, Value::Bytes(series));
        }
        let material = Arc::clone(token.key(&object)?.material());
        if attributes.bool(CKA_TOKEN) {
            if !session.write {
                return Err(Error::SESSION_READ_ONLY);
            }
            let private = attributes.bool(CKA_PRIVATE);
            let record = record(&attributes, material.secrets())?;
            let ids = token.store.write(vec![Change::Insert(record)])?;
            let id = *ids.first().ok_or(Error::GENERAL_ERROR)?;
            return Ok(token.name(id, private, epoch).unwrap_or_else(|| token.handles.dead()));
        }
        let (handle, place) = (SessionObjects::next_handle(), Location::Session);
        let has_secrets = object.has_secrets();
        let copy = Object::new(handle, session.slot, place, attributes, has_secrets, epoch);
        copy.attach(material);
        self.put(&mut session, copy)
    }

    /// `C_DestroyObject`: after it no copy of a key remains in the process.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.7.3 names them.
    pub fn destroy_object(&self, session: SessionHandle, object: ObjectHandle) -> Result<()> {
        let session = self.session(session)?;
        let (token, write) = (self.token(session.slot)?, session.write);
        if Handles::fixed(object).is_some() {
            return self.object_of(token, object).and(Err(Error::ACTION_PROHIBITED));
        }
        let may = |object: &Object| match object.attributes().bool(CKA_DESTROYABLE) {
            true => Ok(()),
            false => Err(Error::ACTION_PROHIBITED),
        };
        let gone = if Handles::slot(object).is_none() {
            let seen = |object: &Object| match token.shows(object, token.epoch()) {
                true => may(object),
                false => Err(Error::OBJECT_HANDLE_INVALID),
            };
            self.session_objects.take(object, &token.clock, seen)?
        } else {
            self.write_version(token, object, |object, id, version| {
                may(object)?;
                let unique_id = term(object.attributes(), CKA_UNIQUE_ID);
                let delete = Change::Delete { id, version, unique_id };
                write.then_some(delete).ok_or(Error::SESSION_READ_ONLY)
            })?
        };
        drop(session);
        self.sweep(token, &gone);
        Ok(())
    }

    /// Writes a change of what is in the store: where another writer was faster, of what is there
    /// then. Gives the version that was changed, which is over or superseded.
    pub(crate) fn write_version(
        &self,
        token: &Token,
        handle: ObjectHandle,
        change: impl Fn(&Object, u64, u64) -> Result<Change>,
    ) -> Result<Arc<Object>> {
        let mut object = self.object_of(token, handle)?;
        loop {
            let Location::Token { id, version, .. } = object.place else {
                return Err(Error::OBJECT_HANDLE_INVALID);
            };
            let change = change(&object, id, version)?;
            let deletes = matches!(change, Change::Delete { .. });
            match token.store.write(vec![change]) {
                Ok(_) if deletes => {
                    token.objects.end(id);
                    token.clock.count_death();
                    return Ok(object);
                }
                Ok(_) => return Ok(object),
                Err(Error::OBJECT_HANDLE_INVALID) => {
                    let now = self.object_of(token, handle)?;
                    let name = |object: &Object| object.attributes().get(CKA_UNIQUE_ID).cloned();
                    if now.place == object.place || name(&now) != name(&object) {
                        return Err(Error::OBJECT_HANDLE_INVALID);
                    }
                    object = now;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Has every session let go of an object that was destroyed, unless none holds it: after this
    /// no copy of a key remains. The caller holds no session's lock.
    fn sweep(&self, token: &Token, gone: &Arc<Object>) {
        if Arc::strong_count(gone) > 1 || gone.has_others() {
            self.sweep_all(token);
        }
    }

    /// Has every session let go of what is over. The caller holds no session's lock.
    pub(crate) fn sweep_all(&self, token: &Token) {
        // A session that is reached after another login must not go back to this moment.
        self.sessions.each(token.slot, |session| session.catch_up(token.clock.now()));
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
        if object.has_secrets() && object.subject().shows_secrets() {
            match self.key(&object) {
                // One that is not private: all but its value is shown before a login.
                Err(Error::USER_NOT_LOGGED_IN) => {}
                key => drop(key?),
            }
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
        let seen = self.object_of(token, object)?;
        if seen.on_token() && !session.write {
            return Err(Error::SESSION_READ_ONLY);
        }
        if !seen.attributes().bool(CKA_MODIFIABLE) {
            return Err(Error::ACTION_PROHIBITED);
        }
        let changes = typed(template, Some(seen.class()))?;
        let changed = |old: &Object| {
            let login = token.login_state();
            rules::change(old.subject(), &changes, attribute::CHANGE, login, token.policy())
        };
        if Handles::slot(object).is_none() {
            return self.session_objects.update(object, |old| {
                match token.shows(old, token.epoch()) {
                    true => Ok(old.changed(changed(old)?)),
                    false => Err(Error::OBJECT_HANDLE_INVALID),
                }
            });
        }
        let written = self.write_version(token, object, |old, id, version| {
            let mut attributes = changed(old)?;
            counted::say(&changes.attributes, &mut attributes, &*token.store)?;
            let record = record(&attributes, &Secrets::new())?;
            Ok(Change::Update { id, version, record })
        });
        written.map(drop)
    }
}

fn in_memory(object: NewObject, slot: SlotId, epoch: Epoch) -> Object {
    let (handle, place) = (SessionObjects::next_handle(), Location::Session);
    Object::with_secrets(handle, slot, place, object.attributes, object.secrets, epoch)
}
