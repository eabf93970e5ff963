// SPDX-License-Identifier: Apache-2.0
//! What mechanisms of FIPS 204 and FIPS 205 make of their data before it is signed.

use metaslot_awslc_wrapper::digest::Hash;
use metaslot_awslc_wrapper::prehash::Function;
use metaslot_ck::{Error, Result};
use metaslot_spi::{Params, hashes};

/// One of three forms.
#[derive(Clone, Copy, Debug)]
pub(super) enum Form {
    /// Nothing: the data is the message.
    Pure,
    /// The data is a digest, and the parameter says of which function.
    Digested,
    /// A digest.
    Hashed(Function),
}

impl Form {
    /// The function whose digest is signed.
    pub(super) fn function(self, params: &Params) -> Result<Option<Function>> {
        let function = match (self, params) {
            (Self::Pure, _) => return Ok(None),
            (Self::Hashed(function), _) => Some(function),
            (Self::Digested, Params::HashSignContext { hash, .. }) => {
                let function = hashes::place(*hash).map(|place| Function::Hash(Hash::ALL[place]));
                function.filter(|function| function.identifier().is_some())
            }
            (Self::Digested, _) => None,
        };
        function.map(Some).ok_or(Error::MECHANISM_PARAM_INVALID)
    }
}
