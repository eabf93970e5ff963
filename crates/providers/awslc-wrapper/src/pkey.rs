// SPDX-License-Identifier: Apache-2.0
//! The library's general keys, and one use of a key: for algorithms that have no interface of their own.

use crate::raw::not_null;
use crate::{Failed, Result, check};
use aws_lc_sys as sys;
use metaslot_memory::Secret;
use std::ptr::{self, NonNull};

/// A public or private key.
#[derive(Debug)]
pub(crate) struct Pkey(NonNull<sys::EVP_PKEY>);

// SAFETY: nothing changes a key once it is made, and the library only reads it.
unsafe impl Send for Pkey {}
// SAFETY: as for `Send`.
unsafe impl Sync for Pkey {}

impl Drop for Pkey {
    fn drop(&mut self) {
        // SAFETY: we own the key; AWS-LC zeroises what it frees.
        unsafe { sys::EVP_PKEY_free(self.0.as_ptr()) }
    }
}

/// A kind of keys that the library makes of bytes.
#[derive(Clone, Copy)]
pub(crate) enum Bytes {
    PrivateMlDsa,
    PublicMlDsa,
    PublicMlKem,
}

impl Pkey {
    /// A key of a parameter set (`NID_…`), of bytes, which the library copies.
    pub(crate) fn new(kind: Bytes, set: i32, bytes: &[u8]) -> Result<Self> {
        let make: unsafe extern "C" fn(i32, *const u8, usize) -> *mut sys::EVP_PKEY = match kind {
            Bytes::PrivateMlDsa => sys::EVP_PKEY_pqdsa_new_raw_private_key,
            Bytes::PublicMlDsa => sys::EVP_PKEY_pqdsa_new_raw_public_key,
            Bytes::PublicMlKem => sys::EVP_PKEY_kem_new_raw_public_key,
        };
        // SAFETY: the range is a slice's; each of these refuses what is no such key, and gives us the only reference.
        not_null(unsafe { make(set, bytes.as_ptr(), bytes.len()) }).map(Self)
    }

    /// The key that the library made, if it made one.
    ///
    /// # Safety
    /// `raw` is NULL, or a key whose only reference is the caller's.
    pub(crate) unsafe fn own(raw: *mut sys::EVP_PKEY) -> Result<Self> {
        not_null(raw).map(Self)
    }

    /// The public key as bytes, of which there are so many.
    pub(crate) fn public_bytes(&self, length: usize) -> Result<Vec<u8>> {
        let (mut out, mut written) = (vec![0; length], length);
        // SAFETY: the key is live, and `out` as long as is said.
        check(unsafe {
            sys::EVP_PKEY_get_raw_public_key(self.0.as_ptr(), out.as_mut_ptr(), &raw mut written)
        })?;
        if written == length { Ok(out) } else { Err(Failed) }
    }

    /// The private key as bytes, of which there are so many.
    pub(crate) fn private_bytes(&self, length: usize) -> Result<Secret> {
        let (mut out, mut written) = (Secret::zeroed(length), length);
        let bytes = out.expose_mut().as_mut_ptr();
        // SAFETY: as above.
        check(unsafe {
            sys::EVP_PKEY_get_raw_private_key(self.0.as_ptr(), bytes, &raw mut written)
        })?;
        if written == length { Ok(out) } else { Err(Failed) }
    }
}

/// One use of a key.
pub(crate) struct Context(NonNull<sys::EVP_PKEY_CTX>);

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: we own the context.
        unsafe { sys::EVP_PKEY_CTX_free(self.0.as_ptr()) }
    }
}

impl Context {
    pub(crate) fn new(key: &Pkey) -> Result<Self> {
        // SAFETY: the key is live; the context has a reference of its own.
        not_null(unsafe { sys::EVP_PKEY_CTX_new(key.0.as_ptr(), ptr::null_mut()) }).map(Self)
    }

    /// For making a key of this kind (`EVP_PKEY_…`).
    pub(crate) fn for_kind(kind: i32) -> Result<Self> {
        // SAFETY: takes a number; NULL for one that is unknown.
        not_null(unsafe { sys::EVP_PKEY_CTX_new_id(kind, ptr::null_mut()) }).map(Self)
    }

    pub(crate) const fn as_ptr(&self) -> *mut sys::EVP_PKEY_CTX {
        self.0.as_ptr()
    }
}
