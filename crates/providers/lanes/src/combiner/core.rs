// SPDX-License-Identifier: Apache-2.0
//! Who computes, who waits, who leads next; over any primitives, so that the model checker can run it.
//!
//! Why no thread sleeps for ever: while a job whose owner waits is in the queue, there is a thread that leads, or one that
//! was woken with its result and is not running yet. Either looks at the queue before it goes ([`Core::release`],
//! [`Core::leave`]). The queue changes under the lock only. The number of leaders grows under the lock only, and sinks
//! without it only while the queue is empty.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use smallvec::SmallVec;

use super::kernel::{Failure, Kernel, Statistics};
use super::platform::{Platform, Word};
use super::queue::{ASLEEP, DONE, LEAD, Node, OPEN, PANICKED, Queue};
use super::state::{INSIDE, LEADER, MAX_LEADERS, MAX_QUEUED, QUEUED, State, WOKEN};

pub(super) struct Core<K: Kernel, P: Platform> {
    pub(super) kernel: K,
    pub(super) platform: P,
    /// Threads that lead at the same time, at most; 0: as many as there are cores.
    pub(super) leaders: AtomicUsize,
    /// Jobs for which no thread steps aside, since that was in vain, and how many there are the next time.
    skips: AtomicU32,
    vain: AtomicU32,
    queue: UnsafeCell<Queue<K::Job<'static>, P>>,
}

// SAFETY: the queue is reached under the lock only. Jobs move between threads, which they allow.
unsafe impl<K: Kernel, P: Platform + Sync> Sync for Core<K, P> {}
// SAFETY: nothing belongs to a thread; the queue's pointers are to jobs that may move between threads.
unsafe impl<K: Kernel + Send, P: Platform + Send> Send for Core<K, P> {}

/// Of so many jobs one steps aside at least.
const MOST_SKIPS: u32 = 64;

/// The jobs of a batch without the leader's own.
type Others<J, P> = SmallVec<[NonNull<Node<J, P>>; 16]>;

type Results = SmallVec<[Result<(), Failure>; 16]>;

/// Whom to wake once the lock is given back.
type Sleepers<P> = SmallVec<[*const <P as Platform>::Signal; 4]>;

enum Turn<J, P: Platform> {
    /// Compute your own job; leave the queue as it is.
    Alone,
    Lead(Others<J, P>),
    /// Let others come first: the job is queued, and no thread need lead.
    Gather,
    Wait,
}

impl<K: Kernel, P: Platform> Core<K, P> {
    pub(super) const fn new(kernel: K, platform: P) -> Self {
        let queue = UnsafeCell::new(Queue::new());
        let [skips, vain] = [const { AtomicU32::new(0) }; 2];
        Self { kernel, platform, leaders: AtomicUsize::new(0), skips, vain, queue }
    }

    #[inline]
    pub(super) fn run(&self, job: &mut K::Job<'_>) -> Result<(), Failure> {
        let before = State(self.platform.state().add(INSIDE));
        let is_crowd = before.queued() > 0 || self.is_crowd(before.inside() + 1);
        if !(is_crowd || self.gathers() && self.hopes()) {
            let result = self.single(job);
            self.leave(INSIDE);
            return result;
        }
        self.meet(job)
    }

    #[inline(never)]
    fn meet(&self, job: &mut K::Job<'_>) -> Result<(), Failure> {
        // What the job borrows outlives this call, and after it no pointer to the job is left; kernels cannot tell its lifetime from
        // another.
        let node = Node::new(NonNull::from(job).cast());
        let turn = self.with_queue(|queue| self.arrive(queue, &node));
        let result = self.take_turn(&node, turn);
        self.leave(INSIDE);
        result
    }

    /// Queues a job without waiting for it.
    ///
    /// # Safety
    /// The node and its job stay where they are, untouched, until [`Self::poll`], [`Self::complete`] or
    /// [`Self::cancel`] said so.
    pub(super) unsafe fn submit(&self, node: NonNull<Node<K::Job<'static>, P>>, eager: bool) {
        // SAFETY: it lives, by the contract.
        let shared = unsafe { node.as_ref() };
        let turn = self.with_queue(|queue| {
            let state = self.state();
            if state.queued() >= MAX_QUEUED {
                return Turn::Alone;
            }
            if eager && state.queued() + 1 >= self.kernel.lanes() && self.has_room(state) {
                self.platform.state().add(LEADER);
                return Turn::Lead(self.take(queue));
            }
            // SAFETY: the contract is the same.
            unsafe { queue.push(node) };
            self.platform.state().add(QUEUED);
            Turn::Wait
        });
        if !matches!(turn, Turn::Wait) {
            let result = self.take_turn(shared, turn);
            shared.word.swap(word_of(result));
        }
    }

    /// Whether a submitted job is answered; leads when it is still queued and there is room.
    pub(super) fn poll(&self, node: &Node<K::Job<'static>, P>) -> bool {
        if answer(node.word.load()).is_some() {
            return true;
        }
        match self.with_queue(|queue| self.come_back(queue, node)) {
            Turn::Wait => {
                node.epoch() != self.platform.epoch() || answer(node.word.load()).is_some()
            }
            turn => {
                let result = self.take_turn(node, turn);
                node.word.swap(word_of(result));
                true
            }
        }
    }

    /// What became of a submitted job, as soon as something did.
    pub(super) fn complete(&self, node: &Node<K::Job<'static>, P>) -> Result<(), Failure> {
        if let Some(result) = answer(node.word.load()) {
            return result;
        }
        self.platform.state().add(INSIDE);
        let turn = self.with_queue(|queue| {
            let turn = self.come_back(queue, node);
            if matches!(turn, Turn::Wait) && queue.holds(node) {
                queue.attend(node);
            }
            turn
        });
        let result = self.take_turn(node, turn);
        node.word.swap(word_of(result));
        self.leave(INSIDE);
        result
    }

    /// Takes a submitted job back; waits until its batch is over if it is in one.
    pub(super) fn cancel(&self, node: &Node<K::Job<'static>, P>) {
        if answer(node.word.load()).is_some() {
            return;
        }
        let removed = self.with_queue(|queue| {
            let queued = queue.holds(node);
            if queued {
                queue.remove(node);
                self.platform.state().add(QUEUED.wrapping_neg());
            }
            queued
        });
        if !removed {
            // The ticket is gone, and its result with it.
            _ = self.wait(node);
        }
    }

    /// Whether so many threads inside make batches worth their switches: with fewer, cores that compute one job at a time are as
    /// fast. Where there are too few for one core, cores are not counted: the first time that costs 40 µs, in each child anew.
    #[inline]
    fn is_crowd(&self, inside: usize) -> bool {
        let threads = self.kernel.crowd();
        inside >= threads && inside >= threads.saturating_mul(self.max_leaders())
    }

    /// Whether so many threads serve other processes that they may be a crowd. They sleep between two requests, so each would compute
    /// alone while the next waits for its core, and none would ever meet another inside.
    #[inline]
    fn gathers(&self) -> bool {
        self.is_crowd(self.platform.company())
    }

    /// Whether stepping aside is worth a try. On a machine that is busy it takes a turn of every other program.
    fn hopes(&self) -> bool {
        let skips = self.skips.load(Ordering::Relaxed);
        // Two threads may count one job: there is one skip more.
        self.skips.store(skips.saturating_sub(1), Ordering::Relaxed);
        skips == 0
    }

    /// Whether others came. After each time in vain it is tried half as often.
    fn learn(&self, came: bool) {
        let vain =
            if came { 0 } else { (2 * self.vain.load(Ordering::Relaxed)).clamp(1, MOST_SKIPS) };
        self.vain.store(vain, Ordering::Relaxed);
        self.skips.store(vain, Ordering::Relaxed);
    }

    fn step_aside(&self) {
        self.platform.counts().asides.fetch_add(1, Ordering::Relaxed);
        self.platform.step_aside();
    }

    /// Whether what is queued makes no good batch yet.
    fn is_little(&self) -> bool {
        self.state().queued() < self.kernel.enough()
    }

    #[inline]
    fn max_leaders(&self) -> usize {
        match self.leaders.load(Ordering::Relaxed) {
            0 => self.platform.cores().min(MAX_LEADERS),
            wanted => wanted.min(MAX_LEADERS),
        }
    }

    fn has_room(&self, state: State) -> bool {
        state.leaders() < self.max_leaders()
    }

    /// Whether now is the time to lead a batch of `available` jobs at most. When it is not enough, threads that
    /// have their results and wait for a core go first: they are about to bring more.
    fn is_time(&self, state: State, available: usize) -> bool {
        self.has_room(state) && (state.woken() == 0 || available >= self.kernel.enough())
    }

    pub(super) fn statistics(&self) -> Statistics {
        let counts = self.platform.counts();
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Statistics {
            singles: read(&counts.singles),
            batches: read(&counts.batches),
            batched: read(&counts.batched),
            hand_overs: read(&counts.hand_overs),
            waits: read(&counts.waits),
            asides: read(&counts.asides),
        }
    }

    fn state(&self) -> State {
        State(self.platform.state().load())
    }

    fn with_queue<R>(&self, work: impl FnOnce(&mut Queue<K::Job<'static>, P>) -> R) -> R {
        self.platform.locked(|| {
            // SAFETY: the lock is held, and nothing inside takes it again.
            let queue = unsafe { &mut *self.queue.get() };
            queue.enter(self.platform.epoch());
            work(queue)
        })
    }

    /// A thread with a job of its own, which is neither queued nor in a batch yet.
    fn arrive(
        &self,
        queue: &mut Queue<K::Job<'static>, P>,
        node: &Node<K::Job<'static>, P>,
    ) -> Turn<K::Job<'static>, P> {
        loop {
            let state = self.state();
            let available = state.queued() + 1;
            let gathers = self.gathers() && available < self.kernel.enough();
            let worth =
                gathers || self.is_crowd(state.inside()) || available >= self.kernel.break_even();
            if !worth || available > MAX_QUEUED {
                return Turn::Alone;
            }
            let lead = !gathers && self.is_time(state, available);
            let unit = if lead { LEADER } else { QUEUED };
            if !self.platform.state().exchange(state.0, state.0 + unit) {
                continue;
            }
            if lead {
                return Turn::Lead(self.take(queue));
            }
            // SAFETY: the node is in the frame of `meet`, which does not return before `wait` says that
            // the node is out of the queue and out of any batch. Nothing in between unwinds.
            unsafe { queue.push(NonNull::from(node)) };
            queue.attend(node);
            return if gathers { Turn::Gather } else { Turn::Wait };
        }
    }

    /// A thread whose job was queued before.
    fn come_back(
        &self,
        queue: &mut Queue<K::Job<'static>, P>,
        node: &Node<K::Job<'static>, P>,
    ) -> Turn<K::Job<'static>, P> {
        if !queue.holds(node) || !self.has_room(self.state()) {
            return Turn::Wait;
        }
        queue.remove(node);
        self.platform.state().add(LEADER.wrapping_sub(QUEUED));
        Turn::Lead(self.take(queue))
    }

    /// The oldest jobs for a batch with the leader's own; none when they do not make one.
    fn take(&self, queue: &mut Queue<K::Job<'static>, P>) -> Others<K::Job<'static>, P> {
        let others = self.state().queued().min(self.kernel.lanes().saturating_sub(1));
        if others + 1 < self.kernel.break_even() {
            return Others::new();
        }
        self.platform.state().add((others as u64 * QUEUED).wrapping_neg());
        (0..others).map_while(|_| queue.pop()).collect()
    }

    fn take_turn(
        &self,
        node: &Node<K::Job<'static>, P>,
        turn: Turn<K::Job<'static>, P>,
    ) -> Result<(), Failure> {
        match turn {
            Turn::Alone => self.alone(job_of(node)),
            Turn::Lead(others) => self.lead(node, &others),
            Turn::Gather => self.gather(node),
            Turn::Wait => self.wait(node),
        }
    }

    /// Comes back for its own job in any case: whatever became of the company meanwhile, no thread may lead that would take it.
    fn gather(&self, node: &Node<K::Job<'static>, P>) -> Result<(), Failure> {
        if self.is_little() {
            self.step_aside();
        }
        let turn = self.with_queue(|queue| self.come_back(queue, node));
        self.learn(!matches!(&turn, Turn::Lead(others) if others.is_empty()));
        self.take_turn(node, turn)
    }

    fn single(&self, job: &mut K::Job<'_>) -> Result<(), Failure> {
        self.platform.counts().singles.fetch_add(1, Ordering::Relaxed);
        caught(|| self.kernel.one(job))
    }

    /// [`Self::single`] where it is not the common case, and so not inlined.
    #[inline(never)]
    fn alone(&self, job: &mut K::Job<'_>) -> Result<(), Failure> {
        self.single(job)
    }

    /// Computes one batch and leaves.
    #[inline(never)]
    fn lead(
        &self,
        own: &Node<K::Job<'static>, P>,
        others: &Others<K::Job<'static>, P>,
    ) -> Result<(), Failure> {
        if others.is_empty() {
            let result = self.alone(job_of(own));
            self.release();
            return result;
        }
        let results = self.compute(own, others);
        self.hand_out(others, &results[1..]);
        self.release();
        results[0]
    }

    /// The results of a batch: the leader's first.
    fn compute(
        &self,
        own: &Node<K::Job<'static>, P>,
        others: &Others<K::Job<'static>, P>,
    ) -> Results {
        // SAFETY: their owners keep what is in a batch until they are told, which is later.
        let nodes = others.iter().map(|other| unsafe { other.as_ref() });
        let mut jobs: SmallVec<[&mut K::Job<'static>; 16]> =
            std::iter::once(own).chain(nodes).map(|node| job_of(node)).collect();
        let counts = self.platform.counts();
        counts.batches.fetch_add(1, Ordering::Relaxed);
        counts.batched.fetch_add(jobs.len() as u64, Ordering::Relaxed);
        match caught(|| self.kernel.many(&mut jobs)) {
            Ok(()) => Results::from_elem(Ok(()), jobs.len()),
            Err(_) => jobs.iter_mut().map(|job| self.alone(job)).collect(),
        }
    }

    /// Tells the owners; wakes those that sleep, each alone.
    #[inline(never)]
    fn hand_out(&self, others: &Others<K::Job<'static>, P>, results: &[Result<(), Failure>]) {
        // SAFETY: the owners were not told yet.
        let waiting = others.iter().filter(|other| unsafe { other.as_ref() }.is_attended()).count();
        self.platform.state().add(waiting as u64 * WOKEN);
        for (other, result) in others.iter().zip(results.iter().copied()) {
            // SAFETY: the owner was not told yet. From the swap on only the address is used.
            let word = unsafe { &raw const (*other.as_ptr()).word };
            // SAFETY: as above.
            if unsafe { &*word }.swap(word_of(result)) == ASLEEP {
                self.platform.wake(word);
            }
        }
    }

    /// Gives leadership up, to a waiting thread if there is one.
    fn release(&self) {
        loop {
            let state = self.state();
            if !state.has(LEADER) {
                return;
            }
            if state.queued() > 0 {
                break;
            }
            if self.platform.state().exchange(state.0, state.0 - LEADER) {
                return;
            }
        }
        self.appoint(LEADER);
    }

    /// Takes `unit` back, then makes leaders of those who wait while it is time for it.
    #[inline(never)]
    fn appoint(&self, unit: u64) {
        let mut sleepers: Sleepers<P> = SmallVec::new();
        self.with_queue(|queue| {
            self.platform.state().add(unit.wrapping_neg());
            loop {
                let state = self.state();
                if queue.attended() == 0 || !self.is_time(state, state.queued()) {
                    return;
                }
                let unit = LEADER.wrapping_sub(QUEUED);
                if !self.platform.state().exchange(state.0, state.0.wrapping_add(unit)) {
                    continue;
                }
                let Some(node) = queue.pop_attended() else { return };
                self.platform.counts().hand_overs.fetch_add(1, Ordering::Relaxed);
                // SAFETY: its owner was not told yet. From the swap on only the address is used.
                let word = unsafe { &raw const (*node.as_ptr()).word };
                // SAFETY: as above.
                if unsafe { &*word }.swap(LEAD) == ASLEEP {
                    sleepers.push(word);
                }
                // The new leader takes what is left, unless it is too little for a batch.
                if state.queued() >= self.kernel.break_even() {
                    return;
                }
            }
        });
        for word in sleepers {
            self.platform.wake(word);
        }
    }

    /// Waits for the result, or for being made the leader.
    fn wait(&self, node: &Node<K::Job<'static>, P>) -> Result<(), Failure> {
        self.platform.counts().waits.fetch_add(1, Ordering::Relaxed);
        loop {
            match node.word.load() {
                LEAD => {
                    if self.gathers() && self.is_little() {
                        self.step_aside();
                    }
                    let others = self.with_queue(|queue| self.take(queue));
                    return self.lead(node, &others);
                }
                word @ (OPEN | ASLEEP) => {
                    if self.platform.epoch() != node.epoch() {
                        return Err(Failure::Forked);
                    }
                    if word == ASLEEP || node.word.exchange(OPEN, ASLEEP) {
                        self.platform.sleep(&node.word, ASLEEP);
                    }
                }
                word => {
                    if node.is_attended() {
                        self.leave(WOKEN);
                    }
                    return answer(word).unwrap_or(Ok(()));
                }
            }
        }
    }

    /// One less of `unit`.
    #[inline]
    fn leave(&self, unit: u64) {
        let before = State(self.platform.state().add(unit.wrapping_neg()));
        if !before.has(unit) {
            // This thread came through a fork, which set everything to zero.
            self.platform.state().add(unit);
        } else if unit == WOKEN && before.woken() == 1 && before.queued() > 0 {
            self.appoint(0);
        }
    }
}

/// The job of a node that is in this thread's hands.
#[expect(clippy::mut_from_ref, reason = "the node points to it")]
fn job_of<J, P: Platform>(node: &Node<J, P>) -> &mut J {
    // SAFETY: callers have their own node outside of queue and batch, or a node that their batch holds: no other
    // thread touches its job, whose owner does not use the reference that it was made from meanwhile.
    unsafe { &mut *node.job.get().as_ptr() }
}

fn caught(work: impl FnOnce()) -> Result<(), Failure> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        // Dropping the payload could panic again.
        std::mem::forget(payload);
        Failure::Panicked
    })
}

const fn word_of(result: Result<(), Failure>) -> u32 {
    match result {
        Ok(()) => DONE,
        Err(_) => PANICKED,
    }
}

const fn answer(word: u32) -> Option<Result<(), Failure>> {
    match word {
        DONE => Some(Ok(())),
        PANICKED => Some(Err(Failure::Panicked)),
        _ => None,
    }
}
