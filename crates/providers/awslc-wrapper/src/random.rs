// SPDX-License-Identifier: Apache-2.0
//! Random bytes fit for keys: AWS-LC's CTR-DRBG, one a thread, reseeded after a fork.

use crate::{Failed, Result, check};
use metaslot_memory::Secret;
use std::cell::Cell;
use std::hint::black_box;

thread_local! {
    /// Whether the calling thread has its generator.
    static READY: Cell<bool> = const { Cell::new(false) };
}

/// More than anything gives where memory is out, and many times what a generator takes.
const ROOM: usize = (1 << 16) + 1;

/// Has the calling thread make its generator, if there is memory: AWS-LC ends the process where there is none. To be called before
/// whatever computes, because keys and signatures need one, too.
///
/// # Errors
/// When memory is out, or the source fails.
#[inline]
pub fn prepare() -> Result<()> {
    if READY.get() { Ok(()) } else { make() }
}

#[cold]
fn make() -> Result<()> {
    let mut heap = Vec::<u8>::new();
    let has_room = heap.try_reserve_exact(ROOM).is_ok();
    let protected = Secret::try_zeroed(ROOM).filter(|_| has_room);
    // Not a pair of calls that the compiler leaves out.
    black_box((heap.as_ptr(), &protected));
    drop(heap);
    drop(protected.ok_or(Failed)?);
    fill(&mut [0])?;
    READY.set(true);
    Ok(())
}

/// The calling thread has none any more.
pub(crate) fn forget() {
    READY.set(false);
}

/// Fills `out`.
///
/// # Errors
/// When the source fails.
pub fn fill(out: &mut [u8]) -> Result<()> {
    // SAFETY: `out` is writable for its length.
    check(unsafe { aws_lc_sys::RAND_bytes(out.as_mut_ptr(), out.len()) })
}
