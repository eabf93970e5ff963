// SPDX-License-Identifier: Apache-2.0
//! Calls of other modules, and what they must not do to their host or to us.

use crate::cancel::Uncancelled;
use crate::signal::Unbroken;
use metaslot_counters as counters;
use std::cell::Cell;

/// Calls another module: no thread is cancelled meanwhile, no such module calls this one, and none ends the process by a
/// pipe that it finds closed, or a file that may not grow.
pub fn apart(work: &mut dyn FnMut()) {
    let _unbroken = Unbroken::begin();
    asked(work);
}

/// Calls a server: all that is written to is its socket, by which no signal comes, and three system calls fewer are made.
pub(crate) fn asked(work: &mut dyn FnMut()) {
    let _uncancelled = Uncancelled::begin();
    let outside = Outside(OUTSIDE.replace(true));
    if !outside.0 {
        counters::outside(true);
    }
    work();
}

/// What was before a call of another module.
struct Outside(bool);

impl Drop for Outside {
    fn drop(&mut self) {
        OUTSIDE.set(self.0);
        if !self.0 {
            counters::outside(false);
        }
    }
}

/// Whether the thread is in another module's code: a call that comes now is that module's.
pub fn is_outside() -> bool {
    OUTSIDE.get()
}

thread_local! {
    static OUTSIDE: Cell<bool> = const { Cell::new(false) };
}
