// SPDX-License-Identifier: Apache-2.0
//! Ed25519 (RFC 8032, with context and pre-hash) and X25519 (RFC 7748).

use crate::{Result, check};
use aws_lc_sys as sys;
use metaslot_memory::{Secret, wipe_shallow_stack};

/// Length of keys and of the shared secret, in bytes.
pub const KEY_LENGTH: usize = 32;
/// Length of a signature, in bytes.
pub const ED25519_SIGNATURE_LENGTH: usize = 64;
/// Length of the digest that the pre-hash form signs, in bytes.
pub const ED25519_PREHASH_LENGTH: usize = 64;

/// Which of the three signatures of RFC 8032 §5.1.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ed25519<'a> {
    /// Ed25519 itself.
    Plain,
    /// Ed25519ctx: the context is 1 to 255 bytes.
    Context(&'a [u8]),
    /// Ed25519ph over a SHA-512 digest: the context is 0 to 255 bytes.
    Prehash(&'a [u8]),
}

/// A private Ed25519 key: the seed and the public key behind it, as the library signs with.
#[derive(Debug)]
pub struct Ed25519Key(Secret);

impl Ed25519Key {
    /// The key of a seed.
    #[must_use]
    pub fn new(seed: &[u8; KEY_LENGTH]) -> Self {
        let mut public = [0; KEY_LENGTH];
        let mut key = Secret::zeroed(2 * KEY_LENGTH);
        let private = key.expose_mut().as_mut_ptr();
        // SAFETY: the library writes 32 and 64 bytes and reads 32, as long as these ranges are.
        unsafe { sys::ED25519_keypair_from_seed(public.as_mut_ptr(), private, seed.as_ptr()) };
        wipe_shallow_stack();
        Self(key)
    }

    /// The public key.
    #[must_use]
    pub fn public(&self) -> [u8; KEY_LENGTH] {
        *self.0.expose().last_chunk().unwrap_or(&[0; KEY_LENGTH])
    }

    /// Signs `data`: the message, or with [`Ed25519::Prehash`] its digest of
    /// [`ED25519_PREHASH_LENGTH`] bytes.
    ///
    /// # Errors
    /// For a context or a digest of another length than the form allows.
    pub fn sign(
        &self,
        form: Ed25519<'_>,
        data: &[u8],
        out: &mut [u8; ED25519_SIGNATURE_LENGTH],
    ) -> Result<()> {
        let (key, sig) = (self.0.expose().as_ptr(), out.as_mut_ptr());
        let done = check(match form {
            // SAFETY: the key is 64 bytes and the signature 64; the message is a slice.
            Ed25519::Plain => unsafe { sys::ED25519_sign(sig, data.as_ptr(), data.len(), key) },
            // SAFETY: as above; the context is a slice.
            Ed25519::Context(context) => unsafe {
                sys::ED25519ctx_sign(
                    sig,
                    data.as_ptr(),
                    data.len(),
                    key,
                    context.as_ptr(),
                    context.len(),
                )
            },
            Ed25519::Prehash(context) => {
                let digest: &[u8; ED25519_PREHASH_LENGTH] =
                    data.try_into().map_err(|_| crate::Failed)?;
                // SAFETY: as above; the digest is 64 bytes.
                unsafe {
                    sys::ED25519ph_sign_digest(
                        sig,
                        digest.as_ptr(),
                        key,
                        context.as_ptr(),
                        context.len(),
                    )
                }
            }
        });
        wipe_shallow_stack();
        done
    }
}

/// Checks an Ed25519 signature; `data` as for [`Ed25519Key::sign`].
///
/// # Errors
/// When the signature is not good.
pub fn ed25519_verify(
    form: Ed25519<'_>,
    public: &[u8; KEY_LENGTH],
    data: &[u8],
    signature: &[u8; ED25519_SIGNATURE_LENGTH],
) -> Result<()> {
    let (key, sig) = (public.as_ptr(), signature.as_ptr());
    check(match form {
        // SAFETY: the key is 32 bytes and the signature 64; the message is a slice.
        Ed25519::Plain => unsafe { sys::ED25519_verify(data.as_ptr(), data.len(), sig, key) },
        // SAFETY: as above; the context is a slice.
        Ed25519::Context(context) => unsafe {
            sys::ED25519ctx_verify(
                data.as_ptr(),
                data.len(),
                sig,
                key,
                context.as_ptr(),
                context.len(),
            )
        },
        Ed25519::Prehash(context) => {
            let digest: &[u8; ED25519_PREHASH_LENGTH] =
                data.try_into().map_err(|_| crate::Failed)?;
            // SAFETY: as above; the digest is 64 bytes.
            unsafe {
                sys::ED25519ph_verify_digest(
                    digest.as_ptr(),
                    sig,
                    key,
                    context.as_ptr(),
                    context.len(),
                )
            }
        }
    })
}

/// The X25519 public key of a private one.
#[must_use]
pub fn x25519_public(private: &[u8; KEY_LENGTH]) -> [u8; KEY_LENGTH] {
    let mut public = [0; KEY_LENGTH];
    // SAFETY: the library writes and reads 32 bytes.
    unsafe { sys::X25519_public_from_private(public.as_mut_ptr(), private.as_ptr()) };
    wipe_shallow_stack();
    public
}

/// X25519; the shared secret is written to `out`.
///
/// # Errors
/// When the peer's value has small order, so that the secret would be all zero (RFC 7748 §6.1).
pub fn x25519(
    private: &[u8; KEY_LENGTH],
    peer: &[u8; KEY_LENGTH],
    out: &mut [u8; KEY_LENGTH],
) -> Result<()> {
    // SAFETY: all three ranges are 32 bytes.
    let done = check(unsafe { sys::X25519(out.as_mut_ptr(), private.as_ptr(), peer.as_ptr()) });
    wipe_shallow_stack();
    done
}
