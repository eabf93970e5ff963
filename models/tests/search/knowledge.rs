// SPDX-License-Identifier: Apache-2.0
//! What the attacker knows, closed under what he can compute. It is computed only where it leads
//! somewhere: the search knows the values, so it can ask of each rule whether it gives one of them.

use crate::alphabet::{BLOCK_1, CONSTANTS, INFO_1, Mechanism};
use crate::truth::{Truth, Value, Wrapped};
use metaslot_awslc::AWSLC;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Provider};
use metaslot_spi::{Attributes, Key, Material, Params, Secrets};
use std::sync::Arc;

/// How the attacker came to a value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum How {
    /// `C_GetAttributeValue` shows it.
    Read,
    /// It is in what a call gave out.
    Given,
    /// It is wrapped under a key that he knows.
    KnownKey,
    /// It is wrapped with the key stream of something that he knows.
    OneStream,
    /// What a call gave out is its encoding for RSA (EME-OAEP has no secret).
    Encoded,
    /// It is a MAC with a key that a call gave out.
    Computed,
    /// It is so short that a MAC gives it away.
    Guessed,
    /// GMAC with chosen IVs gives the key stream (testkit, `wrapping_key_signs`).
    MacOracle,
}

/// Bytes that the attacker has.
#[derive(Debug)]
pub(crate) struct Knowledge {
    data: Vec<Vec<u8>>,
}

impl Knowledge {
    pub(crate) fn new() -> Self {
        Self { data: CONSTANTS.iter().map(|(_, bytes)| bytes.to_vec()).collect() }
    }

    pub(crate) fn learn(&mut self, bytes: Vec<u8>) {
        self.data.push(bytes);
    }

    fn holds(&self, value: &Value) -> bool {
        self.data.iter().any(|bytes| bytes == value.main() || value.is_in(bytes))
    }

    /// A protected value that is wrapped under a key that he knows.
    pub(crate) fn opens<'a>(&self, truth: &'a Truth) -> Option<&'a Value> {
        let open = |wrap: &&Wrapped| {
            let (by, key) = (&truth.values[wrap.by], &truth.values[wrap.key]);
            // What the SO trusts although it can be known is believed (docs/policy.md).
            let known = if by.is_secret() { self.holds(by) } else { !by.trusted };
            key.is_secret() && known
        };
        truth.wraps.iter().find(open).map(|wrap| &truth.values[wrap.key])
    }

    /// A protected value in the sum of two outputs of one mechanism and something known.
    pub(crate) fn subtracts<'a>(
        &self,
        truth: &'a Truth,
        outputs: &[(usize, &'static Mechanism, Vec<u8>)],
    ) -> Option<&'a Value> {
        let (last, before) = outputs.split_last()?;
        if !last.1.streams() {
            return None;
        }
        let same = before.iter().filter(|output| output.1.number == last.1.number);
        for (_, _, bytes) in same {
            for known in &self.data {
                let sum = xor(&xor(bytes, &last.2), known);
                let found = truth.secrets().find(|value| {
                    let length = sum.len().min(value.main().len());
                    length >= 16 && sum[..length] == value.main()[..length]
                });
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }
}

fn xor(one: &[u8], other: &[u8]) -> Vec<u8> {
    one.iter().zip(other).map(|(one, other)| one ^ other).collect()
}

/// A protected value that is HKDF's or SP 800-108's first block under `key`, or under what HKDF
/// extracts when `key` is the inner digest of its MAC with an empty salt.
pub(crate) fn derives<'a>(truth: &'a Truth, key: &[u8]) -> Option<&'a Value> {
    let extracted = digest(&[&[0x5c; 64], key].concat());
    let keys = [key, &extracted];
    let blocks = [INFO_1, BLOCK_1];
    let macs = keys.iter().flat_map(|key| blocks.map(|block| mac(CKM_SHA256_HMAC, key, block)));
    macs.flatten().find_map(|mac| truth.secrets().find(|value| value.is_in(&mac)))
}

/// Whether these bytes are a MAC of a constant with HMAC and SHA-3.
pub(crate) fn is_mac(key: &[u8], bytes: &[u8]) -> bool {
    let made = |data| mac(CKM_SHA3_256_HMAC, key, data);
    CONSTANTS.iter().any(|(_, data)| made(data).as_deref() == Some(bytes))
}

/// The key of one byte that gives this MAC.
pub(crate) fn guess(mechanism: CK_MECHANISM_TYPE, data: &[u8], tag: &[u8]) -> Option<u8> {
    (0..=u8::MAX).find(|guess| mac(mechanism, &[*guess], data).as_deref() == Some(tag))
}

fn row(mechanism: CK_MECHANISM_TYPE) -> &'static Algorithm {
    let rows = AWSLC.algorithms();
    rows.iter().find(|row| row.mechanism == mechanism).expect("a mechanism of the alphabet")
}

fn mac(mechanism: CK_MECHANISM_TYPE, key: &[u8], data: &[u8]) -> Option<Vec<u8>> {
    let mut attributes = Attributes::new();
    attributes.set(CKA_CLASS, metaslot_spi::Value::Ulong(CKO_SECRET_KEY));
    attributes.set(CKA_KEY_TYPE, metaslot_spi::Value::Ulong(CKK_GENERIC_SECRET));
    let mut secrets = Secrets::new();
    secrets.set(CKA_VALUE, Secret::copy_of(key));
    let key = Key::new(Arc::new(attributes), Arc::new(Material::new(secrets)));
    let algorithm = row(mechanism).sign?;
    let mut out = vec![0; algorithm.length(&key, &Params::None)];
    algorithm.sign(&key, &Params::None, data, &mut out).ok()?;
    Some(out)
}

/// SHA-256.
pub(crate) fn digest(data: &[u8]) -> Vec<u8> {
    let algorithm = row(CKM_SHA256).digest.expect("a digest");
    let mut out = vec![0; algorithm.length()];
    algorithm.digest(data, &mut out).expect("it needs memory only");
    out
}

/// EME-OAEP backwards, SHA-256 (RFC 8017 §7.1.2): what was encoded.
pub(crate) fn decoded(block: &[u8]) -> Option<Vec<u8>> {
    let (&[0], rest) = block.split_first_chunk()? else { return None };
    let (seed, masked) = rest.split_first_chunk::<32>()?;
    let seed = xor(seed, &mask(masked, 32));
    let plain = xor(masked, &mask(&seed, masked.len()));
    let rest = plain.strip_prefix(&digest(b"")[..])?;
    let start = rest.iter().position(|byte| *byte == 1)?;
    Some(rest[start + 1..].to_vec())
}

/// MGF1 (RFC 8017 §B.2.1).
fn mask(seed: &[u8], length: usize) -> Vec<u8> {
    let block = |count: u32| digest(&[seed, &count.to_be_bytes()].concat());
    (0..).flat_map(block).take(length).collect()
}
