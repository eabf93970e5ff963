// SPDX-License-Identifier: Apache-2.0
//! As much of DER (X.690) as keys need, for every provider: a writer that knows its length
//! beforehand, so that secrets go straight into protected memory, and a strict reader.

use metaslot_memory::Secret;
use std::fmt;

/// Tags, as bytes.
pub mod tag {
    /// INTEGER
    pub const INTEGER: u8 = 0x02;
    /// BIT STRING
    pub const BIT_STRING: u8 = 0x03;
    /// OCTET STRING
    pub const OCTET_STRING: u8 = 0x04;
    /// NULL
    pub const NULL: u8 = 0x05;
    /// OBJECT IDENTIFIER
    pub const OID: u8 = 0x06;
    /// `PrintableString`
    pub const PRINTABLE_STRING: u8 = 0x13;
    /// SEQUENCE
    pub const SEQUENCE: u8 = 0x30;
    /// `[number] EXPLICIT`, or `[number] IMPLICIT` of a constructed type.
    #[must_use]
    pub const fn constructed(number: u8) -> u8 {
        0xa0 | number
    }
    /// `[number] IMPLICIT` of a primitive type.
    #[must_use]
    pub const fn primitive(number: u8) -> u8 {
        0x80 | number
    }
}

/// An element to be written.
#[derive(Clone, Copy)]
pub enum Node<'a> {
    /// A big-endian number that is not negative.
    Integer(&'a [u8]),
    /// An OCTET STRING.
    OctetString(&'a [u8]),
    /// An OCTET STRING that holds the encoding of another element.
    OctetStringOf(&'a Self),
    /// Whole bytes.
    BitString(&'a [u8]),
    /// A BIT STRING that holds the encoding of another element.
    BitStringOf(&'a Self),
    /// A NULL.
    Null,
    /// The content bytes of an object identifier.
    Oid(&'a [u8]),
    /// A SEQUENCE.
    Sequence(&'a [Self]),
    /// `[number] EXPLICIT`
    Explicit(u8, &'a Self),
}

/// The tag and the length: what is inside may be a secret.
impl fmt::Debug for Node<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node(tag {:#04x}, {} bytes)", self.tag(), self.content_length())
    }
}

impl Node<'_> {
    const fn tag(&self) -> u8 {
        match self {
            Self::Integer(_) => tag::INTEGER,
            Self::OctetString(_) | Self::OctetStringOf(_) => tag::OCTET_STRING,
            Self::BitString(_) | Self::BitStringOf(_) => tag::BIT_STRING,
            Self::Null => tag::NULL,
            Self::Oid(_) => tag::OID,
            Self::Sequence(_) => tag::SEQUENCE,
            Self::Explicit(number, _) => tag::constructed(*number),
        }
    }

    fn content_length(&self) -> usize {
        match self {
            Self::Integer(bytes) => {
                let number = without_zeros(bytes);
                number.len() + usize::from(number.first().is_none_or(|first| *first >= 0x80))
            }
            Self::OctetString(bytes) | Self::Oid(bytes) => bytes.len(),
            Self::BitString(bytes) => 1 + bytes.len(),
            Self::OctetStringOf(node) | Self::Explicit(_, node) => node.length(),
            Self::BitStringOf(node) => 1 + node.length(),
            Self::Null => 0,
            Self::Sequence(nodes) => nodes.iter().map(Self::length).sum(),
        }
    }

    /// Length of the encoding, in bytes.
    fn length(&self) -> usize {
        let content = self.content_length();
        1 + length_of_length(content) + content
    }

    fn write(&self, out: &mut Cursor<'_>) {
        let content = self.content_length();
        out.put(&[self.tag()]);
        match length_of_length(content) {
            1 => out.put(&content.to_be_bytes()[size_of::<usize>() - 1..]),
            more => {
                let bytes = content.to_be_bytes();
                out.put(&[0x80 | (more - 1).to_le_bytes()[0]]);
                out.put(&bytes[bytes.len() - (more - 1)..]);
            }
        }
        match self {
            Self::Integer(bytes) => {
                let number = without_zeros(bytes);
                if number.len() < content {
                    out.put(&[0]);
                }
                out.put(number);
            }
            Self::OctetString(bytes) | Self::Oid(bytes) => out.put(bytes),
            Self::BitString(bytes) => {
                out.put(&[0]);
                out.put(bytes);
            }
            Self::OctetStringOf(node) | Self::Explicit(_, node) => node.write(out),
            Self::BitStringOf(node) => {
                out.put(&[0]);
                node.write(out);
            }
            Self::Null => {}
            Self::Sequence(nodes) => nodes.iter().for_each(|node| node.write(out)),
        }
    }

    /// The encoding of something that may be shown.
    #[must_use]
    pub fn to_vec(self) -> Vec<u8> {
        let mut bytes = vec![0; self.length()];
        self.write(&mut Cursor { bytes: &mut bytes, at: 0 });
        bytes
    }

    /// The encoding of something that may not.
    #[must_use]
    pub fn to_secret(self) -> Secret {
        let mut secret = Secret::zeroed(self.length());
        self.write(&mut Cursor { bytes: secret.expose_mut(), at: 0 });
        secret
    }
}

struct Cursor<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl Cursor<'_> {
    fn put(&mut self, part: &[u8]) {
        self.bytes[self.at..self.at + part.len()].copy_from_slice(part);
        self.at += part.len();
    }
}

const fn length_of_length(content: usize) -> usize {
    match content {
        0..0x80 => 1,
        0x80..0x100 => 2,
        0x100..0x1_0000 => 3,
        0x1_0000..0x100_0000 => 4,
        _ => 5,
    }
}

/// A big-endian number without leading zeros; empty for zero.
#[must_use]
pub fn without_zeros(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..]
}

/// The bytes are not the DER that was wanted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Malformed;

/// Reads elements one after the other; nothing but DER passes.
#[derive(Clone, Copy)]
pub struct Reader<'a>(&'a [u8]);

/// The length: what is read may be a secret.
impl fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reader({} bytes)", self.0.len())
    }
}

impl<'a> Reader<'a> {
    /// Of all of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The tag of the next element.
    #[must_use]
    pub fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// The content of the next element, which must have this tag.
    ///
    /// # Errors
    /// [`Malformed`] when the bytes are anything else.
    pub fn element(&mut self, tag: u8) -> Result<&'a [u8], Malformed> {
        let (found, rest) = self.0.split_first().ok_or(Malformed)?;
        if *found != tag {
            return Err(Malformed);
        }
        let (first, rest) = rest.split_first().ok_or(Malformed)?;
        let (length, rest) = match *first {
            short @ ..=0x7f => (usize::from(short), rest),
            long @ 0x81..=0x84 => {
                let (bytes, rest) =
                    rest.split_at_checked(usize::from(long & 0x7f)).ok_or(Malformed)?;
                let length = bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
                if length_of_length(length) != bytes.len() + 1 {
                    return Err(Malformed);
                }
                (length, rest)
            }
            _ => return Err(Malformed),
        };
        let (content, rest) = rest.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(content)
    }

    /// A SEQUENCE, to be read on.
    ///
    /// # Errors
    /// [`Malformed`] when the bytes are anything else.
    pub fn sequence(&mut self) -> Result<Self, Malformed> {
        self.element(tag::SEQUENCE).map(Self)
    }

    /// An INTEGER that is not negative, without leading zeros.
    ///
    /// # Errors
    /// [`Malformed`] when the bytes are anything else.
    pub fn integer(&mut self) -> Result<&'a [u8], Malformed> {
        match self.element(tag::INTEGER)? {
            [0] => Ok(&[]),
            [0, rest @ ..] if rest[0] >= 0x80 => Ok(rest),
            number @ [1..0x80, ..] => Ok(number),
            _ => Err(Malformed),
        }
    }

    /// A NULL.
    ///
    /// # Errors
    /// [`Malformed`] when the bytes are anything else.
    pub fn null(&mut self) -> Result<(), Malformed> {
        if self.element(tag::NULL)?.is_empty() { Ok(()) } else { Err(Malformed) }
    }

    /// All that is left, as it is.
    #[must_use]
    pub const fn rest(self) -> &'a [u8] {
        self.0
    }

    /// Nothing may follow.
    ///
    /// # Errors
    /// [`Malformed`] when the bytes are anything else.
    pub const fn end(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}

/// The content of an element that is all there is.
///
/// # Errors
/// [`Malformed`] when the bytes are anything else.
pub fn only(bytes: &[u8], tag: u8) -> Result<&[u8], Malformed> {
    let mut reader = Reader::new(bytes);
    let content = reader.element(tag)?;
    reader.end()?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for length in [0, 1, 127, 128, 255, 256, 70_000] {
            let bytes = vec![0x5a; length];
            let der = Node::OctetString(&bytes).to_vec();
            assert_eq!(only(&der, tag::OCTET_STRING).unwrap(), bytes);
            assert_eq!(Node::OctetString(&bytes).to_secret().expose(), der);
        }
        for number in [&[][..], &[1], &[0x7f], &[0x80], &[1, 0]] {
            let der = Node::Sequence(&[Node::Integer(number), Node::Null]).to_vec();
            let mut reader = Reader::new(&der).sequence().unwrap();
            assert_eq!(reader.integer().unwrap(), number);
            reader.null().unwrap();
            reader.end().unwrap();
        }
    }

    #[test]
    fn anything_but_der_is_refused() {
        for bad in [
            &[][..],
            &[0x04],
            &[0x04, 0x01],
            &[0x04, 0x80],
            &[0x04, 0x81, 0x01, 0x00],
            &[0x04, 0x82, 0x00, 0x80],
            &[0x04, 0x01, 0x00, 0x00],
            &[0x04, 0x85, 0x01, 0x01, 0x01, 0x01, 0x01],
        ] {
            assert!(only(bad, tag::OCTET_STRING).is_err(), "{bad:02x?}");
        }
        for bad in [&[0x02, 0x00][..], &[0x02, 0x01, 0x80], &[0x02, 0x02, 0x00, 0x7f]] {
            assert!(Reader::new(bad).integer().is_err(), "{bad:02x?}");
        }
    }
}
