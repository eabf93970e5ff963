// SPDX-License-Identifier: Apache-2.0
//! RIPEMD-160, for old data.

use aws_lc_sys::RIPEMD160_CTX;
use metaslot_memory::Protected;
use std::fmt;

/// Length of the digest, in bytes.
pub const LENGTH: usize = 20;
/// Length of an input block, in bytes.
pub const BLOCK: usize = 64;

/// The chaining value at the beginning.
const FIRST: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];

/// A hash in the middle; its state lies in protected memory.
pub struct Stream(Protected<RIPEMD160_CTX>);

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stream(RIPEMD-160)")
    }
}

impl Default for Stream {
    fn default() -> Self {
        // SAFETY: numbers; zeros are some.
        let mut context = unsafe { Protected::<RIPEMD160_CTX>::zeroed() };
        context.h = FIRST;
        Self(context)
    }
}

impl Clone for Stream {
    fn clone(&self) -> Self {
        let mut copy = Self::default();
        *copy.0 = *self.0;
        copy
    }
}

impl Stream {
    /// Takes more data.
    pub fn update(&mut self, data: &[u8]) {
        // SAFETY: an initialised context, `data` readable for its length; it does not fail.
        unsafe { aws_lc_sys::RIPEMD160_Update(&raw mut *self.0, data.as_ptr().cast(), data.len()) };
    }

    /// Writes the digest; the stream is used up.
    pub fn finish(&mut self, out: &mut [u8; LENGTH]) {
        // SAFETY: an initialised context; a whole digest is written.
        unsafe { aws_lc_sys::RIPEMD160_Final(out.as_mut_ptr(), &raw mut *self.0) };
    }

    /// The count of bits, the chaining value, and what waits for a full block.
    #[must_use]
    pub fn save(&self) -> Vec<u8> {
        let state = &*self.0;
        let words = [state.Nh, state.Nl].into_iter().chain(state.h);
        let mut out: Vec<u8> = words.flat_map(u32::to_be_bytes).collect();
        out.extend_from_slice(&state.data[..state.num as usize]);
        out
    }

    /// Continues from what [`Self::save`] wrote; `None` when the bytes are no such state.
    #[must_use]
    pub fn restore(saved: &[u8]) -> Option<Self> {
        let mut stream = Self::default();
        let state = &mut *stream.0;
        let (bits, rest) = saved.split_first_chunk::<8>()?;
        let bits = u64::from_be_bytes(*bits);
        let (chain, pending) = rest.split_at_checked(LENGTH)?;
        if bits % 8 != 0 || (bits / 8) % BLOCK as u64 != pending.len() as u64 {
            return None;
        }
        for (word, bytes) in state.h.iter_mut().zip(chain.as_chunks().0) {
            *word = u32::from_be_bytes(*bytes);
        }
        state.Nh = u32::try_from(bits >> 32).ok()?;
        state.Nl = u32::try_from(bits & u64::from(u32::MAX)).ok()?;
        state.data[..pending.len()].copy_from_slice(pending);
        state.num = u32::try_from(pending.len()).ok()?;
        Some(stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_of_abc_is_that_of_its_authors() {
        let (mut stream, mut out) = (Stream::default(), [0; LENGTH]);
        stream.update(b"a");
        stream = Stream::restore(&stream.save()).unwrap();
        stream.update(b"bc");
        stream.finish(&mut out);
        assert_eq!(out[..4], [0x8e, 0xb2, 0x08, 0xf7]);
        assert!(Stream::restore(&[0; 27]).is_none());
    }
}
