// SPDX-License-Identifier: Apache-2.0
//! Hash functions: in one call, and as a stream whose state can be saved.

use crate::{Failed, Result, check, sha256};
use aws_lc_sys::{EVP_MD, EVP_MD_CTX, MD5_CTX, SHA_CTX, SHA256_CTX, SHA512_CTX};
use std::fmt;
use std::ptr::{self, NonNull};

/// A hash function.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[expect(missing_docs, reason = "the variants are the functions' names")]
pub enum Hash {
    Md5,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
    Sha512_224,
    Sha512_256,
    Sha3_224,
    Sha3_256,
    Sha3_384,
    Sha3_512,
}

/// Length of the longest digest, in bytes.
pub const MAX_LENGTH: usize = 64;

impl Hash {
    /// Every function.
    pub const ALL: [Self; 12] = [
        Self::Md5,
        Self::Sha1,
        Self::Sha224,
        Self::Sha256,
        Self::Sha384,
        Self::Sha512,
        Self::Sha512_224,
        Self::Sha512_256,
        Self::Sha3_224,
        Self::Sha3_256,
        Self::Sha3_384,
        Self::Sha3_512,
    ];

    /// Length of the digest, in bytes.
    #[must_use]
    pub const fn length(self) -> usize {
        match self {
            Self::Md5 => 16,
            Self::Sha1 => 20,
            Self::Sha224 | Self::Sha512_224 | Self::Sha3_224 => 28,
            Self::Sha256 | Self::Sha512_256 | Self::Sha3_256 => 32,
            Self::Sha384 | Self::Sha3_384 => 48,
            Self::Sha512 | Self::Sha3_512 => 64,
        }
    }

    /// Length of an input block, in bytes (what HMAC pads to).
    #[must_use]
    pub const fn block(self) -> usize {
        match self {
            Self::Md5 | Self::Sha1 | Self::Sha224 | Self::Sha256 => 64,
            Self::Sha384 | Self::Sha512 | Self::Sha512_224 | Self::Sha512_256 => 128,
            Self::Sha3_224 => 144,
            Self::Sha3_256 => 136,
            Self::Sha3_384 => 104,
            Self::Sha3_512 => 72,
        }
    }

    /// AWS-LC's description of the function.
    pub(crate) fn md(self) -> *const EVP_MD {
        let function: unsafe extern "C" fn() -> *const EVP_MD = match self {
            Self::Md5 => aws_lc_sys::EVP_md5,
            Self::Sha1 => aws_lc_sys::EVP_sha1,
            Self::Sha224 => aws_lc_sys::EVP_sha224,
            Self::Sha256 => aws_lc_sys::EVP_sha256,
            Self::Sha384 => aws_lc_sys::EVP_sha384,
            Self::Sha512 => aws_lc_sys::EVP_sha512,
            Self::Sha512_224 => aws_lc_sys::EVP_sha512_224,
            Self::Sha512_256 => aws_lc_sys::EVP_sha512_256,
            Self::Sha3_224 => aws_lc_sys::EVP_sha3_224,
            Self::Sha3_256 => aws_lc_sys::EVP_sha3_256,
            Self::Sha3_384 => aws_lc_sys::EVP_sha3_384,
            Self::Sha3_512 => aws_lc_sys::EVP_sha3_512,
        };
        // SAFETY: takes nothing and returns the address of a static.
        unsafe { function() }
    }

    /// The digest of `data` into `out`. Nothing is allocated but for MD5 and SHA-3.
    ///
    /// # Errors
    /// When the library fails.
    ///
    /// # Panics
    /// When `out` is not [`Self::length`] long.
    pub fn digest(self, data: &[u8], out: &mut [u8]) -> Result<()> {
        assert_eq!(out.len(), self.length());
        let function: unsafe extern "C" fn(*const u8, usize, *mut u8) -> *mut u8 = match self {
            Self::Sha1 => aws_lc_sys::SHA1,
            Self::Sha224 | Self::Sha256 => {
                let first = if self == Self::Sha224 { sha256::SHA224 } else { sha256::SHA256 };
                sha256::digest(first, data, out);
                return Ok(());
            }
            Self::Sha384 => aws_lc_sys::SHA384,
            Self::Sha512 => aws_lc_sys::SHA512,
            Self::Sha512_224 => aws_lc_sys::SHA512_224,
            Self::Sha512_256 => aws_lc_sys::SHA512_256,
            Self::Md5 | Self::Sha3_224 | Self::Sha3_256 | Self::Sha3_384 | Self::Sha3_512 => {
                return self.digest_by_description(data, out);
            }
        };
        // SAFETY: `data` is readable for its length, `out` takes a whole digest (asserted). The
        // functions cleanse their state themselves.
        let done = unsafe { function(data.as_ptr(), data.len(), out.as_mut_ptr()) };
        if done.is_null() { Err(Failed) } else { Ok(()) }
    }

    fn digest_by_description(self, data: &[u8], out: &mut [u8]) -> Result<()> {
        // SAFETY: `data` is readable for its length, `out` takes a whole digest (asserted by the
        // caller), the length may be left out.
        check(unsafe {
            aws_lc_sys::EVP_Digest(
                data.as_ptr().cast(),
                data.len(),
                out.as_mut_ptr(),
                ptr::null_mut(),
                self.md(),
                ptr::null_mut(),
            )
        })
    }
}

/// SHA-256 of `data`.
#[must_use]
pub fn sha256(data: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    sha256::digest(sha256::SHA256, data, &mut out);
    out
}

/// A hash in the middle; its state lies in protected memory.
pub struct Stream {
    context: NonNull<EVP_MD_CTX>,
    hash: Hash,
}

// SAFETY: the context is owned and has no ties to a thread.
unsafe impl Send for Stream {}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({:?})", self.hash)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: made by `EVP_MD_CTX_new`, freed once; AWS-LC zeroises what it frees.
        unsafe { aws_lc_sys::EVP_MD_CTX_free(self.context.as_ptr()) };
    }
}

impl Stream {
    /// The beginning of a hash.
    ///
    /// # Errors
    /// When memory ran out.
    pub fn new(hash: Hash) -> Result<Self> {
        // SAFETY: takes nothing; NULL when memory ran out.
        let context = NonNull::new(unsafe { aws_lc_sys::EVP_MD_CTX_new() }).ok_or(Failed)?;
        let stream = Self { context, hash };
        // SAFETY: the context is fresh, the description a static.
        check(unsafe {
            aws_lc_sys::EVP_DigestInit_ex(context.as_ptr(), hash.md(), ptr::null_mut())
        })?;
        Ok(stream)
    }

    /// Takes more data.
    ///
    /// # Errors
    /// When the library fails.
    pub fn update(&mut self, data: &[u8]) -> Result<()> {
        // SAFETY: the context is initialised, `data` readable for its length.
        check(unsafe {
            let context = self.context.as_ptr();
            aws_lc_sys::EVP_DigestUpdate(context, data.as_ptr().cast(), data.len())
        })
    }

    /// Writes the digest; the stream is used up.
    ///
    /// # Errors
    /// When the library fails.
    ///
    /// # Panics
    /// When `out` is not as long as the digest.
    pub fn finish(&mut self, out: &mut [u8]) -> Result<()> {
        assert_eq!(out.len(), self.hash.length());
        // SAFETY: the context is initialised, `out` takes a whole digest.
        check(unsafe {
            let context = self.context.as_ptr();
            aws_lc_sys::EVP_DigestFinal_ex(context, out.as_mut_ptr(), ptr::null_mut())
        })
    }

    /// The state as bytes that [`Self::restore`] takes, on any machine: the count of bits, the
    /// chaining value, and what waits for a full block. `None` for SHA-3, whose state AWS-LC
    /// keeps to itself.
    #[must_use]
    pub fn save(&self) -> Option<Vec<u8>> {
        let (bits, chain, pending) = match self.state()? {
            State::Narrow(state) => {
                let chain: Vec<u8> = state.h.iter().flat_map(|word| word.to_be_bytes()).collect();
                let bits = (u128::from(*state.high) << 32) | u128::from(*state.low);
                (bits, chain, &state.data[..*state.count as usize])
            }
            State::Wide(state) => {
                let chain = state.h.iter().flat_map(|word| word.to_be_bytes()).collect();
                let bits = (u128::from(state.Nh) << 64) | u128::from(state.Nl);
                (bits, chain, &state.p[..state.num as usize])
            }
        };
        let mut out = Vec::with_capacity(16 + chain.len() + pending.len());
        out.extend_from_slice(&bits.to_be_bytes());
        out.extend_from_slice(&chain);
        out.extend_from_slice(pending);
        Some(out)
    }

    /// Continues from what [`Self::save`] wrote for the same function.
    ///
    /// # Errors
    /// When the bytes are no such state.
    pub fn restore(hash: Hash, saved: &[u8]) -> Result<Self> {
        let stream = Self::new(hash)?;
        let (bits, rest) = saved.split_first_chunk::<16>().ok_or(Failed)?;
        let bits = u128::from_be_bytes(*bits);
        let count = usize::try_from((bits / 8) % hash.block() as u128).map_err(|_| Failed)?;
        if bits % 8 != 0 {
            return Err(Failed);
        }
        match stream.state().ok_or(Failed)? {
            State::Narrow(state) => {
                let (chain, pending) = split(rest, state.h.len() * 4, count)?;
                for (word, bytes) in state.h.iter_mut().zip(chain.as_chunks().0) {
                    *word = u32::from_be_bytes(*bytes);
                }
                *state.high = u32::try_from(bits >> 32).map_err(|_| Failed)?;
                *state.low = u32::try_from(bits & u128::from(u32::MAX)).map_err(|_| Failed)?;
                state.data[..count].copy_from_slice(pending);
                *state.count = u32::try_from(count).map_err(|_| Failed)?;
            }
            State::Wide(state) => {
                let (chain, pending) = split(rest, state.h.len() * 8, count)?;
                for (word, bytes) in state.h.iter_mut().zip(chain.as_chunks().0) {
                    *word = u64::from_be_bytes(*bytes);
                }
                state.Nh = u64::try_from(bits >> 64).map_err(|_| Failed)?;
                state.Nl = u64::try_from(bits & u128::from(u64::MAX)).map_err(|_| Failed)?;
                state.p[..count].copy_from_slice(pending);
                state.num = u32::try_from(count).map_err(|_| Failed)?;
            }
        }
        Ok(stream)
    }

    /// The library's state, where its layout is part of the library's interface.
    fn state(&self) -> Option<State<'_>> {
        // SAFETY: the context is initialised; the field is only read.
        let data = unsafe { (*self.context.as_ptr()).md_data };
        Some(match self.hash {
            Hash::Md5 => {
                // SAFETY: the state of an MD5 context, borrowed as long as the stream is.
                let state = unsafe { &mut *data.cast::<MD5_CTX>() };
                State::narrow(
                    &mut state.h,
                    &mut state.Nh,
                    &mut state.Nl,
                    &mut state.data,
                    &mut state.num,
                )
            }
            Hash::Sha1 => {
                // SAFETY: the state of a SHA-1 context, borrowed as long as the stream is.
                let state = unsafe { &mut *data.cast::<SHA_CTX>() };
                State::narrow(
                    &mut state.h,
                    &mut state.Nh,
                    &mut state.Nl,
                    &mut state.data,
                    &mut state.num,
                )
            }
            Hash::Sha224 | Hash::Sha256 => {
                // SAFETY: the state of a SHA-256 context, borrowed as long as the stream is.
                let state = unsafe { &mut *data.cast::<SHA256_CTX>() };
                State::narrow(
                    &mut state.h,
                    &mut state.Nh,
                    &mut state.Nl,
                    &mut state.data,
                    &mut state.num,
                )
            }
            Hash::Sha384 | Hash::Sha512 | Hash::Sha512_224 | Hash::Sha512_256 => {
                // SAFETY: the state of a SHA-512 context, borrowed as long as the stream is.
                State::Wide(unsafe { &mut *data.cast::<SHA512_CTX>() })
            }
            Hash::Sha3_224 | Hash::Sha3_256 | Hash::Sha3_384 | Hash::Sha3_512 => return None,
        })
    }
}

/// The inner state of a hash of the MD family.
enum State<'a> {
    /// 32-bit words: MD5, SHA-1, SHA-224, SHA-256.
    Narrow(Narrow<'a>),
    /// 64-bit words: SHA-384, SHA-512 and its short forms.
    Wide(&'a mut SHA512_CTX),
}

struct Narrow<'a> {
    h: &'a mut [u32],
    high: &'a mut u32,
    low: &'a mut u32,
    data: &'a mut [u8],
    count: &'a mut u32,
}

impl<'a> State<'a> {
    fn narrow(
        h: &'a mut [u32],
        high: &'a mut u32,
        low: &'a mut u32,
        data: &'a mut [u8],
        count: &'a mut u32,
    ) -> Self {
        Self::Narrow(Narrow { h, high, low, data, count })
    }
}

/// The chaining value and the pending bytes, when the lengths are right.
fn split(rest: &[u8], chain: usize, count: usize) -> Result<(&[u8], &[u8])> {
    if rest.len() == chain + count { Ok(rest.split_at(chain)) } else { Err(Failed) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_and_single_call_agree_for_every_function_and_cut() {
        let data: Vec<u8> = (0..=255).cycle().take(1000).collect();
        for hash in Hash::ALL {
            let mut whole = vec![0; hash.length()];
            hash.digest(&data, &mut whole).unwrap();
            for cut in [0, 1, 63, 64, 65, 127, 128, 129, 999, 1000] {
                let mut stream = Stream::new(hash).unwrap();
                stream.update(&data[..cut]).unwrap();
                if let Some(saved) = stream.save() {
                    stream = Stream::restore(hash, &saved).unwrap();
                }
                stream.update(&data[cut..]).unwrap();
                let mut parts = vec![0; hash.length()];
                stream.finish(&mut parts).unwrap();
                assert_eq!(parts, whole, "{hash:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn stream_and_single_call_agree_on_every_length() {
        let data: Vec<u8> = (1..=255).cycle().take(300).collect();
        for hash in [Hash::Sha224, Hash::Sha256, Hash::Sha512] {
            let (mut whole, mut parts) = (vec![0; hash.length()], vec![0; hash.length()]);
            for (length, start) in (0..260).flat_map(|length| [(length, 0), (length, 3)]) {
                let data = &data[start..][..length];
                hash.digest(data, &mut whole).unwrap();
                let mut stream = Stream::new(hash).unwrap();
                stream.update(data).unwrap();
                stream.finish(&mut parts).unwrap();
                assert_eq!(parts, whole, "{hash:?} of {length} bytes");
            }
        }
    }

    #[test]
    fn damaged_states_are_refused() {
        let mut stream = Stream::new(Hash::Sha256).unwrap();
        stream.update(b"abc").unwrap();
        let saved = stream.save().unwrap();
        assert!(Stream::restore(Hash::Sha256, &saved[..saved.len() - 1]).is_err());
        assert!(Stream::restore(Hash::Sha512, &saved).is_err());
        assert!(Stream::restore(Hash::Sha256, &[]).is_err());
        let mut odd = saved;
        odd[15] |= 1;
        assert!(Stream::restore(Hash::Sha256, &odd).is_err());
    }

    #[test]
    fn sha256_of_abc_is_the_standard_one() {
        assert_eq!(sha256(b"abc")[..4], [0xba, 0x78, 0x16, 0xbf]);
    }
}
