// SPDX-License-Identifier: Apache-2.0
//! Message authentication codes: one shape for HMAC and CMAC, whole and truncated (`_GENERAL`).

use crate::failure::device_error;
use metaslot_awslc_wrapper::{Failed, constant_time};
use metaslot_ck::*;
use metaslot_spi::provider::{Algorithm, Direction, Signature, SignatureStream};
use metaslot_spi::{Key, Params};
use std::any::Any;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc;

/// A MAC over a prepared key.
pub(crate) trait Function: Debug + Send + Sync + 'static {
    /// Length of a whole MAC, in bytes; at most [`LONGEST`].
    const LENGTH: usize;

    /// What a key is turned into once: one type per function, because a key may serve several.
    type Prepared: Any + Send + Sync;

    /// A MAC in the middle.
    type Stream: Debug + Send;

    /// Prepares a key.
    fn prepare(value: &[u8]) -> Result<Self::Prepared>;

    /// Makes a MAC in one call, truncated to `out`.
    fn mac(key: &Self::Prepared, data: &[u8], out: &mut [u8]) -> std::result::Result<(), Failed>;

    /// Begins.
    fn start(key: &Self::Prepared) -> std::result::Result<Self::Stream, Failed>;

    /// Takes more data.
    fn update(stream: &mut Self::Stream, data: &[u8]) -> std::result::Result<(), Failed>;

    /// Writes the MAC, truncated to `out`.
    fn finish(stream: &mut Self::Stream, out: &mut [u8]) -> std::result::Result<(), Failed>;
}

/// The longest MAC, in bytes.
const LONGEST: usize = 64;

/// The operation of a row.
#[derive(Debug)]
pub(crate) struct Mac<F> {
    general: bool,
    function: PhantomData<F>,
}

/// The row of a MAC mechanism.
pub(crate) const fn row(
    mechanism: CK_MECHANISM_TYPE,
    key_sizes: (u64, u64),
    mac: &'static dyn Signature,
) -> Algorithm {
    Algorithm { mechanism, key_sizes, sign: Some(mac), verify: Some(mac), ..Algorithm::NONE }
}

impl<F: Function> Mac<F> {
    /// The whole MAC.
    pub(crate) const WHOLE: Self = Self { general: false, function: PhantomData };
    /// As many bytes as the parameter says.
    pub(crate) const GENERAL: Self = Self { general: true, function: PhantomData };
}

/// Calls `use_it` with the prepared key.
fn with_prepared<F: Function, T>(
    key: &Key,
    use_it: impl FnOnce(&F::Prepared) -> std::result::Result<T, Failed>,
) -> Result<T> {
    let done = match key.prepared(|key| F::prepare(key.secret(CKA_VALUE)?)) {
        Ok(prepared) => use_it(prepared),
        // A key keeps a few forms; one that serves more functions is prepared anew each time.
        Err(Error::DEVICE_MEMORY) => use_it(&F::prepare(key.secret(CKA_VALUE)?)?),
        Err(error) => return Err(error),
    };
    done.map_err(device_error)
}

/// How long the MAC is to be, in bytes.
fn length<F: Function>(params: &Params) -> usize {
    match params {
        Params::Ulong(length) => usize::try_from(*length).map_or(F::LENGTH, |l| l.min(F::LENGTH)),
        _ => F::LENGTH,
    }
}

impl<F: Function> Signature for Mac<F> {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        match params {
            Params::None if !self.general => {}
            Params::Ulong(length) if self.general && (1..=F::LENGTH as u64).contains(length) => {}
            _ => return Err(Error::MECHANISM_PARAM_INVALID),
        }
        with_prepared::<F, _>(key, |_| Ok(()))
    }

    fn length(&self, _: &Key, params: &Params) -> usize {
        length::<F>(params)
    }

    fn sign(&self, key: &Key, params: &Params, data: &[u8], out: &mut [u8]) -> Result<usize> {
        let length = length::<F>(params);
        with_prepared::<F, _>(key, |key| F::mac(key, data, &mut out[..length]))?;
        Ok(length)
    }

    fn verify(&self, key: &Key, params: &Params, data: &[u8], signature: &[u8]) -> Result<()> {
        compare(length::<F>(params), signature, |own| {
            with_prepared::<F, _>(key, |key| F::mac(key, data, own))
        })
    }

    fn start(
        &self,
        _: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn SignatureStream>> {
        let stream = with_prepared::<F, _>(key, F::start)?;
        Ok(Box::new(Running::<F> { stream, length: length::<F>(params) }))
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
struct Running<F: Function> {
    stream: F::Stream,
    length: usize,
}

impl<F: Function> SignatureStream for Running<F> {
    fn update(&mut self, data: &[u8]) -> Result<()> {
        F::update(&mut self.stream, data).map_err(device_error)
    }

    fn sign(&mut self, out: &mut [u8]) -> Result<usize> {
        F::finish(&mut self.stream, &mut out[..self.length]).map_err(device_error)?;
        Ok(self.length)
    }

    fn verify(&mut self, signature: &[u8]) -> Result<()> {
        compare(self.length, signature, |own| {
            F::finish(&mut self.stream, own).map_err(device_error)
        })
    }
}
