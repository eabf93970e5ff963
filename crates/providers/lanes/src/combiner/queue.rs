// SPDX-License-Identifier: Apache-2.0
//! The queue: a list through nodes that lie in the waiting threads' own frames (or in tickets), so
//! that nothing is allocated. Oldest first.

use std::cell::Cell;
use std::ptr::NonNull;

use super::platform::Platform;

/// Nothing yet: the owner is awake.
pub(super) const OPEN: u32 = 0;
/// Nothing yet: the owner sleeps.
pub(super) const ASLEEP: u32 = 1;
/// The owner is to lead; its job is in no batch and no longer in the queue.
pub(super) const LEAD: u32 = 2;
/// The job is computed.
pub(super) const DONE: u32 = 3;
/// The job's computation panicked.
pub(super) const PANICKED: u32 = 4;

/// A job in the queue or in a batch.
///
/// Its owner keeps it where it is until its word is [`LEAD`], [`DONE`] or [`PANICKED`], or until
/// the owner took it out of the queue itself. The cells behind the job are changed under the combiner's lock only.
pub(super) struct Node<J, P: Platform> {
    pub(super) word: P::Signal,
    /// Set by the owner before another thread knows the node.
    pub(super) job: Cell<NonNull<J>>,
    queued: Cell<bool>,
    epoch: Cell<u32>,
    /// Whether the owner waits for it.
    attended: Cell<bool>,
    before: Cell<Link<J, P>>,
    after: Cell<Link<J, P>>,
}

type Link<J, P> = Option<NonNull<Node<J, P>>>;

impl<J, P: Platform> Node<J, P> {
    pub(super) fn new(job: NonNull<J>) -> Self {
        Self {
            word: P::signal(OPEN),
            job: Cell::new(job),
            queued: Cell::new(false),
            epoch: Cell::new(0),
            attended: Cell::new(false),
            before: Cell::new(None),
            after: Cell::new(None),
        }
    }

    /// When it was queued; never changes afterwards.
    pub(super) const fn epoch(&self) -> u32 {
        self.epoch.get()
    }

    pub(super) const fn is_attended(&self) -> bool {
        self.attended.get()
    }
}

pub(super) struct Queue<J, P: Platform> {
    first: Link<J, P>,
    last: Link<J, P>,
    /// How many nodes have an owner that waits.
    attended: usize,
    epoch: u32,
}

impl<J, P: Platform> Queue<J, P> {
    pub(super) const fn new() -> Self {
        Self { first: None, last: None, attended: 0, epoch: 0 }
    }

    /// Forgets what another epoch queued: in a forked child the owners do not exist.
    pub(super) const fn enter(&mut self, epoch: u32) {
        if self.epoch != epoch {
            *self = Self { epoch, ..Self::new() };
        }
    }

    pub(super) const fn attended(&self) -> usize {
        self.attended
    }

    pub(super) fn holds(&self, node: &Node<J, P>) -> bool {
        node.queued.get() && node.epoch.get() == self.epoch
    }

    /// Marks a queued node as waited for.
    pub(super) fn attend(&mut self, node: &Node<J, P>) {
        node.attended.set(true);
        self.attended += 1;
    }

    /// # Safety
    /// The node stays where it is until it is out of the queue.
    pub(super) unsafe fn push(&mut self, pointer: NonNull<Node<J, P>>) {
        // SAFETY: it lives, by the contract.
        let node = unsafe { pointer.as_ref() };
        node.queued.set(true);
        node.epoch.set(self.epoch);
        node.before.set(self.last);
        node.after.set(None);
        match self.last.map(of_list) {
            Some(last) => last.after.set(Some(pointer)),
            None => self.first = Some(pointer),
        }
        self.last = Some(pointer);
    }

    /// Takes out a node that [`Self::holds`].
    pub(super) fn remove(&mut self, node: &Node<J, P>) {
        let (before, after) = (node.before.get(), node.after.get());
        match before.map(of_list) {
            Some(before) => before.after.set(after),
            None => self.first = after,
        }
        match after.map(of_list) {
            Some(after) => after.before.set(before),
            None => self.last = before,
        }
        node.queued.set(false);
        self.attended -= usize::from(node.attended.get());
    }

    /// Takes out the oldest.
    pub(super) fn pop(&mut self) -> Link<J, P> {
        let first = self.first?;
        self.remove(of_list(first));
        Some(first)
    }

    /// Takes out the oldest that a thread waits for.
    pub(super) fn pop_attended(&mut self) -> Link<J, P> {
        let mut link = self.first;
        while let Some(pointer) = link {
            let node = of_list(pointer);
            if node.attended.get() {
                self.remove(node);
                node.attended.set(false);
                return Some(pointer);
            }
            link = node.after.get();
        }
        None
    }
}

/// A node of the list. The reference must not be kept after the lock is given back.
fn of_list<'a, J, P: Platform>(pointer: NonNull<Node<J, P>>) -> &'a Node<J, P> {
    // SAFETY: nodes in the list live, by the contract of `push`.
    unsafe { pointer.as_ref() }
}
