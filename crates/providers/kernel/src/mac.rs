// SPDX-License-Identifier: Apache-2.0
//! HMAC with every hash function and CMAC by AES, whole and truncated (PKCS#11 3.2 §6.14, §6.20–§6.26).

use crate::cipher::{KEYS, aes_value};
use crate::failure::device_error;
use crate::offer::Offer;
use metaslot_awslc_wrapper::{cleanse, constant_time};
use metaslot_ck::*;
use metaslot_kernel_wrapper::Kind;
use metaslot_kernel_wrapper::hash::{self, Stream};
use metaslot_spi::provider::{Algorithm, Direction, Signature, SignatureStream};
use metaslot_spi::{Key, Params};
use std::sync::Arc;

/// The standard leaves the length of an HMAC's key open; this is the range that is tested, in bytes.
const HMAC_KEYS: (u64, u64) = (1, 8192);
/// The longest MAC, in bytes.
const LONGEST: usize = 64;

/// Two rows per function.
pub(crate) const OFFERS: [Offer; 20] = [
    offer(CKM_SHA_1_HMAC, &hmac("hmac(sha1)", 20)),
    offer(CKM_SHA_1_HMAC_GENERAL, &hmac("hmac(sha1)", 20).general()),
    offer(CKM_SHA224_HMAC, &hmac("hmac(sha224)", 28)),
    offer(CKM_SHA224_HMAC_GENERAL, &hmac("hmac(sha224)", 28).general()),
    offer(CKM_SHA256_HMAC, &hmac("hmac(sha256)", 32)),
    offer(CKM_SHA256_HMAC_GENERAL, &hmac("hmac(sha256)", 32).general()),
    offer(CKM_SHA384_HMAC, &hmac("hmac(sha384)", 48)),
    offer(CKM_SHA384_HMAC_GENERAL, &hmac("hmac(sha384)", 48).general()),
    offer(CKM_SHA512_HMAC, &hmac("hmac(sha512)", 64)),
    offer(CKM_SHA512_HMAC_GENERAL, &hmac("hmac(sha512)", 64).general()),
    offer(CKM_SHA3_224_HMAC, &hmac("hmac(sha3-224)", 28)),
    offer(CKM_SHA3_224_HMAC_GENERAL, &hmac("hmac(sha3-224)", 28).general()),
    offer(CKM_SHA3_256_HMAC, &hmac("hmac(sha3-256)", 32)),
    offer(CKM_SHA3_256_HMAC_GENERAL, &hmac("hmac(sha3-256)", 32).general()),
    offer(CKM_SHA3_384_HMAC, &hmac("hmac(sha3-384)", 48)),
    offer(CKM_SHA3_384_HMAC_GENERAL, &hmac("hmac(sha3-384)", 48).general()),
    offer(CKM_SHA3_512_HMAC, &hmac("hmac(sha3-512)", 64)),
    offer(CKM_SHA3_512_HMAC_GENERAL, &hmac("hmac(sha3-512)", 64).general()),
    offer(CKM_AES_CMAC, &CMAC),
    offer(CKM_AES_CMAC_GENERAL, &CMAC.general()),
];

const CMAC: Mac = Mac { name: "cmac(aes)", length: 16, aes: true, general: false };

const fn hmac(name: &'static str, length: usize) -> Mac {
    Mac { name, length, aes: false, general: false }
}

const fn offer(mechanism: CK_MECHANISM_TYPE, mac: &'static Mac) -> Offer {
    let key_sizes = if mac.aes { KEYS } else { HMAC_KEYS };
    let row = Algorithm::signature(mechanism, key_sizes, mac);
    Offer { row, kind: Kind::Hash, name: mac.name }
}

#[derive(Clone, Copy, Debug)]
struct Mac {
    name: &'static str,
    /// Of a whole MAC, in bytes.
    length: usize,
    /// Its key is one of AES.
    aes: bool,
    /// As many bytes as the parameter says.
    general: bool,
}

impl Mac {
    const fn general(self) -> Self {
        Self { general: true, ..self }
    }

    fn value(self, key: &Key) -> Result<&[u8]> {
        if self.aes { aes_value(key) } else { key.secret(CKA_VALUE) }
    }

    fn make(self, key: &Key, data: &[u8], out: &mut [u8]) -> Result<()> {
        hash::hash(self.name, Some(self.value(key)?), data, out).map_err(device_error)
    }

    fn wanted(self, params: &Params) -> Result<usize> {
        params.mac_length(self.length, self.general)
    }
}

impl Signature for Mac {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        self.wanted(params)?;
        self.value(key).map(|_| ())
    }

    fn length(&self, _: &Key, params: &Params) -> usize {
        self.wanted(params).unwrap_or(0)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        let length = self.wanted(params)?;
        self.make(key, data, &mut out[..length])?;
        Ok(length)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        compare(self.wanted(params)?, signature, |own| self.make(key, data, own))
    }

    fn start(
        &self,
        _: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        let stream = Stream::new(self.name, Some(self.value(key)?)).map_err(device_error)?;
        Ok(Box::new(Running { stream, length: self.wanted(params)? }))
    }
}

/// Compares `signature` with what `finish` makes, in constant time.
fn compare(
    length: usize,
    signature: &[u8],
    finish: impl FnOnce(&mut [u8]) -> Result<()>,
) -> Result<()> {
    if signature.len() != length {
        return Err(Error::SIGNATURE_LEN_RANGE);
    }
    let mut own = [0; LONGEST];
    let done = finish(&mut own[..length]);
    let equal = constant_time::equal(&own[..length], signature);
    cleanse(&mut own);
    done?;
    if equal { Ok(()) } else { Err(Error::SIGNATURE_INVALID) }
}

#[derive(Debug)]
struct Running {
    stream: Stream,
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
