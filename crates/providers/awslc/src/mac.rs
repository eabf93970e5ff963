// SPDX-License-Identifier: Apache-2.0
//! Message authentication codes: one shape for HMAC and CMAC, whole and truncated (`_GENERAL`).

use crate::failure::device_error;
use metaslot_awslc_wrapper::{Failed, constant_time};
use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, Direction, Signature, SignatureStream};
use metaslot_spi::{Key, Params};
use std::fmt::Debug;
use std::sync::Arc;

/// A key that is prepared for one function.
pub(crate) trait Prepared {
    /// Makes a MAC in one call, truncated to `out`.
    fn mac(&self, data: &[u8], out: &mut [u8]) -> std::result::Result<(), Failed>;

    /// Begins a MAC of `length` bytes.
    fn start(&self, length: usize) -> std::result::Result<Box<dyn SignatureStream>, Failed>;
}

/// A MAC in the middle.
pub(crate) trait Stream: Debug + Send + 'static {
    /// Takes more data.
    fn update(&mut self, data: &[u8]) -> std::result::Result<(), Failed>;

    /// Writes the MAC, truncated to `out`.
    fn finish(&mut self, out: &mut [u8]) -> std::result::Result<(), Failed>;
}

/// The longest MAC, in bytes.
const LONGEST: usize = 64;

/// The operation of a row. What all functions have in common is here once, and not once for each.
#[derive(Debug)]
pub(crate) struct Mac {
    /// Whether it has as many bytes as the parameter says.
    pub(crate) general: bool,
    /// Length of a whole MAC, in bytes; at most [`LONGEST`].
    pub(crate) length: usize,
    /// The key's prepared form, of one type per function, because a key may serve several.
    pub(crate) prepared: fn(&Key) -> Result<&dyn Prepared>,
    /// The same for a key that has no place for one more form: made anew each time.
    pub(crate) anew: fn(&Key) -> Result<Box<dyn Prepared>>,
}

/// The row of a MAC mechanism.
pub(crate) const fn row(
    mechanism: CK_MECHANISM_TYPE,
    key_sizes: (u64, u64),
    mac: &'static dyn Signature,
) -> Algorithm {
    Algorithm::signature(mechanism, key_sizes, mac)
}

impl Mac {
    fn wanted(&self, params: &Params) -> Result<usize> {
        params.mac_length(self.length, self.general)
    }

    fn with<T>(
        &self,
        key: &Key,
        use_it: impl FnOnce(&dyn Prepared) -> std::result::Result<T, Failed>,
    ) -> Result<T> {
        let done = match (self.prepared)(key) {
            Ok(prepared) => use_it(prepared),
            Err(Error::DEVICE_MEMORY) => use_it(&*(self.anew)(key)?),
            Err(error) => return Err(error),
        };
        done.map_err(device_error)
    }

    fn mac(&self, key: &Key, data: &[u8], out: &mut [u8]) -> Result<()> {
        self.with(key, |key| key.mac(data, out))
    }
}

impl Signature for Mac {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        self.wanted(params)?;
        self.with(key, |_| Ok(()))
    }

    fn length(&self, _: &Key, params: &Params) -> usize {
        self.wanted(params).unwrap_or(0)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        let length = self.wanted(params)?;
        self.mac(key, data, &mut out[..length])?;
        Ok(length)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        compare(self.wanted(params)?, signature, |own| self.mac(key, data, own))
    }

    fn start(
        &self,
        _: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        let length = self.wanted(params)?;
        self.with(key, |key| key.start(length))
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
    let mut own = [0; LONGEST];
    let done = finish(&mut own[..length]);
    let equal = constant_time::equal(&own[..length], signature);
    metaslot_awslc_wrapper::cleanse(&mut own);
    done?;
    if equal { Ok(()) } else { Err(Error::SIGNATURE_INVALID) }
}

#[derive(Debug)]
struct Running<S> {
    stream: S,
    length: usize,
}

/// A MAC of `length` bytes in the middle.
pub(crate) fn running(stream: impl Stream, length: usize) -> Box<dyn SignatureStream> {
    Box::new(Running { stream, length })
}

impl<S: Stream> SignatureStream for Running<S> {
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
