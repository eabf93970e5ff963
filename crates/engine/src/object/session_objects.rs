// SPDX-License-Identifier: Apache-2.0
//! Objects in memory: a sharded table by handle.

use super::Object;
use metaslot_ck::{Error, ObjectHandle, Result};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

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

    pub(crate) fn find(&self, handle: ObjectHandle) -> Result<Arc<Object>> {
        let shard = self.shard(handle).read().unwrap_or_else(PoisonError::into_inner);
        shard.get(&handle.0).cloned().ok_or(Error::OBJECT_HANDLE_INVALID)
    }

    /// Puts the object under its handle; what was there is retired.
    pub(crate) fn put(&self, object: Arc<Object>) {
        let shard = self.shard(object.handle);
        let old =
            shard.write().unwrap_or_else(PoisonError::into_inner).insert(object.handle.0, object);
        if let Some(old) = old {
            old.retire();
        }
    }

    pub(crate) fn take(&self, handle: ObjectHandle) -> Option<Arc<Object>> {
        let mut shard = self.shard(handle).write().unwrap_or_else(PoisonError::into_inner);
        let object = shard.remove(&handle.0)?;
        object.retire();
        Some(object)
    }

    /// Takes out every object for which `leaves` is true.
    pub(crate) fn take_all(&self, leaves: impl Fn(&Object) -> bool) {
        for shard in &self.0 {
            shard.write().unwrap_or_else(PoisonError::into_inner).retain(|_, object| {
                let goes = leaves(object);
                if goes {
                    object.retire();
                }
                !goes
            });
        }
    }

    /// The handles of those for which `wanted` is true, in ascending order.
    pub(crate) fn handles(&self, wanted: impl Fn(&Object) -> bool) -> Vec<ObjectHandle> {
        let mut found = Vec::new();
        for shard in &self.0 {
            let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
            found.extend(shard.values().filter(|object| wanted(object)).map(|o| o.handle));
        }
        found.sort_unstable();
        found
    }
}
