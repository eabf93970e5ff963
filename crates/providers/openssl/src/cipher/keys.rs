// SPDX-License-Identifier: Apache-2.0
//! Prepared keys, for each mode; and what the modes have in common.

use metaslot_ck::*;
use metaslot_openssl_wrapper::Mode;
use metaslot_openssl_wrapper::cipher::{self, BLOCK};
use metaslot_spi::provider::Direction;
use metaslot_spi::{Key, Params};
use std::fmt::Debug;
use std::sync::OnceLock;

/// A mode as a type, because a key may serve several.
pub(super) trait Of: Debug + Send + Sync + 'static {
    const MODE: Mode;
}

/// A key's forms for the modes that it was used in. They are one form of the key, which has room for a few: one for each mode would
/// leave the other providers none.
struct Forms([OnceLock<cipher::Key>; Mode::COUNT]);

fn make(mode: Mode, key: &Key) -> Result<cipher::Key> {
    cipher::Key::new(mode, key.secret(CKA_VALUE)?).map_err(|_| Error::KEY_SIZE_RANGE)
}

/// Calls `use_it` with the prepared key.
pub(super) fn with<M: Of, T>(
    key: &Key,
    use_it: impl FnOnce(&cipher::Key) -> Result<T>,
) -> Result<T> {
    match key.prepared(|_| Ok(Forms([const { OnceLock::new() }; Mode::COUNT]))) {
        Ok(Forms(forms)) => match forms[M::MODE as usize].get() {
            Some(form) => use_it(form),
            None => {
                let form = make(M::MODE, key)?;
                use_it(forms[M::MODE as usize].get_or_init(|| form))
            }
        },
        // The key has no room left: it is prepared anew each time.
        Err(Error::DEVICE_MEMORY) => use_it(&make(M::MODE, key)?),
        Err(error) => Err(error),
    }
}

/// The parameter of a mode that wants an IV of a block.
pub(super) fn iv(params: &Params) -> Result<&[u8; BLOCK]> {
    let Params::Iv(iv) = params else { return Err(Error::MECHANISM_PARAM_INVALID) };
    iv.as_slice().try_into().map_err(|_| Error::MECHANISM_PARAM_INVALID)
}

/// Sizes of AES keys, in bytes.
pub(super) const KEYS: (u64, u64) = (16, 32);

/// Whether the library encrypts.
pub(super) fn encrypts(direction: Direction) -> bool {
    direction == Direction::Forward
}
