// SPDX-License-Identifier: Apache-2.0
//! The key derivation functions that hash a counter: ANSI X9.63 (SEC 1 §3.6.1) and the one-step function of
//! SP 800-56C §4.

use crate::digest::{Hash, Stream};
use crate::{Failed, Result};
use metaslot_memory::Secret;

/// `length` bytes of the hashes of `head`, a counter of four bytes that begins at 1, and `tail`, one
/// after the other.
///
/// # Errors
/// [`crate::Failed`] when there is no memory.
pub fn expand(hash: Hash, length: usize, head: &[u8], tail: &[&[u8]]) -> Result<Secret> {
    let width = hash.length();
    let mut whole = Secret::try_zeroed(length.next_multiple_of(width)).ok_or(Failed)?;
    for (counter, block) in (1_u32..).zip(whole.expose_mut().chunks_mut(width)) {
        let mut stream = Stream::new(hash)?;
        stream.update(head)?;
        stream.update(&counter.to_be_bytes())?;
        for part in tail {
            stream.update(part)?;
        }
        stream.finish(block)?;
    }
    Ok(whole.truncated(length))
}
