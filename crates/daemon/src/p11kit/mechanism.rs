// SPDX-License-Identifier: Apache-2.0
//! Mechanisms and their parameters, as the protocol writes them and as the engine takes them.

use super::connection::Asked;
use metaslot_ck::mechanism::{MechanismRow, Shape};
use metaslot_ck::*;
use metaslot_client::protocol::{Form, Reader, SAYS_PARAMETERS, form};
use metaslot_spi::{Bytes, Params};

/// In the place of a mechanism's number: there is none.
const NO_MECHANISM: u32 = u32::MAX;

/// A mechanism, as it was sent.
pub(super) struct Sent<'m> {
    pub(super) number: CK_MECHANISM_TYPE,
    parameter: Parameter<'m>,
}

/// A parameter, by the form that the protocol has for it.
enum Parameter<'m> {
    None,
    Bytes(&'m [u8]),
    Number(u64),
    Pss([u64; 3]),
    Oaep([u64; 3], &'m [u8]),
    Ecdh1(u64, [&'m [u8]; 2]),
    Ctr(u64, &'m [u8]),
    Gcm { iv: &'m [u8], aad: &'m [u8], tag_bits: u64 },
}

impl<'m> Asked<'m, '_, '_> {
    /// A mechanism, or none.
    pub(super) fn mechanism(&mut self) -> Result<Option<Sent<'m>>> {
        let number = self.request.half()?;
        if number == NO_MECHANISM {
            return Ok(None);
        }
        let number = CK_MECHANISM_TYPE::from(number);
        let form = form(number);
        let there = match (self.connection.version >= SAYS_PARAMETERS, form) {
            (true, Form::Nothing) => false,
            (true, _) => self.request.byte()? != 0,
            (false, _) => true,
        };
        let parameter = if there { parameter(&mut self.request, form)? } else { Parameter::None };
        Ok(Some(Sent { number, parameter }))
    }

    /// A mechanism that has to be there.
    pub(super) fn some_mechanism(&mut self) -> Result<Sent<'m>> {
        self.mechanism()?.ok_or(Error::ARGUMENTS_BAD)
    }
}

fn parameter<'m>(request: &mut Reader<'m>, form: Form) -> Result<Parameter<'m>> {
    let bytes = |request: &mut Reader<'m>| request.counted().map(Option::unwrap_or_default);
    let three = |request: &mut Reader<'m>| {
        Ok::<_, Error>([request.number()?, request.number()?, request.number()?])
    };
    Ok(match form {
        Form::Nothing | Form::Bytes => match bytes(request)? {
            [] => Parameter::None,
            bytes => Parameter::Bytes(bytes),
        },
        Form::Number => Parameter::Number(request.number()?),
        Form::Pss => Parameter::Pss(three(request)?),
        Form::Oaep => Parameter::Oaep(three(request)?, bytes(request)?),
        Form::Ecdh1 => Parameter::Ecdh1(request.number()?, [bytes(request)?, bytes(request)?]),
        Form::Ctr => Parameter::Ctr(request.number()?, bytes(request)?),
        Form::Gcm => {
            let (iv, _bits) = (bytes(request)?, request.number()?);
            Parameter::Gcm { iv, aad: bytes(request)?, tag_bits: request.number()? }
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
        match (row.shape, &self.parameter) {
            (Shape::None, Parameter::None) => Ok(self.number),
            (Shape::None, _) => Err(Error::MECHANISM_PARAM_INVALID),
            _ => Ok(self.number),
        }
    }

    /// The parameter as a handle, if it is a number.
    pub(super) const fn object(&self) -> Option<ObjectHandle> {
        match self.parameter {
            Parameter::Number(number) => Some(ObjectHandle(number)),
            _ => None,
        }
    }

    /// Whether there is a parameter.
    pub(super) const fn has_parameter(&self) -> bool {
        !matches!(self.parameter, Parameter::None)
    }

    /// As the engine takes it.
    ///
    /// # Errors
    /// `CKR_MECHANISM_INVALID`, `CKR_MECHANISM_PARAM_INVALID`
    pub(super) fn chosen(&self) -> Result<(CK_MECHANISM_TYPE, Params)> {
        let row = MechanismRow::find(self.number).ok_or(Error::MECHANISM_INVALID)?;
        let bytes = Bytes::from_slice;
        let params = match (row.shape, &self.parameter) {
            (
                Shape::None | Shape::OptionalIv(_) | Shape::EdDsa | Shape::SignContext,
                Parameter::None,
            ) => Params::None,
            (Shape::Iv(length) | Shape::OptionalIv(length), Parameter::Bytes(iv))
                if iv.len() == length =>
            {
                Params::Iv(bytes(iv))
            }
            (Shape::Ulong, Parameter::Number(number)) => Params::Ulong(*number),
            (Shape::Pss, Parameter::Pss([hash, mgf, salt_length])) => {
                Params::Pss { hash: *hash, mgf: *mgf, salt_length: *salt_length }
            }
            (Shape::Oaep, Parameter::Oaep(numbers, label)) => oaep(*numbers, label)?,
            (Shape::Ecdh1, Parameter::Ecdh1(kdf, [shared, public])) => {
                Params::Ecdh1 { kdf: *kdf, shared: bytes(shared), public: bytes(public) }
            }
            (Shape::PublicValue, Parameter::Bytes(public)) => {
                Params::Ecdh1 { kdf: CKD_NULL, shared: Bytes::new(), public: bytes(public) }
            }
            (Shape::Ctr, Parameter::Ctr(bits, block)) => {
                let block = (*block).try_into().map_err(|_| Error::MECHANISM_PARAM_INVALID)?;
                Params::Ctr { bits: *bits, block }
            }
            (Shape::Gcm, Parameter::Gcm { iv, aad, tag_bits }) => {
                Params::Gcm { iv: bytes(iv), aad: bytes(aad), tag_bits: *tag_bits }
            }
            _ => return Err(Error::MECHANISM_PARAM_INVALID),
        };
        Ok((self.number, params))
    }
}

fn oaep([hash, mgf, source]: [u64; 3], label: &[u8]) -> Result<Params> {
    if !matches!(source, 0 | CKZ_DATA_SPECIFIED) || (source == 0 && !label.is_empty()) {
        return Err(Error::MECHANISM_PARAM_INVALID);
    }
    // Zeros mean the defaults of PKCS #1.
    let hash = if hash == 0 { CKM_SHA_1 } else { hash };
    let mgf = if mgf == 0 { CKG_MGF1_SHA1 } else { mgf };
    Ok(Params::Oaep { hash, mgf, label: Bytes::from_slice(label) })
}
