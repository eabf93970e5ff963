// SPDX-License-Identifier: Apache-2.0
//! `C_Digest…`: MD5, SHA-1, SHA-2, SHA-3 (PKCS#11 3.2 §6.20–§6.26).

use crate::failure::device_error;
use crate::keccak;
use metaslot_awslc_wrapper::digest::{Hash, Stream};
use metaslot_ck::*;
use metaslot_spi::hashes;
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

/// The function that a `CKM_` number of a digest (or of the PRF of a KDF) names.
pub(crate) fn hash(mechanism: CK_MECHANISM_TYPE) -> Option<Hash> {
    hashes::place(mechanism).map(|place| Hash::ALL[place])
}

#[derive(Debug)]
pub(crate) struct Hashing(pub(crate) Hash);

impl Digest for Hashing {
    fn length(&self) -> usize {
        self.0.length()
    }

    fn digest(&self, data: &[u8], out: &mut [u8]) -> Result<()> {
        self.0.digest(data, out).map_err(device_error)
    }

    fn start(&self) -> Result<Box<dyn DigestStream>> {
        if self.is_sha3() {
            return Ok(Box::new(Sponge(keccak::Stream::new(self.0))));
        }
        Ok(Box::new(Running(Stream::new(self.0).map_err(device_error)?)))
    }

    fn restore(&self, state: &[u8]) -> Result<Box<dyn DigestStream>> {
        if self.is_sha3() {
            let stream = keccak::Stream::restore(self.0, state);
            return Ok(Box::new(Sponge(stream.ok_or(Error::SAVED_STATE_INVALID)?)));
        }
        let stream = Stream::restore(self.0, state).map_err(|_| Error::SAVED_STATE_INVALID)?;
        Ok(Box::new(Running(stream)))
    }
}

impl Hashing {
    const fn is_sha3(&self) -> bool {
        matches!(self.0, Hash::Sha3_224 | Hash::Sha3_256 | Hash::Sha3_384 | Hash::Sha3_512)
    }
}

#[derive(Debug)]
struct Sponge(keccak::Stream);

impl DigestStream for Sponge {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        self.0.update(data);
        Ok(())
    }

    fn finish(&mut self, out: &mut [u8]) -> Result<()> {
        self.0.finish(out);
        Ok(())
    }

    fn save(&self) -> Result<Vec<u8>> {
        Ok(self.0.save())
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
        self.0.save().ok_or(Error::STATE_UNSAVEABLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_function_that_a_number_names_is_the_row_s() {
        for row in ROWS {
            let (digest, hash) = (row.digest.unwrap(), hash(row.mechanism).unwrap());
            let mut digests = [[0; 64]; 2];
            digest.digest(b"abc", &mut digests[0][..digest.length()]).unwrap();
            hash.digest(b"abc", &mut digests[1][..hash.length()]).unwrap();
            assert_eq!(digests[0], digests[1], "{hash:?}");
        }
    }
}
