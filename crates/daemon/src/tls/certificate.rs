// SPDX-License-Identifier: Apache-2.0
//! What stands in a certificate.

use metaslot_spi::der::{Malformed, Reader, tag};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::{CertificateError, Error};
use webpki::{EndEntityCert, KeyUsage};

/// Names of hosts, and its URI, of which a SPIFFE certificate has one: of several none counts.
pub(super) fn names_of(certificate: &CertificateDer<'_>) -> Result<Vec<String>, Error> {
    let parsed = EndEntityCert::try_from(certificate);
    let parsed = parsed.map_err(|_| Error::from(CertificateError::BadEncoding))?;
    let mut names: Vec<_> = parsed.valid_dns_names().map(str::to_owned).collect();
    // What is no URI could be taken for a host's name.
    let uris = parsed.valid_uri_names().filter(|uri| uri.contains("://"));
    if count_of(&[URI], certificate) == Ok(1) {
        names.extend(uris.map(str::to_owned));
    }
    Ok(names)
}

/// The object identifier of the subject's alternative names (RFC 5280 §4.2.1.6), 2.5.29.17.
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];

/// Kinds of names (RFC 5280 §4.2.1.6, `GeneralName`).
const DNS_NAME: u8 = tag::primitive(2);
const URI: u8 = tag::primitive(6);
const IP_ADDRESS: u8 = tag::primitive(7);

/// How many names of one of these kinds it has, also those that are no text.
fn count_of(kinds: &[u8], certificate: &[u8]) -> Result<usize, Malformed> {
    let (extensions, boolean) = (tag::constructed(3), 0x01);
    let mut fields = Reader::new(certificate).sequence()?.sequence()?;
    while fields.peek().is_some_and(|field| field != extensions) {
        fields.element(fields.peek().ok_or(Malformed)?)?;
    }
    let mut extensions = Reader::new(fields.element(extensions)?).sequence()?;
    let mut count = 0;
    while extensions.peek().is_some() {
        let mut extension = extensions.sequence()?;
        if extension.element(tag::OID)? != ALTERNATIVE_NAMES {
            continue;
        }
        if extension.peek() == Some(boolean) {
            extension.element(boolean)?;
        }
        let mut names = Reader::new(extension.element(tag::OCTET_STRING)?).sequence()?;
        while let Some(kind) = names.peek() {
            names.element(kind)?;
            count += usize::from(kinds.contains(&kind));
        }
    }
    Ok(count)
}

/// Why every peer would refuse this certificate of our own, whatever authority vouches for it. As a client it needs a name that a
/// `[[client]]` section can say; as a server one that a client can have connected to, such as an address, or one that a wildcard
/// stands for (RFC 9525 §6.3).
pub(super) fn lack(
    certificate: &CertificateDer<'_>,
    usage: KeyUsage,
    provider: &CryptoProvider,
) -> Option<&'static str> {
    use webpki::Error as Wrong;
    let parsed = match EndEntityCert::try_from(certificate) {
        Ok(parsed) => parsed,
        Err(Wrong::UnsupportedCertVersion) => return Some("is of version 1, which has no names"),
        Err(_) => return Some("cannot be read"),
    };
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
        _ if usage == KeyUsage::server_auth() && names_a_server(certificate) => None,
        _ => nameless(certificate),
    }
}

/// Whether a client can look for one of its names.
fn names_a_server(certificate: &[u8]) -> bool {
    count_of(&[DNS_NAME, IP_ADDRESS], certificate).is_ok_and(|count| count > 0)
}

/// Why none of its names is one.
fn nameless(certificate: &CertificateDer<'_>) -> Option<&'static str> {
    let names = names_of(certificate).ok()?;
    let is_wildcard = |name: &String| name.starts_with("*.");
    match (names.is_empty(), count_of(&[URI], certificate).unwrap_or(0)) {
        (true, 2..) => Some("names several URIs, of which none counts (subjectAltName)"),
        (true, _) => Some("names no host and no URI (subjectAltName)"),
        (false, _) if names.iter().all(is_wildcard) => {
            Some("names hosts by a wildcard alone, which is no name (subjectAltName)")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;

    #[test]
    fn a_second_uri_that_is_no_text_is_one() {
        let openssl = "/usr/bin/openssl";
        if !fs::exists(openssl).unwrap_or(false) {
            return;
        }
        let of = |names: &str| {
            let names = format!("subjectAltName={names}");
            let mut made = Command::new(openssl);
            made.args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes".split(' '));
            made.args("-keyout /dev/null -outform DER -subj /CN=web -addext".split(' '));
            made.arg(names).output().expect("it is installed").stdout
        };
        let names = |der: Vec<u8>| names_of(&der.into()).expect("it is a certificate");
        let web = "URI:spiffe://example/web";
        let mut der = of(&format!("DNS:web.example,{web},URI:spiffe://example/xxx"));
        assert_eq!(names(der.clone()), ["web.example"]);
        let at = der.windows(3).position(|some| some == b"xxx").expect("it is there");
        der[at] = 0xff;
        assert_eq!(names(der), ["web.example"]);
        assert_eq!(names(of(web)), ["spiffe://example/web"]);
    }
}
