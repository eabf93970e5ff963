// SPDX-License-Identifier: Apache-2.0
//! Objects in memory: a sharded table by handle.
//!
//! What depends on an object's being there is done under its shard's lock: a change is made of what is
//! there, a destroyed object is gone from the table and dead for its holders at one moment, and a
//! private object comes in only while its login lasts.

use super::Object;
use crate::token::epoch::Clock;
use metaslot_ck::{Error, ObjectHandle, Result};
use metaslot_spi::buffer::make_room;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

const SHARDS: usize = 16;

/// Goes on counting over re-initialisation and fork, so that no handle ever comes back.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// All session objects of all slots.
#[derive(Debug, Default)]
pub(crate) struct SessionObjects([RwLock<Shard>; SHARDS]);

type Shard = HashMap<u64, Arc<Object>>;

impl SessionObjects {
    /// A handle that no object ever had: the low bits say "session object".
    pub(crate) fn next_handle() -> ObjectHandle {
        ObjectHandle(NEXT.fetch_add(1, Ordering::Relaxed) << 2)
    }

    fn shard(&self, handle: ObjectHandle) -> &RwLock<Shard> {
        &self.0[(handle.0 >> 2) as usize % SHARDS]
    }

    fn write(&self, handle: ObjectHandle) -> RwLockWriteGuard<'_, Shard> {
        self.shard(handle).write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn find(&self, handle: ObjectHandle) -> Result<Arc<Object>> {
        let shard = self.shard(handle).read().unwrap_or_else(PoisonError::into_inner);
        shard.get(&handle.0).cloned().ok_or(Error::OBJECT_HANDLE_INVALID)
    }

    /// Whether the object is still there.
    pub(crate) fn has(&self, handle: ObjectHandle) -> bool {
        let shard = self.shard(handle).read().unwrap_or_else(PoisonError::into_inner);
        shard.contains_key(&handle.0)
    }

    /// Puts a new object under its handle, if `welcome` says so then.
    pub(crate) fn put(&self, object: Object, welcome: impl FnOnce(&Object) -> bool) -> Result<()> {
        let object = Arc::new(object);
        let mut shard = self.write(object.handle);
        shard.try_reserve(1).map_err(|_| Error::HOST_MEMORY)?;
        if welcome(&object) {
            shard.insert(object.handle.0, object);
        }
        Ok(())
    }

    /// Makes the next version of what is there.
    ///
    /// # Errors
    /// `CKR_OBJECT_HANDLE_INVALID`; what `change` says.
    pub(crate) fn update(
        &self,
        handle: ObjectHandle,
        change: impl FnOnce(&Object) -> Result<Object>,
    ) -> Result<()> {
        let mut shard = self.write(handle);
        let place = shard.get_mut(&handle.0).ok_or(Error::OBJECT_HANDLE_INVALID)?;
        let new = Arc::new(change(place)?);
        std::mem::replace(place, new).supersede();
        Ok(())
    }

    /// Destroys what is there, if `may` allows it.
    ///
    /// # Errors
    /// `CKR_OBJECT_HANDLE_INVALID`; what `may` says.
    pub(crate) fn take(
        &self,
        handle: ObjectHandle,
        clock: &Clock,
        may: impl FnOnce(&Object) -> Result<()>,
    ) -> Result<Arc<Object>> {
        let mut shard = self.write(handle);
        may(shard.get(&handle.0).ok_or(Error::OBJECT_HANDLE_INVALID)?)?;
        let object = shard.remove(&handle.0).ok_or(Error::OBJECT_HANDLE_INVALID)?;
        object.end();
        clock.count_death();
        Ok(object)
    }

    /// Destroys every object for which `leaves` is true.
    pub(crate) fn take_all(&self, clock: &Clock, leaves: impl Fn(&Object) -> bool) {
        for shard in &self.0 {
            let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
            for (_, object) in shard.extract_if(|_, object| leaves(object)) {
                object.end();
                clock.count_death();
            }
        }
    }

    /// The handles of those for which `wanted` is true, in ascending order.
    pub(crate) fn handles(&self, wanted: impl Fn(&Object) -> bool) -> Result<Vec<ObjectHandle>> {
        let mut found = Vec::new();
        for shard in &self.0 {
            let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
            for object in shard.values().filter(|object| wanted(object)) {
                make_room(&mut found, 1)?;
                found.push(object.handle);
            }
        }
        found.sort_unstable();
        Ok(found)
    }
}
