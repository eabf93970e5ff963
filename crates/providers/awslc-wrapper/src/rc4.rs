// SPDX-License-Identifier: Apache-2.0
//! RC4 (RFC 6229 has its vectors). Not constant time by design: its state is looked up at places that depend on the key.

use crate::{Failed, Result};
use aws_lc_sys::RC4_KEY;
use metaslot_memory::Protected;
use std::ffi::c_uint;

/// Length of the longest key, in bytes.
pub const LONGEST_KEY: usize = 256;

/// A key stream: what is left of it after the bytes used.
#[derive(Debug)]
pub struct Rc4(Protected<RC4_KEY>);

impl Rc4 {
    /// Begins the key stream of a key of 1 to 256 bytes.
    ///
    /// # Errors
    /// For another length.
    pub fn new(key: &[u8]) -> Result<Self> {
        let length = c_uint::try_from(key.len()).map_err(|_| Failed)?;
        if key.is_empty() || key.len() > LONGEST_KEY {
            return Err(Failed);
        }
        // SAFETY: the state is numbers; zero is one.
        let mut state = unsafe { Protected::<RC4_KEY>::zeroed() };
        // SAFETY: `key` is readable for its length, `state` takes a state.
        unsafe { aws_lc_sys::RC4_set_key(&raw mut *state, length, key.as_ptr()) };
        Ok(Self(state))
    }

    /// Encrypts or decrypts: adds the next bytes of the key stream.
    ///
    /// # Panics
    /// When `out` is not as long as `input`.
    pub fn apply(&mut self, input: &[u8], out: &mut [u8]) {
        assert_eq!(input.len(), out.len());
        let state = &raw mut *self.0;
        // SAFETY: as many bytes are written as read; the state is live.
        unsafe { aws_lc_sys::RC4(state, input.len(), input.as_ptr(), out.as_mut_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_6229_example() {
        let mut stream = [0; 32];
        let mut rc4 = Rc4::new(&[1, 2, 3, 4, 5]).unwrap();
        rc4.apply(&[0; 10], &mut stream[..10]);
        rc4.apply(&[0; 22], &mut stream[10..]);
        assert_eq!(stream[..8], [0xb2, 0x39, 0x63, 0x05, 0xf0, 0x3d, 0xc0, 0x27]);
        assert_eq!(stream[16..24], [0x69, 0x82, 0x94, 0x4f, 0x18, 0xfc, 0x82, 0xd5]);
        assert!(Rc4::new(&[]).is_err());
        assert!(Rc4::new(&[0; 257]).is_err());
    }
}
