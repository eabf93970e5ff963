// SPDX-License-Identifier: Apache-2.0
//! Private keys of one-time keys (PKCS#11 3.2 §6.65), and keys of one-time passwords (§6.53): how many are left stands in the key's row, and one that is taken is
//! written there before it signs. So no thread and no process takes it again, whatever becomes of this one.

use super::{Object, record};
use metaslot_ck::*;
use metaslot_rules::counted::{self, Taken};
use metaslot_spi::key::OneTime;
use metaslot_spi::store::{Change, Store};
use metaslot_spi::{Attributes, Secrets, Value, detail};
use std::sync::Arc;

/// Whether an object is such a key.
pub(crate) fn is(object: &Object) -> bool {
    counted::signs_once(object.attributes())
}

/// The row of such a key.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) id: u64,
    /// An older store may have another key in the row.
    pub(crate) name: Option<Value>,
    pub(crate) taken: Arc<Taken>,
}

impl OneTime for Stored {
    fn spend(&self) -> Result<u64> {
        let mut spent = self.taken.spent();
        let mut before = None;
        loop {
            let row = self.store.read(self.id)?.ok_or(Error::KEY_HANDLE_INVALID)?;
            if !row.verified {
                detail::set(format_args!("the key's row was written without a login"));
                return Err(Error::KEY_FUNCTION_NOT_PERMITTED);
            }
            let attributes = Attributes::decode(&row.attributes);
            let mut attributes = attributes.map_err(|_| Error::DEVICE_ERROR)?;
            let is_other = attributes.get(CKA_UNIQUE_ID) != self.name.as_ref();
            if is_other || before == Some(row.version) {
                return Err(Error::KEY_HANDLE_INVALID);
            }
            let left = counted::spend(&mut attributes, &*self.store)?;
            let record = record(&attributes, &Secrets::new())?;
            let change = Change::Update { id: self.id, version: row.version, record };
            match self.store.write(vec![change]) {
                // Another thread or process was faster.
                Err(Error::OBJECT_HANDLE_INVALID) => before = Some(row.version),
                written => {
                    written?;
                    // While it waited for other writers the token may have been restored.
                    if spent.is_some_and(|spent| left >= spent)
                        || !counted::goes_on(&attributes, &*self.store)?
                    {
                        let why = "the token's file was replaced by an older one, in which that one-time key has not signed yet";
                        detail::set(format_args!("{why}"));
                        return Err(Error::KEY_FUNCTION_NOT_PERMITTED);
                    }
                    *spent = Some(left);
                    return Ok(left);
                }
            }
        }
    }
}
