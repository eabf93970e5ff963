// SPDX-License-Identifier: Apache-2.0
//! What AWS-LC needs around a fork.
//!
//! Each thread's random generator lies in memory that a child finds wiped, while the pointer to it
//! is AWS-LC's own thread-local: a child that used it would follow a null pointer. So the thread that
//! forks gives its generator up, and both sides make a new one when they need it (about 26 µs).

/// To be called by the thread that forks, before it does.
pub fn before() {
    forget_thread_state();
}

/// To be called in a child whose fork was not announced (made by a bare system call), on the thread
/// that came through it, before anything else of AWS-LC. Harmless otherwise.
pub fn in_child() {
    forget_thread_state();
}

fn forget_thread_state() {
    crate::random::forget();
    // SAFETY: frees what belongs to this thread and sets it back to the beginning. What is left of
    // a wiped generator is null pointers, which are skipped.
    unsafe { aws_lc_sys::AWSLC_thread_local_clear() };
}
