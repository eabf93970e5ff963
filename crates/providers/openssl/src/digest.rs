// SPDX-License-Identifier: Apache-2.0
//! `C_Digest…`: MD5, SHA-1, SHA-2, SHA-3 (PKCS#11 3.2 §6.20–§6.26).

use crate::failure::device_error;
use metaslot_ck::*;
use metaslot_openssl_wrapper::digest::{Hash, Stream};
use metaslot_spi::provider::{Algorithm, Digest, DigestStream};

/// One row per function.
pub(crate) const ROWS: [Algorithm; 12] = [
    row(CKM_MD5, &Hashing(Hash::Md5)),
    row(CKM_SHA_1, &Hashing(Hash::Sha1)),
    row(CKM_SHA224, &Hashing(Hash::Sha224)),
    row(CKM_SHA256, &Hashing(Hash::Sha256)),
    row(CKM_SHA384, &Hashing(Hash::Sha384)),
    row(CKM_SHA512, &Hashing(Hash::Sha512)),
    row(CKM_SHA512_224, &Hashing(Hash::Sha512_224)),
    row(CKM_SHA512_256, &Hashing(Hash::Sha512_256)),
    row(CKM_SHA3_224, &Hashing(Hash::Sha3_224)),
    row(CKM_SHA3_256, &Hashing(Hash::Sha3_256)),
    row(CKM_SHA3_384, &Hashing(Hash::Sha3_384)),
    row(CKM_SHA3_512, &Hashing(Hash::Sha3_512)),
];

const fn row(mechanism: CK_MECHANISM_TYPE, digest: &'static Hashing) -> Algorithm {
    Algorithm { mechanism, digest: Some(digest), ..Algorithm::NONE }
}

/// The function that the number of a digest's mechanism names.
pub(crate) const fn hash(mechanism: CK_MECHANISM_TYPE) -> Option<Hash> {
    Some(match mechanism {
        CKM_MD5 => Hash::Md5,
        CKM_SHA_1 => Hash::Sha1,
        CKM_SHA224 => Hash::Sha224,
        CKM_SHA256 => Hash::Sha256,
        CKM_SHA384 => Hash::Sha384,
        CKM_SHA512 => Hash::Sha512,
        CKM_SHA512_224 => Hash::Sha512_224,
        CKM_SHA512_256 => Hash::Sha512_256,
        CKM_SHA3_224 => Hash::Sha3_224,
        CKM_SHA3_256 => Hash::Sha3_256,
        CKM_SHA3_384 => Hash::Sha3_384,
        CKM_SHA3_512 => Hash::Sha3_512,
        _ => return None,
    })
}

#[derive(Debug)]
struct Hashing(Hash);

impl Digest for Hashing {
    fn length(&self) -> usize {
        self.0.length()
    }

    fn digest(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        self.0.digest(data, out).map_err(device_error)
    }

    fn start(&self) -> Result<Box<dyn DigestStream>> {
        Ok(Box::new(Running(Stream::new(self.0).map_err(device_error)?)))
    }

    fn restore(&self, state: &[u8]) -> Result<Box<dyn DigestStream>> {
        let stream = Stream::restore(self.0, state).map_err(|_| Error::SAVED_STATE_INVALID)?;
        Ok(Box::new(Running(stream)))
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
        self.0.save().map_err(|_| Error::STATE_UNSAVEABLE)
    }
}
