// SPDX-License-Identifier: Apache-2.0
//! Memory that has to be there later.

use metaslot_ck::{Error, Result};

/// Attributes and parameters are copied a few times on their way to a store or a provider, into memory
/// that has to be there: for what is so long that it may not be, it is asked for beforehand, all at once.
///
/// # Errors
/// `CKR_HOST_MEMORY`
pub fn check_room(length: usize) -> Result<()> {
    const LONG: usize = 1 << 16;
    const COPIES: usize = 8;
    if length < LONG {
        return Ok(());
    }
    let mut room = Vec::<u8>::new();
    let has = room.try_reserve_exact(COPIES * length).map_err(|_| Error::HOST_MEMORY);
    // Not a pair of calls that the compiler leaves out.
    std::hint::black_box(room.as_ptr());
    has
}
