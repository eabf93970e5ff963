// SPDX-License-Identifier: Apache-2.0
//! `C_Digest…`: SHA-1, SHA-2, SHA-3 (PKCS#11 3.2 §6.20–§6.26).

use crate::failure::device_error;
use crate::offer::Offer;
use metaslot_ck::*;
use metaslot_kernel_wrapper::Kind;
use metaslot_kernel_wrapper::hash::{self, Stream};
use metaslot_spi::provider::{Algorithm, Digest, DigestStream};

/// One row per function.
pub(crate) const OFFERS: [Offer; 9] = [
    offer(CKM_SHA_1, &Hashing { name: "sha1", length: 20 }),
    offer(CKM_SHA224, &Hashing { name: "sha224", length: 28 }),
    offer(CKM_SHA256, &Hashing { name: "sha256", length: 32 }),
    offer(CKM_SHA384, &Hashing { name: "sha384", length: 48 }),
    offer(CKM_SHA512, &Hashing { name: "sha512", length: 64 }),
    offer(CKM_SHA3_224, &Hashing { name: "sha3-224", length: 28 }),
    offer(CKM_SHA3_256, &Hashing { name: "sha3-256", length: 32 }),
    offer(CKM_SHA3_384, &Hashing { name: "sha3-384", length: 48 }),
    offer(CKM_SHA3_512, &Hashing { name: "sha3-512", length: 64 }),
];

const fn offer(mechanism: CK_MECHANISM_TYPE, digest: &'static Hashing) -> Offer {
    let row = Algorithm { mechanism, digest: Some(digest), ..Algorithm::NONE };
    Offer { row, kind: Kind::Hash, name: digest.name }
}

#[derive(Debug)]
struct Hashing {
    name: &'static str,
    length: usize,
}

impl Digest for Hashing {
    fn length(&self) -> usize {
        self.length
    }

    fn digest(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        hash::hash(self.name, None, data, out).map_err(device_error)
    }

    fn start(&self) -> Result<Box<dyn DigestStream>> {
        Ok(Box::new(Running(Stream::new(self.name, None).map_err(device_error)?)))
    }

    /// Its states cannot be saved, so there is none of them.
    fn restore(&self, _: &[u8]) -> Result<Box<dyn DigestStream>> {
        Err(Error::SAVED_STATE_INVALID)
    }
}

#[derive(Debug)]
struct Running(Stream);

impl DigestStream for Running {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        self.0.update(data).map_err(device_error)
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<()> {
        self.0.finish(out).map_err(device_error)
    }

    fn save(&self) -> Result<Vec<u8>> {
        Err(Error::STATE_UNSAVEABLE)
    }
}
