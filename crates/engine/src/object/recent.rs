// SPDX-License-Identifier: Apache-2.0
//! The keys that a session used last, and whether what it did last was approved.

use super::Object;
use crate::token::epoch::Epoch;
use metaslot_ck::ObjectHandle;
use std::sync::Arc;

/// The keys used last: found again without touching a shared reference count.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    keys: [Option<Arc<Object>>; 2],
    /// Whether the operation that was completed last began under a policy that refuses what is not approved.
    approved: bool,
}

impl Recent {
    /// Takes a key back after its operation. If it is over by now, the next call lets go of it.
    pub(crate) fn keep(&mut self, object: Option<Arc<Object>>) {
        if object.as_ref().is_some_and(|object| !object.is_superseded()) {
            self.keys.swap(0, 1);
            self.keys[0] = object;
        }
    }

    /// A key used a moment ago.
    pub(crate) fn take(&mut self, handle: ObjectHandle) -> Option<Arc<Object>> {
        let kept =
            self.keys.iter_mut().find(|kept| kept.as_ref().is_some_and(|o| o.handle == handle))?;
        kept.take().filter(|object| !object.is_superseded())
    }

    /// Lets go of what nothing may be done with any more.
    pub(crate) fn drop_over(&mut self, now: Epoch) {
        for kept in &mut self.keys {
            if kept.as_ref().is_some_and(|object| object.is_superseded() || object.is_over(now)) {
                *kept = None;
            }
        }
    }

    /// An operation is completed that was approved when it began, or not.
    pub(crate) const fn completes(&mut self, approved: bool) {
        self.approved = approved;
    }

    /// Whether the operation that was completed last was approved.
    pub(crate) const fn was_approved(&self) -> bool {
        self.approved
    }
}
