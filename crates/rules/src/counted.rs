// SPDX-License-Identifier: Apache-2.0
//! Keys that count in their rows what they have used, one-time keys or generated IVs. After a restore the backup's count
//! stands there, and the token of which it is may have gone on: the count is good after that restore only after which it began.

use metaslot_ck::attribute::CKA_COUNTED_SINCE;
use metaslot_ck::*;
use metaslot_spi::store::Store;
use metaslot_spi::{Attributes, Value};

/// Notes in a row that its count goes on in the token as it is now.
///
/// # Errors
/// The store's.
pub fn begin(attributes: &mut Attributes, store: &dyn Store) -> Result<()> {
    match store.restored()? {
        0 => drop(attributes.remove(CKA_COUNTED_SINCE)),
        restored => attributes.set(CKA_COUNTED_SINCE, Value::Ulong(restored)),
    }
    Ok(())
}

/// The same for a new row, of an object that may count.
///
/// # Errors
/// The store's.
pub fn born(attributes: &mut Attributes, store: &dyn Store) -> Result<()> {
    let counts = attributes.ulong(CKA_CLASS) == Some(CKO_SECRET_KEY) || signs_once(attributes);
    if counts { begin(attributes, store) } else { Ok(()) }
}

/// Whether these attributes are those of a private key of one-time keys.
#[must_use]
pub fn signs_once(attributes: &Attributes) -> bool {
    attributes.ulong(CKA_CLASS) == Some(CKO_PRIVATE_KEY)
        && matches!(attributes.ulong(CKA_KEY_TYPE), Some(CKK_HSS | CKK_XMSS | CKK_XMSSMT))
}

/// Whether the count of a row is that of the token as it is now.
///
/// # Errors
/// The store's.
pub fn goes_on(attributes: &Attributes, store: &dyn Store) -> Result<bool> {
    Ok(store.restored()? == attributes.ulong(CKA_COUNTED_SINCE).unwrap_or(0))
}

/// To say how many are left says, too, that the count is that of the token as it is now.
///
/// # Errors
/// The store's.
pub fn say(changes: &Attributes, attributes: &mut Attributes, store: &dyn Store) -> Result<()> {
    match changes.get(CKA_HSS_KEYS_REMAINING) {
        Some(_) if signs_once(attributes) => begin(attributes, store),
        _ => Ok(()),
    }
}
