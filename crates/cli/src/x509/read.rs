// SPDX-License-Identifier: Apache-2.0
//! What stands in a certificate that anybody may have written.

use super::Time;
use crate::encoding::der::{self, CONSTRUCTED, INTEGER, SEQUENCE};

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
}

impl<'a> Certificate<'a> {
    /// `None` when it is no certificate. The signature is not looked at.
    pub(crate) fn read(der: &'a [u8]) -> Option<Self> {
        let mut rest = der;
        let mut outer = der::take(&mut rest, SEQUENCE)?;
        let mut contents = der::take(&mut outer, SEQUENCE)?;
        der::take(&mut contents, CONSTRUCTED);
        let serial = der::next(&mut contents).filter(|it| it.tag == INTEGER)?;
        der::take(&mut contents, SEQUENCE)?;
        let mut name = || der::next(&mut contents).filter(|it| it.tag == SEQUENCE);
        let (issuer, validity, subject) = (name()?, name()?, name()?);
        let public_key = name()?.whole;
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
        })
    }
}
