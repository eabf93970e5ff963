// SPDX-License-Identifier: Apache-2.0
//! What a CA's certificate allows its key to sign (RFC 5280, 4.2.1.3, 4.2.1.9 and 6.1).

use crate::failure::{Failure, Result};
use crate::x509::{self, Certificate, Time};

/// Whether the key of a certificate may be used so: for certificates, or for lists of those that are revoked.
pub(crate) fn check(certificate: &Certificate<'_>, label: &str, usage: &str) -> Result<()> {
    if !x509::certifies(certificate.extensions) {
        let message = format!("the certificate '{label}' is not one of a CA");
        return Err(Failure::failed(message)
            .hint("'metaslot cert selfsign KEY --for ca --store' makes one that is"));
    }
    if !x509::may(certificate.extensions, usage) {
        let message = format!("the key usage of the certificate '{label}' has no {usage}");
        return Err(Failure::failed(message));
    }
    Ok(())
}

/// Whether it may sign a certificate, such as one that certifies others itself.
pub(crate) fn check_signs(
    certificate: &Certificate<'_>,
    label: &str,
    is_of_ca: bool,
) -> Result<()> {
    check(certificate, label, "keyCertSign")?;
    if is_of_ca && x509::certifies_no_issuer(certificate.extensions) {
        let message = format!("the certificate '{label}' certifies no other CA: pathlen 0");
        return Err(Failure::failed(message));
    }
    Ok(())
}

/// Whether it is valid now.
pub(crate) fn check_time(certificate: &Certificate<'_>, label: &str) -> Result<()> {
    let now = Time::from_now(0);
    let message = match (certificate.from > now, certificate.until < now) {
        (false, false) => return Ok(()),
        (true, _) => format!("the certificate '{label}' is not valid before {}", certificate.from),
        (false, true) => format!("the certificate '{label}' has expired: {}", certificate.until),
    };
    Err(Failure::failed(message))
}

const DAY: u64 = 24 * 60 * 60;

/// The end of what it signs now for so many seconds, and a remark where that is a day sooner than was wished, or more: programs take
/// no certificate that outlives its issuer's.
pub(crate) fn end(certificate: &Certificate<'_>, seconds: u64) -> (Time, Option<String>) {
    let (wished, last) = (Time::from_now(seconds), &certificate.until);
    if wished <= *last || *last <= Time::from_now(0) {
        return (wished, None);
    }
    let is_much = Time::from_now(seconds.saturating_sub(DAY)) > *last;
    let remark = format!("valid until {last}, as the issuer's certificate is");
    (last.clone(), is_much.then_some(remark))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::der::{self, GENERALIZED_TIME};

    /// One without a name, a key, extensions and a signature.
    fn certificate(from: &str, until: &str) -> Vec<u8> {
        let time = |text: &str| der::element(GENERALIZED_TIME, text.as_bytes());
        let (empty, validity) = (der::sequence(&[]), der::sequence(&[&time(from), &time(until)]));
        let number = der::integer(&[1]);
        der::sequence(&[&der::sequence(&[&number, &empty, &empty, &validity, &empty, &empty])])
    }

    #[test]
    fn a_certificate_is_valid_from_its_first_to_its_last_day() {
        let rows = [
            ("20000101000000Z", "20990101000000Z", None),
            ("20000101000000Z", "20010101000000Z", Some("has expired")),
            ("20980101000000Z", "20990101000000Z", Some("is not valid before")),
        ];
        for (from, until, refused) in rows {
            let der = certificate(from, until);
            let certificate = Certificate::read(&der).expect("a certificate");
            let failure =
                check_time(&certificate, "root").err().map(|failure| format!("{failure:?}"));
            let is_so = |text| failure.as_ref().is_some_and(|it| it.contains(text));
            assert!(refused.map_or_else(|| failure.is_none(), is_so), "{failure:?}");
        }
        let der = certificate("20000101000000Z", "20990101000000Z");
        let certificate = Certificate::read(&der).expect("a certificate");
        assert_eq!(end(&certificate, 60).1, None);
        assert_eq!(end(&certificate, 200 * 365 * 24 * 60 * 60).0, certificate.until);
    }
}
