// SPDX-License-Identifier: Apache-2.0
//! What the library fetches and keeps at an operation's first use is fetched at its start: later nothing that threads share is
//! written, so that no fork finds a lock of it held.

use crate::ec::{EcKey, MAX_SIGNATURE};
use crate::hash::Hash;
use crate::params::{Number, Params};
use crate::pkey::Pkey;
use crate::start::Methods;
use crate::{Result, number_key};

/// Begins an operation of each kind.
pub(crate) fn everything(methods: &Methods) -> Result<()> {
    rsa()?;
    ec()?;
    number_key::warm(methods)
}

fn ec() -> Result<()> {
    let (key, mut signature) = (EcKey::of_scalar(c"secp256r1", &[1])?, [0; MAX_SIGNATURE]);
    let length = key.sign(&[1; 32], &mut signature)?;
    key.verify(&[1; 32], &signature[..length])?;
    key.agree(&key, &mut [0; 32])
}

fn rsa() -> Result<()> {
    // A number as long as a modulus is enough for operations that are not carried out.
    let [n, e] = [&[0xc5; 64][..], &[1, 0, 1]].map(Number::new);
    let key = Pkey::new(c"RSA", false, Params::new().number(c"n", &n).number(c"e", &e))?;
    for hash in Hash::ALL {
        key.warm(Params::new().text(c"pad-mode", c"pkcs1").text(c"digest", hash.name()))?;
    }
    key.warm_encryption()
}
