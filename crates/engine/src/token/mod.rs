// SPDX-License-Identifier: Apache-2.0
//! A slot with its token: login, and the objects of the store as this process knows them.

pub(crate) mod epoch;
pub(crate) mod handles;
pub(crate) mod objects;

use crate::object::{Location, Object, one_time};
pub(crate) use epoch::Login;
use epoch::{Clock, Epoch};
use handles::Handles;
use metaslot_ck::attribute::{CKA_BIRTH_ROLES, CKA_PURPOSES};
use metaslot_ck::{
    CK_OBJECT_CLASS, CKA_CLASS, CKA_TRUST_OCSP_SIGNING, CKA_TRUST_SERVER_AUTH, CKA_TRUSTED,
    CKA_UNIQUE_ID, CKO_TRUST, CKT_NOT_TRUSTED, Error, ObjectHandle, Result, SlotId,
};
use metaslot_router::HomeRoute;
use metaslot_rules::Purposes;
use metaslot_rules::counted::Taken;
use metaslot_rules::policy::{CurrentPolicy, Policy};
use metaslot_spi::store::{Home, Name, ObjectRow, Role, Row, Store};
use metaslot_spi::{Attributes, Key, Material, Secrets, Value};
use objects::TokenObjects;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the configuration says of a slot.
#[derive(Debug)]
pub struct SlotConfig {
    /// At most 64 bytes of UTF-8.
    pub description: String,
    /// Where its token lives.
    pub store: Box<dyn Store>,
    /// What is refused there.
    pub policy: Policy,
}

/// One slot. The slot number is its place in the configuration.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) slot: SlotId,
    pub(crate) description: String,
    pub(crate) store: Arc<dyn Store>,
    policy: CurrentPolicy,
    /// What serves its keys, where they stay there.
    pub(crate) home: Option<HomeRoute>,
    /// What serves the keys of tokens that it shows, too.
    pub(crate) guests: Vec<HomeRoute>,
    /// Whether it was there at the last look.
    pub(crate) there: AtomicBool,
    /// Whether it came or went since the caller was told.
    pub(crate) event: AtomicBool,
    pub(crate) handles: Handles,
    pub(crate) clock: Clock,
    pub(crate) objects: TokenObjects,
    /// Which identity logged in last, where it was one.
    identity: Mutex<Option<Name>>,
    /// Taken while a login begins or ends, or initialises the token.
    changing: Mutex<()>,
    /// Whether a thread that opens a session has to wait, for the one that holds `changing`.
    closed: AtomicBool,
    /// While a user is logged in, a session that is open: closing any other one needs no look at how
    /// many are left. Or [`NO_WITNESS`], or [`HANDOVER`]. Only the thread that holds `changing` changes it, and closes
    /// the session that it names.
    pub(crate) witness: AtomicU64,
}

/// No login, so no witness.
pub(crate) const NO_WITNESS: u64 = 0;
/// The witness is being closed: a thread that closes another session has to look, too.
pub(crate) const HANDOVER: u64 = 1;

/// See [`Token::close_to_sessions`].
pub(crate) struct Closed<'a>(&'a AtomicBool);

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// Objects cached for each token, so that the prepared keys fit protected memory.
pub const CACHED: usize = 1024;

impl Token {
    /// `route`: to what serves the keys of a store that keeps them.
    pub(crate) fn new(
        slot: SlotId,
        config: SlotConfig,
        mut route: impl FnMut(&'static dyn Home) -> HomeRoute,
        cached: usize,
    ) -> Self {
        let SlotConfig { description, store, policy } = config;
        let home = store.home().map(&mut route);
        let guests = store.guests().into_iter().map(route).collect();
        Self {
            slot,
            description,
            store: Arc::from(store),
            policy: CurrentPolicy::new(policy),
            home,
            guests,
            there: AtomicBool::new(home.is_none_or(|home| home.home.is_there())),
            event: AtomicBool::new(false),
            handles: Handles::new(slot),
            clock: Clock::default(),
            objects: TokenObjects::new(cached),
            identity: Mutex::new(None),
            changing: Mutex::new(()),
            closed: AtomicBool::new(false),
            witness: AtomicU64::new(NO_WITNESS),
        }
    }

    /// What serves the key in this row, where its token keeps it.
    pub(crate) fn home_of(&self, row: u64) -> Option<HomeRoute> {
        match Row::of(row, self.guests.len()).guest {
            None => self.home,
            Some(guest) => self.guests.get(guest).copied(),
        }
    }

    /// What serves keys that stay in their tokens.
    pub(crate) fn homes(&self) -> impl Iterator<Item = &HomeRoute> {
        self.home.iter().chain(&self.guests)
    }

    /// What is refused here now.
    pub(crate) fn policy(&self) -> Policy {
        self.policy.get()
    }

    pub(crate) fn set_policy(&self, policy: Policy) {
        self.policy.set(policy);
    }

    /// Waits for a thread that logs in or out, or initialises the token.
    pub(crate) fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Which identity logged in last; locked for no longer than it takes to look.
    pub(crate) fn identity(&self) -> MutexGuard<'_, Option<Name>> {
        self.identity.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tries the PIN of the user who is logged in.
    pub(crate) fn check_pin(&self, pin: &[u8]) -> Result<()> {
        let identity = *self.identity();
        match identity {
            Some(name) => self.store.check_pin_as(name, pin),
            None => self.store.check_pin(Role::User, pin),
        }
    }

    /// No session is opened while this lives, except by those who began before; see
    /// [`crate::session::Sessions::settle`]. The caller holds `changing`.
    pub(crate) fn close_to_sessions(&self) -> Closed<'_> {
        self.closed.store(true, Ordering::SeqCst);
        Closed(&self.closed)
    }

    pub(crate) fn is_closed_to_sessions(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.clock.epoch()
    }

    pub(crate) fn login_state(&self) -> Login {
        self.epoch().login()
    }

    /// Whether someone is logged in to a token that is not there any more.
    pub(crate) fn has_void_login(&self) -> bool {
        self.login_state() != Login::Public && !self.store.keeps_login()
    }

    /// The handle of row `id` in `epoch`.
    pub(crate) fn name(&self, id: u64, private: bool, epoch: Epoch) -> Option<ObjectHandle> {
        self.handles.name(id, private, epoch, &self.clock)
    }

    /// The object under a handle of `epoch`, if that is not over afterwards.
    pub(crate) fn find(&self, handle: ObjectHandle, epoch: Epoch) -> Result<Arc<Object>> {
        let (id, private) = self.handles.row(handle, epoch).ok_or(Error::OBJECT_HANDLE_INVALID)?;
        let object = self.object(id, epoch)?;
        if object.private() == private { Ok(object) } else { Err(Error::OBJECT_HANDLE_INVALID) }
    }

    /// The handle of what this token says of itself.
    pub(crate) const fn fixed(&self, class: CK_OBJECT_CLASS, said: u64) -> ObjectHandle {
        self.handles.of_fixed(class, said)
    }

    /// Whether the sessions of this slot see the object in `epoch`.
    pub(crate) fn shows(&self, object: &Object, epoch: Epoch) -> bool {
        let hidden = object.private() && (epoch.login() != Login::User || object.epoch != epoch);
        object.slot == self.slot && !hidden
    }

    /// The object in row `id` as it is now. It was so in `epoch` if that is not over afterwards.
    pub(crate) fn object(&self, id: u64, epoch: Epoch) -> Result<Arc<Object>> {
        let generation = self.store.generation_of(id);
        match self.objects.find(id) {
            Some(object) if object.epoch == epoch && object.seen_at(generation) => Ok(object),
            held => self.read(id, epoch, generation, held),
        }
    }

    fn read(
        &self,
        id: u64,
        epoch: Epoch,
        generation: Option<u64>,
        held: Option<Arc<Object>>,
    ) -> Result<Arc<Object>> {
        let life = self.objects.life(id);
        let Some(row) = self.store.read(id)? else {
            // Without a login a private row is not there, which does not say that it is gone.
            let readable = epoch.login() != Login::Public && self.epoch() == epoch;
            if let Some(held) = held
                && (readable || !held.private())
            {
                self.objects.end(id);
                self.clock.count_death();
            }
            return Err(Error::OBJECT_HANDLE_INVALID);
        };
        let place = Location::Token { id, version: row.version, verified: row.verified };
        let held = held.filter(|held| held.epoch == epoch && held.shares(&life));
        let handle = self.name(id, row.private, epoch).ok_or(Error::OBJECT_HANDLE_INVALID)?;
        let object = self.typed(handle, place, row, epoch)?.living(life);
        // In an older store that was put back another object may be in the row, or the same one with other changes.
        let is_held =
            |held: &&Arc<Object>| held.place == place && held.attributes() == object.attributes();
        if let Some(held) = held.as_ref().filter(is_held) {
            held.mark_seen(generation);
            return Ok(Arc::clone(held));
        }
        // Each signature makes a new version of such a key, and its trees take long to grow.
        let name = |object: &Object| object.attributes().get(CKA_UNIQUE_ID).cloned();
        let same = |held: &&Arc<Object>| one_time::is(held) && name(held) == name(&object);
        if let Some(key) = held.as_ref().filter(same).and_then(|held| held.key()) {
            self.attach(&object, Arc::clone(key.material()));
        }
        object.mark_seen(generation);
        let object = Arc::new(object);
        self.objects.keep(id, &object, || !object.needs_login() || self.epoch() == epoch);
        // Destroyed since it was read: its holders have been looked for already.
        if object.has_ended() { Err(Error::OBJECT_HANDLE_INVALID) } else { Ok(object) }
    }

    fn typed(
        &self,
        handle: ObjectHandle,
        place: Location,
        row: ObjectRow,
        epoch: Epoch,
    ) -> Result<Object> {
        // A damaged row, which is passed over where it is one of many.
        let attributes = Attributes::decode(&row.attributes);
        let mut attributes = attributes.map_err(|_| Error::DEVICE_ERROR)?;
        if !row.verified {
            distrust(&mut attributes);
        }
        Ok(Object::new(handle, self.slot, place, attributes, row.has_secrets, epoch))
    }

    /// The key of an object, with its material read and opened if need be.
    pub(crate) fn key<'a>(&self, object: &'a Object) -> Result<&'a Arc<Key>> {
        if let Some(key) = object.key() {
            return Ok(key);
        }
        let secrets = match object.place {
            Location::Token { id, version, .. } if object.has_secrets() => {
                self.secrets(id, version)?
            }
            _ => Secrets::new(),
        };
        Ok(self.attach(object, Arc::new(Material::new(secrets))))
    }

    /// What this process has taken of an object.
    pub(crate) fn taken<'a>(&self, object: &'a Object) -> &'a Arc<Taken> {
        object.taken(|id, name| self.objects.memory.of(id, name))
    }

    /// Gives an object its material, and what counts its uses.
    fn attach<'a>(&self, object: &'a Object, material: Arc<Material>) -> &'a Arc<Key> {
        match object.place {
            Location::Token { id, .. } if one_time::is(object) => {
                let store = Arc::clone(&self.store);
                let taken = Arc::clone(self.taken(object));
                let name = object.attributes().get(CKA_UNIQUE_ID).cloned();
                let stored = one_time::Stored { store, id, name, taken };
                object.attach_counted(material, Arc::new(stored))
            }
            _ => object.attach(material),
        }
    }

    /// What a row keeps sealed, from the version that is there now: a change of attributes keeps it.
    fn secrets(&self, id: u64, mut version: u64) -> Result<Secrets> {
        loop {
            match self.store.secrets(id, version) {
                Err(error @ (Error::OBJECT_HANDLE_INVALID | Error::USER_NOT_LOGGED_IN)) => {
                    match self.store.read(id)? {
                        None => return Err(Error::OBJECT_HANDLE_INVALID),
                        Some(row) if row.version == version => return Err(error),
                        Some(row) => version = row.version,
                    }
                }
                secrets => return Secrets::decode(&secrets?).map_err(|_| Error::DEVICE_ERROR),
            }
        }
    }
}

/// Takes out of a row what the token or the SO alone vouches for: a program without a login may have
/// written it.
fn distrust(attributes: &mut Attributes) {
    if attributes.bool(CKA_TRUSTED) {
        attributes.set(CKA_TRUSTED, Value::Bool(false));
    }
    if attributes.ulong(CKA_CLASS) == Some(CKO_TRUST) {
        for usage in CKA_TRUST_SERVER_AUTH..=CKA_TRUST_OCSP_SIGNING {
            if attributes.ulong(usage).is_some_and(|said| said != u64::from(CKT_NOT_TRUSTED)) {
                attributes.remove(usage);
            }
        }
    }
    if [CKA_PURPOSES, CKA_BIRTH_ROLES].iter().any(|said| attributes.get(*said).is_some()) {
        let purposes = Purposes::of_key(attributes).without(Purposes::SEALED);
        attributes.set(CKA_PURPOSES, purposes.value());
    }
}
