// SPDX-License-Identifier: Apache-2.0
//! Prepared keys: one form per mode; and what the modes have in common.

use metaslot_ck::*;
use metaslot_openssl_wrapper::Mode;
use metaslot_openssl_wrapper::cipher::{self, BLOCK};
use metaslot_spi::provider::Direction;
use metaslot_spi::{Key, Params};
use std::fmt::Debug;
use std::marker::PhantomData;

/// A mode as a type, because a key may serve several.
pub(super) trait Of: Debug + Send + Sync + 'static {
    const MODE: Mode;
}

struct Prepared<M> {
    key: cipher::Key,
    mode: PhantomData<M>,
}

fn prepare<M: Of>(key: &Key) -> Result<Prepared<M>> {
    let made = cipher::Key::new(M::MODE, key.secret(CKA_VALUE)?);
    Ok(Prepared { key: made.map_err(|_| Error::KEY_SIZE_RANGE)?, mode: PhantomData })
}

/// Calls `use_it` with the prepared key.
pub(super) fn with<M: Of, T>(
    key: &Key,
    use_it: impl FnOnce(&cipher::Key) -> Result<T>,
) -> Result<T> {
    match key.prepared(prepare::<M>) {
        Ok(prepared) => use_it(&prepared.key),
        // A key keeps a few forms; one that serves more modes is prepared anew each time.
        Err(Error::DEVICE_MEMORY) => use_it(&prepare::<M>(key)?.key),
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
