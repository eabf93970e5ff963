// SPDX-License-Identifier: Apache-2.0
//! Keys, and what is prepared of them.

#[cfg(target_arch = "x86_64")]
use super::table::KeyTable;
use metaslot_awslc_wrapper::Result;
use metaslot_awslc_wrapper::curve25519::{Ed25519Key, KEY_LENGTH};
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_memory::{Secret, wipe_stack};
use std::fmt;
#[cfg(target_arch = "x86_64")]
use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering},
};

/// A private X25519 key.
#[derive(Debug)]
pub struct X25519Key(Secret);

impl X25519Key {
    /// The key of these bytes, which may be any.
    #[must_use]
    pub fn new(private: &[u8; KEY_LENGTH]) -> Self {
        Self(Secret::copy_of(private))
    }

    pub(super) fn private(&self) -> &[u8; KEY_LENGTH] {
        self.0.expose().first_chunk().unwrap_or(&[0; KEY_LENGTH])
    }
}

/// A private Ed25519 key: the scalar and the prefix that its seed is hashed to (RFC 8032 §5.1.5).
pub struct PrivateKey {
    hashed: Secret,
    public: [u8; KEY_LENGTH],
    pub(super) library: Ed25519Key,
}

impl PrivateKey {
    /// The key of a seed.
    ///
    /// # Errors
    /// When the hash function fails.
    pub fn new(seed: &[u8; KEY_LENGTH]) -> Result<Self> {
        let mut hashed = Secret::zeroed(2 * KEY_LENGTH);
        Hash::Sha512.digest(seed, hashed.expose_mut())?;
        hashed.expose_mut()[0] &= 248;
        hashed.expose_mut()[31] &= 127;
        hashed.expose_mut()[31] |= 64;
        let library = Ed25519Key::new(seed);
        wipe_stack();
        Ok(Self { hashed, public: library.public(), library })
    }

    /// The public key.
    #[must_use]
    pub const fn public(&self) -> &[u8; KEY_LENGTH] {
        &self.public
    }

    #[cfg(target_arch = "x86_64")]
    pub(super) fn scalar(&self) -> &[u8] {
        &self.hashed.expose()[..KEY_LENGTH]
    }

    #[cfg(target_arch = "x86_64")]
    pub(super) fn prefix(&self) -> &[u8] {
        &self.hashed.expose()[KEY_LENGTH..]
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey({:02x?})", self.public)
    }
}

/// A public Ed25519 key; with some of its point's multiples once it has been used.
pub struct PublicKey {
    pub(super) bytes: [u8; KEY_LENGTH],
    /// `None` when the bytes encode no point.
    #[cfg(target_arch = "x86_64")]
    pub(super) table: OnceLock<Option<KeyTable>>,
    #[cfg(target_arch = "x86_64")]
    seen: AtomicBool,
}

impl PublicKey {
    /// The key of these bytes. If they encode no point, no signature is good.
    #[must_use]
    pub const fn new(bytes: &[u8; KEY_LENGTH]) -> Self {
        Self {
            bytes: *bytes,
            #[cfg(target_arch = "x86_64")]
            table: OnceLock::new(),
            #[cfg(target_arch = "x86_64")]
            seen: AtomicBool::new(false),
        }
    }

    #[cfg(target_arch = "x86_64")]
    pub(super) fn seen_before(&self) -> bool {
        self.seen.swap(true, Ordering::Relaxed)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({:02x?})", self.bytes)
    }
}
