// SPDX-License-Identifier: Apache-2.0
//! Jobs whose owners come back for them.

use std::cell::UnsafeCell;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

use super::core::Core;
use super::kernel::{Failure, Kernel};
use super::platform::Platform;
use super::queue::Node;

/// What lies on the heap; freed by the owner of the ticket, once no leader has it.
struct Held<J, P: Platform> {
    node: Node<J, P>,
    job: UnsafeCell<J>,
}

/// The owner's end of a submitted job.
pub(super) struct CoreTicket<'a, K: Kernel, P: Platform> {
    core: &'a Core<K, P>,
    held: NonNull<Held<K::Job<'static>, P>>,
}

// SAFETY: the ticket owns its job, which may move between threads, and the combiner is shared.
unsafe impl<K: Kernel, P: Platform + Sync> Send for CoreTicket<'_, K, P> {}

impl<'a, K: Kernel, P: Platform> CoreTicket<'a, K, P>
where
    K::Job<'static>: 'static,
{
    pub(super) fn submit(core: &'a Core<K, P>, job: K::Job<'static>, eager: bool) -> Self {
        let node = Node::new(NonNull::dangling());
        let held = Box::leak(Box::new(Held { node, job: UnsafeCell::new(job) }));
        let ticket = Self { core, held: NonNull::from(held) };
        let held = ticket.held();
        held.node.job.set(NonNull::new(held.job.get()).unwrap_or(NonNull::dangling()));
        let node = NonNull::from(&held.node);
        // SAFETY: the box is freed by `complete` and `drop` only, after the core said that it may be. A ticket that is
        // forgotten leaves it where it is for ever; its job borrows nothing (`'static`).
        unsafe { core.submit(node, eager) };
        ticket
    }
}

impl<K: Kernel, P: Platform> CoreTicket<'_, K, P> {
    pub(super) fn poll(&self) -> bool {
        self.core.poll(&self.held().node)
    }

    pub(super) fn complete(self) -> Result<K::Job<'static>, Failure> {
        self.core.complete(&self.held().node)?;
        let this = ManuallyDrop::new(self);
        // SAFETY: it came from a box, and no leader has it any more.
        let held = unsafe { Box::from_raw(this.held.as_ptr()) };
        Ok(held.job.into_inner())
    }

    const fn held(&self) -> &Held<K::Job<'static>, P> {
        // SAFETY: it lives as long as the ticket; its parts are shared only as the node's contract says.
        unsafe { self.held.as_ref() }
    }
}

impl<K: Kernel, P: Platform> Drop for CoreTicket<'_, K, P> {
    fn drop(&mut self) {
        self.core.cancel(&self.held().node);
        // SAFETY: it came from a box, and it is neither queued nor in a batch.
        drop(unsafe { Box::from_raw(self.held.as_ptr()) });
    }
}
