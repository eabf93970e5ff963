// SPDX-License-Identifier: Apache-2.0
//! What OpenSSL needs around a fork: that it is not being started meanwhile. What it keeps stays as it is in the child, its keys are wiped,
//! and its random bytes are AWS-LC's.

use crate::start;

/// To be called by the thread that forks, before it does.
pub fn before() {
    start::before_fork();
}

/// To be called by that thread afterwards, in the parent and in the child.
pub fn after() {
    start::after_fork();
}
