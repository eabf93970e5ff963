// SPDX-License-Identifier: Apache-2.0
//! Whether the versions are right: their signatures are alike, and AWS-LC accepts them.

use super::versions::{OWN, SIZES, key};
use crate::random::Random;
use crate::{Failure, Result};
use metaslot_studies::rsa::{Key, Private};

/// What stands before a digest by SHA-256 (RFC 8017, section 9.2, note 1).
const SHA_256: [u8; 19] = [
    0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05,
    0x00, 0x04, 0x20,
];

/// All versions with both keys and a random message.
///
/// # Errors
/// A signature is wrong.
pub(super) fn all() -> Result<()> {
    let mut random = Random::new(Random::seed_from_clock());
    let mut message = [0; 40];
    random.fill(&mut message);
    for bits in SIZES {
        let key = key(bits)?;
        let public = metaslot_bare::Rsa::public(&key.modulus(), &Key::public_exponent())?;
        let padded = padded(&message, bits / 8);
        for (name, version) in OWN {
            let signature = Private::new(version, &key).apply(&padded);
            if public.verify(&message, &signature).is_err() {
                let text = format!("the library refuses the signature of RSA-{bits} by {name}");
                return Err(Failure::new(text));
            }
        }
    }
    Ok(())
}

/// PKCS#1 v1.5 (section 9.2).
fn padded(message: &[u8], length: usize) -> Vec<u8> {
    let mut digest = [0; 32];
    metaslot_bare::sha256(message, &mut digest);
    let end = [&[0][..], &SHA_256, &digest].concat();
    let mut padded = vec![0xff; length - end.len()];
    padded[..2].copy_from_slice(&[0, 1]);
    padded.extend(end);
    padded
}
