// SPDX-License-Identifier: Apache-2.0
//! PKCS #1 v1.5 unpadding with implicit rejection: a block with bad padding decrypts to a message
//! that depends on the key and the ciphertext alone, so that no caller learns whether the padding
//! was good (draft-irtf-cfrg-rsa-guidance §7; interoperable with OpenSSL 3.2 and later).
//!
//! Neither the branches taken nor the addresses touched depend on the block. The length of the
//! message is known to the caller anyhow.

use crate::failure::device_error;
use crate::rsa_key::{MAX_BLOCK, prepared};
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_awslc_wrapper::hmac;
use metaslot_awslc_wrapper::rsa::RsaNumber;
use metaslot_ck::Result;
use metaslot_memory::Secret;
use metaslot_spi::Key;
use std::hint::black_box;

/// HMAC-SHA-256 keyed with the hash of the private exponent; prepared once for each key.
#[derive(Debug)]
struct RejectionKey(hmac::Key);

impl RejectionKey {
    fn of(key: &Key) -> Result<&Self> {
        key.prepared(|key| {
            let rsa = prepared(key)?;
            let mut exponent = Secret::zeroed(rsa.size());
            rsa.write_number(RsaNumber::PrivateExponent, exponent.expose_mut())
                .map_err(device_error)?;
            let mut digest = Secret::zeroed(Hash::Sha256.length());
            Hash::Sha256.digest(exponent.expose(), digest.expose_mut()).map_err(device_error)?;
            hmac::Key::new(Hash::Sha256, digest.expose()).map(Self).map_err(device_error)
        })
    }

    /// The generator of the messages that stand in for this ciphertext.
    fn generator(&self, ciphertext: &[u8]) -> Result<hmac::Key> {
        let mut derived = Secret::zeroed(Hash::Sha256.length());
        self.0.mac(&[ciphertext], derived.expose_mut()).map_err(device_error)?;
        hmac::Key::new(Hash::Sha256, derived.expose()).map_err(device_error)
    }
}

/// Bytes of the candidates for a length: 128 of two bytes.
const CANDIDATES: usize = 256;

/// The synthetic message of a ciphertext, at the end of its block.
struct Synthetic {
    block: Secret,
    length: usize,
}

impl Synthetic {
    fn new(key: &Key, ciphertext: &[u8]) -> Result<Self> {
        let size = ciphertext.len();
        let generator = RejectionKey::of(key)?.generator(ciphertext)?;
        let block = expand(&generator, b"message", size)?;
        let candidates = expand(&generator, b"length", CANDIDATES)?;
        let limit = size - 10;
        let mask = limit.next_power_of_two() - 1;
        let mut length = 0;
        for [high, low] in candidates.expose().as_chunks().0 {
            let candidate = usize::from(u16::from_be_bytes([*high, *low])) & mask;
            length = select(less(candidate, limit), candidate, length);
        }
        Ok(Self { block, length })
    }
}

/// HMAC in counter mode: block number, label, length of the output in bits.
fn expand(generator: &hmac::Key, label: &[u8], length: usize) -> Result<Secret> {
    let bits = u16::try_from(length * 8).unwrap_or(u16::MAX).to_be_bytes();
    let width = Hash::Sha256.length();
    let mut whole = Secret::zeroed(length.next_multiple_of(width));
    for (number, part) in (0_u16..).zip(whole.expose_mut().chunks_mut(width)) {
        generator.mac(&[&number.to_be_bytes(), label, &bits], part).map_err(device_error)?;
    }
    Ok(if whole.len() == length { whole } else { whole.truncated(length) })
}

/// Takes the padding off `block`, which the private operation made of `ciphertext`; the message
/// is written to the beginning of `out` (11 bytes shorter than the block), and zeros after it.
/// Returns its length.
pub(crate) fn unpad(key: &Key, ciphertext: &[u8], block: &Secret, out: &mut [u8]) -> Result<usize> {
    let synthetic = Synthetic::new(key, ciphertext)?;
    let (block, size) = (block.expose(), ciphertext.len());
    let mut good = zero(usize::from(block[0])) & zero(usize::from(block[1] ^ 2));
    let (mut separator, mut found) = (0, 0);
    for (at, byte) in block.iter().enumerate().skip(2) {
        let here = zero(usize::from(*byte));
        separator = select(!found & here, at, separator);
        found |= here;
    }
    good &= !less(separator, 10);
    let start = select(good, separator + 1, size - synthetic.length);
    let mut message = synthetic.block;
    for (byte, real) in message.expose_mut().iter_mut().zip(block) {
        *byte = select_byte(good, *real, *byte);
    }
    shift_left(message.expose_mut(), start);
    let room = out.len();
    out.copy_from_slice(&message.expose()[..room]);
    Ok(size - start)
}

/// Shifts `bytes` towards the beginning by `distance`, one bit of the distance at a time.
fn shift_left(bytes: &mut [u8], distance: usize) {
    let mut step = 1;
    while step <= MAX_BLOCK {
        let mask = !zero(distance & step);
        for at in 0..bytes.len() {
            let far = bytes.get(at + step).copied().unwrap_or(0);
            bytes[at] = select_byte(mask, far, bytes[at]);
        }
        step *= 2;
    }
}

/// All ones for 0, else 0.
fn zero(number: usize) -> usize {
    let number = black_box(number);
    ((number | number.wrapping_neg()) >> (usize::BITS - 1)).wrapping_sub(1)
}

/// All ones where `a < b`, else 0; both below half the range.
fn less(a: usize, b: usize) -> usize {
    (black_box(a).wrapping_sub(b) >> (usize::BITS - 1)).wrapping_neg()
}

/// `yes` where the mask is all ones, `no` where it is 0.
fn select(mask: usize, yes: usize, no: usize) -> usize {
    no ^ (black_box(mask) & (yes ^ no))
}

fn select_byte(mask: usize, yes: u8, no: u8) -> u8 {
    no ^ (mask.to_le_bytes()[0] & (yes ^ no))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_and_shifts_do_what_their_branching_forms_do() {
        assert_eq!((zero(0), zero(1), zero(usize::MAX)), (usize::MAX, 0, 0));
        assert_eq!((less(9, 10), less(10, 10), less(11, 10)), (usize::MAX, 0, 0));
        assert_eq!((select(usize::MAX, 1, 2), select(0, 1, 2)), (1, 2));
        for distance in [0, 1, 5, 63, 64] {
            let mut bytes: Vec<u8> = (1..=64).collect();
            shift_left(&mut bytes, distance);
            let expected: Vec<u8> = (1..=64).skip(distance).collect();
            assert_eq!(bytes[..64 - distance], expected);
            assert!(bytes[64 - distance..].iter().all(|byte| *byte == 0));
        }
    }
}
