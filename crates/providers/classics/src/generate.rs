// SPDX-License-Identifier: Apache-2.0
//! `C_GenerateKey`: random bytes. Parity, which makes a DES key of them, is the engine's.

use crate::mechanism::Use;
use metaslot_awslc_wrapper::random;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::lengths::Lengths;
use metaslot_spi::provider::Generate;
use metaslot_spi::{Attributes, NewObject, Params, Value};

impl Generate for Use {
    fn generate(&self, params: &Params, template: &Attributes) -> Result<NewObject> {
        random_key(template.ulong(CKA_KEY_TYPE).and_then(Lengths::of), params, template)
    }
}

/// A key of one of these lengths.
pub(crate) fn random_key(
    lengths: Option<Lengths>,
    params: &Params,
    template: &Attributes,
) -> Result<NewObject> {
    let Params::None = params else { return Err(Error::MECHANISM_PARAM_INVALID) };
    let lengths = lengths.ok_or(Error::TEMPLATE_INCONSISTENT)?;
    let length = lengths.choose(template.ulong(CKA_VALUE_LEN))?;
    let mut value = Secret::zeroed(usize::try_from(length).map_err(|_| Error::KEY_SIZE_RANGE)?);
    random::fill(value.expose_mut()).map_err(|_| Error::DEVICE_ERROR)?;
    let mut made = NewObject::default();
    made.attributes.set(CKA_VALUE_LEN, Value::Ulong(length));
    made.secrets.set(CKA_VALUE, value);
    Ok(made)
}
