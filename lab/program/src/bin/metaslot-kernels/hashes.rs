// SPDX-License-Identifier: Apache-2.0
//! Digests and HMAC of 8 KiB.

use crate::row::{Result, Work, each, failed, message, random, same};
use metaslot_awslc_wrapper::hmac;
use metaslot_lab::kernels::Buffer;
use metaslot_lanes::hash::{self, Hash, Key, MacRequest, Request};

/// The most lanes that a function has.
const MAX_LANES: usize = 32;
/// Bytes of a message.
const LENGTH: usize = 8192;

/// Functions by number, because a function's parameter cannot be a name.
pub(crate) const MD5: usize = 0;
pub(crate) const SHA1: usize = 1;
pub(crate) const SHA256: usize = 2;
pub(crate) const SHA512: usize = 3;
pub(crate) const SHA3_256: usize = 4;
const HASHES: [Hash; 5] = [Hash::Md5, Hash::Sha1, Hash::Sha256, Hash::Sha512, Hash::Sha3_256];

struct Digest {
    hash: Hash,
    messages: Vec<Buffer>,
    out: Vec<Vec<u8>>,
    alone: Vec<u8>,
}

pub(crate) fn digest<const HASH: usize>() -> Result<Box<dyn Work>> {
    let hash = HASHES[HASH];
    Ok(Box::new(Digest {
        hash,
        messages: each(MAX_LANES, |lane| message(lane, LENGTH))?,
        out: vec![vec![0; hash.length()]; MAX_LANES],
        alone: vec![0; hash.length()],
    }))
}

impl Digest {
    fn by_library(&mut self, lane: usize) {
        let done = self.hash.digest(&self.messages[lane], &mut self.alone);
        assert!(done.is_ok(), "AWS-LC hashes");
    }

    fn of(&mut self, filled: usize, length: usize) {
        let lanes = self.messages.iter().zip(&mut self.out).take(filled);
        let mut requests: Vec<_> =
            lanes.map(|(data, output)| Request { data: &data[..length], output }).collect();
        hash::digest(self.hash, &mut requests);
    }
}

impl Work for Digest {
    fn raw(&mut self) {
        self.by_library(0);
    }

    fn batch(&mut self, filled: usize) {
        self.of(filled, LENGTH);
    }

    fn counted(&mut self, length: usize) {
        self.of(hash::lanes(self.hash), length);
    }

    fn check(&mut self) -> Result<()> {
        for lane in 0..hash::lanes(self.hash) {
            self.by_library(lane);
            same(self.alone == self.out[lane], "a digest")?;
        }
        Ok(())
    }
}

struct Mac {
    hash: Hash,
    library: Vec<hmac::Key>,
    keys: Vec<Key>,
    messages: Vec<Buffer>,
    out: Vec<Vec<u8>>,
    alone: Vec<u8>,
}

pub(crate) fn mac<const HASH: usize>() -> Result<Box<dyn Work>> {
    let hash = HASHES[HASH];
    let secrets = each(MAX_LANES, |_| random(32))?;
    let of = |lane: usize| hmac::Key::new(hash, &secrets[lane]).map_err(failed("a key"));
    Ok(Box::new(Mac {
        hash,
        library: each(MAX_LANES, of)?,
        keys: each(MAX_LANES, |lane| Key::new(hash, &secrets[lane]).map_err(failed("a key")))?,
        messages: each(MAX_LANES, |lane| message(lane, LENGTH))?,
        out: vec![vec![0; hash.length()]; MAX_LANES],
        alone: vec![0; hash.length()],
    }))
}

impl Mac {
    fn by_library(&mut self, lane: usize) {
        let done = self.library[lane].mac(&[&self.messages[lane]], &mut self.alone);
        assert!(done.is_ok(), "AWS-LC authenticates");
    }

    fn of(&mut self, filled: usize, length: usize) {
        let lanes = self.keys.iter().zip(&self.messages).zip(&mut self.out).take(filled);
        let mut requests: Vec<_> = lanes
            .map(|((key, data), output)| MacRequest { key, data: &data[..length], output })
            .collect();
        hash::hmac(self.hash, &mut requests);
    }
}

impl Work for Mac {
    fn raw(&mut self) {
        self.by_library(0);
    }

    fn batch(&mut self, filled: usize) {
        self.of(filled, LENGTH);
    }

    fn counted(&mut self, length: usize) {
        self.of(hash::lanes(self.hash), length);
    }

    fn check(&mut self) -> Result<()> {
        for lane in 0..hash::lanes(self.hash) {
            self.by_library(lane);
            same(self.alone == self.out[lane], "a MAC")?;
        }
        Ok(())
    }
}
