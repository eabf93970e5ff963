// SPDX-License-Identifier: Apache-2.0
//! The keys of IKE (RFC 2409, RFC 7296) by an HMAC, or by AES (RFC 4434, RFC 4615): PKCS#11 3.2, "IKE mechanisms".

use crate::prf::{Keyed, Prf};
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::buffer::Buffer;
use metaslot_spi::provider::{Algorithm, Derive, Keys};
use metaslot_spi::{Key, Params};

pub(crate) const ROWS: [Algorithm; 4] = [
    row(CKM_IKE2_PRF_PLUS_DERIVE, &Step::Plus),
    row(CKM_IKE_PRF_DERIVE, &Step::First),
    row(CKM_IKE1_PRF_DERIVE, &Step::Once),
    row(CKM_IKE1_EXTENDED_DERIVE, &Step::Extended),
];

const fn row(mechanism: CK_MECHANISM_TYPE, step: &'static Step) -> Algorithm {
    Algorithm { mechanism, key_sizes: (1, 8192), derive: Some(step), ..Algorithm::NONE }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Step {
    /// One MAC, whole.
    First,
    /// One MAC, or what of it is wanted.
    Once,
    /// MACs of the one before and the message (RFC 2409, appendix B).
    Extended,
    /// The same with a number behind the message (RFC 7296 §2.13).
    Plus,
}

/// The decoded parameter.
struct Fields<'a> {
    prf: Prf,
    data: &'a [u8],
    data_as_key: bool,
    before: &'a [ObjectHandle],
}

fn fields(params: &Params) -> Result<Fields<'_>> {
    let Params::Ike { prf, data, data_as_key, before } = params else {
        return Err(Error::MECHANISM_PARAM_INVALID);
    };
    let prf = Prf::find(*prf).ok_or(Error::MECHANISM_PARAM_INVALID)?;
    // §6.64.3: the base is the message of a first key, and the key of one that follows another.
    if *data_as_key && !before.is_empty() {
        return Err(Error::ARGUMENTS_BAD);
    }
    Ok(Fields { prf, data, data_as_key: *data_as_key, before })
}

impl Step {
    /// MACs one after the other, each of the one before and `message`, the first of this alone.
    fn chain(self, (prf, key): (Prf, &[u8]), message: &[u8], out: &mut [u8]) -> Result<()> {
        let (prf, length) = (Keyed::of_any(prf, key)?, prf.length());
        let mut last: &[u8] = &[];
        let mut rest = out;
        for number in 1..=u8::MAX {
            let (block, others) = rest.split_at_mut(rest.len().min(length));
            let number = [number];
            let tail: &[u8] = match self {
                Self::Plus => &number,
                // Nothing to say is said by a zero.
                Self::Extended if message.is_empty() && last.is_empty() => &[0],
                _ => &[],
            };
            prf.mac(&[last, message, tail], block)?;
            if others.is_empty() {
                break;
            }
            (last, rest) = (block, others);
        }
        Ok(())
    }
}

/// Whether this is a key of the PRF, whose type is that of its MAC (§6.64.3), or a generic secret's: by AES, too, it is of any length.
fn is_of_prf(key: &Key, params: &Params) -> bool {
    let Params::Ike { prf, .. } = params else { return false };
    let of_mac = |row: &MechanismRow| row.keys.contains(&key.key_type());
    key.key_type() == CKK_GENERIC_SECRET || MechanismRow::find(*prf).is_some_and(of_mac)
}

impl Derive for Step {
    fn check(&self, key: &Key, params: &Params) -> Result<()> {
        let fields = fields(params)?;
        // What is agreed on is the message of a first key.
        let fits = match fields.data_as_key {
            true => key.key_type() == CKK_GENERIC_SECRET,
            false => is_of_prf(key, params),
        };
        if !fits {
            return Err(Error::KEY_TYPE_INCONSISTENT);
        }
        key.secret(CKA_VALUE).map(drop)
    }

    /// That of a chain is always said (§6.64.5, §6.64.6).
    fn natural_length(&self, _: &Key, params: &Params) -> Option<usize> {
        let fields = fields(params).ok().filter(|_| matches!(self, Self::First | Self::Once));
        fields.map(|fields| fields.prf.length())
    }

    fn derive(
        &self,
        key: &Key,
        params: &Params,
        lengths: &[usize],
        keys: &dyn Keys,
    ) -> Result<Vec<Secret>> {
        let fields = fields(params)?;
        let [length] = lengths else { return Err(Error::MECHANISM_PARAM_INVALID) };
        let value = key.secret(CKA_VALUE)?;
        let once = fields.prf.length();
        let lengths = match self {
            Self::First => once..=once,
            Self::Once => 0..=once,
            Self::Extended | Self::Plus => 0..=255 * once,
        };
        if !lengths.contains(length) {
            return Err(Error::KEY_SIZE_RANGE);
        }
        let mut message = Buffer::default();
        for (at, handle) in fields.before.iter().enumerate() {
            let key = keys.key(*handle)?;
            // What is agreed on comes last; any other key, and a seed, may be of any type.
            let agreed = *self != Self::Plus && at + 1 == fields.before.len();
            if agreed && key.key_type() != CKK_GENERIC_SECRET {
                return Err(Error::KEY_TYPE_INCONSISTENT);
            }
            message.push(key.secret(CKA_VALUE)?)?;
        }
        message.push(fields.data)?;
        let (by, message) = match fields.data_as_key {
            true => (message.bytes(), value),
            false => (value, message.bytes()),
        };
        // A key that is long enough is not extended.
        if *self == Self::Extended && message.is_empty() && *length <= value.len() {
            return Ok(vec![Secret::copy_of(&value[..*length])]);
        }
        let mut out = Secret::try_zeroed(*length).ok_or(Error::DEVICE_MEMORY)?;
        self.chain((fields.prf, by), message, out.expose_mut())?;
        Ok(vec![out])
    }
}
