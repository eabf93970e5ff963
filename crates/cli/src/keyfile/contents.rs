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
