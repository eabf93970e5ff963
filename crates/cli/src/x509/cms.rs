// SPDX-License-Identifier: Apache-2.0
//! Signatures beside a file in CMS (RFC 5652), which was PKCS #7: with the signer's certificate, and the time.

use super::build::How;
use super::{Certificate, Time};
use crate::encoding::der::{self, CONSTRUCTED, OCTET_STRING, SEQUENCE, SET};
use crate::failure::{Failure, Result};
use metaslot_ck::*;

const DATA: &[u32] = &[1, 2, 840, 113_549, 1, 7, 1];
const SIGNED_DATA: &[u32] = &[1, 2, 840, 113_549, 1, 7, 2];
const CONTENT_TYPE: &[u32] = &[1, 2, 840, 113_549, 1, 9, 3];
const MESSAGE_DIGEST: &[u32] = &[1, 2, 840, 113_549, 1, 9, 4];
const SIGNING_TIME: &[u32] = &[1, 2, 840, 113_549, 1, 9, 5];

/// What digests the file, by the hash of the signature; Ed25519, ML-DSA and SLH-DSA have none, and SHA-512 then (RFC 8419, RFC 9882).
const DIGESTS: &[(&str, CK_MECHANISM_TYPE, &[u32])] = &[
    ("sha256", CKM_SHA256, &[2, 16, 840, 1, 101, 3, 4, 2, 1]),
    ("sha384", CKM_SHA384, &[2, 16, 840, 1, 101, 3, 4, 2, 2]),
    ("sha512", CKM_SHA512, &[2, 16, 840, 1, 101, 3, 4, 2, 3]),
    ("none", CKM_SHA512, &[2, 16, 840, 1, 101, 3, 4, 2, 3]),
];

/// The mechanism that digests the file, and its `AlgorithmIdentifier`.
pub(crate) fn digest(hash: &str) -> Result<(CK_MECHANISM_TYPE, Vec<u8>)> {
    let row = DIGESTS.iter().find(|row| row.0 == hash);
    let (_, mechanism, identifier) =
        row.ok_or_else(|| Failure::usage(format!("{hash} is no hash for this")))?;
    Ok((*mechanism, der::sequence(&[&der::identifier(identifier)])))
}

fn attribute(identifier: &[u32], value: &[u8]) -> Vec<u8> {
    der::sequence(&[&der::identifier(identifier), &der::element(SET, value)])
}

/// `SignedData` over a file of this digest; the first certificate is the signer's.
pub(crate) fn detached(
    certificates: &[&[u8]],
    (algorithm, value): (&[u8], &[u8]),
    how: How<'_>,
) -> Result<Vec<u8>> {
    let signer = certificates.first().and_then(|der| Certificate::read(der));
    let signer = signer.ok_or_else(|| Failure::failed("that is no certificate"))?;
    let mut attributes = [
        attribute(CONTENT_TYPE, &der::identifier(DATA)),
        attribute(SIGNING_TIME, &Time::from_now(0).encoded()),
        attribute(MESSAGE_DIGEST, &der::element(OCTET_STRING, value)),
    ];
    // DER has the elements of a set in order.
    attributes.sort();
    let attributes = attributes.concat();
    let signature = how.signature(&der::element(SET, &attributes))?;
    let info = der::sequence(&[
        &der::integer(&[1]),
        &der::sequence(&[signer.issuer, signer.serial_number]),
        algorithm,
        &der::element(CONSTRUCTED, &attributes),
        &how.algorithm.encoded(),
        &der::element(OCTET_STRING, &signature),
    ]);
    let data = der::sequence(&[
        &der::integer(&[1]),
        &der::element(SET, algorithm),
        &der::sequence(&[&der::identifier(DATA)]),
        &der::element(CONSTRUCTED, &certificates.concat()),
        &der::element(SET, &info),
    ]);
    let explicit = der::element(CONSTRUCTED, &data);
    Ok(der::element(SEQUENCE, &[der::identifier(SIGNED_DATA), explicit].concat()))
}
