// SPDX-License-Identifier: Apache-2.0
//! A slot with its token: login, and the objects of the store as this process knows them.

pub(crate) mod handles;
pub(crate) mod login;

use crate::attributes::Secrets;
use crate::key::Material;
use crate::metaslot::policy::Policy;
use crate::object::{Object, Place};
use crate::store::Store;
use crate::{Attributes, Key, Value};
use handles::Handles;
use metaslot_ck::{CKA_TRUSTED, Error, Result, SlotId};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Who is logged in to a token, in this process.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Login {
    Public,
    User,
    So,
}

/// One slot. The slot number is its place in the configuration.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) slot: SlotId,
    pub(crate) description: String,
    pub(crate) store: Box<dyn Store>,
    pub(crate) policy: Policy,
    pub(crate) handles: Handles,
    login: AtomicU8,
    /// Taken while somebody logs in or out.
    changing: Mutex<()>,
    /// A session that is open for as long as somebody is logged in: closing any other one needs
    /// no look at how many are left.
    pub(crate) anchor: AtomicU64,
    cache: [Mutex<HashMap<u64, Arc<Object>>>; SHARDS],
}

const SHARDS: usize = 16;

/// Objects held per shard: 1,024 in all, so that the prepared keys fit protected memory.
const HELD: usize = 64;

impl Token {
    pub(crate) fn new(
        slot: SlotId,
        description: String,
        store: Box<dyn Store>,
        policy: Policy,
    ) -> Self {
        Self {
            slot,
            description,
            store,
            policy,
            handles: Handles::new(slot),
            login: AtomicU8::new(0),
            changing: Mutex::new(()),
            anchor: AtomicU64::new(0),
            cache: Default::default(),
        }
    }

    pub(crate) fn login_state(&self) -> Login {
        match self.login.load(Ordering::Acquire) {
            0 => Login::Public,
            1 => Login::User,
            _ => Login::So,
        }
    }

    fn shard(&self, id: u64) -> MutexGuard<'_, HashMap<u64, Arc<Object>>> {
        self.cache[usize::try_from(id).unwrap_or(0) % SHARDS]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The object in row `id` as it is now.
    pub(crate) fn object(&self, id: u64) -> Result<Arc<Object>> {
        let generation = self.store.generation();
        let held = self.shard(id).get(&id).cloned();
        if let Some(object) = &held
            && object.seen_at(generation)
        {
            return Ok(Arc::clone(object));
        }
        let Some(row) = self.store.read(id)? else {
            if let Some(object) = held {
                object.retire();
                self.shard(id).remove(&id);
            }
            return Err(Error::OBJECT_HANDLE_INVALID);
        };
        let place = Place::Token { id, version: row.version, verified: row.verified };
        if let Some(object) = held {
            if object.place == place {
                object.mark_seen(generation);
                return Ok(object);
            }
            object.retire();
        }
        let mut attributes = Attributes::decode(&row.attributes)?;
        if !row.verified && attributes.bool(CKA_TRUSTED) {
            // Somebody without a login may have written it.
            attributes.set(CKA_TRUSTED, Value::Bool(false));
        }
        let handle = self.handles.name(id, row.private);
        let object = Object::new(handle, self.slot, place, attributes, row.has_secrets);
        object.mark_seen(generation);
        Ok(self.hold(id, Arc::new(object)))
    }

    fn hold(&self, id: u64, object: Arc<Object>) -> Arc<Object> {
        let mut shard = self.shard(id);
        if shard.len() >= HELD
            && let Some(any) = shard.keys().next().copied()
        {
            shard.remove(&any);
        }
        shard.insert(id, Arc::clone(&object));
        object
    }

    /// Forgets the row: it was changed or destroyed here.
    pub(crate) fn forget(&self, id: u64) {
        if let Some(object) = self.shard(id).remove(&id) {
            object.retire();
        }
    }

    /// Forgets everything: the token was initialised anew.
    pub(crate) fn forget_all(&self) {
        for shard in &self.cache {
            for (_, object) in shard.lock().unwrap_or_else(PoisonError::into_inner).drain() {
                object.retire();
            }
        }
    }

    /// Has every object read again: what could not be verified before a login can be now.
    fn read_again(&self) {
        for shard in &self.cache {
            shard.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
    }

    /// Forgets every private object.
    fn forget_private(&self) {
        for shard in &self.cache {
            shard.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, object| {
                if object.private() || object.has_secrets() {
                    object.retire();
                    false
                } else {
                    true
                }
            });
        }
    }

    /// The key of an object, with its material read and opened if need be.
    pub(crate) fn key<'a>(&self, object: &'a Object) -> Result<&'a Arc<Key>> {
        if let Some(key) = object.key() {
            return Ok(key);
        }
        let secrets = match object.place {
            Place::Token { id, version, .. } if object.has_secrets() => {
                Secrets::decode(&self.store.secrets(id, version)?)?
            }
            _ => Secrets::new(),
        };
        Ok(object.attach(Arc::new(Material::new(secrets))))
    }
}
