// SPDX-License-Identifier: Apache-2.0
//! HMAC with every hash function (PKCS#11 3.2 §6.20–§6.26, `_HMAC` and `_HMAC_GENERAL`).

use crate::failure::device_error;
use crate::mac::{Function, Mac, row};
use metaslot_awslc_wrapper::Failed;
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_awslc_wrapper::hmac;
use metaslot_ck::*;
use metaslot_spi::provider::Algorithm;

/// The standard leaves the key's length open; this is the range that is tested, in bytes.
const KEYS: (u64, u64) = (1, 8192);

/// Two rows per function.
pub(crate) const ROWS: [Algorithm; 24] = [
    row(CKM_MD5_HMAC, KEYS, &Mac::<Md5>::WHOLE),
    row(CKM_MD5_HMAC_GENERAL, KEYS, &Mac::<Md5>::GENERAL),
    row(CKM_SHA_1_HMAC, KEYS, &Mac::<Sha1>::WHOLE),
    row(CKM_SHA_1_HMAC_GENERAL, KEYS, &Mac::<Sha1>::GENERAL),
    row(CKM_SHA224_HMAC, KEYS, &Mac::<Sha224>::WHOLE),
    row(CKM_SHA224_HMAC_GENERAL, KEYS, &Mac::<Sha224>::GENERAL),
    row(CKM_SHA256_HMAC, KEYS, &Mac::<Sha256>::WHOLE),
    row(CKM_SHA256_HMAC_GENERAL, KEYS, &Mac::<Sha256>::GENERAL),
    row(CKM_SHA384_HMAC, KEYS, &Mac::<Sha384>::WHOLE),
    row(CKM_SHA384_HMAC_GENERAL, KEYS, &Mac::<Sha384>::GENERAL),
    row(CKM_SHA512_HMAC, KEYS, &Mac::<Sha512>::WHOLE),
    row(CKM_SHA512_HMAC_GENERAL, KEYS, &Mac::<Sha512>::GENERAL),
    row(CKM_SHA512_224_HMAC, KEYS, &Mac::<Sha512_224>::WHOLE),
    row(CKM_SHA512_224_HMAC_GENERAL, KEYS, &Mac::<Sha512_224>::GENERAL),
    row(CKM_SHA512_256_HMAC, KEYS, &Mac::<Sha512_256>::WHOLE),
    row(CKM_SHA512_256_HMAC_GENERAL, KEYS, &Mac::<Sha512_256>::GENERAL),
    row(CKM_SHA3_224_HMAC, KEYS, &Mac::<Sha3_224>::WHOLE),
    row(CKM_SHA3_224_HMAC_GENERAL, KEYS, &Mac::<Sha3_224>::GENERAL),
    row(CKM_SHA3_256_HMAC, KEYS, &Mac::<Sha3_256>::WHOLE),
    row(CKM_SHA3_256_HMAC_GENERAL, KEYS, &Mac::<Sha3_256>::GENERAL),
    row(CKM_SHA3_384_HMAC, KEYS, &Mac::<Sha3_384>::WHOLE),
    row(CKM_SHA3_384_HMAC_GENERAL, KEYS, &Mac::<Sha3_384>::GENERAL),
    row(CKM_SHA3_512_HMAC, KEYS, &Mac::<Sha3_512>::WHOLE),
    row(CKM_SHA3_512_HMAC_GENERAL, KEYS, &Mac::<Sha3_512>::GENERAL),
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

/// HMAC with the function that stands at `HASH` in [`Hash::ALL`].
#[derive(Debug)]
struct Hmac<const HASH: usize>;

/// One type per function.
#[derive(Debug)]
struct Prepared<const HASH: usize>(hmac::Key);

impl<const HASH: usize> Function for Hmac<HASH> {
    const LENGTH: usize = Hash::ALL[HASH].length();

    type Prepared = Prepared<HASH>;
    type Stream = hmac::Stream;

    fn prepare(value: &[u8]) -> Result<Self::Prepared> {
        Ok(Prepared(hmac::Key::new(Hash::ALL[HASH], value).map_err(device_error)?))
    }

    fn mac(key: &Self::Prepared, data: &[u8], out: &mut [u8]) -> std::result::Result<(), Failed> {
        key.0.mac(&[data], out)
    }

    fn start(key: &Self::Prepared) -> std::result::Result<hmac::Stream, Failed> {
        key.0.start()
    }

    fn update(stream: &mut hmac::Stream, data: &[u8]) -> std::result::Result<(), Failed> {
        stream.update(data)
    }

    fn finish(stream: &mut hmac::Stream, out: &mut [u8]) -> std::result::Result<(), Failed> {
        stream.finish(out)
    }
}
