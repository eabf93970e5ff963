// SPDX-License-Identifier: Apache-2.0
//! What a prepared key of HMAC holds.

use metaslot_awslc_wrapper::digest::Hash;
use metaslot_memory::Secret;

/// A prepared key, for any number of requests and threads: instead of the key it holds what the hash function has made of
/// the two padded keys.
#[derive(Debug)]
pub struct Key {
    /// The chaining value of the inner hash, then that of the outer.
    pub(super) chains: Secret,
    pub(super) hash: Hash,
}

impl Key {
    /// The function that this key is for.
    #[must_use]
    pub const fn hash(&self) -> Hash {
        self.hash
    }

    pub(super) fn inner(&self) -> &[u8] {
        let chains = self.chains.expose();
        &chains[..chains.len() / 2]
    }

    pub(super) fn outer(&self) -> &[u8] {
        let chains = self.chains.expose();
        &chains[chains.len() / 2..]
    }
}
