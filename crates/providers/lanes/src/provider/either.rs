// SPDX-License-Identifier: Apache-2.0
//! One row for what two families have under one mechanism: the key's curve decides which of them serves.

use super::kept;
use metaslot_ck::Result;
use metaslot_memory::Secret;
use metaslot_spi::provider::{
    Algorithm, Derive, Direction, GeneratePair, Keys, Postponed, Signature, SignatureStream,
};
use metaslot_spi::{Attributes, Key, NewObject, Params};
use std::sync::Arc;

/// Sorts the rows and makes one of those of the same mechanism.
pub(super) fn joined(mut rows: Vec<Algorithm>) -> Vec<Algorithm> {
    rows.sort_by_key(|row| row.mechanism);
    let mut table: Vec<Algorithm> = Vec::with_capacity(rows.len());
    for row in rows {
        match table.last_mut() {
            Some(last) if last.mechanism == row.mechanism => *last = join(last, &row),
            _ => table.push(row),
        }
    }
    table
}

fn join(a: &Algorithm, b: &Algorithm) -> Algorithm {
    let joined = Algorithm {
        mechanism: a.mechanism,
        key_sizes: (a.key_sizes.0.min(b.key_sizes.0), a.key_sizes.1.max(b.key_sizes.1)),
        sign: both(a.sign, b.sign, |either| kept(either)),
        verify: both(a.verify, b.verify, |either| kept(either)),
        derive: both(a.derive, b.derive, |either| kept(either)),
        generate_pair: both(a.generate_pair, b.generate_pair, |either| kept(either)),
        extra_flags: a.extra_flags | b.extra_flags,
        ..Algorithm::NONE
    };
    debug_assert_eq!(joined.flags(), a.flags() | b.flags(), "an operation that is not joined");
    joined
}

fn both<T: ?Sized>(
    a: Option<&'static T>,
    b: Option<&'static T>,
    join: impl FnOnce(Either<T>) -> &'static T,
) -> Option<&'static T> {
    match (a, b) {
        (Some(first), Some(second)) => Some(join(Either { first, second })),
        (a, b) => a.or(b),
    }
}

/// The second one is asked where the first one does not serve.
#[derive(Debug)]
struct Either<T: ?Sized + 'static> {
    first: &'static T,
    second: &'static T,
}

impl Either<dyn Signature> {
    fn of(&self, key: &Key) -> &'static dyn Signature {
        if self.first.serves(key) { self.first } else { self.second }
    }
}

impl Signature for Either<dyn Signature> {
    fn serves(&self, key: &Key) -> bool {
        self.of(key).serves(key)
    }

    // Which of the two it will be is not known yet: either can do without company.
    fn for_waiting(&self) -> bool {
        self.first.for_waiting() || self.second.for_waiting()
    }

    fn sign_later(&self, key: &Arc<Key>, params: &Params, data: &[u8]) -> Postponed {
        self.of(key).sign_later(key, params, data)
    }

    fn verify_later(
        &self,
        key: &Arc<Key>,
        params: &Params,
        data: &[u8],
        signature: &[u8],
    ) -> Postponed {
        self.of(key).verify_later(key, params, data, signature)
    }

    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        self.of(key).check(direction, key, params)
    }

    fn length(&self, key: &Key, params: &Params) -> usize {
        self.of(key).length(key, params)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        self.of(key).sign(key, params, data, out)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        self.of(key).verify(key, params, data, signature)
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        self.of(key).start(direction, key, params)
    }
}

impl Either<dyn Derive> {
    fn of(&self, key: &Key) -> &'static dyn Derive {
        if self.first.serves(key) { self.first } else { self.second }
    }
}

impl Derive for Either<dyn Derive> {
    fn serves(&self, key: &Key) -> bool {
        self.of(key).serves(key)
    }

    fn check(&self, key: &Key, params: &Params) -> Result<()> {
        self.of(key).check(key, params)
    }

    fn natural_length(&self, key: &Key, params: &Params) -> Option<usize> {
        self.of(key).natural_length(key, params)
    }

    fn derive(
        &self,
        key: &Key,
        params: &Params,
        lengths: &[usize],
        keys: &dyn Keys,
    ) -> Result<Vec<Secret>> {
        self.of(key).derive(key, params, lengths, keys)
    }
}

impl Either<dyn GeneratePair> {
    fn of(&self, public: &Attributes) -> &'static dyn GeneratePair {
        if self.first.serves(public) { self.first } else { self.second }
    }
}

impl GeneratePair for Either<dyn GeneratePair> {
    fn serves(&self, public: &Attributes) -> bool {
        self.of(public).serves(public)
    }

    fn generate_pair(
        &self,
        params: &Params,
        public: &Attributes,
    ) -> Result<(NewObject, NewObject)> {
        self.of(public).generate_pair(params, public)
    }
}
