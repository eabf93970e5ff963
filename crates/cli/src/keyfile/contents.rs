// SPDX-License-Identifier: Apache-2.0
//! What is found in a file.

use super::passphrase::{Opener, wrong_passphrase};
use super::private::{self, Pair, damaged};
use crate::encoding::der::{self, OCTET_STRING, SEQUENCE};
use crate::failure::{Failure, Result};

/// What a file has.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) keys: Vec<Pair>,
    pub(crate) certificates: Vec<Certificate>,
    /// Parts that are neither.
    pub(crate) others: usize,
}

impl Contents {
    /// Leaves out the public half of a key that is there itself. A private half may be written without saying which its public
    /// one is; where it is the only one, it is taken to be that which stands beside it, and the token sees whether it is.
    pub(super) fn join_halves(&mut self) {
        let (privates, publics): (Vec<Pair>, Vec<Pair>) =
            self.keys.drain(..).partition(|pair| pair.private.is_some());
        self.keys = privates;
        for public in publics {
            match &mut *self.keys {
                [only] if only.public.is_none() && only.kind == public.kind => {
                    only.public = public.public;
                }
                keys if keys.iter().any(|key| key.public == public.public) => {}
                _ => self.keys.push(public),
            }
        }
    }
}

/// A certificate, and what the file calls it.
#[derive(Debug)]
pub(crate) struct Certificate {
    pub(crate) der: Vec<u8>,
    pub(crate) name: Option<String>,
}

/// `EncryptedPrivateKeyInfo`
pub(super) fn shrouded(opener: &Opener<'_>, der: &[u8]) -> Result<Pair> {
    let parts = || {
        let mut rest = der::take(&mut &*der, SEQUENCE)?;
        let parts = (der::next(&mut rest)?.whole, der::take(&mut rest, OCTET_STRING)?);
        rest.is_empty().then_some(parts)
    };
    let (algorithm, sealed) = parts().ok_or_else(|| Failure::failed(damaged("PKCS #8 key")))?;
    let opened = opener.decrypted(algorithm, sealed)?;
    // Padding may be right by chance, and then nothing else is.
    match opened.expose().first() {
        Some(&SEQUENCE) => private::pkcs8(opened.expose()).map_err(Failure::failed),
        _ => Err(wrong_passphrase()),
    }
}
