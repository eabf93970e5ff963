// SPDX-License-Identifier: Apache-2.0
//! One row for what several families have under one mechanism: the key's curve decides which of them serves.

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
    rows.chunk_by(|a, b| a.mechanism == b.mechanism).map(join).collect()
}

fn join(rows: &[Algorithm]) -> Algorithm {
    let joined = Algorithm {
        mechanism: rows[0].mechanism,
        key_sizes: rows
            .iter()
            .map(|row| row.key_sizes)
            .fold(rows[0].key_sizes, |a, b| (a.0.min(b.0), a.1.max(b.1))),
        sign: one_of(rows, |row| row.sign, |one_of| kept(one_of)),
        verify: one_of(rows, |row| row.verify, |one_of| kept(one_of)),
        derive: one_of(rows, |row| row.derive, |one_of| kept(one_of)),
        generate_pair: one_of(rows, |row| row.generate_pair, |one_of| kept(one_of)),
        extra_flags: rows.iter().fold(0, |flags, row| flags | row.extra_flags),
        ..rows[0]
    };
    let flags = rows.iter().fold(0, |flags, row| flags | row.flags());
    debug_assert_eq!(joined.flags(), flags, "an operation that is not joined");
    joined
}

/// What the rows have of one operation.
fn one_of<T: ?Sized>(
    rows: &[Algorithm],
    operation: impl Fn(&Algorithm) -> Option<&'static T>,
    join: impl FnOnce(OneOf<T>) -> &'static T,
) -> Option<&'static T> {
    let mut first: Vec<_> = rows.iter().filter_map(operation).collect();
    let last = first.pop()?;
    Some(if first.is_empty() { last } else { join(OneOf { first, last }) })
}

/// The last one is asked where none before it serves.
#[derive(Debug)]
struct OneOf<T: ?Sized + 'static> {
    first: Vec<&'static T>,
    last: &'static T,
}

impl<T: ?Sized> OneOf<T> {
    fn find(&self, serves: impl Fn(&T) -> bool) -> &'static T {
        self.first.iter().find(|row| serves(row)).unwrap_or(&self.last)
    }
}

impl OneOf<dyn Signature> {
    fn of(&self, key: &Key) -> &'static dyn Signature {
        self.find(|row| row.serves(key))
    }
}

impl Signature for OneOf<dyn Signature> {
    fn serves(&self, key: &Key) -> bool {
        self.of(key).serves(key)
    }

    // Which of them it will be is not known yet: any can do without company.
    fn for_waiting(&self) -> bool {
        self.last.for_waiting() || self.first.iter().any(|row| row.for_waiting())
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

impl OneOf<dyn Derive> {
    fn of(&self, key: &Key) -> &'static dyn Derive {
        self.find(|row| row.serves(key))
    }
}

impl Derive for OneOf<dyn Derive> {
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

impl OneOf<dyn GeneratePair> {
    fn of(&self, public: &Attributes) -> &'static dyn GeneratePair {
        self.find(|row| row.serves(public))
    }
}

impl GeneratePair for OneOf<dyn GeneratePair> {
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
