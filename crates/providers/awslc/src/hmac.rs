// SPDX-License-Identifier: Apache-2.0
//! HMAC with every hash function (PKCS#11 3.2 §6.20–§6.26, `_HMAC` and `_HMAC_GENERAL`).

use crate::failure::device_error;
use crate::mac::{Mac, Prepared, Stream, row, running};
use metaslot_awslc_wrapper::Failed;
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_awslc_wrapper::hmac;
use metaslot_ck::*;
use metaslot_spi::Key;
use metaslot_spi::provider::{Algorithm, SignatureStream};

/// The standard leaves the key's length open; this is the range that is tested, in bytes.
const KEYS: (u64, u64) = (1, 8192);

/// Two rows per function.
pub(crate) const ROWS: [Algorithm; 24] = [
    row(CKM_MD5_HMAC, KEYS, &Md5::WHOLE),
    row(CKM_MD5_HMAC_GENERAL, KEYS, &Md5::GENERAL),
    row(CKM_SHA_1_HMAC, KEYS, &Sha1::WHOLE),
    row(CKM_SHA_1_HMAC_GENERAL, KEYS, &Sha1::GENERAL),
    row(CKM_SHA224_HMAC, KEYS, &Sha224::WHOLE),
    row(CKM_SHA224_HMAC_GENERAL, KEYS, &Sha224::GENERAL),
    row(CKM_SHA256_HMAC, KEYS, &Sha256::WHOLE),
    row(CKM_SHA256_HMAC_GENERAL, KEYS, &Sha256::GENERAL),
    row(CKM_SHA384_HMAC, KEYS, &Sha384::WHOLE),
    row(CKM_SHA384_HMAC_GENERAL, KEYS, &Sha384::GENERAL),
    row(CKM_SHA512_HMAC, KEYS, &Sha512::WHOLE),
    row(CKM_SHA512_HMAC_GENERAL, KEYS, &Sha512::GENERAL),
    row(CKM_SHA512_224_HMAC, KEYS, &Sha512_224::WHOLE),
    row(CKM_SHA512_224_HMAC_GENERAL, KEYS, &Sha512_224::GENERAL),
    row(CKM_SHA512_256_HMAC, KEYS, &Sha512_256::WHOLE),
    row(CKM_SHA512_256_HMAC_GENERAL, KEYS, &Sha512_256::GENERAL),
    row(CKM_SHA3_224_HMAC, KEYS, &Sha3_224::WHOLE),
    row(CKM_SHA3_224_HMAC_GENERAL, KEYS, &Sha3_224::GENERAL),
    row(CKM_SHA3_256_HMAC, KEYS, &Sha3_256::WHOLE),
    row(CKM_SHA3_256_HMAC_GENERAL, KEYS, &Sha3_256::GENERAL),
    row(CKM_SHA3_384_HMAC, KEYS, &Sha3_384::WHOLE),
    row(CKM_SHA3_384_HMAC_GENERAL, KEYS, &Sha3_384::GENERAL),
    row(CKM_SHA3_512_HMAC, KEYS, &Sha3_512::WHOLE),
    row(CKM_SHA3_512_HMAC_GENERAL, KEYS, &Sha3_512::GENERAL),
];

type Md5 = Hmac<{ Hash::Md5 as usize }>;
type Sha1 = Hmac<{ Hash::Sha1 as usize }>;
type Sha224 = Hmac<{ Hash::Sha224 as usize }>;
type Sha256 = Hmac<{ Hash::Sha256 as usize }>;
type Sha384 = Hmac<{ Hash::Sha384 as usize }>;
type Sha512 = Hmac<{ Hash::Sha512 as usize }>;
type Sha512_224 = Hmac<{ Hash::Sha512_224 as usize }>;
type Sha512_256 = Hmac<{ Hash::Sha512_256 as usize }>;
type Sha3_224 = Hmac<{ Hash::Sha3_224 as usize }>;
type Sha3_256 = Hmac<{ Hash::Sha3_256 as usize }>;
type Sha3_384 = Hmac<{ Hash::Sha3_384 as usize }>;
type Sha3_512 = Hmac<{ Hash::Sha3_512 as usize }>;

/// HMAC with the function that stands at `HASH` in [`Hash::ALL`]; prepared keys are of one type per function.
struct Hmac<const HASH: usize>(hmac::Key);

impl<const HASH: usize> Hmac<HASH> {
    const WHOLE: Mac = Mac {
        general: false,
        length: Hash::ALL[HASH].length(),
        prepared: |key| Ok(&key.prepared(Self::of)?.0),
        anew: |key| Ok(Box::new(Self::of(key)?.0)),
    };
    const GENERAL: Mac = Mac { general: true, ..Self::WHOLE };

    fn of(key: &Key) -> Result<Self> {
        prepare(Hash::ALL[HASH], key).map(Self)
    }
}

fn prepare(hash: Hash, key: &Key) -> Result<hmac::Key> {
    hmac::Key::new(hash, key.secret(CKA_VALUE)?).map_err(device_error)
}

impl Prepared for hmac::Key {
    fn mac(&self, data: &[u8], out: &mut [u8]) -> std::result::Result<(), Failed> {
        self.mac(&[data], out)
    }

    fn start(&self, length: usize) -> std::result::Result<Box<dyn SignatureStream>, Failed> {
        Ok(running(self.start()?, length))
    }
}

impl Stream for hmac::Stream {
    fn update(&mut self, data: &[u8]) -> std::result::Result<(), Failed> {
        self.update(data)
    }

    fn finish(&mut self, out: &mut [u8]) -> std::result::Result<(), Failed> {
        self.finish(out)
    }
}
