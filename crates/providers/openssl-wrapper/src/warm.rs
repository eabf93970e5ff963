// SPDX-License-Identifier: Apache-2.0
//! What the library fetches and keeps at an operation's first use is fetched at its start: later nothing that threads share is
//! written, so that no fork finds a lock of it held.

use crate::Result;
use crate::hash::Hash;
use crate::params::{Number, Params};
use crate::pkey::Pkey;

/// Begins an operation of each kind.
pub(crate) fn everything() -> Result<()> {
    rsa()
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
