// SPDX-License-Identifier: Apache-2.0
//! The rows of a token that this process knows: a cache of bounded size, and what is in use
//! besides. The thread that destroys a row ends its life here, and so reaches every holder.

use crate::object::{Life, Object};
use metaslot_rules::counted::Memory;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const SHARDS: usize = 16;

/// By row.
#[derive(Debug)]
pub(crate) struct TokenObjects {
    shards: [Mutex<Shard>; SHARDS],
    /// Most rows in a shard that no other thread holds.
    cached: usize,
    /// What this process has taken of them.
    pub(crate) memory: Memory,
}

#[derive(Debug, Default)]
struct Shard {
    rows: HashMap<u64, Known>,
    /// Beyond so many it is looked for those that can go.
    limit: usize,
}

/// One row. It stays for as long as anybody shares its life.
#[derive(Debug, Default)]
struct Known {
    /// Shared by every version of the object.
    life: Arc<Life>,
    /// The version that was read last.
    object: Option<Arc<Object>>,
}

impl Known {
    /// Whether this is the only reference: another is only to be had through the locked shard.
    fn is_idle(&self) -> bool {
        let own = 1 + usize::from(self.object.is_some());
        let alone = self.object.as_ref().is_none_or(|object| Arc::strong_count(object) == 1);
        alone && Arc::strong_count(&self.life) == own
    }
}

impl Shard {
    /// The row, which is known from now on.
    fn know(&mut self, id: u64, cached: usize) -> &mut Known {
        if !self.rows.contains_key(&id) && self.rows.len() >= self.limit.max(cached) {
            let surplus = self.rows.len() + 1 - cached;
            let idle = self.rows.iter().filter(|(_, known)| known.is_idle());
            let gone: Vec<u64> = idle.map(|(id, _)| *id).take(surplus).collect();
            for id in gone {
                self.rows.remove(&id);
            }
            // Where more are held, an eighth comes before the next look: it costs little each time.
            let len = self.rows.len();
            self.limit = if len < cached { cached } else { len + len / 8 + 1 };
        }
        self.rows.entry(id).or_default()
    }
}

impl TokenObjects {
    pub(crate) fn new(cached: usize) -> Self {
        let cached = (cached / SHARDS).max(1);
        Self { shards: Default::default(), cached, memory: Memory::default() }
    }

    fn shard(&self, id: u64) -> MutexGuard<'_, Shard> {
        lock(&self.shards[usize::try_from(id).unwrap_or(0) % SHARDS])
    }

    /// The version that was read last.
    pub(crate) fn find(&self, id: u64) -> Option<Arc<Object>> {
        self.shard(id).rows.get(&id)?.object.clone()
    }

    /// The life of a row that is about to be read: who destroys it meanwhile ends it.
    pub(crate) fn life(&self, id: u64) -> Arc<Life> {
        Arc::clone(&self.shard(id).know(id, self.cached).life)
    }

    /// Keeps what was read, unless the row was destroyed meanwhile, or `stays` says otherwise: who ends
    /// a login and lets go of what it opened comes after that, or was seen by it.
    pub(crate) fn keep(&self, id: u64, object: &Arc<Object>, stays: impl FnOnce() -> bool) {
        if let Some(known) = self.shard(id).rows.get_mut(&id)
            && object.shares(&known.life)
            && stays()
            && let Some(old) = known.object.replace(Arc::clone(object))
        {
            old.supersede();
        }
    }

    /// The row is gone: so is every version of it, no matter who holds it.
    pub(crate) fn end(&self, id: u64) {
        self.memory.forget(id);
        if let Some(known) = self.shard(id).rows.remove(&id) {
            known.life.end();
        }
    }

    /// Lets go of those for which `leaves` is true; they stay known for as long as they are held.
    pub(crate) fn let_go(&self, leaves: impl Fn(&Object) -> bool) {
        for shard in &self.shards {
            lock(shard).rows.retain(|_, known| {
                known.object = known.object.take().filter(|object| !leaves(object));
                !(known.object.is_none() && known.is_idle())
            });
        }
    }

    /// Every row is gone.
    pub(crate) fn end_all(&self) {
        self.memory.clear();
        for shard in &self.shards {
            for (_, known) in lock(shard).rows.drain() {
                known.life.end();
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Location;
    use crate::token::epoch::{Clock, Epoch, Login};
    use metaslot_ck::{CKA_PRIVATE, ObjectHandle, SlotId};
    use metaslot_spi::{Attributes, Value};

    fn read(objects: &TokenObjects, epoch: Epoch) -> Arc<Object> {
        let attributes: Attributes = [(CKA_PRIVATE, Value::Bool(true))].into_iter().collect();
        let place = Location::Token { id: 1, version: 1, verified: true };
        let object = Object::new(ObjectHandle(6), SlotId(0), place, attributes, true, epoch);
        Arc::new(object.living(objects.life(1)))
    }

    #[test]
    fn what_was_read_as_its_login_ended_is_not_kept() {
        let (objects, clock) = (TokenObjects::new(SHARDS), Clock::default());
        clock.begin(Login::User);
        let epoch = clock.epoch();
        let object = read(&objects, epoch);
        objects.keep(1, &object, || clock.epoch() == epoch);
        assert!(objects.find(1).is_some());
        objects.let_go(|_| true);
        let object = read(&objects, epoch);
        clock.begin(Login::Public);
        objects.let_go(|_| true);
        objects.keep(1, &object, || clock.epoch() == epoch);
        assert!(objects.find(1).is_none());
    }
}
