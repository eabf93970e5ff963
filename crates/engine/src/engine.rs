// SPDX-License-Identifier: Apache-2.0
//! The engine: one for each `C_Initialize`, with its slots, sessions and objects.

use crate::mechanism::Mechanism;
use crate::metaslot::policy::Policy;
use crate::metaslot::route::Routes;
use crate::object::Object;
use crate::object::session_objects::SessionObjects;
use crate::provider::Provider;
use crate::session::{SessionGuard, Sessions};
use crate::store::Store;
use crate::token::handles::Handles;
use crate::token::{Login, Token};
use crate::{Key, NewObject, Value};
use metaslot_ck::*;
use std::sync::Arc;

/// What the configuration says.
#[derive(Debug)]
pub struct Config {
    /// In order; at least one. The first is the metaslot.
    pub slots: Vec<SlotConfig>,
    /// In order of preference; at least one.
    pub providers: &'static [&'static dyn Provider],
}

/// One slot.
#[derive(Debug)]
pub struct SlotConfig {
    /// At most 64 bytes of UTF-8.
    pub description: String,
    /// Where its token lives.
    pub store: Box<dyn Store>,
    /// What is refused there.
    pub policy: Policy,
}

/// Everything that an initialised library knows.
#[derive(Debug)]
pub struct Engine {
    pub(crate) tokens: Vec<Token>,
    pub(crate) sessions: Sessions,
    pub(crate) session_objects: SessionObjects,
    pub(crate) routes: Routes,
    pub(crate) providers: &'static [&'static dyn Provider],
}

impl Engine {
    /// Opens nothing: stores and providers open at first use.
    #[must_use]
    pub fn new(config: Config) -> Self {
        metaslot_counters::name_mechanisms(|index| {
            Mechanism::all().get(usize::from(index)).map_or(0, |row| row.number)
        });
        for (number, provider) in config.providers.iter().enumerate() {
            metaslot_counters::name_provider(number, provider.name());
        }
        let tokens = (0..).zip(config.slots).map(|(number, slot)| {
            Token::new(SlotId(number), slot.description, slot.store, slot.policy)
        });
        Self {
            tokens: tokens.collect(),
            sessions: Sessions::default(),
            session_objects: SessionObjects::default(),
            routes: Routes::new(config.providers),
            providers: config.providers,
        }
    }

    pub(crate) fn token(&self, slot: SlotId) -> Result<&Token> {
        let at = usize::try_from(slot.0).unwrap_or(usize::MAX);
        self.tokens.get(at).ok_or(Error::SLOT_ID_INVALID)
    }

    pub(crate) fn session(&self, handle: SessionHandle) -> Result<SessionGuard<'_>> {
        self.sessions.lock(handle)
    }

    pub(crate) fn policy(&self, session: &SessionGuard<'_>) -> Result<&Policy> {
        Ok(&self.token(session.slot)?.policy)
    }

    /// The object that a session may see under this handle.
    pub(crate) fn object_in(
        &self,
        session: &SessionGuard<'_>,
        handle: ObjectHandle,
    ) -> Result<Arc<Object>> {
        let token = self.token(session.slot)?;
        let object = match Handles::slot(handle) {
            None => self.session_objects.find(handle)?,
            Some(slot) if slot == session.slot => {
                let (id, private) =
                    token.handles.row(handle).ok_or(Error::OBJECT_HANDLE_INVALID)?;
                let object = token.object(id)?;
                if object.private() != private {
                    return Err(Error::OBJECT_HANDLE_INVALID);
                }
                object
            }
            Some(_) => return Err(Error::OBJECT_HANDLE_INVALID),
        };
        let visible = !object.private() || token.login_state() == Login::User;
        if object.slot == session.slot && visible {
            Ok(object)
        } else {
            Err(Error::OBJECT_HANDLE_INVALID)
        }
    }

    /// The key under this handle, if it may be used so: usage, key type, allowed mechanisms.
    pub(crate) fn key_for(
        &self,
        session: &mut SessionGuard<'_>,
        handle: ObjectHandle,
        usage: CK_ATTRIBUTE_TYPE,
        mechanism: CK_MECHANISM_TYPE,
    ) -> Result<Arc<Object>> {
        let object = match session.take_recent(handle) {
            Some(object) if self.is_current(&object) => object,
            _ => self.object_in(session, handle).map_err(|error| match error {
                Error::OBJECT_HANDLE_INVALID => Error::KEY_HANDLE_INVALID,
                other => other,
            })?,
        };
        let facts = object.facts();
        if !facts.is_key() {
            return Err(Error::KEY_HANDLE_INVALID);
        }
        let row = Mechanism::find(mechanism).ok_or(Error::MECHANISM_INVALID)?;
        if !row.keys.contains(&facts.key_type) {
            return Err(Error::KEY_TYPE_INCONSISTENT);
        }
        if !facts.may(usage) {
            return Err(Error::KEY_FUNCTION_NOT_PERMITTED);
        }
        if facts.restricted
            && let Some(Value::Ulongs(allowed)) = object.attributes().get(CKA_ALLOWED_MECHANISMS)
            && !allowed.contains(&mechanism)
        {
            return Err(Error::MECHANISM_INVALID);
        }
        Ok(object)
    }

    /// Whether nobody, in this process or another, changed the object since it was read.
    fn is_current(&self, object: &Object) -> bool {
        !object.on_token()
            || self.token(object.slot).is_ok_and(|token| object.seen_at(token.store.generation()))
    }

    pub(crate) fn key<'a>(&self, object: &'a Object) -> Result<&'a Arc<Key>> {
        match object.key() {
            Some(key) => Ok(key),
            None => self.token(object.slot)?.key(object),
        }
    }

    /// `C_GenerateRandom`
    ///
    /// # Errors
    /// `CKR_SESSION_HANDLE_INVALID`, `CKR_DEVICE_ERROR`
    pub fn random(&self, session: SessionHandle, out: &mut [u8]) -> Result<()> {
        self.sessions.info(session)?;
        self.random_bytes(out)
    }

    pub(crate) fn random_bytes(&self, out: &mut [u8]) -> Result<()> {
        self.first(|provider| provider.random(out))
    }

    /// Completes a key that came from outside.
    pub(crate) fn complete(&self, key: &mut NewObject) -> Result<()> {
        self.first(|provider| provider.complete(key))
    }

    /// What the first provider says that has something to say about it.
    pub(crate) fn first<T>(
        &self,
        mut ask: impl FnMut(&'static dyn Provider) -> Result<T>,
    ) -> Result<T> {
        let mut answer = Err(Error::FUNCTION_NOT_SUPPORTED);
        for provider in self.providers {
            answer = ask(*provider);
            let anothers = matches!(
                answer,
                Err(Error::CURVE_NOT_SUPPORTED
                    | Error::KEY_NOT_WRAPPABLE
                    | Error::WRAPPED_KEY_INVALID
                    | Error::RANDOM_NO_RNG)
            );
            if !anothers {
                break;
            }
        }
        answer
    }

    /// `C_SeedRandom`: the source seeds itself, and foreign seeds add nothing to it; taken and
    /// left, as programs expect.
    ///
    /// # Errors
    /// `CKR_SESSION_HANDLE_INVALID`
    pub fn seed_random(&self, session: SessionHandle, _seed: &[u8]) -> Result<()> {
        self.sessions.info(session).map(drop)
    }

    /// Goes quiet for a fork: holds nothing and has nothing open when it returns.
    pub fn before_fork(&self) {
        for token in &self.tokens {
            token.store.before_fork();
        }
    }

    /// In the parent, after a fork.
    pub fn after_fork(&self) {
        for token in &self.tokens {
            token.store.after_fork();
        }
    }
}
