// SPDX-License-Identifier: Apache-2.0
//! The key-based KDFs of NIST SP 800-108 (PKCS#11 3.2 §6.42): counter, feedback and double pipeline
//! mode over HMAC or AES-CMAC, with the input of each step laid out by the caller.

use crate::generate;
use crate::prf::{Keyed, Prf};
use metaslot_awslc_wrapper::digest::Hash;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Derive, Keys};
use metaslot_spi::{KdfParam, Key, Params};

/// One row per mode.
pub(crate) const ROWS: [Algorithm; 3] = [
    row(CKM_SP800_108_COUNTER_KDF, &Kdf(Mode::Counter)),
    row(CKM_SP800_108_FEEDBACK_KDF, &Kdf(Mode::Feedback)),
    row(CKM_SP800_108_DOUBLE_PIPELINE_KDF, &Kdf(Mode::DoublePipeline)),
];

const fn row(mechanism: CK_MECHANISM_TYPE, derive: &'static Kdf) -> Algorithm {
    Algorithm {
        mechanism,
        key_sizes: (8, 8 * generate::LONGEST),
        derive: Some(derive),
        ..Algorithm::NONE
    }
}

#[derive(Debug)]
struct Kdf(Mode);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Mode {
    Counter,
    Feedback,
    DoublePipeline,
}

/// The decoded parameter.
struct Fields<'a> {
    prf: Prf,
    data: &'a [KdfParam],
    iv: &'a [u8],
}

/// The function with its key, which for CMAC is one of AES.
fn keyed(prf: Prf, key: &Key) -> Result<Keyed> {
    if matches!(prf, Prf::Cmac) && key.key_type() != CKK_AES {
        return Err(Error::KEY_TYPE_INCONSISTENT);
    }
    Keyed::new(prf, key.secret(CKA_VALUE)?)
}

impl Mode {
    /// Which fields a mode takes, and how often.
    fn check(self, data: &[KdfParam]) -> Result<()> {
        let (mut iterations, mut counters, mut lengths) = (0, 0, 0);
        for field in data {
            let width = match field {
                KdfParam::Iteration { bits, .. } => {
                    iterations += 1;
                    // Only counter mode formats this field; elsewhere it is a previous block.
                    if self == Self::Counter { *bits } else { 8 }
                }
                KdfParam::Counter { bits, .. } => {
                    counters += 1;
                    *bits
                }
                KdfParam::DkmLength { bits, .. } => {
                    lengths += 1;
                    *bits
                }
                KdfParam::Bytes(_) => continue,
            };
            let widest = if matches!(field, KdfParam::DkmLength { .. }) { 64 } else { 32 };
            if width == 0 || width > widest || !width.is_multiple_of(8) {
                return Err(Error::MECHANISM_PARAM_INVALID);
            }
        }
        let most_counters = if self == Self::Counter { 0 } else { 1 };
        if iterations != 1 || counters > most_counters || lengths > 1 {
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        Ok(())
    }

    fn fields<'a>(self, params: &'a Params) -> Result<Fields<'a>> {
        let Params::Sp800108 { prf, data, iv, .. } = params else {
            return Err(Error::MECHANISM_PARAM_INVALID);
        };
        if !iv.is_empty() && self != Self::Feedback {
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        self.check(data)?;
        let approved = |prf: &Prf| !matches!(prf, Prf::Xcbc | Prf::Hmac(Hash::Md5));
        let prf = Prf::find(*prf).filter(approved).ok_or(Error::MECHANISM_PARAM_INVALID)?;
        Ok(Fields { prf, data, iv })
    }

    /// How many steps a counter of the narrowest width among the fields can count.
    fn most_steps(self, data: &[KdfParam]) -> u64 {
        data.iter().fold(u64::from(u32::MAX), |most, field| match field {
            KdfParam::Iteration { bits, .. } if self == Self::Counter => most.min((1 << bits) - 1),
            KdfParam::Counter { bits, .. } => most.min((1 << bits) - 1),
            _ => most,
        })
    }
}

/// A number in so many bits, cut to them where it is larger.
fn encode(number: u64, little_endian: bool, bits: u64) -> (usize, [u8; 8]) {
    let width = usize::try_from(bits / 8).unwrap_or(8).min(8);
    let mut out = [0; 8];
    if little_endian {
        out.copy_from_slice(&number.to_le_bytes());
    } else {
        out[..width].copy_from_slice(&number.to_be_bytes()[8 - width..]);
    }
    (width, out)
}

/// The input of one step, part by part, to `take`. `iteration` is the previous block where the mode
/// has one, and `counter` is 0 where neither belongs in (the double pipeline's own first input).
fn input(
    mode: Mode,
    fields: &Fields<'_>,
    (counter, iteration): (u64, &[u8]),
    dkm: &Dkm,
    take: &mut dyn FnMut(&[u8]),
) {
    for field in fields.data {
        match field {
            KdfParam::Bytes(bytes) => take(bytes),
            KdfParam::DkmLength { sum_of_segments, little_endian, bits } => {
                let bytes = if *sum_of_segments { dkm.segments } else { dkm.keys };
                let (width, length) = encode(bytes as u64 * 8, *little_endian, *bits);
                take(&length[..width]);
            }
            KdfParam::Iteration { .. } | KdfParam::Counter { .. } if counter == 0 => {}
            KdfParam::Iteration { .. } if mode != Mode::Counter => take(iteration),
            KdfParam::Iteration { little_endian, bits }
            | KdfParam::Counter { little_endian, bits } => {
                let (width, number) = encode(counter, *little_endian, *bits);
                take(&number[..width]);
            }
        }
    }
}

/// Lengths of what is derived, in bytes.
struct Dkm {
    keys: usize,
    segments: usize,
}

/// Gathers one step's input in protected memory: it may hold a previous block.
fn gathered(mode: Mode, fields: &Fields<'_>, state: (u64, &[u8]), dkm: &Dkm) -> Result<Secret> {
    let mut length = 0;
    input(mode, fields, state, dkm, &mut |part| length += part.len());
    let mut out = Secret::try_zeroed(length).ok_or(Error::DEVICE_MEMORY)?;
    let mut at = 0;
    let place = out.expose_mut();
    input(mode, fields, state, dkm, &mut |part| {
        place[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    });
    Ok(out)
}

/// The segments, one after the other.
fn segments(mode: Mode, fields: &Fields<'_>, prf: &Keyed, dkm: &Dkm) -> Result<Secret> {
    let block = fields.prf.length();
    let mut out = Secret::try_zeroed(dkm.segments).ok_or(Error::DEVICE_MEMORY)?;
    // The iteration variable: K(i-1), or A(i) of the double pipeline, which begins at A(0).
    let mut iteration = match mode {
        Mode::Counter => Secret::zeroed(0),
        Mode::Feedback => Secret::try_copy_of(fields.iv).ok_or(Error::DEVICE_MEMORY)?,
        Mode::DoublePipeline => gathered(mode, fields, (0, &[]), dkm)?,
    };
    for (counter, segment) in (1..).zip(out.expose_mut().chunks_mut(block)) {
        if mode == Mode::DoublePipeline {
            let mut next = Secret::zeroed(block);
            prf.mac(&[iteration.expose()], next.expose_mut())?;
            iteration = next;
        }
        let step = gathered(mode, fields, (counter, iteration.expose()), dkm)?;
        prf.mac(&[step.expose()], segment)?;
        if mode == Mode::Feedback {
            iteration = Secret::copy_of(segment);
        }
    }
    Ok(out)
}

impl Derive for Kdf {
    fn check(&self, key: &Key, params: &Params) -> Result<()> {
        let fields = self.0.fields(params)?;
        keyed(fields.prf, key).map(|_| ())
    }

    fn natural_length(&self, _: &Key, _: &Params) -> Option<usize> {
        None
    }

    fn derive(
        &self,
        key: &Key,
        params: &Params,
        lengths: &[usize],
        _: &dyn Keys,
    ) -> Result<Vec<Secret>> {
        let fields = self.0.fields(params)?;
        let prf = keyed(fields.prf, key)?;
        let block = fields.prf.length();
        let mut dkm = Dkm { keys: 0, segments: 0 };
        for length in lengths {
            if *length == 0 || *length > LONGEST {
                return Err(Error::KEY_SIZE_RANGE);
            }
            dkm.keys = dkm.keys.checked_add(*length).ok_or(Error::KEY_SIZE_RANGE)?;
            // No two keys share a segment.
            let whole = length.next_multiple_of(block);
            dkm.segments = dkm.segments.checked_add(whole).ok_or(Error::KEY_SIZE_RANGE)?;
        }
        if (dkm.segments / block) as u64 > self.0.most_steps(fields.data) {
            return Err(Error::KEY_SIZE_RANGE);
        }
        let material = segments(self.0, &fields, &prf, &dkm)?;
        let mut rest = material.expose();
        lengths
            .iter()
            .map(|length| {
                let (own, others) = rest.split_at(length.next_multiple_of(block));
                rest = others;
                Secret::try_copy_of(&own[..*length]).ok_or(Error::DEVICE_MEMORY)
            })
            .collect()
    }
}

/// The longest key that is derived, in bytes.
const LONGEST: usize = 1 << 20;
