// SPDX-License-Identifier: Apache-2.0
//! HMAC with every hash function and CMAC by AES, whole and truncated (PKCS#11 3.2 §6.14, §6.20–§6.26).

use crate::failure::device_error;
use metaslot_ck::*;
use metaslot_openssl_wrapper::digest::{Hash, MAX_LENGTH};
use metaslot_openssl_wrapper::mac::{self, CMAC_LENGTH};
use metaslot_openssl_wrapper::{Failed, cleanse, constant_time};
use metaslot_spi::provider::{Algorithm, Direction, Signature, SignatureStream};
use metaslot_spi::{Key, Params};
use std::sync::Arc;

/// The standard leaves the length of an HMAC's key open; this is the range that is tested, in bytes.
const KEYS: (u64, u64) = (1, 8192);

/// Two rows per function.
pub(crate) const ROWS: [Algorithm; 26] = [
    row(CKM_MD5_HMAC, &Md5::WHOLE),
    row(CKM_MD5_HMAC_GENERAL, &Md5::GENERAL),
    row(CKM_SHA_1_HMAC, &Sha1::WHOLE),
    row(CKM_SHA_1_HMAC_GENERAL, &Sha1::GENERAL),
    row(CKM_SHA224_HMAC, &Sha224::WHOLE),
    row(CKM_SHA224_HMAC_GENERAL, &Sha224::GENERAL),
    row(CKM_SHA256_HMAC, &Sha256::WHOLE),
    row(CKM_SHA256_HMAC_GENERAL, &Sha256::GENERAL),
    row(CKM_SHA384_HMAC, &Sha384::WHOLE),
    row(CKM_SHA384_HMAC_GENERAL, &Sha384::GENERAL),
    row(CKM_SHA512_HMAC, &Sha512::WHOLE),
    row(CKM_SHA512_HMAC_GENERAL, &Sha512::GENERAL),
    row(CKM_SHA512_224_HMAC, &Sha512_224::WHOLE),
    row(CKM_SHA512_224_HMAC_GENERAL, &Sha512_224::GENERAL),
    row(CKM_SHA512_256_HMAC, &Sha512_256::WHOLE),
    row(CKM_SHA512_256_HMAC_GENERAL, &Sha512_256::GENERAL),
    row(CKM_SHA3_224_HMAC, &Sha3_224::WHOLE),
    row(CKM_SHA3_224_HMAC_GENERAL, &Sha3_224::GENERAL),
    row(CKM_SHA3_256_HMAC, &Sha3_256::WHOLE),
    row(CKM_SHA3_256_HMAC_GENERAL, &Sha3_256::GENERAL),
    row(CKM_SHA3_384_HMAC, &Sha3_384::WHOLE),
    row(CKM_SHA3_384_HMAC_GENERAL, &Sha3_384::GENERAL),
    row(CKM_SHA3_512_HMAC, &Sha3_512::WHOLE),
    row(CKM_SHA3_512_HMAC_GENERAL, &Sha3_512::GENERAL),
    Algorithm { key_sizes: (16, 32), ..row(CKM_AES_CMAC, &Cmac::WHOLE) },
    Algorithm { key_sizes: (16, 32), ..row(CKM_AES_CMAC_GENERAL, &Cmac::GENERAL) },
];

const fn row(mechanism: CK_MECHANISM_TYPE, mac: &'static dyn Signature) -> Algorithm {
    Algorithm::signature(mechanism, KEYS, mac)
}

type Md5 = Mac<{ Hash::Md5 as usize }>;
type Sha1 = Mac<{ Hash::Sha1 as usize }>;
type Sha224 = Mac<{ Hash::Sha224 as usize }>;
type Sha256 = Mac<{ Hash::Sha256 as usize }>;
type Sha384 = Mac<{ Hash::Sha384 as usize }>;
type Sha512 = Mac<{ Hash::Sha512 as usize }>;
type Sha512_224 = Mac<{ Hash::Sha512_224 as usize }>;
type Sha512_256 = Mac<{ Hash::Sha512_256 as usize }>;
type Sha3_224 = Mac<{ Hash::Sha3_224 as usize }>;
type Sha3_256 = Mac<{ Hash::Sha3_256 as usize }>;
type Sha3_384 = Mac<{ Hash::Sha3_384 as usize }>;
type Sha3_512 = Mac<{ Hash::Sha3_512 as usize }>;
type Cmac = Mac<CMAC>;

/// The number of CMAC, after those of the hash functions.
const CMAC: usize = Hash::ALL.len();

/// HMAC with the function that stands at `FUNCTION` in [`Hash::ALL`], or CMAC.
#[derive(Debug)]
struct Mac<const FUNCTION: usize> {
    general: bool,
}

/// What a key is turned into once: one type per function, because a key may serve several.
struct Prepared<const FUNCTION: usize>(mac::Key);

impl<const FUNCTION: usize> Mac<FUNCTION> {
    /// The whole MAC.
    const WHOLE: Self = Self { general: false };
    /// As many bytes as the parameter says.
    const GENERAL: Self = Self { general: true };
    /// Length of a whole MAC, in bytes.
    const LENGTH: usize = if FUNCTION == CMAC { CMAC_LENGTH } else { Hash::ALL[FUNCTION].length() };

    fn prepare(key: &Key) -> Result<Prepared<FUNCTION>> {
        let value = key.secret(CKA_VALUE)?;
        let made = match Hash::ALL.get(FUNCTION) {
            Some(hash) => mac::Key::hmac(*hash, value).map_err(device_error),
            None => mac::Key::cmac(value).map_err(|_| Error::KEY_SIZE_RANGE),
        };
        made.map(Prepared)
    }

    /// Calls `use_it` with the prepared key.
    fn with<T>(
        key: &Key,
        use_it: impl FnOnce(&mac::Key) -> std::result::Result<T, Failed>,
    ) -> Result<T> {
        let done = match key.prepared(Self::prepare) {
            Ok(prepared) => use_it(&prepared.0),
            // A key keeps a few forms; one that serves more functions is prepared anew each time.
            Err(Error::DEVICE_MEMORY) => use_it(&Self::prepare(key)?.0),
            Err(error) => return Err(error),
        };
        done.map_err(device_error)
    }

    fn wanted(&self, params: &Params) -> Result<usize> {
        params.mac_length(Self::LENGTH, self.general)
    }
}

impl<const FUNCTION: usize> Signature for Mac<FUNCTION> {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        self.wanted(params)?;
        Self::with(key, |_| Ok(()))
    }

    fn length(&self, _: &Key, params: &Params) -> usize {
        self.wanted(params).unwrap_or(0)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        let length = self.wanted(params)?;
        Self::with(key, |key| key.mac(data, &mut out[..length]))?;
        Ok(length)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        compare(self.wanted(params)?, signature, |own| Self::with(key, |key| key.mac(data, own)))
    }

    fn start(
        &self,
        _: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        let stream = Self::with(key, mac::Key::start)?;
        Ok(Box::new(Running { stream, length: self.wanted(params)? }))
    }
}

/// Compares `signature` with what `finish` makes, in constant time.
pub(crate) fn compare(
    length: usize,
    signature: &[u8],
    finish: impl FnOnce(&mut [u8]) -> Result<()>,
) -> Result<()> {
    if signature.len() != length {
        return Err(Error::SIGNATURE_LEN_RANGE);
    }
    let mut own = [0; MAX_LENGTH];
    let done = finish(&mut own[..length]);
    let equal = constant_time::equal(&own[..length], signature);
    cleanse(&mut own);
    done?;
    if equal { Ok(()) } else { Err(Error::SIGNATURE_INVALID) }
}

#[derive(Debug)]
struct Running {
    stream: mac::Stream,
    length: usize,
}

impl SignatureStream for Running {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        self.stream.update(data).map_err(device_error)
    }

    fn sign(&mut self, out: &mut [u8]) -> Result<usize> {
        self.stream.finish(&mut out[..self.length]).map_err(device_error)?;
        Ok(self.length)
    }

    fn verify(&mut self, signature: &[u8]) -> Result<()> {
        compare(self.length, signature, |own| self.stream.finish(own).map_err(device_error))
    }
}
