// SPDX-License-Identifier: Apache-2.0
//! X25519 (RFC 7748) and Ed25519 (RFC 8032), eight requests side by side.
//!
//! Batches of any size; up to 128 requests share their inversions, and eight fill the lanes. Without the instructions
//! the requests are answered by the library, one at a time.

#[cfg(target_arch = "x86_64")]
mod ed25519;
#[cfg(target_arch = "x86_64")]
mod edwards;
#[cfg(target_arch = "x86_64")]
mod field;
#[cfg(target_arch = "x86_64")]
mod table;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x25519;

use crate::cpu::{Cpu, cpu};
#[cfg(target_arch = "x86_64")]
use crate::field52::modulus::{Form, Modulus, hex};
use metaslot_awslc_wrapper::curve25519::{Ed25519, Ed25519Key};
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_awslc_wrapper::{Failed, Result, curve25519 as library};
use metaslot_memory::{Secret, wipe_deep_stack, wipe_stack};
use std::fmt;
#[cfg(target_arch = "x86_64")]
use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering},
};

pub use metaslot_awslc_wrapper::curve25519::{
    ED25519_SIGNATURE_LENGTH as SIGNATURE_LENGTH, KEY_LENGTH,
};

/// The instructions that it takes to compute requests side by side.
pub const NEEDS: Cpu = Cpu::AVX512_IFMA;

/// Whether requests are computed side by side.
#[must_use]
pub fn available() -> bool {
    cpu().has(NEEDS)
}

/// A private X25519 key.
#[derive(Debug)]
pub struct X25519Key(Secret);

impl X25519Key {
    /// The key of these bytes, which may be any.
    #[must_use]
    pub fn new(private: &[u8; KEY_LENGTH]) -> Self {
        Self(Secret::copy_of(private))
    }

    fn private(&self) -> &[u8; KEY_LENGTH] {
        self.0.expose().first_chunk().unwrap_or(&[0; KEY_LENGTH])
    }
}

/// A shared secret to compute.
#[derive(Debug)]
pub struct X25519Request<'a> {
    /// Our key.
    pub key: &'a X25519Key,
    /// The peer's u coordinate.
    pub peer: &'a [u8; KEY_LENGTH],
    /// Where the secret goes.
    pub secret: &'a mut [u8; KEY_LENGTH],
    /// Whether it is fit for use: not if it is all zero, because the peer's point has a small order (RFC 7748 §6.1).
    pub result: Result<()>,
}

impl<'a> X25519Request<'a> {
    /// A request that waits.
    pub const fn new(
        key: &'a X25519Key,
        peer: &'a [u8; KEY_LENGTH],
        secret: &'a mut [u8; KEY_LENGTH],
    ) -> Self {
        Self { key, peer, secret, result: Err(Failed) }
    }
}

/// Computes shared secrets.
pub fn x25519(requests: &mut [X25519Request<'_>]) {
    #[cfg(target_arch = "x86_64")]
    if available() {
        // SAFETY: the processor has the instructions.
        unsafe { x25519::derive(requests) };
        // The kernel's frames lay below this one.
        return wipe_stack();
    }
    for request in requests {
        request.result = library::x25519(request.key.private(), request.peer, request.secret);
    }
}

/// A private Ed25519 key: the scalar and the prefix that its seed is hashed to (RFC 8032 §5.1.5).
pub struct PrivateKey {
    hashed: Secret,
    public: [u8; KEY_LENGTH],
    library: Ed25519Key,
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
    fn scalar(&self) -> &[u8] {
        &self.hashed.expose()[..KEY_LENGTH]
    }

    #[cfg(target_arch = "x86_64")]
    fn prefix(&self) -> &[u8] {
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
    bytes: [u8; KEY_LENGTH],
    /// `None` when the bytes encode no point.
    #[cfg(target_arch = "x86_64")]
    table: OnceLock<Option<table::KeyTable>>,
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
    fn seen_before(&self) -> bool {
        self.seen.swap(true, Ordering::Relaxed)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({:02x?})", self.bytes)
    }
}

/// A message to sign with Ed25519 itself, that is without context or pre-hash.
#[derive(Debug)]
pub struct SignRequest<'a> {
    /// The signer.
    pub key: &'a PrivateKey,
    /// The message.
    pub message: &'a [u8],
    /// Where the signature goes.
    pub signature: &'a mut [u8; SIGNATURE_LENGTH],
    /// Whether that happened.
    pub result: Result<()>,
}

impl<'a> SignRequest<'a> {
    /// A request that waits.
    pub const fn new(
        key: &'a PrivateKey,
        message: &'a [u8],
        signature: &'a mut [u8; SIGNATURE_LENGTH],
    ) -> Self {
        Self { key, message, signature, result: Err(Failed) }
    }
}

/// A signature to check.
#[derive(Debug)]
pub struct VerifyRequest<'a> {
    /// Whose signature it should be.
    pub key: &'a PublicKey,
    /// The message.
    pub message: &'a [u8],
    /// The signature; one of another length than [`SIGNATURE_LENGTH`] is not good.
    pub signature: &'a [u8],
    /// Whether it is good.
    pub result: Result<()>,
}

impl<'a> VerifyRequest<'a> {
    /// A request that waits.
    pub const fn new(key: &'a PublicKey, message: &'a [u8], signature: &'a [u8]) -> Self {
        Self { key, message, signature, result: Err(Failed) }
    }

    fn by_library(&mut self) {
        self.result = match self.signature.try_into() {
            Ok(signature) => {
                library::ed25519_verify(Ed25519::Plain, &self.key.bytes, self.message, signature)
            }
            Err(_) => Err(Failed),
        };
    }
}

/// Signs.
pub fn sign(requests: &mut [SignRequest<'_>]) {
    #[cfg(target_arch = "x86_64")]
    if available() {
        // SAFETY: the processor has the instructions.
        unsafe { ed25519::sign(requests) };
        // The kernel's frames lay below this one.
        return wipe_deep_stack();
    }
    for request in requests {
        let key = &request.key.library;
        request.result = key.sign(Ed25519::Plain, request.message, request.signature);
    }
}

/// Checks signatures.
pub fn verify(requests: &mut [VerifyRequest<'_>]) {
    #[cfg(target_arch = "x86_64")]
    if available() {
        // SAFETY: the processor has the instructions.
        return unsafe { ed25519::verify(requests) };
    }
    requests.iter_mut().for_each(VerifyRequest::by_library);
}

/// The base point's order, 2^252 + 27742317777372353535851937790883648493.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order;

#[cfg(target_arch = "x86_64")]
impl Modulus<5> for Order {
    const M: [u64; 5] = hex("1000000000000000000000000000000014def9dea2f79cd65812631a5cf5d3ed");
    const FORM: Form = Form::General;
}
