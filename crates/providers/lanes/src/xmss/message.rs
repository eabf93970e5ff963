// SPDX-License-Identifier: Apache-2.0
//! What is hashed alone: messages, and the randomizers of signatures.

use super::lanes::{MESSAGE, VALUE};
use super::set::Set;
use metaslot_awslc_wrapper::Result;

/// The number of a signature, in so many bytes.
fn bytes(number: u64, length: usize) -> Vec<u8> {
    let number = number.to_be_bytes();
    let mut out = vec![0; length.saturating_sub(number.len())];
    out.extend(&number[number.len() - length.min(number.len())..]);
    out
}

/// The number of a signature as it stands in it.
pub(super) fn index(set: &Set, number: u64) -> Vec<u8> {
    bytes(number, set.index_length())
}

/// The randomizer of a signature (§4.1.9): `secret` is `SK_PRF`.
///
/// # Errors
/// When the library fails.
pub(super) fn randomizer(set: &Set, secret: &[u8], number: u64) -> Result<Vec<u8>> {
    hash(set, VALUE, &[secret, &bytes(number, 32)])
}

/// The hash of a message, given in parts (§4.1.9).
///
/// # Errors
/// When the library fails.
pub(super) fn digest(
    set: &Set,
    randomizer: &[u8],
    root: &[u8],
    number: u64,
    message: &[&[u8]],
) -> Result<Vec<u8>> {
    hash(set, MESSAGE, &[&[randomizer, root, &bytes(number, set.node)], message].concat())
}

fn hash(set: &Set, function: u8, parts: &[&[u8]]) -> Result<Vec<u8>> {
    let mut padding = vec![0; set.padding()];
    padding[set.padding() - 1] = function;
    let all = [&[&padding[..]], parts].concat();
    let mut out = vec![0; set.node];
    set.function().digest(&all, &mut out)?;
    Ok(out)
}
