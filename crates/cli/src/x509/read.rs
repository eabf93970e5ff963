// SPDX-License-Identifier: Apache-2.0
//! What stands in a certificate that anybody may have written.

use super::extension::{authority_in, identifier_in};
use super::signed::Signed;
use super::{PublicKey, Time};
use crate::encoding::der::{self, BIT_STRING, CONSTRUCTED, CONTEXT, INTEGER, SEQUENCE};
use metaslot_client::Session;

/// The parts that are shown, looked for, or kept beside it in a token.
#[derive(Debug)]
pub(crate) struct Certificate<'a> {
    /// The content of the INTEGER, and all of it.
    pub(crate) serial: &'a [u8],
    pub(crate) serial_number: &'a [u8],
    pub(crate) issuer: &'a [u8],
    pub(crate) subject: &'a [u8],
    /// `SubjectPublicKeyInfo`
    pub(crate) public_key: &'a [u8],
    pub(crate) from: Time,
    pub(crate) until: Time,
    /// One beside the other; empty where there are none.
    pub(crate) extensions: &'a [u8],
    /// `None` where it is signed in a way that is not known here.
    signed: Option<Signed<'a>>,
}

impl<'a> Certificate<'a> {
    /// `None` when it is no certificate. The signature is not checked.
    pub(crate) fn read(der: &'a [u8]) -> Option<Self> {
        let mut rest = der;
        let mut outer = der::take(&mut rest, SEQUENCE)?;
        let mut contents = der::take(&mut outer, SEQUENCE)?;
        der::take(&mut contents, CONSTRUCTED);
        let serial = der::next(&mut contents)
            .filter(|it| it.tag == INTEGER && der::is_integer(it.content))?;
        der::take(&mut contents, SEQUENCE)?;
        let mut name = || der::next(&mut contents).filter(|it| it.tag == SEQUENCE);
        let (issuer, validity, subject) = (name()?, name()?, name()?);
        let public_key = name()?.whole;
        der::take(&mut contents, CONTEXT | 1);
        der::take(&mut contents, CONTEXT | 2);
        let extensions = der::take(&mut contents, CONSTRUCTED | 3);
        let extensions = extensions.and_then(|mut inner| der::take(&mut inner, SEQUENCE));
        let mut validity = validity.content;
        let mut time = || der::next(&mut validity).and_then(Time::read);
        rest.is_empty().then_some(Self {
            serial: serial.content,
            serial_number: serial.whole,
            issuer: issuer.whole,
            subject: subject.whole,
            public_key,
            from: time()?,
            until: time()?,
            extensions: extensions.unwrap_or_default(),
            signed: Signed::read(der),
        })
    }

    /// Whether it names another one's key as the one that signed it; `None` where one of them names none.
    pub(crate) fn names_key_of(&self, other: &Certificate<'_>) -> Option<bool> {
        Some(authority_in(self.extensions)? == identifier_in(other.extensions)?)
    }

    /// Whether another one is its issuer's, and the key in that has signed it. Where the signature cannot be checked, because this
    /// program or the token does not know its algorithm, what the two say of the key decides.
    pub(crate) fn is_by(&self, session: &Session, other: &Certificate<'_>) -> bool {
        let key = PublicKey::read(other.public_key);
        let checked = || self.signed.as_ref().zip(key).map(|(it, key)| it.is_by(session, key));
        let is_signed =
            |checked: Option<bool>| checked.or_else(|| self.names_key_of(other)).unwrap_or(true);
        self.issuer == other.subject && is_signed(checked().and_then(Result::ok))
    }
}

/// The key itself in a `SubjectPublicKeyInfo`.
pub(crate) fn key_bits(public_key: &[u8]) -> Option<&[u8]> {
    let mut outer = der::take(&mut &*public_key, SEQUENCE)?;
    der::take(&mut outer, SEQUENCE)?;
    der::take(&mut outer, BIT_STRING)?.strip_prefix(&[0])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x509::{Request, name};

    /// A certificate, or with a version alone a request, whose signature is none.
    fn sample(is_request: bool) -> Vec<u8> {
        let name = name("CN=site, C=DE").expect("a name");
        let time = Time::from_now(0).encoded();
        let ecdsa = der::sequence(&[&der::identifier(&[1, 2, 840, 10045, 4, 3, 2])]);
        let key = der::sequence(&[&ecdsa, &der::bit_string(&[4; 65])]);
        let number = der::integer(&[0x80]);
        let contents = match is_request {
            true => der::sequence(&[&der::integer(&[0]), &name, &key]),
            false => {
                let version = der::element(CONSTRUCTED, &der::integer(&[2]));
                let times = der::sequence(&[&time, &time]);
                der::sequence(&[&version, &number, &ecdsa, &name, &times, &name, &key])
            }
        };
        der::sequence(&[&contents, &ecdsa, &der::bit_string(&[1; 70])])
    }

    fn read(der: &[u8]) -> [bool; 2] {
        [Certificate::read(der).is_some(), Request::read(der).is_some()]
    }

    #[test]
    fn a_certificate_has_a_number() {
        let sample = sample(false);
        let number = [2, 2, 0, 0x80];
        let at = sample.windows(4).position(|part| part == number).expect("it has one");
        for bad in [[2, 2, 0, 7], [5, 2, 0, 0x80], [2, 2, 0xff, 0x80]] {
            let mut changed = sample.clone();
            changed[at..at + 4].copy_from_slice(&bad);
            assert!(Certificate::read(&changed).is_none(), "{bad:02x?}");
        }
    }

    #[test]
    fn whatever_the_bytes_are_they_are_read_or_refused() {
        for (is_request, expected) in [(false, [true, false]), (true, [false, true])] {
            let sample = sample(is_request);
            assert_eq!(read(&sample), expected);
            for at in 0..sample.len() {
                assert_eq!(read(&sample[..at]), [false, false], "cut at {at}");
                for value in [0, 2, 0x30, 0x7f, 0x80, 0x81, 0x84, 0xff] {
                    let mut changed = sample.clone();
                    changed[at] = value;
                    let [_, _] = read(&changed);
                }
            }
            assert_eq!(read(&[&sample[..], &[0]].concat()), [false, false]);
        }
    }
}
