// SPDX-License-Identifier: Apache-2.0
//! Digests and HMAC of 8 KiB.

use crate::lanes::{Lanes, requests};
use crate::row::{Result, Work, each, failed, message, random};
use metaslot_awslc_wrapper::hmac;
use metaslot_lanes::hash::{self, Hash, Key, MacRequest, Request};

/// Bytes of a message.
const LENGTH: usize = 8192;

/// Functions by number, because a function's parameter cannot be a name.
pub(crate) const MD5: usize = 0;
pub(crate) const SHA1: usize = 1;
pub(crate) const SHA256: usize = 2;
pub(crate) const SHA512: usize = 3;
pub(crate) const SHA3_256: usize = 4;
const HASHES: [Hash; 5] = [Hash::Md5, Hash::Sha1, Hash::Sha256, Hash::Sha512, Hash::Sha3_256];

pub(crate) fn digest<const HASH: usize>() -> Result<Box<dyn Work>> {
    let hash = HASHES[HASH];
    Ok(Box::new(Lanes {
        library: vec![hash],
        keys: vec![hash],
        inputs: each(hash::lanes(hash), |lane| message(lane, LENGTH))?,
        out: vec![vec![0; hash.length()]; hash::lanes(hash)],
        alone: vec![0; hash.length()],
        length: LENGTH,
        what: "a digest",
        plain: |hash, message, out| hash.digest(message, out).is_ok(),
        kernel: |hashes, messages, out, length| {
            let mut requests = requests(hashes, messages, out, |_, data, output| Request {
                data: &data[..length],
                output,
            });
            hash::digest(hashes[0], &mut requests);
            true
        },
    }))
}

pub(crate) fn mac<const HASH: usize>() -> Result<Box<dyn Work>> {
    let hash = HASHES[HASH];
    let lanes = hash::lanes(hash);
    let secrets = each(lanes, |_| random(32))?;
    let of = |lane: usize| hmac::Key::new(hash, &secrets[lane]).map_err(failed("a key"));
    Ok(Box::new(Lanes {
        library: each(lanes, of)?,
        keys: each(lanes, |lane| Key::new(hash, &secrets[lane]).map_err(failed("a key")))?,
        inputs: each(lanes, |lane| message(lane, LENGTH))?,
        out: vec![vec![0; hash.length()]; lanes],
        alone: vec![0; hash.length()],
        length: LENGTH,
        what: "a MAC",
        plain: |key, message, out| key.mac(&[message], out).is_ok(),
        kernel: |keys, messages, out, length| {
            let mut requests = requests(keys, messages, out, |key, data, output| MacRequest {
                key,
                data: &data[..length],
                output,
            });
            hash::hmac(HASHES[HASH], &mut requests);
            true
        },
    }))
}
