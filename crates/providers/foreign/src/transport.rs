// SPDX-License-Identifier: Apache-2.0
//! Keys of ours that keys of a token wrap and unwrap, and secrets that these decapsulate. As with derivations, they are objects of
//! a session there for a moment.

use crate::cipher::SEMIBLOCK;
use crate::derivation::{public_length, secret, secret_of};
use crate::mechanism::{Mechanism, Mode};
use crate::{params, value};
use metaslot_ck::attribute::AttributeRow;
use metaslot_ck::*;
use metaslot_client::{Session, Template};
use metaslot_memory::Secret;
use metaslot_spi::provider::{Cipher, Direction, Encapsulation, Place, Wrap};
use metaslot_spi::{Key, Params, Value};

impl Wrap for Mechanism {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        self.may_use(key)?;
        params::mechanism(self.number, params).map(drop)
    }

    fn length(&self, key: &Key, params: &Params, plain: usize) -> Result<usize> {
        let filled = self.filled(plain);
        match self.mode {
            Mode::Asked => self.wrapped(key, params, &vec![0; filled]).map(|wrapped| wrapped.len()),
            Mode::Carried => {
                let modulus = key.attributes().bytes(CKA_MODULUS).map(<[u8]>::len);
                let head = modulus.map_or_else(|| public_length(key), Ok)?;
                Ok(head + filled.next_multiple_of(SEMIBLOCK) + SEMIBLOCK)
            }
            _ => Cipher::length(self, Direction::Forward, key, params, filled),
        }
    }

    fn wrap(&self, key: &Key, params: &Params, plain: &[u8], out: &mut [u8]) -> Result<usize> {
        let mut filled =
            Secret::try_zeroed(self.filled(plain.len())).ok_or(Error::DEVICE_MEMORY)?;
        filled.expose_mut()[..plain.len()].copy_from_slice(plain);
        let wrapped = self.wrapped(key, params, filled.expose())?;
        match wrapped.len() == out.len() {
            true => out.copy_from_slice(&wrapped),
            false => {
                return Err(self.token.lied("a wrapped key of another length than it must have"));
            }
        }
        Ok(wrapped.len())
    }

    fn unwrap(&self, key: &Key, params: &Params, wrapped: &[u8]) -> Result<Secret> {
        let mechanism = params::mechanism(self.number, params)?;
        // Zeros that fill the last block are ours to take off.
        let length = matches!(self.mode, Mode::Blocks(_)).then_some(wrapped.len());
        self.taken_out((key, CKA_UNWRAP_TEMPLATE), length, &|session, by, template| {
            session.unwrap(&mechanism, by, wrapped, template)
        })
    }

    fn place(&self, _: &Params) -> Place {
        match (self.number, self.mode) {
            (CKM_RSA_X_509, _) => Place::Last,
            (_, Mode::Blocks(_)) => Place::First,
            (CKM_AES_KEY_WRAP, _) => Place::Filled(SEMIBLOCK),
            _ => Place::Told,
        }
    }
}

impl Mechanism {
    /// The length with the zeros that a module would not add to what it takes for a key of no type.
    fn filled(&self, plain: usize) -> usize {
        match (self.number, self.mode) {
            (_, Mode::Blocks(block)) => plain.next_multiple_of(block),
            (CKM_AES_KEY_WRAP, _) => plain.next_multiple_of(SEMIBLOCK),
            _ => plain,
        }
    }

    fn wrapped(&self, key: &Key, params: &Params, plain: &[u8]) -> Result<Vec<u8>> {
        let (row, mechanism) = (Self::row(key)?, params::mechanism(self.number, params)?);
        let template = standing_for(key).bool(CKA_EXTRACTABLE, true).bytes(CKA_VALUE, plain);
        self.token.with(|session: &Session| {
            let by = self.token.handle(session, row)?;
            let key = session.create(&template)?;
            let wrapped = session.wrap(&mechanism, by, key);
            session.destroy(key)?;
            wrapped
        })
    }
}

/// What stands in the module for a key that is wrapped there. It has what the wrapping key wants (`CKA_WRAP_TEMPLATE`), as the wrapped
/// one has.
fn standing_for(by: &Key) -> Template {
    let Some(Value::Template(wanted)) = by.attributes().get(CKA_WRAP_TEMPLATE) else {
        return secret();
    };
    let of_secrets = wanted.ulong(CKA_CLASS).is_none_or(|class| class == CKO_SECRET_KEY);
    let kind = wanted.ulong(CKA_KEY_TYPE).filter(|_| of_secrets);
    let said = [CKA_CLASS, CKA_KEY_TYPE, CKA_EXTRACTABLE, CKA_TOKEN];
    let may_be_said = |attribute| {
        let row = AttributeRow::of(attribute, CKO_SECRET_KEY);
        !said.contains(&attribute) && row.is_some_and(|row| row.may(attribute::CREATE))
    };
    let mut template = kind.map_or_else(secret, secret_of);
    let wanted = wanted.iter().filter(|(attribute, _)| may_be_said(*attribute));
    template.extend(wanted.map(|(attribute, value)| (attribute, value::encoded(value))));
    template
}

impl Encapsulation for Mechanism {
    fn check(&self, _: Direction, _: &Key, params: &Params) -> Result<()> {
        params::mechanism(self.number, params).map(drop)
    }

    fn ciphertext_length(&self, key: &Key, _: &Params) -> Result<usize> {
        // FIPS 203 §8.
        match key.attributes().ulong(CKA_PARAMETER_SET) {
            Some(CKP_ML_KEM_512) => Ok(768),
            Some(CKP_ML_KEM_768) => Ok(1088),
            Some(CKP_ML_KEM_1024) => Ok(1568),
            _ => key.bytes(CKA_MODULUS).map(<[u8]>::len),
        }
    }

    fn natural_length(&self, _: &Key, _: &Params) -> Option<usize> {
        (!self.carries()).then_some(32)
    }

    fn gives(&self, key: &Key, params: &Params, length: usize) -> bool {
        match self.natural_length(key, params) {
            Some(natural) => length == natural,
            None => {
                self.ciphertext_length(key, params).is_ok_and(|most| (1..most).contains(&length))
            }
        }
    }

    fn carries(&self) -> bool {
        self.number != CKM_ML_KEM
    }

    /// A public key has nothing to keep: others do it.
    fn encapsulate(&self, _: &Key, _: &Params, _: &mut [u8], _: &mut [u8]) -> Result<()> {
        Err(Error::MECHANISM_INVALID)
    }

    fn decapsulate(
        &self,
        key: &Key,
        params: &Params,
        length: Option<usize>,
        ciphertext: &[u8],
    ) -> Result<Secret> {
        if ciphertext.len() != self.ciphertext_length(key, params)? {
            return Err(Error::WRAPPED_KEY_LEN_RANGE);
        }
        let mechanism = params::mechanism(self.number, params)?;
        self.taken_out(
            (key, CKA_DECAPSULATE_TEMPLATE),
            length,
            &|session: &Session, by, template: &Template| {
                session.decapsulate(&mechanism, by, ciphertext, template)
            },
        )
    }
}
