// SPDX-License-Identifier: Apache-2.0
//! Keys that count in their rows what they have used, one-time keys or generated IVs. After a restore the backup's count
//! stands there, and the token of which it is may have gone on: the count is good after that restore only after which it began.

use crate::series::{Series, SeriesOfKey};
use metaslot_ck::attribute::CKA_COUNTED_SINCE;
use metaslot_ck::*;
use metaslot_spi::store::Store;
use metaslot_spi::{Attributes, Value, detail};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What was taken of a key and must not be taken again, whatever its store says: an older one may have been put back.
#[derive(Debug, Default)]
pub struct Taken {
    series: Mutex<SeriesOfKey>,
    spent: Mutex<Option<u64>>,
}

impl Taken {
    /// The series of a session's key; of a key of the store the numbers that this process has taken. Locked: one thread at a time
    /// takes some.
    pub fn series(&self) -> MutexGuard<'_, SeriesOfKey> {
        lock(&self.series)
    }

    /// Whether anything was taken, or is being taken.
    fn is_used(&self) -> bool {
        let unused = self.series.try_lock().is_ok_and(|series| *series == SeriesOfKey::default());
        !unused || !self.spent.try_lock().is_ok_and(|spent| spent.is_none())
    }

    /// Of a key of one-time keys: how many were left after the last that signed here.
    pub fn spent(&self) -> MutexGuard<'_, Option<u64>> {
        lock(&self.spent)
    }
}

/// What a process has taken of the objects of a token until it is finalised, by row and by `CKA_UNIQUE_ID`: one that was made anew has others in the same
/// rows.
#[derive(Debug, Default)]
pub struct Memory(Mutex<HashMap<u64, Vec<Named>>>);

type Named = (Vec<u8>, Arc<Taken>);

impl Memory {
    /// That of the object of this name.
    pub fn of(&self, row: u64, name: &[u8]) -> Arc<Taken> {
        let mut all = lock(&self.0);
        let of_row = all.entry(row).or_default();
        match of_row.iter().find(|(known, _)| known == name) {
            Some((_, taken)) => Arc::clone(taken),
            None => Arc::clone(&of_row.push_mut((name.to_vec(), Arc::default())).1),
        }
    }

    /// The row is gone. What was taken of it stays: an older store, which has it still, may be put back.
    pub fn forget(&self, row: u64) {
        let mut all = lock(&self.0);
        if all.get_mut(&row).is_some_and(leave_used) {
            all.remove(&row);
        }
    }

    /// The same of all rows.
    pub fn forget_all(&self) {
        lock(&self.0).retain(|_, of_row| !leave_used(of_row));
    }
}

/// Whether nothing of a row is left.
fn leave_used(of_row: &mut Vec<Named>) -> bool {
    of_row.retain(|(_, taken)| taken.is_used());
    of_row.is_empty()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

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

/// Whether these attributes are those of a private key of one-time keys, or of a key that counts its one-time passwords.
#[must_use]
pub fn signs_once(attributes: &Attributes) -> bool {
    let number = |attribute| attributes.ulong(attribute);
    match (number(CKA_CLASS), number(CKA_KEY_TYPE)) {
        (Some(CKO_PRIVATE_KEY), Some(CKK_HSS | CKK_XMSS | CKK_XMSSMT)) => true,
        (Some(CKO_OTP_KEY), Some(CKK_HOTP)) => {
            number(CKA_OTP_COUNTER_REQUIREMENT) != Some(CK_OTP_PARAM_MANDATORY)
        }
        _ => false,
    }
}

/// Takes one of those that a row has left, and says how many are left then. A counter goes up to its largest value.
///
/// # Errors
/// `CKR_KEY_EXHAUSTED`; `CKR_KEY_FUNCTION_NOT_PERMITTED` where the count is not that of the token as it is now; the store's.
pub fn spend(attributes: &mut Attributes, store: &dyn Store) -> Result<u64> {
    let counter = match attributes.bytes(CKA_OTP_COUNTER) {
        Some(counter) => Some(counter.try_into().map_err(|_| Error::DEVICE_ERROR)?),
        None => None,
    };
    let counter = counter.map(u64::from_be_bytes);
    let left = || attributes.ulong(CKA_HSS_KEYS_REMAINING);
    let left = counter.map(|counter| !counter).or_else(left);
    let left = left.ok_or(Error::DEVICE_ERROR)?;
    if !goes_on(attributes, store)? {
        let since = "the token was restored or repaired, and what was signed with since would sign twice: say by";
        match counter {
            Some(counter) => detail::set(format_args!(
                "{since} CKA_OTP_COUNTER which password is the next; it was {counter}"
            )),
            None => detail::set(format_args!(
                "{since} CKA_HSS_KEYS_REMAINING, or 'metaslot key set --one-time-left', how many of its {left} one-time keys are left"
            )),
        }
        return Err(Error::KEY_FUNCTION_NOT_PERMITTED);
    }
    let left = left.checked_sub(1).ok_or(Error::KEY_EXHAUSTED)?;
    match counter {
        Some(_) => attributes.set(CKA_OTP_COUNTER, Value::Bytes((!left).to_be_bytes().to_vec())),
        None => attributes.set(CKA_HSS_KEYS_REMAINING, Value::Ulong(left)),
    }
    Ok(left)
}

/// Whether the count of a row is that of the token as it is now.
///
/// # Errors
/// The store's.
pub fn goes_on(attributes: &Attributes, store: &dyn Store) -> Result<bool> {
    Ok(store.restored()? == attributes.ulong(CKA_COUNTED_SINCE).unwrap_or(0))
}

/// Whether the numbers of a series may be taken from a row.
///
/// # Errors
/// `CKR_MECHANISM_PARAM_INVALID` where they are counted, and the count is not that of the token as it is now; the store's.
pub fn counts(attributes: &Attributes, series: &Series, store: &dyn Store) -> Result<()> {
    if series.is_random() || goes_on(attributes, store)? {
        return Ok(());
    }
    detail::set(format_args!(
        "the token was restored or repaired: the key's counter would begin again where it was then; random IVs or another key \
         serve"
    ));
    Err(Error::MECHANISM_PARAM_INVALID)
}

/// To say how many are left says, too, that the count is that of the token as it is now.
///
/// # Errors
/// The store's.
pub fn say(changes: &Attributes, attributes: &mut Attributes, store: &dyn Store) -> Result<()> {
    match changes.get(CKA_HSS_KEYS_REMAINING).or_else(|| changes.get(CKA_OTP_COUNTER)) {
        Some(_) if signs_once(attributes) => begin(attributes, store),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken_of_an_object_is_remembered_though_its_row_goes() {
        let memory = Memory::default();
        let spent = |name| *memory.of(1, name).spent();
        *memory.of(1, b"old").spent() = Some(7);
        assert_eq!((spent(b"old"), spent(b"new")), (Some(7), None));
        *memory.of(1, b"new").spent() = Some(9);
        assert_eq!((spent(b"old"), spent(b"new")), (Some(7), Some(9)));
        for row in [2, 3] {
            drop(memory.of(row, b"unused"));
        }
        for row in [1, 2] {
            memory.forget(row);
        }
        assert_eq!((spent(b"old"), spent(b"new")), (Some(7), Some(9)));
        assert_eq!(lock(&memory.0).len(), 2, "and what was not used goes");
        memory.forget_all();
        assert_eq!(lock(&memory.0).keys().collect::<Vec<_>>(), [&1]);
    }
}
