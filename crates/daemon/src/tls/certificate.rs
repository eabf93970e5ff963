// SPDX-License-Identifier: Apache-2.0
//! What stands in a certificate.

use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::{CertificateError, Error};
use webpki::{EndEntityCert, KeyUsage};

/// Names of hosts, and its URI, of which a SPIFFE certificate has one: of several none counts.
pub(super) fn names_of(certificate: &CertificateDer<'_>) -> Result<Vec<String>, Error> {
    let parsed = EndEntityCert::try_from(certificate);
    let parsed = parsed.map_err(|_| Error::from(CertificateError::BadEncoding))?;
    let mut names: Vec<_> = parsed.valid_dns_names().map(str::to_owned).collect();
    let uris: Vec<_> = parsed.valid_uri_names().collect();
    // What is no URI could be taken for a host's name.
    names.extend(
        uris.iter()
            .filter(|uri| uris.len() == 1 && uri.contains("://"))
            .map(|uri| String::from(*uri)),
    );
    Ok(names)
}

/// Why an own certificate would be refused by every peer, whatever authority vouches for it.
pub(super) fn lack(
    certificate: &CertificateDer<'_>,
    usage: KeyUsage,
    provider: &CryptoProvider,
) -> Option<&'static str> {
    use webpki::Error as Wrong;
    let Ok(parsed) = EndEntityCert::try_from(certificate) else { return Some("cannot be read") };
    // Without an authority none vouches for it: what is wrong with itself comes first.
    let known = provider.signature_verification_algorithms.all;
    let found = parsed.verify_for_usage(known, &[], &[], UnixTime::now(), usage, None, None).err();
    match found {
        Some(Wrong::CertExpired { .. }) => Some("has expired"),
        Some(Wrong::CertNotValidYet { .. }) => Some("is not valid yet"),
        Some(Wrong::CaUsedAsEndEntity) => Some("is an authority's (CA:TRUE)"),
        Some(Wrong::RequiredEkuNotFoundContext(_)) => {
            Some("is for another use (extended key usage)")
        }
        _ if names_of(certificate).is_ok_and(|names| names.is_empty()) => {
            Some("names no host and no URI (subjectAltName)")
        }
        _ => None,
    }
}
