// SPDX-License-Identifier: Apache-2.0
//! HMAC over a prepared key, which holds the two hashed pads instead of the key.

use crate::digest::{Hash, MAX_LENGTH};
use crate::{Failed, Result, check, sha256};
use aws_lc_sys::HMAC_CTX;
use metaslot_memory::{Protected, wipe_shallow_stack, wipe_slight_stack};
use std::ptr;

/// A prepared key: shared by any number of threads.
#[derive(Debug)]
pub struct Key {
    prepared: Protected<Prepared>,
    hash: Hash,
}

#[derive(Clone, Copy)]
struct Prepared {
    context: HMAC_CTX,
    /// With SHA-224 and SHA-256, for messages that are whole: a copy of the context takes longer than a short one. They are there where the number is
    /// not zero, and so they are not in a forked child.
    pads: (usize, [sha256::State; 2]),
}

// SAFETY: after its initialisation the context is only read (copied from).
unsafe impl Send for Key {}
// SAFETY: as above.
unsafe impl Sync for Key {}

impl Key {
    /// A key of any length.
    ///
    /// # Errors
    /// When the library fails.
    pub fn new(hash: Hash, key: &[u8]) -> Result<Self> {
        let mut prepared = empty();
        // SAFETY: the context is empty, `key` readable for its length, the description a static.
        let done = check(unsafe {
            aws_lc_sys::HMAC_Init_ex(
                &raw mut prepared.context,
                key.as_ptr().cast(),
                key.len(),
                hash.md(),
                ptr::null_mut(),
            )
        });
        if let Some(first) = first(hash) {
            prepared.pads = (hash.length() / 4, sha256::pads(first, key));
        }
        // AWS-LC leaves the padded key on the stack.
        wipe_shallow_stack();
        done.map(|()| Self { prepared, hash })
    }

    /// The function that this key is for.
    #[must_use]
    pub const fn hash(&self) -> Hash {
        self.hash
    }

    /// Begins a MAC.
    ///
    /// # Errors
    /// When the library fails.
    pub fn start(&self) -> Result<Stream> {
        let mut running = empty();
        copy(&mut running.context, &self.prepared.context)?;
        Ok(Stream { running, hash: self.hash })
    }

    /// The MAC of the parts, one after the other, into `out`, which may be shorter than the
    /// hash: then the MAC is truncated.
    ///
    /// # Errors
    /// When the library fails.
    ///
    /// # Panics
    /// When `out` is longer than the hash.
    pub fn mac(&self, parts: &[&[u8]], out: &mut [u8]) -> Result<()> {
        if let ([data], Some(_)) = (parts, first(self.hash)) {
            return self.short(data, out);
        }
        let mut context = OnStack::empty();
        copy(&mut context.0, &self.prepared.context)?;
        for part in parts {
            update(&mut context.0, part)?;
        }
        finish(&mut context.0, self.hash, out)
    }

    #[inline]
    fn short(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        assert!(out.len() <= self.hash.length());
        let (words, pads) = &self.prepared.pads;
        if *words == 0 {
            return Err(Failed);
        }
        sha256::mac(pads, *words, data, out);
        Ok(())
    }

    /// Whether `mac`, possibly truncated, is the MAC of `data`; in constant time.
    ///
    /// # Errors
    /// When the library fails.
    pub fn verify(&self, data: &[u8], mac: &[u8]) -> Result<bool> {
        if mac.len() > self.hash.length() {
            return Ok(false);
        }
        let mut own = [0; MAX_LENGTH];
        let own_mac = &mut own[..mac.len()];
        let done = self.mac(&[data], own_mac);
        let equal = crate::constant_time::equal(own_mac, mac);
        crate::cleanse(&mut own);
        done.map(|()| equal)
    }
}

/// Before the first block of those functions.
const fn first(hash: Hash) -> Option<sha256::State> {
    match hash {
        Hash::Sha224 => Some(sha256::SHA224),
        Hash::Sha256 => Some(sha256::SHA256),
        _ => None,
    }
}

/// The context of a single call: no allocation, and zeroised at the end.
struct OnStack(HMAC_CTX);

impl OnStack {
    /// To be filled in its place: what is moved leaves a copy.
    #[inline(always)]
    const fn empty() -> Self {
        // SAFETY: the all-zero context is what `HMAC_CTX_init` makes.
        Self(unsafe { std::mem::zeroed() })
    }
}

impl Drop for OnStack {
    fn drop(&mut self) {
        // SAFETY: a context that `HMAC_CTX_copy_ex` filled, or an empty one.
        unsafe { aws_lc_sys::HMAC_CTX_cleanse(&raw mut self.0) };
    }
}

fn copy(to: &mut HMAC_CTX, from: &HMAC_CTX) -> Result<()> {
    // SAFETY: the destination is an empty context, the source an initialised one.
    check(unsafe { aws_lc_sys::HMAC_CTX_copy_ex(to, from) })
}

fn update(context: &mut HMAC_CTX, data: &[u8]) -> Result<()> {
    // SAFETY: the context is initialised, `data` readable for its length.
    let done = check(unsafe { aws_lc_sys::HMAC_Update(context, data.as_ptr(), data.len()) });
    wipe_slight_stack();
    done
}

fn finish(context: &mut HMAC_CTX, hash: Hash, out: &mut [u8]) -> Result<()> {
    assert!(out.len() <= hash.length());
    let mut whole = [0; MAX_LENGTH];
    let mut length = 0;
    // SAFETY: the context is initialised, `whole` takes the longest MAC.
    let done =
        check(unsafe { aws_lc_sys::HMAC_Final(context, whole.as_mut_ptr(), &raw mut length) });
    // Who has a state of SHA-3 counts back to the key.
    wipe_slight_stack();
    out.copy_from_slice(&whole[..out.len()]);
    crate::cleanse(&mut whole);
    done
}

/// A MAC in the middle.
#[derive(Debug)]
pub struct Stream {
    running: Protected<Prepared>,
    hash: Hash,
}

// SAFETY: the context is owned and has no ties to a thread.
unsafe impl Send for Stream {}

impl Stream {
    /// Takes more data.
    ///
    /// # Errors
    /// When the library fails.
    pub fn update(&mut self, data: &[u8]) -> Result<()> {
        update(&mut self.running.context, data)
    }

    /// Writes the MAC, truncated to `out`; the stream is used up.
    ///
    /// # Errors
    /// When the library fails.
    ///
    /// # Panics
    /// When `out` is longer than the hash.
    pub fn finish(&mut self, out: &mut [u8]) -> Result<()> {
        finish(&mut self.running.context, self.hash, out)
    }

    /// Whether `mac`, possibly truncated, is right; in constant time. The stream is used up.
    ///
    /// # Errors
    /// When the library fails.
    pub fn verify(&mut self, mac: &[u8]) -> Result<bool> {
        if mac.len() > self.hash.length() {
            return Ok(false);
        }
        let mut own = [0; MAX_LENGTH];
        let own_mac = &mut own[..mac.len()];
        self.finish(own_mac)?;
        let equal = crate::constant_time::equal(own_mac, mac);
        crate::cleanse(&mut own);
        Ok(equal)
    }
}

/// HMAC-SHA-256 of the parts, one after the other, into `out`.
///
/// # Errors
/// When the library fails.
pub fn sha256(key: &[u8], parts: &[&[u8]], out: &mut [u8; 32]) -> Result<()> {
    Key::new(Hash::Sha256, key)?.mac(parts, out)
}

fn empty() -> Protected<Prepared> {
    // SAFETY: numbers, and the all-zero context is what `HMAC_CTX_init` makes.
    unsafe { Protected::zeroed() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncation_streams_and_verification_agree() {
        for hash in Hash::ALL {
            let key = Key::new(hash, &[9; 200]).unwrap();
            let mut whole = vec![0; hash.length()];
            key.mac(&[b"one", b"two"], &mut whole).unwrap();
            assert!(key.verify(b"onetwo", &whole).unwrap());
            assert!(key.verify(b"onetwo", &whole[..5]).unwrap());
            assert!(!key.verify(b"onetwO", &whole[..5]).unwrap());
            assert!(!key.verify(b"onetwo", &[0; 65]).unwrap());
        }
    }

    /// One part is computed in another way than several.
    #[test]
    fn keys_and_messages_of_every_length_agree_in_one_part_and_in_two() {
        let bytes: Vec<u8> = (0..=255).collect();
        for hash in [Hash::Sha224, Hash::Sha256] {
            for length in [0, 1, 31, 32, 63, 64, 65, 128, 256] {
                let key = Key::new(hash, &bytes[..length]).unwrap();
                for length in 0..200 {
                    let (mut one, mut two) = ([0; 32], [0; 32]);
                    let [one, two] = [&mut one, &mut two].map(|room| &mut room[..hash.length()]);
                    key.mac(&[&bytes[..length]], one).unwrap();
                    let (first, rest) = bytes[..length].split_at(length / 3);
                    key.mac(&[first, rest], two).unwrap();
                    assert_eq!(one, two, "{hash:?}, {length}");
                    key.mac(&[&bytes[..length]], &mut two[..9]).unwrap();
                    assert_eq!(one[..9], two[..9]);
                }
            }
        }
    }

    #[test]
    fn a_key_that_is_wiped_makes_no_mac() {
        for hash in Hash::ALL {
            let mut key = Key::new(hash, b"key").unwrap();
            // As a fork leaves it.
            key.prepared = empty();
            assert!(key.mac(&[b"data"], &mut [0; 20][..hash.length().min(20)]).is_err());
        }
    }

    #[test]
    fn rfc_4231_case_two() {
        let mut out = [0; 32];
        sha256(b"Jefe", &[b"what do ya want ", b"for nothing?"], &mut out).unwrap();
        assert_eq!(out[..4], [0x5b, 0xdc, 0xc1, 0x46]);
        assert_eq!(out[28..], [0x64, 0xec, 0x38, 0x43]);
    }
}
