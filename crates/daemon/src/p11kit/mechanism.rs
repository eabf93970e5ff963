// SPDX-License-Identifier: Apache-2.0
//! Mechanisms and their parameters, as the protocol writes them and as the engine takes them.

mod derivation;
mod tls;

use super::connection::Asked;
use metaslot_ck::mechanism::{MechanismRow, Shape};
use metaslot_ck::*;
use metaslot_client::protocol::{Form, OWN, ReadParams, Reader, SAYS_PARAMETERS, form};
use metaslot_client::{KdfParam as ReadStep, Params as Read};
use metaslot_memory::Secret;
use metaslot_spi::{Bytes, KdfParam, Params};

/// In the place of a mechanism's number: there is none.
const NO_MECHANISM: u32 = u32::MAX;
/// An IV of GMAC without a structure, in bytes.
const GMAC_IV: usize = 12;

/// A mechanism, as it was sent.
pub(super) struct Sent<'m> {
    pub(super) number: CK_MECHANISM_TYPE,
    parameter: ReadParams<'m>,
}

impl<'m> Asked<'m, '_, '_> {
    /// A mechanism, or none.
    pub(super) fn mechanism(&mut self) -> Result<Option<Sent<'m>>> {
        let number = self.request.half()?;
        if number == NO_MECHANISM {
            return Ok(None);
        }
        let number = CK_MECHANISM_TYPE::from(number);
        let version = self.connection.version;
        if version >= OWN {
            return Ok(Some(Sent { number, parameter: self.request.params(number)? }));
        }
        let form = form(number);
        let there = match (version >= SAYS_PARAMETERS, form) {
            (true, Form::Nothing) => false,
            (true, _) => self.request.byte()? != 0,
            (false, _) => true,
        };
        let parameter = if there { parameter(&mut self.request, form)? } else { Read::None };
        Ok(Some(Sent { number, parameter: parameter.into() }))
    }

    /// A mechanism that has to be there.
    pub(super) fn some_mechanism(&mut self) -> Result<Sent<'m>> {
        self.mechanism()?.ok_or(Error::ARGUMENTS_BAD)
    }
}

/// A parameter in the form that p11-kit's protocol has for it.
fn parameter<'m>(request: &mut Reader<'m>, form: Form) -> Result<Read<'m>> {
    let bytes = |request: &mut Reader<'m>| request.counted().map(Option::unwrap_or_default);
    Ok(match form {
        Form::Nothing | Form::Bytes => match bytes(request)? {
            [] => Read::None,
            bytes => Read::Bytes(bytes),
        },
        Form::Number => Read::Ulong(request.number()?),
        Form::Pss => {
            let (hash, mgf) = (request.number()?, request.number()?);
            Read::Pss { hash, mgf, salt_length: request.number()? }
        }
        Form::Oaep => {
            let (hash, mgf, source) = (request.number()?, request.number()?, request.number()?);
            let label = bytes(request)?;
            if !matches!(source, 0 | CKZ_DATA_SPECIFIED) || (source == 0 && !label.is_empty()) {
                return Err(Error::MECHANISM_PARAM_INVALID);
            }
            Read::Oaep { hash, mgf, label }
        }
        Form::Ecdh1 => {
            let (kdf, shared) = (request.number()?, bytes(request)?);
            Read::Ecdh1 { kdf, shared, public: bytes(request)? }
        }
        Form::Ctr => {
            let (bits, block) = (request.number()?, bytes(request)?);
            let block = block.try_into().map_err(|_| Error::MECHANISM_PARAM_INVALID)?;
            Read::Ctr { bits, block }
        }
        Form::Gcm => {
            let (iv, _bits, aad) = (bytes(request)?, request.number()?, bytes(request)?);
            Read::Gcm { iv, aad, tag_bits: request.number()? }
        }
    })
}

impl Sent<'_> {
    /// A mechanism that takes no parameter, as no digest does.
    ///
    /// # Errors
    /// `CKR_MECHANISM_INVALID`, `CKR_MECHANISM_PARAM_INVALID`
    pub(super) fn alone(&self) -> Result<CK_MECHANISM_TYPE> {
        let row = MechanismRow::find(self.number).ok_or(Error::MECHANISM_INVALID)?;
        match row.shape == Shape::None && self.has_parameter() {
            true => Err(Error::MECHANISM_PARAM_INVALID),
            false => Ok(self.number),
        }
    }

    /// The other keys that a parameter names.
    pub(super) fn objects(&self) -> impl Iterator<Item = ObjectHandle> {
        let named = match self.parameter.params {
            Read::Ulong(number) => [Some(ObjectHandle(number)), None],
            Read::Hkdf { salt_key, .. } => [Some(salt_key), None],
            ref params => derivation::keys(params),
        };
        named.into_iter().flatten()
    }

    /// Whether there is a parameter.
    pub(super) const fn has_parameter(&self) -> bool {
        !matches!(self.parameter.params, Read::None)
    }

    /// As the engine takes it.
    ///
    /// # Errors
    /// `CKR_MECHANISM_INVALID`, `CKR_MECHANISM_PARAM_INVALID`
    pub(super) fn chosen(&self) -> Result<(CK_MECHANISM_TYPE, Params)> {
        let row = MechanismRow::find(self.number).ok_or(Error::MECHANISM_INVALID)?;
        let bytes = Bytes::from_slice;
        let params = match (row.shape, self.parameter.params) {
            (
                Shape::None | Shape::OptionalIv(_) | Shape::EdDsa | Shape::SignContext,
                Read::None | Read::Bytes([]),
            ) => Params::None,
            (Shape::Iv(length) | Shape::OptionalIv(length), Read::Bytes(iv))
                if iv.len() == length =>
            {
                Params::Iv(bytes(iv))
            }
            (Shape::Nonce, Read::Bytes(iv)) if iv.len() == GMAC_IV => Params::Iv(bytes(iv)),
            (Shape::Ulong, Read::Ulong(number)) => Params::Ulong(number),
            (Shape::Handle, Read::Ulong(handle)) => Params::Key(ObjectHandle(handle)),
            (Shape::Pss, Read::Pss { hash, mgf, salt_length }) => {
                Params::Pss { hash, mgf, salt_length }
            }
            (Shape::Oaep, Read::Oaep { hash, mgf, label }) => oaep(hash, mgf, label),
            (Shape::Ecdh1, Read::Ecdh1 { kdf, shared, public }) => {
                Params::Ecdh1 { kdf, shared: bytes(shared), public: bytes(public) }
            }
            (Shape::PublicValue, Read::Bytes(public)) => {
                Params::Ecdh1 { kdf: CKD_NULL, shared: Bytes::new(), public: bytes(public) }
            }
            (Shape::Ctr, Read::Ctr { bits, block }) => Params::Ctr { bits, block },
            (Shape::Gcm | Shape::Nonce, Read::Gcm { iv, aad, tag_bits }) => {
                Params::Gcm { iv: bytes(iv), aad: bytes(aad), tag_bits }
            }
            (shape, params) => later((self.number, shape), &params, &self.parameter.steps)?,
        };
        Ok((self.number, params))
    }
}

/// Zeros mean the defaults of PKCS #1.
fn oaep(hash: u64, mgf: u64, label: &[u8]) -> Params {
    Params::Oaep {
        hash: if hash == 0 { CKM_SHA_1 } else { hash },
        mgf: if mgf == 0 { CKG_MGF1_SHA1 } else { mgf },
        label: Bytes::from_slice(label),
    }
}

/// What p11-kit's protocol has no form for.
fn later(
    (number, shape): (CK_MECHANISM_TYPE, Shape),
    params: &Read<'_>,
    steps: &[ReadStep<'_>],
) -> Result<Params> {
    let bytes = Bytes::from_slice;
    Ok(match (shape, *params) {
        (Shape::Ccm, Read::Ccm { data_length, nonce, aad, mac_length }) => {
            Params::Ccm { data_length, nonce: bytes(nonce), aad: bytes(aad), mac_length }
        }
        (Shape::ChaCha20Poly1305, Read::ChaCha20Poly1305 { nonce, aad }) => {
            Params::ChaCha20Poly1305 { nonce: bytes(nonce), aad: bytes(aad) }
        }
        (Shape::EdDsa, Read::EdDsa { prehash, context }) => {
            Params::EdDsa { prehash, context: bytes(context) }
        }
        (Shape::SignContext, Read::SignContext { hedge, context }) => {
            Params::SignContext { hedge, context: bytes(context) }
        }
        (Shape::HashSignContext, Read::HashSignContext { hedge, context, hash }) => {
            Params::HashSignContext { hedge, context: bytes(context), hash }
        }
        (Shape::Hkdf, Read::Hkdf { extract, expand, prf, salt_type, salt, salt_key, info }) => {
            // As where a program gives it: only a salt that is said to be there counts.
            let salt = if salt_type == CKF_HKDF_SALT_DATA { salt } else { &[] };
            let (salt, info) = (bytes(salt), bytes(info));
            Params::Hkdf { extract, expand, prf, salt_type, salt, salt_key, info }
        }
        (Shape::Pbkd2, Read::Pbkd2 { prf, salt, iterations, password }) => {
            let password = Secret::try_copy_of(password).ok_or(Error::HOST_MEMORY)?;
            Params::Pbkd2 { prf, salt: bytes(salt), iterations, password }
        }
        (Shape::Sp800108Counter | Shape::Sp800108DoublePipeline, Read::Sp800108 { prf, .. }) => {
            let counter = shape == Shape::Sp800108Counter;
            let data = sp800_108(steps, counter)?;
            Params::Sp800108 { prf, data, iv: Bytes::new(), additional: Vec::new() }
        }
        (Shape::RsaAes, Read::RsaAes { bits, hash, mgf, label }) => {
            Params::Transport { bits, by: Box::new(oaep(hash, mgf, label)) }
        }
        (Shape::EcdhAes, Read::EcdhAes { bits, kdf, shared }) => {
            let by = Params::Ecdh1 { kdf, shared: bytes(shared), public: Bytes::new() };
            Params::Transport { bits, by: Box::new(by) }
        }
        (Shape::Sp800108Feedback, Read::Sp800108Feedback { prf, iv, .. }) => {
            let data = sp800_108(steps, false)?;
            Params::Sp800108 { prf, data, iv: bytes(iv), additional: Vec::new() }
        }
        (Shape::ChaCha20, Read::ChaCha20 { counter, nonce }) => {
            let fits = match nonce.len() {
                8 | 24 => true,
                12 => u32::try_from(counter).is_ok(),
                _ => false,
            };
            if !fits {
                return Err(Error::MECHANISM_PARAM_INVALID);
            }
            Params::ChaCha20 { counter, nonce: bytes(nonce) }
        }
        (Shape::XEdDsa, Read::XEdDsa { hash }) => Params::XEdDsa { hash },
        (shape, params) => {
            let found = derivation::params(shape, &params);
            return found.unwrap_or_else(|| tls::params(number, shape, &params));
        }
    })
}

/// The input of the steps. By a counter the variable of the iteration has a format, by feedback it is the previous block, and has
/// none (PKCS#11 3.2 §6.42.2).
fn sp800_108(steps: &[ReadStep<'_>], counter: bool) -> Result<Vec<KdfParam>> {
    let step = |step: &ReadStep<'_>| {
        Ok(match *step {
            ReadStep::Previous if !counter => KdfParam::Iteration { little_endian: false, bits: 0 },
            ReadStep::Iteration { little_endian, bits } if counter => {
                KdfParam::Iteration { little_endian, bits }
            }
            ReadStep::Counter { little_endian, bits } => KdfParam::Counter { little_endian, bits },
            ReadStep::DkmLength { sum_of_segments, little_endian, bits } => {
                KdfParam::DkmLength { sum_of_segments, little_endian, bits }
            }
            ReadStep::Bytes(bytes) => KdfParam::Bytes(Bytes::from_slice(bytes)),
            ReadStep::Previous | ReadStep::Iteration { .. } => {
                return Err(Error::MECHANISM_PARAM_INVALID);
            }
        })
    };
    steps.iter().map(step).collect()
}
