// SPDX-License-Identifier: Apache-2.0
//! ECDH with one key pair a side (PKCS#11 3.2 §6.3.17 and §6.3.18) on the short Weierstrass curves and with X25519 and X448, and the
//! key derivation functions after it.

use super::montgomery;
use super::prime::{FLAGS, Library, SIZES, prepared};
use crate::digest;
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::agreement::{self, Agreement};
use metaslot_spi::prime_key::Library as _;
use metaslot_spi::provider::{Algorithm, Derive, Keys, checked};
use metaslot_spi::{Key, Params};

const fn row(mechanism: CK_MECHANISM_TYPE, derive: &'static Ecdh) -> Algorithm {
    Algorithm {
        mechanism,
        key_sizes: SIZES,
        derive: Some(derive),
        extra_flags: FLAGS,
        ..Algorithm::NONE
    }
}

pub(super) const ROWS: [Algorithm; 2] = checked([
    row(CKM_ECDH1_DERIVE, &Ecdh { cofactor: false }),
    row(CKM_ECDH1_COFACTOR_DERIVE, &Ecdh { cofactor: true }),
]);

/// X25519 and X448 clear their cofactor either way.
#[derive(Debug)]
struct Ecdh {
    cofactor: bool,
}

fn agree(key: &Key, cofactor: bool, peer: &[u8]) -> Result<Secret> {
    if key.key_type() == CKK_EC_MONTGOMERY {
        return montgomery::agree(key, peer);
    }
    let (curve, key) = prepared(key)?;
    let peer = Library::public(curve, curve.point(peer)).ok_or(Error::MECHANISM_PARAM_INVALID)?;
    let mut secret = Secret::zeroed(curve.length());
    key.agree(&peer, cofactor, secret.expose_mut()).map_err(|_| Error::MECHANISM_PARAM_INVALID)?;
    Ok(secret)
}

/// How long a secret is that this key agrees on.
fn length(key: &Key) -> Result<usize> {
    match key.key_type() {
        CKK_EC => prepared(key).map(|(curve, _)| curve.length()),
        CKK_EC_MONTGOMERY => montgomery::length(key),
        _ => Err(Error::KEY_TYPE_INCONSISTENT),
    }
}

impl Derive for Ecdh {
    fn check(&self, key: &Key, params: &Params) -> Result<()> {
        key.check_class(CKO_PRIVATE_KEY)?;
        Agreement::read(params)?;
        length(key).map(|_| ())
    }

    fn natural_length(&self, key: &Key, params: &Params) -> Option<usize> {
        Agreement::read(params).ok().filter(|agreement| agreement.is_plain())?;
        length(key).ok()
    }

    fn derive(
        &self,
        key: &Key,
        params: &Params,
        lengths: &[usize],
        _: &dyn Keys,
    ) -> Result<Vec<Secret>> {
        let agreement = Agreement::read(params)?;
        agreement.derive(lengths, || agree(key, self.cofactor, agreement.public), expand)
    }
}

fn expand(
    mechanism: CK_MECHANISM_TYPE,
    length: usize,
    head: &[u8],
    tail: &[&[u8]],
) -> Result<Secret> {
    let row = digest::ROWS.iter().find(|row| row.mechanism == mechanism);
    let digest = row.and_then(|row| row.digest).ok_or(Error::MECHANISM_PARAM_INVALID)?;
    agreement::expand(digest, length, head, tail)
}
