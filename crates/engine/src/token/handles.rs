// SPDX-License-Identifier: Apache-2.0
//! Handles of token objects: arithmetic instead of a table.
//!
//! A handle is `(base + row id) << 8 | slot << 2 | kind`. Bases come from a process-wide high-water
//! mark, so a handle from before a logout, a `C_Finalize` or a fork lies below every base in use: it
//! is known to be stale, without any memory per object, and no handle ever comes back.

use metaslot_ck::{ObjectHandle, SlotId};
use std::sync::atomic::{AtomicU64, Ordering};

/// Above every number that was ever named.
static HIGH: AtomicU64 = AtomicU64::new(0);

const PUBLIC: u64 = 1;
const PRIVATE: u64 = 2;

/// The handles of one token.
#[derive(Debug)]
pub(crate) struct Handles {
    slot: u64,
    public: AtomicU64,
    private: AtomicU64,
}

impl Handles {
    pub(crate) fn new(slot: SlotId) -> Self {
        let base = HIGH.load(Ordering::Acquire);
        Self { slot: slot.0, public: AtomicU64::new(base), private: AtomicU64::new(base) }
    }

    /// Makes every private handle stale.
    pub(crate) fn renew_private(&self) {
        self.private.store(HIGH.load(Ordering::Acquire), Ordering::Release);
    }

    /// Makes every handle stale.
    pub(crate) fn renew(&self) {
        self.public.store(HIGH.load(Ordering::Acquire), Ordering::Release);
        self.renew_private();
    }

    /// The handle of row `id`.
    pub(crate) fn name(&self, id: u64, private: bool) -> ObjectHandle {
        let (base, kind) = if private { (&self.private, PRIVATE) } else { (&self.public, PUBLIC) };
        let number = base.load(Ordering::Acquire) + id;
        if HIGH.load(Ordering::Relaxed) <= number {
            HIGH.fetch_max(number + 1, Ordering::AcqRel);
        }
        ObjectHandle(number << 8 | self.slot << 2 | kind)
    }

    /// The slot in a handle of a token object; `None` for a session object.
    pub(crate) const fn slot(handle: ObjectHandle) -> Option<SlotId> {
        if handle.0 & 3 == 0 { None } else { Some(SlotId(handle.0 >> 2 & 63)) }
    }

    /// The row of a handle and whether it is private; `None` when it is stale.
    pub(crate) fn row(&self, handle: ObjectHandle) -> Option<(u64, bool)> {
        let (base, private) = match handle.0 & 3 {
            PUBLIC => (&self.public, false),
            PRIVATE => (&self.private, true),
            _ => return None,
        };
        let id = (handle.0 >> 8).checked_sub(base.load(Ordering::Acquire))?;
        (id > 0).then_some((id, private))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_finds_its_row_until_renewed() {
        let handles = Handles::new(SlotId(3));
        let (public, private) = (handles.name(7, false), handles.name(7, true));
        assert_eq!(Handles::slot(public), Some(SlotId(3)));
        assert_eq!(handles.row(public), Some((7, false)));
        assert_eq!(handles.row(private), Some((7, true)));
        handles.renew_private();
        assert_eq!(handles.row(public), Some((7, false)));
        assert_eq!(handles.row(private), None);
        assert_ne!(handles.name(7, true), private);
        handles.renew();
        assert_eq!(handles.row(public), None);
    }
}
