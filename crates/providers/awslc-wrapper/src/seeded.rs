// SPDX-License-Identifier: Apache-2.0
//! What keys that grow from a seed have in common. Those from outside are checked.

use crate::Result;
use metaslot_memory::Secret;

/// A public key, or a private one: as its seed, or in its expanded form.
pub trait SeededKey: Sized {
    /// Its parameter sets.
    type Set: Copy + 'static;

    /// Of a seed, in bytes.
    const SEED_LENGTH: usize;

    /// Of the expanded form, in bytes.
    fn private_length(set: Self::Set) -> usize;

    /// The private key of a seed.
    ///
    /// # Errors
    /// For another length than [`Self::SEED_LENGTH`].
    fn of_seed(set: Self::Set, seed: &[u8]) -> Result<Self>;

    /// A private key in its expanded form.
    ///
    /// # Errors
    /// For another length, and where its parts do not belong together.
    fn of_expanded(set: Self::Set, bytes: &[u8]) -> Result<Self>;

    /// A public key.
    ///
    /// # Errors
    /// For another length, and for what is no key of that set.
    fn of_public(set: Self::Set, bytes: &[u8]) -> Result<Self>;

    /// The private key in its expanded form.
    ///
    /// # Errors
    /// For a public key.
    fn expanded(&self) -> Result<Secret>;

    /// The public key as bytes.
    ///
    /// # Errors
    /// When the library fails.
    fn public_bytes(&self) -> Result<Vec<u8>>;
}
