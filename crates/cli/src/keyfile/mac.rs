// SPDX-License-Identifier: Apache-2.0
//! Whether a PKCS #12 file is as it was written (RFC 7292, 4; RFC 9579).

use super::diversified::{AUTHENTICATION, Diversified, Hash, SHA1};
use super::passphrase::{
    Opener, count, few, hmac, identified, is, is_nothing, pbkdf2, wrong_passphrase,
};
use super::private::damaged;
use crate::encoding::der::{self, OCTET_STRING, SEQUENCE};
use crate::failure::{Failure, Result};
use crate::personality::material::{Purpose, imported};
use metaslot_ck::*;
use metaslot_memory::Secret;
use std::ops::RangeInclusive;

const PBMAC1: &[u32] = &[1, 2, 840, 113_549, 1, 5, 14];

/// A shorter key is guessed without the passphrase (RFC 9579, 9), and HMAC makes nothing of a longer one.
const KEYS: RangeInclusive<u64> = 20..=128;

const HASHES: &[Hash] = &[
    SHA1,
    Hash {
        identifier: &[2, 16, 840, 1, 101, 3, 4, 2, 1],
        mechanism: CKM_SHA256,
        mac: CKM_SHA256_HMAC,
        result: 32,
        block: 64,
    },
    Hash {
        identifier: &[2, 16, 840, 1, 101, 3, 4, 2, 2],
        mechanism: CKM_SHA384,
        mac: CKM_SHA384_HMAC,
        result: 48,
        block: 128,
    },
    Hash {
        identifier: &[2, 16, 840, 1, 101, 3, 4, 2, 3],
        mechanism: CKM_SHA512,
        mac: CKM_SHA512_HMAC,
        result: 64,
        block: 128,
    },
];

impl Opener<'_> {
    /// Whether the MAC of a PKCS #12 file is right: `MacData`, and what it is over. Files without a passphrase have an
    /// empty one.
    pub(super) fn authenticate(&self, mac_data: &[u8], content: &[u8]) -> Result<()> {
        if self.passphrase.get().is_none() {
            let nothing = Secret::zeroed(0);
            if self.authentic(&nothing, mac_data, content)? {
                self.passphrase.get_or_init(|| nothing);
                return Ok(());
            }
        }
        match self.authentic(self.passphrase()?, mac_data, content)? {
            true => Ok(()),
            false => Err(wrong_passphrase()),
        }
    }

    fn authentic(&self, passphrase: &Secret, mac_data: &[u8], content: &[u8]) -> Result<bool> {
        let parts = mac_parts(mac_data).ok_or_else(cut)?;
        let (identifier, params) = identified(parts.algorithm).ok_or_else(cut)?;
        let (key, mechanism) = match is(identifier, PBMAC1) {
            true => self.pbmac1(passphrase, params)?,
            false if is_nothing(params) => self.of_pkcs12(passphrase, identifier, &parts)?,
            false => return Err(cut()),
        };
        let purpose = Purpose { key_type: CKK_GENERIC_SECRET, usage: CKA_VERIFY, lengths: &[] };
        let session = self.session()?;
        let handle = imported(session, &key, purpose)?;
        let verified = session.verify(&mechanism.into(), handle, content, parts.mac);
        session.destroy(handle)?;
        match verified {
            Ok(()) => Ok(true),
            Err(error) => match error.code {
                Error::SIGNATURE_INVALID | Error::SIGNATURE_LEN_RANGE => Ok(false),
                _ => Err(error.into()),
            },
        }
    }

    /// The key and the mechanism of RFC 7292.
    fn of_pkcs12(
        &self,
        passphrase: &Secret,
        identifier: &[u8],
        parts: &MacParts<'_>,
    ) -> Result<(Secret, CK_MECHANISM_TYPE)> {
        let hash = HASHES.iter().find(|hash| is(identifier, hash.identifier));
        let hash = hash.ok_or_else(unsupported)?;
        let (salt, iterations) = (parts.salt, few(parts.iterations)?);
        let input = Diversified { id: AUTHENTICATION, salt, iterations, length: hash.result };
        Ok((self.diversified(hash, passphrase, &input)?, hash.mac))
    }

    /// Those of RFC 9579: the salt and the iterations outside say nothing, and the length of the key must be there.
    fn pbmac1(&self, passphrase: &Secret, params: &[u8]) -> Result<(Secret, CK_MECHANISM_TYPE)> {
        let mut params = der::take(&mut &*params, SEQUENCE).ok_or_else(cut)?;
        let derivation = pbkdf2(der::next(&mut params).ok_or_else(cut)?.whole)?;
        let (_, mechanism, _) =
            hmac(der::next(&mut params).ok_or_else(cut)?.whole).ok_or_else(unsupported)?;
        let length = derivation.length.filter(|length| KEYS.contains(length)).ok_or_else(|| {
            Failure::failed("the key of its MAC has no length from 20 to 128 bytes")
        })?;
        Ok((self.stretched(passphrase, &derivation, length)?, *mechanism))
    }
}

fn cut() -> Failure {
    Failure::failed(damaged("PKCS #12 form"))
}

fn unsupported() -> Failure {
    Failure::failed("the algorithm of its authentication is not supported")
}

/// `MacData`
struct MacParts<'a> {
    algorithm: &'a [u8],
    mac: &'a [u8],
    salt: &'a [u8],
    iterations: u64,
}

fn mac_parts(mac_data: &[u8]) -> Option<MacParts<'_>> {
    let mut rest = der::take(&mut &*mac_data, SEQUENCE)?;
    let mut info = der::take(&mut rest, SEQUENCE)?;
    let algorithm = der::next(&mut info)?.whole;
    let mac = der::take(&mut info, OCTET_STRING)?;
    let salt = der::take(&mut rest, OCTET_STRING)?;
    let iterations = if rest.is_empty() { 1 } else { count(&mut rest)? };
    Some(MacParts { algorithm, mac, salt, iterations })
}
