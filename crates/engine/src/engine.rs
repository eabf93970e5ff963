// SPDX-License-Identifier: Apache-2.0
//! The engine: one for each `C_Initialize`, with its slots, sessions and objects.

use crate::object::session_objects::SessionObjects;
use crate::object::{Location, Object};
use crate::session::{SessionGuard, Sessions};
use crate::token::handles::Handles;
use crate::token::{CACHED, SlotConfig, Token};
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::*;
use metaslot_router::tested::Tested;
use metaslot_router::{Count, HomeRoute, Routes, Settings};
use metaslot_rules::Policy;
use metaslot_spi::provider::{Algorithm, Provider};
use metaslot_spi::store::Home;
use metaslot_spi::{Key, NewObject, detail};
use std::sync::Arc;

/// What the configuration says.
#[derive(Debug)]
pub struct Config {
    /// In order; at least one. The first is the metaslot.
    pub slots: Vec<SlotConfig>,
    /// In order of preference; at least one.
    pub providers: &'static [&'static dyn Provider],
}

/// Everything that an initialised library knows.
#[derive(Debug)]
pub struct Engine {
    pub(crate) tokens: Vec<Token>,
    pub(crate) sessions: Sessions,
    pub(crate) session_objects: SessionObjects,
    pub(crate) routes: Arc<Routes>,
    /// Providers that are configured and not there, and why.
    pub(crate) absent: Vec<(String, String)>,
}

/// The number of a home in the counters, which the tokens of one module share.
fn home_route(names: &mut Vec<&'static str>, home: &'static dyn Home) -> HomeRoute {
    let known = names.iter().position(|name| *name == home.name());
    let number = known.unwrap_or_else(|| {
        metaslot_counters::name_provider(names.len(), home.name());
        names.push(home.name());
        names.len() - 1
    });
    HomeRoute::new(number, home)
}

/// The same failure of a key.
#[cold]
fn of_key(error: Error) -> Error {
    if error == Error::OBJECT_HANDLE_INVALID { Error::KEY_HANDLE_INVALID } else { error }
}

impl Engine {
    /// Opens nothing: stores and providers open at first use.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let routes = Routes::new(config.providers, Settings::default());
        Self::with(config, CACHED, Arc::new(routes))
    }

    /// As [`Self::new`], with room for `cached` objects of each token, and routes that engines may share.
    #[must_use]
    pub fn with(config: Config, cached: usize, routes: Arc<Routes>) -> Self {
        metaslot_counters::name_mechanisms(|index| {
            MechanismRow::all().get(index).map_or(0, |row| row.number)
        });
        for (number, provider) in config.providers.iter().enumerate() {
            metaslot_counters::name_provider(number, provider.name());
        }
        let mut names: Vec<_> = config.providers.iter().map(|provider| provider.name()).collect();
        let tokens = (0..).zip(config.slots).map(|(number, slot)| {
            Token::new(SlotId(number), slot, |home| home_route(&mut names, home), cached)
        });
        Self {
            tokens: tokens.collect(),
            sessions: Sessions::default(),
            session_objects: SessionObjects::default(),
            routes,
            absent: Vec::new(),
        }
    }

    /// Names providers that are configured and could not be loaded, each with its reason, for errors and explanations.
    #[must_use]
    pub fn without(self, absent: Vec<(String, String)>) -> Self {
        Self { absent, ..self }
    }

    /// Operations that begin from here on are routed by these; says whether anything changed.
    pub fn change_routes(&self, settings: Settings) -> bool {
        self.routes.change(settings)
    }

    /// The policy of a slot is this one, for calls that begin from here on.
    ///
    /// # Errors
    /// `CKR_SLOT_ID_INVALID`
    pub fn set_policy(&self, slot: SlotId, policy: Policy) -> Result<()> {
        self.token(slot).map(|token| token.set_policy(policy))
    }

    /// Who does the work: what each is expected to take, and takes.
    #[must_use]
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    pub(crate) fn token(&self, slot: SlotId) -> Result<&Token> {
        let at = usize::try_from(slot.0).unwrap_or(usize::MAX);
        self.tokens.get(at).ok_or_else(|| self.no_slot())
    }

    #[cold]
    fn no_slot(&self) -> Error {
        if let Some((name, reason)) = self.absent.first() {
            detail::set(format_args!("{name} has no slot: it {reason}"));
        }
        Error::SLOT_ID_INVALID
    }

    /// The session under its lock, with nothing in it that is over: each call begins here.
    #[inline(always)]
    pub(crate) fn session(&self, handle: SessionHandle) -> Result<SessionGuard<'_>> {
        let mut session = self.sessions.lock(handle)?;
        let token = self.token(session.slot)?;
        session.catch_up(token.clock.now());
        if session.may_miss_rows(&*token.store) {
            session.look_for_rows(&*token.store);
            // A logout of this moment hides rows too: then all else that it ends is over.
            session.catch_up(token.clock.now());
        }
        Ok(session)
    }

    pub(crate) fn policy(&self, session: &SessionGuard<'_>) -> Result<Policy> {
        Ok(self.token(session.slot)?.policy())
    }

    /// The object that a session may see under this handle.
    pub(crate) fn object_in(
        &self,
        session: &SessionGuard<'_>,
        handle: ObjectHandle,
    ) -> Result<Arc<Object>> {
        self.object_of(self.token(session.slot)?, handle)
    }

    /// The object that the sessions of a slot may see under this handle.
    pub(crate) fn object_of(&self, token: &Token, handle: ObjectHandle) -> Result<Arc<Object>> {
        loop {
            let epoch = token.epoch();
            let found = match Handles::slot(handle) {
                None => self.session_objects.find(handle),
                Some(slot) if slot == token.slot => match Handles::fixed(handle) {
                    Some((class, _)) => self.fixed_object(token, handle, class, epoch),
                    None => token.find(handle, epoch),
                },
                Some(_) => return Err(Error::OBJECT_HANDLE_INVALID),
            };
            // Who logs in or out meanwhile may have changed what is read: then it is read again.
            if token.epoch() == epoch {
                return found.and_then(|object| match token.shows(&object, epoch) {
                    true => Ok(object),
                    false => Err(Error::OBJECT_HANDLE_INVALID),
                });
            }
        }
    }

    /// The key under this handle, if it may be used so: usage, key type, allowed mechanisms. Its material is at hand.
    pub(crate) fn key_for(
        &self,
        session: &mut SessionGuard<'_>,
        handle: ObjectHandle,
        usage: CK_ATTRIBUTE_TYPE,
        mechanism: CK_MECHANISM_TYPE,
    ) -> Result<Arc<Object>> {
        let object = match session.recent.take(handle) {
            Some(object) if self.is_current(&object) => object,
            _ => self.object_in(session, handle).map_err(of_key)?,
        };
        let facts = object.facts();
        if !facts.is_key() {
            return Err(Error::KEY_HANDLE_INVALID);
        }
        let row = MechanismRow::find(mechanism).ok_or(Error::MECHANISM_INVALID)?;
        if !row.keys.contains(&facts.key_type) {
            return Err(Error::KEY_TYPE_INCONSISTENT);
        }
        if !facts.may(usage) {
            return Err(Error::KEY_FUNCTION_NOT_PERMITTED);
        }
        if !object.subject().allows(mechanism) {
            return Err(Error::MECHANISM_INVALID);
        }
        // The key may have gone since it was looked up.
        self.key(&object).map_err(of_key)?;
        Ok(object)
    }

    /// Whether no process, this one included, changed the object since it was read, and it was
    /// read in this login. (What is over a session lets go of before each call.)
    fn is_current(&self, object: &Object) -> bool {
        !object.on_token()
            || self.token(object.slot).is_ok_and(|token| {
                object.epoch == token.epoch() && object.is_current_in(&*token.store)
            })
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
        // A source that fails is none: the next one is asked.
        self.routes
            .first(Error::RANDOM_NO_RNG, |it| it.random(out).map_err(|_| Error::RANDOM_NO_RNG))
    }

    /// Completes a key that came from outside.
    pub(crate) fn complete(&self, key: &mut NewObject) -> Result<()> {
        self.routes.first(Error::ATTRIBUTE_VALUE_INVALID, |provider| provider.complete(key))
    }

    /// The provider's implementation of one operation of `mechanism`.
    pub(crate) fn route<T: Tested>(
        &self,
        mechanism: CK_MECHANISM_TYPE,
        operation: impl Fn(&'static Algorithm) -> Option<T>,
    ) -> Result<(Count, T)> {
        self.routes.find(mechanism, operation)
    }

    /// What keeps the key of an object, where that is not this library.
    pub(crate) fn home_of(&self, object: &Object) -> Option<HomeRoute> {
        let Location::Token { id, .. } = object.place else { return None };
        self.token(object.slot).ok()?.home_of(id)
    }

    /// Who serves an operation with the key of an object: the token that keeps it, or the first
    /// provider. A public key has nothing to keep.
    pub(crate) fn route_with<T: Tested>(
        &self,
        object: &Object,
        mechanism: CK_MECHANISM_TYPE,
        operation: impl Fn(&'static Algorithm) -> Option<T>,
    ) -> Result<(Count, T)> {
        match self.home_of(object) {
            None => self.route(mechanism, operation),
            Some(home) if object.class() == CKO_PUBLIC_KEY => {
                self.route(mechanism, &operation).or_else(|_| home.find(mechanism, operation))
            }
            Some(home) => home.find(mechanism, operation),
        }
    }

    /// Refuses what is not done with keys that their token keeps.
    pub(crate) fn kept_here(&self, object: &Object) -> Result<()> {
        let Some(home) = self.home_of(object).filter(|_| object.facts().is_key()) else {
            return Ok(());
        };
        let name = home.home.name();
        detail::set(format_args!("{name} keeps its keys: this is not done with them"));
        Err(Error::FUNCTION_NOT_SUPPORTED)
    }

    /// The error of an operation that cannot start: that no provider serves it comes before `error`.
    #[cold]
    pub(crate) fn refused<T: Tested>(
        &self,
        mechanism: CK_MECHANISM_TYPE,
        operation: impl Fn(&'static Algorithm) -> Option<T>,
        error: Error,
    ) -> Error {
        self.route(mechanism, operation).err().unwrap_or(error)
    }

    /// `C_SeedRandom`: the source seeds itself, and foreign seeds add nothing to it; taken and left, as programs expect.
    ///
    /// # Errors
    /// `CKR_SESSION_HANDLE_INVALID`
    pub fn seed_random(&self, session: SessionHandle, _seed: &[u8]) -> Result<()> {
        self.sessions.info(session).map(drop)
    }
}
