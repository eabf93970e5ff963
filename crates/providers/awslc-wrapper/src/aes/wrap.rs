// SPDX-License-Identifier: Apache-2.0
//! AES key wrap (RFC 3394) and key wrap with padding (RFC 5649). AWS-LC leaves blocks of the wrapped key
//! on the stack, so it is wiped behind each call.

use super::{BLOCK, Keys, Way};
use crate::{Failed, Result, cleanse};
use metaslot_memory::wipe_shallow_stack;
use std::ffi::c_int;
use std::ptr;

/// What wrapping adds, in bytes.
const SEMIBLOCK: usize = 8;

impl Keys {
    /// RFC 3394. `iv` is the standard's own where it is left out. Writes 8 bytes more than it reads.
    ///
    /// # Errors
    /// When `plain` is shorter than 16 bytes or no multiple of 8.
    ///
    /// # Panics
    /// When `out` is not exactly 8 bytes longer than `plain`.
    pub fn wrap(&self, iv: Option<&[u8; 8]>, plain: &[u8], out: &mut [u8]) -> Result<()> {
        assert_eq!(out.len(), plain.len() + SEMIBLOCK);
        // SAFETY: the library reads `plain`, and an IV of 8 bytes or NULL; it writes 8 bytes more
        // than it reads.
        let length = unsafe {
            aws_lc_sys::AES_wrap_key(
                self.schedule(Way::Encrypt),
                iv.map_or(ptr::null(), |iv| iv.as_ptr()),
                out.as_mut_ptr(),
                plain.as_ptr(),
                plain.len(),
            )
        };
        wipe_shallow_stack();
        whole(length, out.len())
    }

    /// Undoes [`Self::wrap`]; nothing is left in `out` when the check fails.
    ///
    /// # Errors
    /// When the integrity check fails or the length is impossible.
    ///
    /// # Panics
    /// When `out` is not exactly 8 bytes shorter than `wrapped`.
    pub fn unwrap(&self, iv: Option<&[u8; 8]>, wrapped: &[u8], out: &mut [u8]) -> Result<()> {
        assert_eq!(out.len() + SEMIBLOCK, wrapped.len());
        // SAFETY: the library reads `wrapped`, and an IV of 8 bytes or NULL; it writes 8 bytes
        // fewer than it reads.
        let length = unsafe {
            aws_lc_sys::AES_unwrap_key(
                self.schedule(Way::Decrypt),
                iv.map_or(ptr::null(), |iv| iv.as_ptr()),
                out.as_mut_ptr(),
                wrapped.as_ptr(),
                wrapped.len(),
            )
        };
        wipe_shallow_stack();
        let done = whole(length, out.len());
        if done.is_err() {
            cleanse(out);
        }
        done
    }

    /// Length of what [`Self::wrap_padded`] writes for `plain` bytes.
    #[must_use]
    pub const fn padded_length(plain: usize) -> usize {
        plain.div_ceil(SEMIBLOCK) * SEMIBLOCK + SEMIBLOCK
    }

    /// RFC 5649: any length from 1 byte. `iv` takes the place of the first half of the
    /// standard's alternative initial value.
    ///
    /// # Errors
    /// When `plain` is empty or longer than 2³² − 1 bytes.
    ///
    /// # Panics
    /// When `out` is not [`Self::padded_length`] long.
    pub fn wrap_padded(&self, iv: Option<&[u8; 4]>, plain: &[u8], out: &mut [u8]) -> Result<()> {
        assert_eq!(out.len(), Self::padded_length(plain.len()));
        let done = match iv {
            None => self.wrap_padded_standard(plain, out),
            Some(iv) => self.wrap_padded_with(*iv, plain, out),
        };
        wipe_shallow_stack();
        done
    }

    fn wrap_padded_with(&self, iv: [u8; 4], plain: &[u8], out: &mut [u8]) -> Result<()> {
        let initial = initial_value(iv, plain.len())?;
        if plain.is_empty() {
            return Err(Failed);
        }
        // The padded key is put where it will be encrypted in place.
        out[SEMIBLOCK..].fill(0);
        out[SEMIBLOCK..SEMIBLOCK + plain.len()].copy_from_slice(plain);
        if let Ok(block) = <&mut [u8; BLOCK]>::try_from(&mut *out) {
            block[..SEMIBLOCK].copy_from_slice(&initial);
            self.block(Way::Encrypt, block);
            return Ok(());
        }
        let length = out.len();
        let place = out.as_mut_ptr();
        // SAFETY: within `out`, which is longer than 8 bytes.
        let padded = unsafe { place.add(SEMIBLOCK) };
        // SAFETY: the library moves the padded key to where it stands already, then works in
        // place; `out` is as long as it writes.
        let written = unsafe {
            aws_lc_sys::AES_wrap_key(
                self.schedule(Way::Encrypt),
                initial.as_ptr(),
                place,
                padded,
                length - SEMIBLOCK,
            )
        };
        whole(written, length)
    }

    fn wrap_padded_standard(&self, plain: &[u8], out: &mut [u8]) -> Result<()> {
        let mut length = 0;
        // SAFETY: `plain` is readable and `out` writable for their lengths.
        crate::check(unsafe {
            aws_lc_sys::AES_wrap_key_padded(
                self.schedule(Way::Encrypt),
                out.as_mut_ptr(),
                &raw mut length,
                out.len(),
                plain.as_ptr(),
                plain.len(),
            )
        })
    }

    /// Undoes [`Self::wrap_padded`] and returns the length; nothing is left in `out` when the check
    /// fails.
    ///
    /// # Errors
    /// When the integrity check fails or the length is impossible.
    ///
    /// # Panics
    /// When `out` is not exactly 8 bytes shorter than `wrapped`.
    pub fn unwrap_padded(
        &self,
        iv: Option<&[u8; 4]>,
        wrapped: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        assert_eq!(out.len() + SEMIBLOCK, wrapped.len());
        let length = match iv {
            None => self.unwrap_padded_standard(wrapped, out),
            Some(iv) => self.unwrap_padded_with(*iv, wrapped, out),
        };
        wipe_shallow_stack();
        match length {
            Ok(length) => out[length..].fill(0),
            Err(Failed) => cleanse(out),
        }
        length
    }

    fn unwrap_padded_standard(&self, wrapped: &[u8], out: &mut [u8]) -> Result<usize> {
        let mut length = 0;
        // SAFETY: `wrapped` is readable and `out` writable for their lengths.
        crate::check(unsafe {
            aws_lc_sys::AES_unwrap_key_padded(
                self.schedule(Way::Decrypt),
                out.as_mut_ptr(),
                &raw mut length,
                out.len(),
                wrapped.as_ptr(),
                wrapped.len(),
            )
        })?;
        Ok(length)
    }

    /// The library checks a whole initial value, so the lengths that the padding allows are tried.
    fn unwrap_padded_with(&self, iv: [u8; 4], wrapped: &[u8], out: &mut [u8]) -> Result<usize> {
        if let Ok(block) = <&[u8; BLOCK]>::try_from(wrapped) {
            let mut block = *block;
            self.block(Way::Decrypt, &mut block);
            out.copy_from_slice(&block[SEMIBLOCK..]);
            let found = (1..=SEMIBLOCK).find(|length| {
                initial_value(iv, *length).is_ok_and(|initial| block[..SEMIBLOCK] == initial)
            });
            cleanse(&mut block);
            return padding_is_zero(found.ok_or(Failed)?, out);
        }
        if !wrapped.len().is_multiple_of(SEMIBLOCK) || wrapped.len() < 3 * SEMIBLOCK {
            return Err(Failed);
        }
        for length in out.len() - 7..=out.len() {
            if self.unwrap(Some(&initial_value(iv, length)?), wrapped, out).is_ok() {
                return padding_is_zero(length, out);
            }
        }
        Err(Failed)
    }
}

fn initial_value(iv: [u8; 4], length: usize) -> Result<[u8; 8]> {
    let length = u32::try_from(length).map_err(|_| Failed)?;
    let mut initial = [0; 8];
    initial[..4].copy_from_slice(&iv);
    initial[4..].copy_from_slice(&length.to_be_bytes());
    Ok(initial)
}

fn padding_is_zero(length: usize, out: &[u8]) -> Result<usize> {
    if out[length..].iter().fold(0, |sum, byte| sum | byte) == 0 { Ok(length) } else { Err(Failed) }
}

fn whole(length: c_int, wanted: usize) -> Result<()> {
    if usize::try_from(length) == Ok(wanted) { Ok(()) } else { Err(Failed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_comes_back_with_and_without_an_own_iv() {
        let keys = Keys::new(&[4; 32]).unwrap();
        for length in 1..70_usize {
            let plain = vec![0xab; length];
            for iv in [None, Some([1, 2, 3, 4])] {
                let mut wrapped = vec![0; Keys::padded_length(length)];
                keys.wrap_padded(iv.as_ref(), &plain, &mut wrapped).unwrap();
                let mut out = vec![0; wrapped.len() - 8];
                assert_eq!(keys.unwrap_padded(iv.as_ref(), &wrapped, &mut out), Ok(length));
                assert_eq!(out[..length], plain);
                assert!(keys.unwrap_padded(Some(&[9; 4]), &wrapped, &mut out).is_err());
                assert!(out.iter().all(|byte| *byte == 0), "nothing is left");
            }
            if length >= 16 && length.is_multiple_of(8) {
                let mut wrapped = vec![0; length + 8];
                keys.wrap(None, &plain, &mut wrapped).unwrap();
                let mut out = vec![0; length];
                keys.unwrap(None, &wrapped, &mut out).unwrap();
                assert_eq!(out, plain);
                assert!(keys.unwrap(Some(&[0; 8]), &wrapped, &mut out).is_err());
            }
        }
    }

    #[test]
    fn an_own_iv_equal_to_the_standards_gives_the_same() {
        let keys = Keys::new(&[4; 16]).unwrap();
        for length in [1, 8, 9, 31] {
            let plain = vec![0xcd; length];
            let mut standard = vec![0; Keys::padded_length(length)];
            let mut own = standard.clone();
            keys.wrap_padded(None, &plain, &mut standard).unwrap();
            keys.wrap_padded(Some(&[0xa6, 0x59, 0x59, 0xa6]), &plain, &mut own).unwrap();
            assert_eq!(standard, own);
        }
    }
}
