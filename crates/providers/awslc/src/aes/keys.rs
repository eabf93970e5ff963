// SPDX-License-Identifier: Apache-2.0
//! AES keys.

use metaslot_awslc_wrapper::aes::Keys;
use metaslot_ck::*;
use metaslot_spi::Key;

/// Sizes of AES keys, in bytes.
pub(crate) const KEYS: (u64, u64) = (16, 32);

/// The key schedules.
pub(super) fn keys(key: &Key) -> Result<&Keys> {
    key.prepared(|key| Keys::new(key.secret(CKA_VALUE)?).map_err(|_| Error::KEY_SIZE_RANGE))
}
