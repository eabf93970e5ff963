// SPDX-License-Identifier: Apache-2.0
//! Certificates as the original finds and shows them.

use crate::certificate::{self, Stored};
use crate::encoding::{from_hex, hex, printable, significant};
use crate::failure::{Failure, Result};
use crate::personality::operands::Operands;
use crate::x509::{self, Certificate, Time};
use metaslot_client::Session;

/// Operands that only certificates have.
pub(super) const FILTERS: &[&str] = &["subject", "issuer", "serial", "criteria"];

/// What the operands describe. What cannot be read as a certificate has a label only.
pub(super) fn find(session: &Session, operands: &Operands<'_>) -> Result<Vec<Stored>> {
    let filter = Filter::read(operands)?;
    let found = certificate::labelled(session, operands.value("label"))?.into_iter();
    Ok(found.filter(|stored| filter.takes(&stored.der)).collect())
}

/// The operands that describe certificates; absent ones take every one.
#[derive(Debug)]
struct Filter {
    subject: Option<Vec<u8>>,
    issuer: Option<Vec<u8>>,
    serial: Option<Vec<u8>>,
    /// Whether it must be over.
    expired: Option<bool>,
}

impl Filter {
    fn read(operands: &Operands<'_>) -> Result<Self> {
        let name = |operand| operands.value(operand).map(x509::name).transpose();
        let expired = match operands.value("criteria") {
            Some("valid") => Some(false),
            Some("expired") => Some(true),
            _ => None,
        };
        Ok(Self {
            subject: name("subject")?,
            issuer: name("issuer")?,
            serial: operands.value("serial").map(serial).transpose()?,
            expired,
        })
    }

    fn takes(&self, der: &[u8]) -> bool {
        let any = self.subject.is_none() && self.issuer.is_none() && self.serial.is_none();
        let Some(certificate) = Certificate::read(der) else {
            return any && self.expired.is_none();
        };
        let same = |wanted: &Option<Vec<u8>>, actual: &[u8]| {
            wanted.as_ref().is_none_or(|wanted| wanted == actual)
        };
        let number = certificate.serial.strip_prefix(&[0]).unwrap_or(certificate.serial);
        same(&self.subject, certificate.subject)
            && same(&self.issuer, certificate.issuer)
            && same(&self.serial, number)
            && self.expired.is_none_or(|it| it == (certificate.until < Time::from_now(0)))
    }
}

/// `serial=`, without zeros before it.
pub(super) fn serial(text: &str) -> Result<Vec<u8>> {
    let wrong = || {
        Failure::usage(format!("'serial={text}' is no number in hexadecimal"))
            .hint("for example serial=0x01")
    };
    let number = from_hex(text).filter(|bytes| bytes.len() <= 20).ok_or_else(wrong)?;
    match significant(&number) {
        [] => Err(wrong()),
        rest => Ok(rest.to_vec()),
    }
}

/// As the original lists them.
pub(super) fn listed(all: &[Stored]) -> String {
    let mut text = match all.len() {
        0 => String::new(),
        number => format!("Found {number} certificates.\n"),
    };
    for (at, stored) in all.iter().enumerate() {
        text +=
            &format!("{}. (X.509 certificate)\n\tLabel: {}\n", at + 1, printable(&stored.label));
        if !stored.id.is_empty() {
            let pairs: Vec<String> = stored.id.iter().map(|byte| hex(&[*byte])).collect();
            text += &format!("\tID: {}\n", pairs.join(":"));
        }
        if let Some(certificate) = Certificate::read(&stored.der) {
            text += &described(&certificate);
        }
        text += "\n";
    }
    text
}

fn described(certificate: &Certificate<'_>) -> String {
    let name = |der| x509::shown(der).unwrap_or_else(|| "it cannot be read".to_owned());
    format!(
        "\tSubject: {}\n\tIssuer: {}\n\tNot Before: {}\n\tNot After: {}\n\tSerial: 0x{}\n",
        name(certificate.subject),
        name(certificate.issuer),
        certificate.from,
        certificate.until,
        hex(certificate.serial)
    )
}
