// SPDX-License-Identifier: Apache-2.0
//! Plain C data of a library (key schedules, hash states) in protected memory.

use crate::Secret;
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

/// One `T` in protected memory: never on the heap, zeroised when dropped. `T`'s own `Drop` does not
/// run: it is meant for C structures that own nothing.
pub struct Protected<T> {
    bytes: Secret,
    kind: PhantomData<T>,
}

impl<T: Copy> Protected<T> {
    /// A `T` whose bytes are all zero.
    ///
    /// # Safety
    /// All-zero bytes must be a valid `T`.
    #[must_use]
    pub unsafe fn zeroed() -> Self {
        const { assert!(align_of::<T>() <= crate::ALIGNMENT, "alignment is not supported") };
        Self { bytes: Secret::zeroed(size_of::<T>()), kind: PhantomData }
    }
}

impl<T> Deref for Protected<T> {
    type Target = T;

    fn deref(&self) -> &T {
        let place = self.bytes.expose().as_ptr().cast::<T>();
        // SAFETY: the bytes are as long as a `T`, aligned for it (checked in `zeroed`), and were a
        // valid one from the start.
        unsafe { &*place }
    }
}

impl<T> DerefMut for Protected<T> {
    fn deref_mut(&mut self) -> &mut T {
        let place = self.bytes.expose_mut().as_mut_ptr().cast::<T>();
        // SAFETY: as in `deref`; the bytes are borrowed exclusively.
        unsafe { &mut *place }
    }
}

// SAFETY: the value is owned like a boxed one.
unsafe impl<T: Send> Send for Protected<T> {}
// SAFETY: shared access gives only `&T`.
unsafe impl<T: Sync> Sync for Protected<T> {}

impl<T> fmt::Debug for Protected<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Protected({} bytes)", size_of::<T>())
    }
}

/// A value of any type in protected memory, moved there as soon as it is made; what it left on the way is wiped. `T`'s own `Drop`
/// does not run: it is meant for what owns nothing but its bytes, as key schedules do. In a forked child, where the bytes are
/// zeros, it is not there.
pub struct Held<T> {
    value: Protected<T>,
    /// 1, and 0 in a forked child.
    there: Secret,
}

impl<T> Held<T> {
    /// What `make` makes, or what it says.
    ///
    /// # Errors
    /// Those of `make`, and `full` when there is no room.
    pub fn new<E: Copy>(full: E, make: impl FnOnce() -> Result<T, E>) -> Result<Self, E> {
        const { assert!(align_of::<T>() <= crate::ALIGNMENT, "alignment is not supported") };
        let bytes = Secret::try_zeroed(size_of::<T>()).ok_or(full)?;
        let there = Secret::try_copy_of(&[1]).ok_or(full)?;
        // Any bytes are a value that may be none.
        let mut place = Protected::<MaybeUninit<T>> { bytes, kind: PhantomData };
        let made = put(&mut place, make);
        crate::wipe_stack();
        made.map(|()| Self { value: Protected { bytes: place.bytes, kind: PhantomData }, there })
    }

    /// The value; `None` in a forked child.
    #[must_use]
    pub fn get(&self) -> Option<&T> {
        (self.there.expose() == [1]).then(|| &*self.value)
    }
}

/// In a frame of its own, which the caller can wipe.
#[inline(never)]
fn put<T, E>(place: &mut MaybeUninit<T>, make: impl FnOnce() -> Result<T, E>) -> Result<(), E> {
    place.write(make()?);
    Ok(())
}

impl<T> fmt::Debug for Held<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_lies_in_the_arena() {
        let held = Held::new((), || Ok(([7_u32; 40], true))).unwrap();
        let value = held.get().unwrap();
        assert_eq!(*value, ([7; 40], true));
        let room = crate::size_of_allocation(std::ptr::NonNull::from(value).cast());
        assert!(room >= size_of_val(value));
        assert_eq!(format!("{held:?}"), "Protected(164 bytes)");
        assert_eq!(Held::<u8>::new(1, || Err(2)).err(), Some(2));
    }
}
