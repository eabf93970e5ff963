// SPDX-License-Identifier: Apache-2.0
//! Static probes (USDT): where bpftrace, perf, SystemTap and gdb look into a process that runs.
//!
//! Each is a no-op in the code and a note in the file, and costs a load and a branch as long as no program watches
//! it: what it tells is gathered only then. `docs/probes.md` has their arguments, of which bpftrace takes six.

mod note;

use note::probe;
use std::ptr;
use std::sync::atomic::AtomicU64;

/// The name of a provider, in the page of counters: one argument, the address. A zero byte ends a name of less than 16.
pub type Provider = &'static [AtomicU64; 2];

/// `operation__start()`: the calling thread begins an operation of one call.
#[inline]
pub fn operation_start() {
    probe!("operation__start", "");
}

/// `operation__end(provider, mechanism, length of mechanism, bytes, ok)`: an operation is over, of one call or of
/// several.
#[inline]
pub fn operation_end(
    provider: impl Fn() -> Provider,
    mechanism: impl Fn() -> &'static str,
    bytes: usize,
    ok: bool,
) {
    probe!(
        "operation__end",
        "-8@{} -8@{} -8@{} -8@{} -8@{}",
        ptr::from_ref(provider()),
        mechanism().as_ptr(),
        mechanism().len(),
        bytes,
        ok
    );
}

/// `route(mechanism, length of mechanism, first, taken, bytes)`: costs were compared, those of the provider that is
/// the first in order with the others'.
#[inline]
pub fn route(
    mechanism: impl Fn() -> &'static str,
    first: impl Fn() -> Provider,
    taken: impl Fn() -> Provider,
    bytes: usize,
) {
    probe!(
        "route",
        "-8@{} -8@{} -8@{} -8@{} -8@{}",
        mechanism().as_ptr(),
        mechanism().len(),
        ptr::from_ref(first()),
        ptr::from_ref(taken()),
        bytes
    );
}

/// `failover(mechanism, length of mechanism, provider, done)`: a provider failed at an operation, and another one did
/// it, or none.
#[inline]
pub fn failover(mechanism: impl Fn() -> &'static str, provider: impl Fn() -> Provider, done: bool) {
    probe!(
        "failover",
        "-8@{} -8@{} -8@{} -8@{}",
        mechanism().as_ptr(),
        mechanism().len(),
        ptr::from_ref(provider()),
        done
    );
}
