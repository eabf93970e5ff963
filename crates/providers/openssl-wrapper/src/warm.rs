// SPDX-License-Identifier: Apache-2.0
//! What the library fetches and keeps at an operation's first use is fetched at its start: later nothing that threads share is
//! written, so that no fork finds a lock of it held.

use crate::Result;
use crate::curve::{Curve, EdDsa, MAX_SIGNATURE};
use crate::hash::Hash;
use crate::params::{Number, Params};
use crate::pkey::Pkey;
use crate::raw::EVP_SIGNATURE;
use std::ptr::NonNull;

/// Begins an operation of each kind.
pub(crate) fn everything(algorithm: impl Fn(EdDsa) -> NonNull<EVP_SIGNATURE>) -> Result<()> {
    rsa()?;
    ec()?;
    [Curve::X25519, Curve::X448].into_iter().try_for_each(agreement)?;
    EdDsa::ALL.into_iter().try_for_each(|form| eddsa(form, algorithm(form)))
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

fn ec() -> Result<()> {
    let scalar = Number::new(&[1]);
    let params = Params::new().text(c"group", c"prime256v1").number(c"priv", &scalar);
    let (key, mut signature) = (Pkey::new(c"EC", true, params)?, [0; 80]);
    key.check_point()?;
    key.check_scalar()?;
    let length = key.sign(Params::new(), &[1; 32], &mut signature)?;
    key.verify(Params::new(), &[1; 32], &signature[..length])?;
    key.agree(Params::new(), &key, &mut [0; 32])
}

fn key(curve: Curve) -> Result<Pkey> {
    let private = &[1; 64][..curve.length()];
    Pkey::new(curve.name(), true, Params::new().bytes(c"priv", private))
}

fn agreement(curve: Curve) -> Result<()> {
    let key = key(curve)?;
    key.agree(Params::new(), &key, &mut [0; 64][..curve.length()])
}

fn eddsa(form: EdDsa, algorithm: NonNull<EVP_SIGNATURE>) -> Result<()> {
    let params = || match form {
        EdDsa::Ed25519 => Params::new(),
        _ => Params::new().bytes(c"context-string", &[1]),
    };
    let (key, mut signature) = (key(form.curve())?, [0; MAX_SIGNATURE]);
    let length = key.sign_message(algorithm, params(), &[], &mut signature)?;
    key.verify_message(algorithm, params(), &[], &signature[..length])
}
