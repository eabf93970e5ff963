// SPDX-License-Identifier: Apache-2.0
//! How a key of HMAC (FIPS 198-1) is prepared.

use super::batch;
use super::kernel::Kernel;
use super::key::Key;
use super::shape::Shape;
use crate::cpu::cpu;
use metaslot_awslc_wrapper::cleanse;
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_memory::{Secret, wiping};

/// The longest block, SHA3-224's.
const BLOCK: usize = 144;

impl Key {
    /// A key of any length.
    ///
    /// # Errors
    /// When AWS-LC, which hashes keys longer than a block, fails.
    ///
    /// # Panics
    /// When there are no lanes for the function ([`super::lanes`] is 0).
    pub fn new(hash: Hash, key: &[u8]) -> metaslot_awslc_wrapper::Result<Self> {
        wiping(|| Self::prepared(hash, key))
    }

    fn prepared(hash: Hash, key: &[u8]) -> metaslot_awslc_wrapper::Result<Self> {
        let mut inner = [0; BLOCK];
        let padded = &mut inner[..hash.block()];
        if key.len() > hash.block() {
            hash.digest(key, &mut padded[..hash.length()])?;
        } else {
            padded[..key.len()].copy_from_slice(key);
        }
        let mut outer = inner;
        inner.iter_mut().for_each(|byte| *byte ^= 0x36);
        outer.iter_mut().for_each(|byte| *byte ^= 0x5c);
        let prepared = Self::of_blocks(hash, &inner[..hash.block()], &outer[..hash.block()]);
        cleanse(&mut inner);
        cleanse(&mut outer);
        Ok(prepared)
    }

    fn of_blocks(hash: Hash, inner: &[u8], outer: &[u8]) -> Self {
        let shape = Shape::of(hash);
        let kernel = Kernel::choose(shape.core, cpu(), 2).expect("the function has lanes");
        let length = shape.start.len() * shape.word;
        let mut chains = Secret::zeroed(2 * length);
        let both = chains.expose_mut().split_at_mut(length).into();
        batch::after_blocks(shape, kernel, [inner, outer], both);
        Self { chains, hash }
    }
}
