// SPDX-License-Identifier: Apache-2.0
//! DSA, with keys and signatures as the library reads and writes them.

use crate::raw::{failed, not_null};
use crate::{Result, check};
use aws_lc_sys as sys;
use metaslot_memory::wipe_shallow_stack;
use std::fmt;
use std::ptr::{self, NonNull};

/// The longest signature, in bytes: two numbers of 256 bits.
const LONGEST: usize = 2 + 2 * (2 + 33);

/// A public or private key, ready for use.
pub struct DsaKey(NonNull<sys::DSA>);

// SAFETY: nothing changes a key once it is made but the library's own constants, behind its lock.
unsafe impl Send for DsaKey {}
// SAFETY: as for `Send`.
unsafe impl Sync for DsaKey {}

type Read = unsafe extern "C" fn(*mut *mut sys::DSA, *mut *const u8, i64) -> *mut sys::DSA;

impl DsaKey {
    /// A key from the DER of a SEQUENCE: 0, prime, order, base, public and private value.
    ///
    /// # Errors
    /// When it is none, or of sizes that the library does not have.
    pub fn private(der: &[u8]) -> Result<Self> {
        Self::read(sys::d2i_DSAPrivateKey, der)
    }

    /// A key from the DER of a SEQUENCE: public value, prime, order, base.
    ///
    /// # Errors
    /// As [`Self::private`].
    pub fn public(der: &[u8]) -> Result<Self> {
        Self::read(sys::d2i_DSAPublicKey, der)
    }

    fn read(read: Read, der: &[u8]) -> Result<Self> {
        let mut at = der.as_ptr();
        let length = i64::try_from(der.len()).map_err(|_| crate::Failed)?;
        // SAFETY: either function reads so many bytes, moves the pointer, and gives us the only reference to what it makes.
        let made = not_null(unsafe { read(ptr::null_mut(), &raw mut at, length) });
        wipe_shallow_stack();
        made.map(Self)
    }

    /// The signature of a digest, which is cut to the length of the order, as the DER of a SEQUENCE of two numbers.
    ///
    /// # Errors
    /// When the key is a public one.
    pub fn sign(&self, digest: &[u8]) -> Result<Vec<u8>> {
        let (mut der, mut length) = (vec![0; LONGEST], 0);
        let out = der.as_mut_ptr();
        // SAFETY: the key is alive; the library has no longer order than 256 bits, so that `out` is long enough.
        let done = check(unsafe {
            sys::DSA_sign(0, digest.as_ptr(), digest.len(), out, &raw mut length, self.0.as_ptr())
        });
        wipe_shallow_stack();
        done?;
        der.truncate(length as usize);
        Ok(der)
    }

    /// Checks such a signature.
    ///
    /// # Errors
    /// When it is not good.
    pub fn verify(&self, digest: &[u8], der: &[u8]) -> Result<()> {
        let mut valid = 0;
        // SAFETY: the key is alive and the ranges are slices'; the answer is written.
        let done = unsafe {
            sys::DSA_check_signature(
                &raw mut valid,
                digest.as_ptr(),
                digest.len(),
                der.as_ptr(),
                der.len(),
                self.0.as_ptr(),
            )
        };
        if done == 1 && valid == 1 { Ok(()) } else { failed() }
    }
}

impl Drop for DsaKey {
    fn drop(&mut self) {
        // SAFETY: we own the key; the library zeroises what it frees.
        unsafe { sys::DSA_free(self.0.as_ptr()) }
    }
}

impl fmt::Debug for DsaKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DsaKey")
    }
}
