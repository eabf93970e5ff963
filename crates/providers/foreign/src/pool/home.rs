// SPDX-License-Identifier: Apache-2.0
//! What a pool does with its keys: what is safe to do twice.

use super::Pool;
use crate::token::Token;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{
    Algorithm, Cipher, CipherStream, Derive, Direction, Encapsulation, Keys, Place, Signature,
    SignatureStream, Wrap,
};
use metaslot_spi::store::{Found, Home, Ticket};
use metaslot_spi::{Attributes, Key, Params, Secrets};
use std::sync::Arc;

/// One mechanism. How a token does it, it says when it is there.
#[derive(Debug)]
struct Mechanism {
    pool: &'static Pool,
    number: CK_MECHANISM_TYPE,
}

impl Home for Pool {
    fn name(&self) -> &'static str {
        self.name
    }

    fn is_there(&self) -> bool {
        self.join(false);
        true
    }

    fn algorithms(&'static self) -> &'static [Algorithm] {
        if let Some(rows) = self.rows.get() {
            return rows;
        }
        let mut mechanisms: Vec<_> = self.tokens().flat_map(|token| token.algorithms()).collect();
        mechanisms.sort_unstable_by_key(|row| row.mechanism);
        mechanisms.dedup_by_key(|row| row.mechanism);
        let rows = mechanisms.into_iter().map(|row| self.row(row));
        let rows: Vec<_> = rows.filter(|row| row.flags() != 0).collect();
        // Tokens that are not there yet say nothing yet.
        if rows.is_empty() { &[] } else { self.rows.get_or_init(|| Vec::leak(rows)) }
    }

    fn keep_pin(&self, _: &[u8]) -> Result<Ticket> {
        Err(Error::FUNCTION_NOT_SUPPORTED)
    }

    fn create(&self, _: &Attributes, _: &Secrets) -> Result<Found> {
        Err(Error::TOKEN_WRITE_PROTECTED)
    }

    fn copy(&self, _: u64, _: &Attributes) -> Result<Found> {
        Err(Error::TOKEN_WRITE_PROTECTED)
    }

    fn generate(&self, _: CK_MECHANISM_TYPE, _: &Params, _: &Attributes) -> Result<Found> {
        Err(Error::TOKEN_WRITE_PROTECTED)
    }

    fn generate_pair(
        &self,
        _: CK_MECHANISM_TYPE,
        _: &Params,
        _: &Attributes,
        _: &Attributes,
    ) -> Result<[Found; 2]> {
        Err(Error::TOKEN_WRITE_PROTECTED)
    }
}

impl Pool {
    /// The private key's half of a mechanism.
    fn row(&'static self, first: &Algorithm) -> Algorithm {
        let mechanism: &'static Mechanism =
            Box::leak(Box::new(Mechanism { pool: self, number: first.mechanism }));
        let has = |operation: fn(&Algorithm) -> bool| mechanism.rows().any(operation);
        Algorithm {
            mechanism: first.mechanism,
            key_sizes: first.key_sizes,
            sign: has(|row| row.sign.is_some()).then_some(mechanism),
            decrypt: has(|row| row.decrypt.is_some()).then_some(mechanism),
            derive: has(|row| row.derive.is_some()).then_some(mechanism),
            decapsulate: has(|row| row.decapsulate.is_some()).then_some(mechanism),
            unwrap: has(|row| row.unwrap.is_some()).then_some(mechanism),
            ..Algorithm::NONE
        }
    }
}

impl Mechanism {
    fn rows(&self) -> impl Iterator<Item = &'static Algorithm> {
        self.pool.tokens().filter_map(|token| self.of(token))
    }

    fn of(&self, token: &'static Token) -> Option<&'static Algorithm> {
        let rows = token.algorithms();
        let at = rows.binary_search_by_key(&self.number, |row| row.mechanism).ok()?;
        Some(&rows[at])
    }

    fn at(&self, at: usize) -> Option<&'static Algorithm> {
        self.of(self.pool.members[at].token()?)
    }

    /// How the token in this place signs.
    fn signs(&self, at: usize) -> Result<&'static dyn Signature> {
        there(self.at(at).and_then(|row| row.sign))
    }

    fn decrypts(&self, at: usize) -> Result<&'static dyn Cipher> {
        there(self.at(at).and_then(|row| row.decrypt))
    }

    /// A secret that one of them gives.
    fn secret(
        &self,
        key: &Key,
        give: &dyn Fn(&'static Algorithm, &Key) -> Result<Secret>,
    ) -> Result<Secret> {
        self.pool.with(key, |at, key| give(there(self.at(at))?, key))
    }

    /// Any of them: what follows from the mechanism's number they all know.
    fn any<T>(&self, operation: impl Fn(&'static Algorithm) -> Option<T>) -> Result<T> {
        there(self.rows().find_map(operation))
    }
}

impl Signature for Mechanism {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        self.any(|row| row.sign)?.check(direction, key, params)
    }

    fn length(&self, key: &Key, params: &Params) -> usize {
        self.any(|row| row.sign).map_or(0, |signature| signature.length(key, params))
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        self.pool.with(key, |at, key| self.signs(at)?.sign(key, params, data, out))
    }

    fn verify(&self, _: &Key, _: &Params, _: &[u8], _: &[u8]) -> Result<()> {
        Err(Error::MECHANISM_INVALID)
    }

    /// A token that fails later fails the operation: what it was given is not kept.
    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        self.pool.with(key, |at, key| self.signs(at)?.start(direction, key, params))
    }
}

impl Cipher for Mechanism {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        self.any(|row| row.decrypt)?.check(direction, key, params)
    }

    fn length(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: usize,
    ) -> Result<usize> {
        self.any(|row| row.decrypt)?.length(direction, key, params, input)
    }

    fn run(
        &self,
        direction: Direction,
        key: &Key,
        params: &Params,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        self.pool.with(key, |at, key| self.decrypts(at)?.run(direction, key, params, input, out))
    }

    fn start(
        &self,
        direction: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        self.pool.with(key, |at, key| self.decrypts(at)?.start(direction, key, params))
    }
}

impl Derive for Mechanism {
    fn check(&self, key: &Key, params: &Params) -> Result<()> {
        self.any(|row| row.derive)?.check(key, params)
    }

    fn natural_length(&self, key: &Key, params: &Params) -> Option<usize> {
        self.any(|row| row.derive).ok()?.natural_length(key, params)
    }

    fn derive(
        &self,
        key: &Key,
        params: &Params,
        lengths: &[usize],
        keys: &dyn Keys,
    ) -> Result<Vec<Secret>> {
        let secret = self.secret(key, &|row, key| {
            let mut made = there(row.derive)?.derive(key, params, lengths, keys)?;
            made.pop().ok_or(Error::DEVICE_ERROR)
        });
        secret.map(|secret| vec![secret])
    }
}

impl Encapsulation for Mechanism {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        self.any(|row| row.decapsulate)?.check(direction, key, params)
    }

    fn ciphertext_length(&self, key: &Key, params: &Params) -> Result<usize> {
        self.any(|row| row.decapsulate)?.ciphertext_length(key, params)
    }

    fn natural_length(&self, key: &Key, params: &Params) -> Option<usize> {
        self.any(|row| row.decapsulate).ok()?.natural_length(key, params)
    }

    fn gives(&self, key: &Key, params: &Params, length: usize) -> bool {
        self.any(|row| row.decapsulate).is_ok_and(|by| by.gives(key, params, length))
    }

    fn carries(&self) -> bool {
        self.any(|row| row.decapsulate).is_ok_and(|by| by.carries())
    }

    fn encapsulate(&self, _: &Key, _: &Params, _: &mut [u8], _: &mut [u8]) -> Result<()> {
        Err(Error::MECHANISM_INVALID)
    }

    fn decapsulate(
        &self,
        key: &Key,
        params: &Params,
        length: Option<usize>,
        ciphertext: &[u8],
    ) -> Result<Secret> {
        self.secret(key, &|row, key| {
            there(row.decapsulate)?.decapsulate(key, params, length, ciphertext)
        })
    }
}

impl Wrap for Mechanism {
    fn check(&self, direction: Direction, key: &Key, params: &Params) -> Result<()> {
        self.any(|row| row.unwrap)?.check(direction, key, params)
    }

    fn length(&self, _: &Key, _: &Params, _: usize) -> Result<usize> {
        Err(Error::MECHANISM_INVALID)
    }

    fn wrap(&self, _: &Key, _: &Params, _: &[u8], _: &mut [u8]) -> Result<usize> {
        Err(Error::MECHANISM_INVALID)
    }

    fn unwrap(&self, key: &Key, params: &Params, wrapped: &[u8]) -> Result<Secret> {
        self.secret(key, &|row, key| there(row.unwrap)?.unwrap(key, params, wrapped))
    }

    fn place(&self, params: &Params) -> Place {
        self.any(|row| row.unwrap).map_or(Place::Told, |by| by.place(params))
    }
}

/// Tokens may have less than the pool.
fn there<T>(operation: Option<T>) -> Result<T> {
    operation.ok_or(Error::MECHANISM_INVALID)
}
