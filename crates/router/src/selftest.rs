// SPDX-License-Identifier: Apache-2.0
//! Whether a row computes what it should: a known answer, or where chance is in the answer, one that is right by a known one.
//!
//! Nothing here asks for a route, so that no test begins another one.

use crate::health::is_failure;
use crate::judge::{Judge, Said, Way};
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
    /// Whether a row computes what it should, in each way that it can be asked; `None` where no answer is known.
    ///
    /// # Errors
    /// What the provider says where it computes nothing.
    pub(crate) fn of(&self, row: &Algorithm) -> Result<Option<bool>> {
        let mut known = self.known();
        for at in 0.. {
            let Some(judge) = self.judge(at)? else { break };
            let tested = self.with(&judge, row, known)?;
            if tested.is_some() {
                return Ok(tested);
            }
            // Of another key it is not.
            known = Known::default();
        }
        Ok(None)
    }

    /// The same with one key.
    fn with(&self, judge: &Judge, row: &Algorithm, known: Known) -> Result<Option<bool>> {
        // With a private key parts would cost as much again.
        let ways = [Way::Once, Way::Together, Way::Parts];
        let ways = &ways[..if judge.has_pair() { 2 } else { 3 }];
        let (mut given, mut tested) = (None, None);
        for way in ways.iter().copied() {
            let right = self.is_right(judge, row, known, way, &mut given)?;
            if right == Some(false) {
                return Ok(right);
            }
            tested = tested.or(right);
        }
        Ok(tested)
    }

    /// Whether a signature of a row's is right, as it says itself, or another one where it does not verify; `None` where none does.
    ///
    /// # Errors
    /// What kept all those from an answer who could have given one.
    fn is_valid(
        &self,
        judge: &Judge,
        row: &Algorithm,
        known: Known,
        made: &[u8],
    ) -> Result<Option<bool>> {
        let once = Way::Once;
        match judge.takes(row, once, made)? {
            (_, 0) => {}
            (right, of) => return Ok(Some(right == of)),
        }
        let mut said = Ok(None);
        for other in self.rows {
            match judge.takes(other, once, made) {
                Ok((_, 0)) => {}
                // One that takes whatever it is shown says nothing.
                Ok((1.., _)) if judge.refuses(other, once, made) == Ok(true) => {
                    return Ok(Some(true));
                }
                Ok((1.., _)) => {}
                // Nor does one that refuses its own, of this key. It verifies, so that this asks no third row.
                Ok(_) if self.with(judge, other, known) != Ok(Some(true)) => {}
                Ok(_) => said = Ok(Some(false)),
                Err(error) if said == Ok(None) => said = Err(error),
                Err(_) => {}
            }
        }
        said
    }

    fn known(&self) -> Known {
        let asked = (self.mechanism, self.kind);
        let answer = ANSWERS.iter().find(|row| (row.mechanism.into(), row.kind) == asked);
        let signature = SIGNATURES.iter().find(|row| (row.0, SIGNATURE) == asked);
        Known { answer: answer.map(|row| row.answer), signature: signature.map(|row| &row.1[..]) }
    }

    /// What is done with the first of the keys that it may be done with, or a later one; `None` where that is not there.
    fn judge(&self, at: usize) -> Result<Option<Judge>> {
        let Some(row) = MechanismRow::find(self.mechanism) else { return Ok(None) };
        let pair = match pair_kind(row) {
            Some(kind) => {
                let mut of_kind = KEYS.iter().filter(|key| key.0 == kind);
                let Some((_, key)) = of_kind.nth(at) else { return Ok(None) };
                Some(pair(kind, key, self.providers)?)
            }
            None if at > 0 => return Ok(None),
            None => row.keys.first().map(|kind| {
                let key = Arc::new(secret_key(*kind, row.number));
                [Arc::clone(&key), key]
            }),
        };
        Ok(judge(row, self.kind, pair))
    }

    /// What is made, opened or verified; and what is wrong, refused.
    fn is_right(
        &self,
        judge: &Judge,
        row: &Algorithm,
        known: Known,
        way: Way,
        given: &mut Option<Vec<u8>>,
    ) -> Result<Option<bool>> {
        let own = all(judge.made(row, way))?;
        if !own.iter().all(|made| known.is(made)) {
            return Ok(Some(false));
        }
        let mut tested = !own.is_empty() && known.answer.is_some();
        if self.kind == DIGEST {
            return Ok(tested.then_some(true));
        }
        for made in own.iter().filter(|_| self.kind == SIGNATURE && known.answer.is_none()) {
            match self.is_valid(judge, row, known, made)? {
                None => return Ok(None),
                Some(false) => return Ok(Some(false)),
                Some(true) => tested = true,
            }
        }
        if given.is_none() {
            let mut others = own.into_iter().next();
            others = known.signature.map(<[u8]>::to_vec).or(others);
            for other in self.rows {
                if others.is_some() {
                    break;
                }
                let made = judge.made(other, Way::Once).pop();
                others = made.and_then(Result::ok).filter(|made| known.is(made));
            }
            *given = others;
        }
        let Some(made) = given else { return Ok(None) };
        let right = match judge.takes(row, way, made)? {
            (_, 0) => return Ok(tested.then_some(true)),
            (right, of) => right == of,
        };
        // To decrypt once more with a private key would cost as much again.
        let is_enough = self.kind == CIPHER && judge.has_pair();
        Ok(Some(right && (is_enough || judge.refuses(row, way, made)?)))
    }
}

impl Known {
    /// Whether this is the answer, if that is known.
    fn is(&self, answer: &[u8]) -> bool {
        self.answer.is_none_or(|known| fold(answer) == known)
    }
}

/// What all got.
fn all(said: Said) -> Result<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    for one in said {
        all.push(one?);
    }
    Ok(all)
}

/// The type of a mechanism's pairs.
fn pair_kind(row: &MechanismRow) -> Option<CK_KEY_TYPE> {
    row.keys.iter().copied().find(|kind| sized(*kind))
}

/// Whether a mechanism is tested with a pair of keys.
pub(crate) fn with_pairs(row: &MechanismRow) -> bool {
    pair_kind(row).is_some()
}

/// The key in a `PrivateKeyInfo`, and its public half.
fn pair(kind: CK_KEY_TYPE, der: &[u8], providers: Providers) -> Result<Pair> {
    // That no provider knows the format is no answer; what failed may have known it.
    let mut why = Error::GENERAL_ERROR;
    let mut read = providers.iter().filter_map(|provider| {
        let failed = provider.decode_private_key(der).inspect_err(|error| {
            why = if is_failure(*error) { *error } else { why };
        });
        failed.ok()
    });
    let private = read.next().ok_or(why)?;
    let mut public = NewObject { attributes: private.attributes.clone(), ..NewObject::default() };
    if kind == CKK_ML_DSA {
        let info = private.attributes.bytes(CKA_PUBLIC_KEY_INFO).and_then(public_bits);
        let info = info.ok_or(Error::GENERAL_ERROR)?.to_vec();
        public.attributes.set(CKA_VALUE, Value::Bytes(info));
    }
    Ok([key(CKO_PUBLIC_KEY, kind, public), key(CKO_PRIVATE_KEY, kind, private)].map(Arc::new))
}

fn judge(row: &MechanismRow, kind: Kind, pair: Option<Pair>) -> Option<Judge> {
    let key = pair.as_ref().filter(|[public, private]| !Arc::ptr_eq(public, private));
    let key_bits = key.map_or(0, |[public, _]| key_bits(public));
    // So much that no kernel but RC4's leaves it to another provider, and no whole blocks where that is allowed.
    let bytes = match key_bits {
        0 if kind != DIGEST && takes_any_length(row, kind) => 1021,
        0 => 1024,
        _ => 32,
    };
    let operation = match kind {
        DIGEST => CKF_DIGEST,
        CIPHER => CKF_ENCRYPT,
        _ => CKF_SIGN,
    };
    let job = Job { mechanism: row.number, operation, key_bits, bytes };
    Some(Judge::new(job, pair, without_chance(row.shape, params(row, job)?)))
}

/// Whether data may end within a block, as the mechanism's own code then sees it.
fn takes_any_length(row: &MechanismRow, kind: Kind) -> bool {
    let streams =
        matches!(row.shape, Shape::Ctr | Shape::Gcm | Shape::Ccm | Shape::ChaCha20Poly1305);
    kind == SIGNATURE || streams || matches!(row.number, CKM_AES_CTS | CKM_AES_XTS)
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
/// makes the same one time in four thousand million. That is enough against faults: no attacker chooses the answers.
fn fold(answer: &[u8]) -> u32 {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    answer.iter().fold(0x811c_9dc5, step)
}

/// What the table of known answers is made of: the answer of a row that gives the same twice, or else a signature of its own.
pub(crate) fn answer(
    test: &Test<'_>,
    row: &Algorithm,
) -> Option<std::result::Result<u32, Vec<u8>>> {
    let judge = test.judge(0).ok()??;
    let once = || judge.made(row, Way::Once).pop()?.ok();
    let (one, other) = (once()?, once()?);
    Some(if one == other { Ok(fold(&one)) } else { Err(one) })
}
