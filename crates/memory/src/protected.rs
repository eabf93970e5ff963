// SPDX-License-Identifier: Apache-2.0
//! Plain C data of a library (key schedules, hash states) in protected memory.

use crate::Secret;
use std::fmt;
use std::marker::PhantomData;
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
