// SPDX-License-Identifier: Apache-2.0
//! Lists of revoked certificates (RFC 5280, 5), made by a key of a token, and read.

use super::Time;
use super::build::How;
use super::extension;
use super::signed::Signed;
use crate::encoding::der::{self, CONSTRUCTED, INTEGER, SEQUENCE};
use crate::encoding::{from_hex, significant};
use crate::failure::Result;

/// What is to be signed.
#[derive(Debug)]
pub(crate) struct Revocations<'a> {
    /// The issuer's name, and the identifier of its key.
    pub(crate) issuer: &'a [u8],
    pub(crate) authority: Option<&'a [u8]>,
    /// Entries, one beside the other.
    pub(crate) entries: &'a [u8],
    pub(crate) number: u64,
    /// How long from now on until the next list.
    pub(crate) seconds: u64,
}

impl Revocations<'_> {
    pub(crate) fn signed(&self, how: How<'_>) -> Result<Vec<u8>> {
        let entries = match self.entries {
            // The standard has no empty list of them.
            [] => Vec::new(),
            entries => der::element(SEQUENCE, entries),
        };
        let authority = self.authority.map(extension::authority).unwrap_or_default();
        let extensions = der::sequence(&[&authority, &extension::list_number(self.number)]);
        let contents = der::sequence(&[
            &der::integer(&[1]),
            &how.algorithm.encoded(),
            self.issuer,
            &Time::from_now(0).encoded(),
            &Time::from_now(self.seconds).encoded(),
            &entries,
            &der::element(CONSTRUCTED, &extensions),
        ]);
        how.signed(&contents)
    }
}

/// A serial number in hexadecimal, as it stands in a certificate (RFC 5280, 4.1.2.2).
pub(crate) fn serial(text: &str) -> Option<Vec<u8>> {
    let number = from_hex(text)?;
    let integer = der::integer(&number);
    let content = der::take(&mut &*integer, INTEGER)?.to_vec();
    (significant(&number).len() <= 20).then_some(content)
}

/// A certificate's number, revoked now.
pub(crate) fn entry(serial: &[u8]) -> Vec<u8> {
    der::sequence(&[&der::element(INTEGER, serial), &Time::from_now(0).encoded()])
}

/// The parts of an older list that a new one takes over.
#[derive(Debug)]
pub(crate) struct List<'a> {
    pub(crate) issuer: &'a [u8],
    pub(crate) entries: &'a [u8],
    pub(crate) number: u64,
    /// It is the issuer's where the issuer's key has signed it.
    pub(crate) signed: Signed<'a>,
}

impl<'a> List<'a> {
    /// `None` when it is none, is signed in a way that is not known here, or has a number or an extension that a list from here
    /// cannot go on from: a list of changes, or of some certificates alone, says so in a critical one (RFC 5280, 5.2.4 and 5.2.5).
    pub(crate) fn read(der: &'a [u8]) -> Option<Self> {
        let signed = Signed::read(der)?;
        let mut contents = signed.contents.content;
        der::take(&mut contents, INTEGER).filter(|version| *version == [1])?;
        der::take(&mut contents, SEQUENCE)?;
        let issuer = der::next(&mut contents).filter(|it| it.tag == SEQUENCE)?.whole;
        Time::read(der::next(&mut contents)?)?;
        let mut ahead = contents;
        if der::next(&mut ahead).and_then(Time::read).is_some() {
            contents = ahead;
        }
        let entries = der::take(&mut contents, SEQUENCE).unwrap_or_default();
        let extensions = match der::take(&mut contents, CONSTRUCTED) {
            Some(mut inner) => der::take(&mut inner, SEQUENCE)?,
            None => &[],
        };
        let number = extension::list_number_in(extensions)?;
        let is_sound =
            contents.is_empty() && extension::none_is_critical(extensions) && are_entries(entries);
        is_sound.then_some(Self { issuer, entries, number, signed })
    }

    /// The numbers in entries.
    pub(crate) fn serials(mut entries: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        std::iter::from_fn(move || der::take(&mut entries, SEQUENCE))
            .filter_map(|mut entry| der::take(&mut entry, INTEGER))
    }

    /// Whether the certificate of this number is among them.
    pub(crate) fn has(entries: &'a [u8], serial: &[u8]) -> bool {
        Self::serials(entries).any(|known| known == serial)
    }
}

/// Whether these are whole entries, each of a number that a certificate can have.
fn are_entries(mut entries: &[u8]) -> bool {
    while !entries.is_empty() {
        let mut entry = der::take(&mut entries, SEQUENCE).unwrap_or_default();
        let number = der::take(&mut entry, INTEGER).is_some_and(der::is_integer);
        if !number || der::next(&mut entry).and_then(Time::read).is_none() {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x509::name;

    #[test]
    fn a_serial_number_is_written_as_in_a_certificate() {
        let rows: &[(&str, &[u8])] = &[
            ("00", &[0]),
            ("0000", &[0]),
            ("7f", &[0x7f]),
            ("ff", &[0, 0xff]),
            ("00ff", &[0, 0xff]),
        ];
        for (text, content) in rows {
            assert_eq!(serial(text).as_deref(), Some(*content), "{text}");
        }
        assert_eq!(serial(&format!("00{}", "ff".repeat(20))).map(|it| it.len()), Some(21));
        for text in ["", "0", "123", "zz", &"11".repeat(21)] {
            assert_eq!(serial(text), None, "{text}");
        }
    }

    /// A list whose signature is none.
    fn list(entries: &[u8], extensions: &[u8]) -> Vec<u8> {
        let algorithm = der::sequence(&[&der::identifier(&[1, 2, 840, 10045, 4, 3, 2])]);
        let time = Time::from_now(0).encoded();
        let contents = der::sequence(&[
            &der::integer(&[1]),
            &algorithm,
            &name("CN=root").expect("a name"),
            &time,
            &time,
            &der::sequence(&[entries]),
            &der::element(CONSTRUCTED, &der::sequence(&[extensions])),
        ]);
        der::sequence(&[&contents, &algorithm, &der::bit_string(&[1; 70])])
    }

    fn sample() -> Vec<u8> {
        list(&[entry(&[7]), entry(&[0, 0x80])].concat(), &extension::list_number(300))
    }

    #[test]
    fn entries_and_number_of_a_list_are_read() {
        let sample = sample();
        let list = List::read(&sample).expect("a list");
        assert_eq!(list.number, 300);
        assert_eq!(List::serials(list.entries).collect::<Vec<_>>(), [&[7][..], &[0, 0x80]]);
        assert!(List::has(list.entries, &[7]) && !List::has(list.entries, &[8]));
    }

    #[test]
    fn a_list_that_cannot_be_gone_on_from_is_refused() {
        let number = extension::list_number(300);
        let extension = |last: u32, critical: bool, value: &[u8]| {
            let critical = if critical { der::element(1, &[0xff]) } else { Vec::new() };
            let value = der::element(4, value);
            let extension =
                der::sequence(&[&der::identifier(&[2, 5, 29, last]), &critical, &value]);
            list(&entry(&[7]), &[&*number, &extension].concat())
        };
        assert!(List::read(&extension(46, false, &[0x30, 0])).is_some(), "where changes are");
        assert!(List::read(&extension(27, true, &[2, 1, 1])).is_none(), "of changes");
        assert!(List::read(&extension(28, true, &[0x30, 0])).is_none(), "of a part");
        let long = der::sequence(&[
            &der::identifier(&[2, 5, 29, 20]),
            &der::element(4, &der::integer(&[9; 9])),
        ]);
        assert!(List::read(&list(&entry(&[7]), &long)).is_none(), "a long number");
        assert!(List::read(&list(&entry(&[7]), &[])).is_some_and(|list| list.number == 0));
    }

    #[test]
    fn what_is_no_entry_is_not_taken_over() {
        let time = Time::from_now(0).encoded();
        for bad in [
            &[5, 0][..],
            &[0x30, 0],
            &[0],
            &der::sequence(&[&[2, 0], &time]),
            &der::sequence(&[&[2, 2, 0, 7], &time]),
            &der::sequence(&[&[2, 1, 7]]),
        ] {
            let entries = [&entry(&[7]), bad, &entry(&[8])].concat();
            assert!(List::read(&list(&entries, &[])).is_none(), "{bad:02x?}");
        }
    }

    #[test]
    fn whatever_the_bytes_are_they_are_read_or_refused() {
        let sample = sample();
        for at in 0..sample.len() {
            List::read(&sample[..at]);
            for value in [0, 2, 0x30, 0x7f, 0x80, 0x84, 0xff] {
                let mut changed = sample.clone();
                changed[at] = value;
                List::read(&changed);
            }
        }
        assert!(List::read(&[]).is_none() && List::read(&sample[..20]).is_none());
    }
}
