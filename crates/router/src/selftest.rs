// SPDX-License-Identifier: Apache-2.0
//! Whether a row computes what it should: a known answer, or where chance is in the answer, one that is right by a known one.
//!
//! Nothing here asks for a route, so that no test begins another one.

use crate::health::is_providers;
use crate::judge::Judge;
use crate::known::{ANSWERS, SIGNATURES};
use crate::material::{Pair, key, params, secret_key, sized};
use crate::tested::{CIPHER, DIGEST, Kind, SIGNATURE};
use crate::{Job, key_bits};
use metaslot_ck::mechanism::{MechanismRow, Shape};
use metaslot_ck::*;
use metaslot_spi::key_info::public_bits;
use metaslot_spi::provider::{Algorithm, Provider};
use metaslot_spi::{Bytes, NewObject, Params, Value};
use std::sync::Arc;

/// Private keys (RFC 5208) that protect nothing; of those of a type the first that a row serves is taken.
static KEYS: [(CK_KEY_TYPE, &[u8]); 6] = [
    (CKK_RSA, include_bytes!("../keys/rsa-2048.der")),
    (CKK_EC, include_bytes!("../keys/p-256.der")),
    (CKK_EC, include_bytes!("../keys/p-384.der")),
    (CKK_EC_EDWARDS, include_bytes!("../keys/ed25519.der")),
    (CKK_EC_MONTGOMERY, include_bytes!("../keys/x25519.der")),
    (CKK_ML_DSA, include_bytes!("../keys/ml-dsa-44.der")),
];

type Providers = &'static [&'static dyn Provider];

/// What one row is tested with.
pub(crate) struct Test<'a> {
    pub(crate) providers: Providers,
    /// All rows of the mechanism: what one does not do by itself another does for it.
    pub(crate) rows: &'a [&'static Algorithm],
    pub(crate) mechanism: CK_MECHANISM_TYPE,
    pub(crate) kind: Kind,
}

/// What is to come out.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// [`fold`] of it.
    answer: Option<u32>,
    /// One of several that are right.
    signature: Option<&'static [u8]>,
}

impl Test<'_> {
    /// Whether a row computes what it should; `None` where no answer is known.
    ///
    /// # Errors
    /// What the provider says where it computes nothing.
    pub(crate) fn of(&self, row: &Algorithm) -> Result<Option<bool>> {
        for (is_known, judge) in self.judges() {
            let known = if is_known { self.known() } else { Known::default() };
            let right = match self.kind {
                DIGEST => digests(&judge, row, known),
                CIPHER => self.enciphers(&judge, row, known),
                _ => self.signs(&judge, row, known),
            };
            if right != Ok(None) {
                return right;
            }
        }
        Ok(None)
    }

    fn known(&self) -> Known {
        let asked = (self.mechanism, self.kind);
        let answer = ANSWERS.iter().find(|row| (row.0, row.1) == asked);
        let signature = SIGNATURES.iter().find(|row| (row.0, SIGNATURE) == asked);
        Known { answer: answer.map(|row| row.2), signature: signature.map(|row| &row.1[..]) }
    }

    /// What is done, with each key that it may be done with, and whether what is known is known of that key.
    fn judges(&self) -> impl Iterator<Item = (bool, Judge)> {
        let row = MechanismRow::find(self.mechanism);
        let kind = row.and_then(pair_kind);
        let of_kind = KEYS.iter().filter(move |key| Some(key.0) == kind).enumerate();
        let pairs = of_kind.filter_map(move |(at, (kind, key))| {
            Some((at == 0, Some(pair(*kind, key, self.providers)?)))
        });
        let secret = row.filter(|_| kind.is_none()).map(|row| {
            let key = row.keys.first().map(|kind| Arc::new(secret_key(*kind, row.number)));
            (true, key.map(|key| [Arc::clone(&key), key]))
        });
        let judge = move |(known, pair)| Some((known, judge(row?, self.kind, pair)?));
        pairs.chain(secret).filter_map(judge)
    }

    /// What is encrypted, decrypted again, and something else where a bit of it is another one.
    fn enciphers(&self, judge: &Judge, row: &Algorithm, known: Known) -> Result<Option<bool>> {
        let is_known = |sealed: &Vec<u8>| known.answer.is_none_or(|known| fold(sealed) == known);
        let sealed = judge.sealed(row).transpose()?;
        if sealed.as_ref().is_some_and(|sealed| !is_known(sealed)) {
            return Ok(Some(false));
        }
        let tested = sealed.is_some() && known.answer.is_some();
        let others = || self.rows.iter().filter_map(|other| judge.sealed(other)?.ok());
        let Some(mut sealed) = sealed.or_else(|| others().find(is_known)) else { return Ok(None) };
        let opens = |sealed: &[u8]| judge.open(row, sealed).map(is_right).transpose();
        let Some(right) = opens(&sealed)? else { return Ok(tested.then_some(true)) };
        // With a private key that would cost as much again.
        if let Some(bit) = sealed.first_mut().filter(|_| right && judge.has_secret_key()) {
            *bit ^= 1;
            return Ok(Some(opens(&sealed)? == Some(false)));
        }
        Ok(Some(right))
    }

    /// What is signed, verified; what is known, too; and what is wrong is refused.
    fn signs(&self, judge: &Judge, row: &Algorithm, known: Known) -> Result<Option<bool>> {
        let is_known = |signed: &Vec<u8>| known.answer.is_none_or(|known| fold(signed) == known);
        let own = judge.signed(row).transpose()?;
        if own.as_ref().is_some_and(|signed| !is_known(signed)) {
            return Ok(Some(false));
        }
        let signs = own.is_some();
        let verifies = |row: &Algorithm, signature: &[u8]| {
            let said = judge.verify(row, signature)?;
            Some(is_right(said.map(|()| true)))
        };
        if let Some(own) = own.as_ref().filter(|_| known.answer.is_none()) {
            // Who does not verify has it verified.
            let mut all = std::iter::once(row).chain(self.rows.iter().copied());
            match all.find_map(|row| verifies(row, own)) {
                None => return Ok(None),
                Some(Ok(true)) => {}
                Some(wrong) => return wrong.map(Some),
            }
        }
        let others = || self.rows.iter().filter_map(|other| judge.signed(other)?.ok());
        let given = known.signature.map(<[u8]>::to_vec).or(own);
        let Some(mut given) = given.or_else(|| others().find(is_known)) else { return Ok(None) };
        let Some(right) = verifies(row, &given).transpose()? else {
            return Ok(signs.then_some(true));
        };
        if let Some(bit) = given.last_mut() {
            *bit ^= 1;
        }
        Ok(Some(right && verifies(row, &given).transpose()? == Some(false)))
    }
}

/// The type of a mechanism's pairs.
fn pair_kind(row: &MechanismRow) -> Option<CK_KEY_TYPE> {
    row.keys.iter().copied().find(|kind| sized(*kind))
}

/// Whether a mechanism is tested with a pair of keys.
pub(crate) fn with_pairs(row: &MechanismRow) -> bool {
    pair_kind(row).is_some()
}

fn digests(judge: &Judge, row: &Algorithm, known: Known) -> Result<Option<bool>> {
    let Some((digest, known)) = judge.digest(row).zip(known.answer) else { return Ok(None) };
    Ok(Some(fold(&digest?) == known))
}

/// A provider that fails says nothing about its answers; one that refuses what is right gives a wrong one.
fn is_right(said: Result<bool>) -> Result<bool> {
    match said {
        Err(error) if is_providers(error) => Err(error),
        said => Ok(said == Ok(true)),
    }
}

/// The key in a `PrivateKeyInfo`, and its public half.
fn pair(kind: CK_KEY_TYPE, private: &[u8], providers: Providers) -> Option<Pair> {
    let mut decoded = providers.iter().map(|provider| provider.decode_private_key(private));
    let private = decoded.find_map(Result::ok)?;
    let mut public = NewObject { attributes: private.attributes.clone(), ..NewObject::default() };
    if kind == CKK_ML_DSA {
        let info = private.attributes.bytes(CKA_PUBLIC_KEY_INFO).and_then(public_bits)?;
        public.attributes.set(CKA_VALUE, Value::Bytes(info.to_vec()));
    }
    Some([key(CKO_PUBLIC_KEY, kind, public), key(CKO_PRIVATE_KEY, kind, private)].map(Arc::new))
}

fn judge(row: &MechanismRow, kind: Kind, pair: Option<Pair>) -> Option<Judge> {
    let key = pair.as_ref().filter(|[public, private]| !Arc::ptr_eq(public, private));
    let key_bits = key.map_or(0, |[public, _]| key_bits(public));
    let bytes = if key_bits == 0 { 64 } else { 32 };
    let job = Job { mechanism: row.number, operation: u64::from(kind), key_bits, bytes };
    Some(Judge::new(job, pair, without_chance(row.shape, params(row, job)?)))
}

/// Signatures that are the same each time, where the mechanism has them.
fn without_chance(shape: Shape, params: Params) -> Params {
    let hedge = CKH_DETERMINISTIC_REQUIRED;
    match params {
        Params::None if shape == Shape::SignContext => {
            Params::SignContext { hedge, context: Bytes::new() }
        }
        Params::HashSignContext { hash, context, .. } => {
            Params::HashSignContext { hedge, context, hash }
        }
        Params::Pss { hash, mgf, .. } => Params::Pss { hash, mgf, salt_length: 0 },
        other => other,
    }
}

/// FNV-1a of 32 bits: each step is a permutation, so that one wrong byte always makes another value, and whatever else is wrong
/// makes the same one time in four thousand million. That is enough against faults; nobody chooses the answers.
fn fold(answer: &[u8]) -> u32 {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    answer.iter().fold(0x811c_9dc5, step)
}

/// What the table of known answers is made of: the answer of a row that gives the same twice, or else a signature of its own.
pub(crate) fn answer(
    test: &Test<'_>,
    row: &Algorithm,
) -> Option<std::result::Result<u32, Vec<u8>>> {
    let (_, judge) = test.judges().next()?;
    let once = || match test.kind {
        DIGEST => judge.digest(row)?.ok(),
        CIPHER => judge.sealed(row)?.ok(),
        _ => judge.signed(row)?.ok(),
    };
    let (one, other) = (once()?, once()?);
    Some(if one == other { Ok(fold(&one)) } else { Err(one) })
}
