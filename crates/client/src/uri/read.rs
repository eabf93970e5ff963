// SPDX-License-Identifier: Apache-2.0
//! From text to [`Uri`].

use super::{Class, PinValue, Uri};
use std::fmt;
use std::str::FromStr;

/// Why a text is no PKCS#11 URI. Values are not repeated in messages: one might be a PIN.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Error {
    /// Does not begin with `pkcs11:`.
    Scheme,
    /// No `=` in a part.
    NoValue(String),
    /// No `=` in a part of the query, which is not repeated: it may be the rest of a PIN.
    NoValueInQuery,
    /// An attribute without a name, or with characters that a name may not have.
    Name(String),
    /// Given twice.
    Twice(&'static str),
    /// `%` without two hexadecimal digits after it; the attribute and the byte within its value.
    Escape(String, usize),
    /// A character that must be escaped; the attribute and the character.
    Character(String, char),
    /// Text that is not UTF-8 when decoded.
    Utf8(&'static str),
    /// A value that the attribute does not have; the attribute and what it takes.
    Value(&'static str, &'static str),
    /// An attribute of the path that is not the RFC's: it would match no object.
    Unknown(String),
    /// Both `pin-source` and `pin-value`.
    TwoPins,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme => write!(f, "it does not begin with 'pkcs11:'"),
            Self::NoValue(part) => write!(f, "'{part}' has no value: write {part}=..."),
            Self::NoValueInQuery => {
                write!(f, "its query has a part without '=': in a value, write '&' as %26")
            }
            Self::Name(name) => write!(f, "'{name}' is not the name of an attribute"),
            Self::Twice(name) => write!(f, "'{name}' is given twice"),
            Self::Escape(name, at) => write!(
                f,
                "'{name}' has a '%' without two hexadecimal digits after it, at byte {at} of its value"
            ),
            Self::Character(name, c) => {
                write!(f, "'{name}' has {c:?}, which must be written ")?;
                let mut bytes = [0; 4];
                c.encode_utf8(&mut bytes).bytes().try_for_each(|byte| write!(f, "%{byte:02X}"))
            }
            Self::Utf8(name) => write!(f, "'{name}' is not UTF-8"),
            Self::Value(name, takes) => write!(f, "'{name}' must be {takes}"),
            Self::Unknown(name) => {
                write!(f, "the attribute '{name}' is unknown and matches nothing")
            }
            Self::TwoPins => write!(f, "it has both 'pin-source' and 'pin-value'"),
        }
    }
}

impl std::error::Error for Error {}

impl FromStr for Uri {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let scheme = text.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("pkcs11:"));
        let rest = scheme.map(|_| &text[7..]).ok_or(Error::Scheme)?;
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        let mut uri = Self::default();
        for part in path.split(';').filter(|part| !part.is_empty()) {
            uri.path_attribute(part)?;
        }
        for part in query.split('&').filter(|part| !part.is_empty()) {
            uri.query_attribute(part)?;
        }
        if uri.pin_source.is_some() && uri.pin_value.is_some() {
            return Err(Error::TwoPins);
        }
        Ok(uri)
    }
}

impl Uri {
    fn path_attribute(&mut self, part: &str) -> Result<(), Error> {
        let (name, value) = split(part)?;
        let bytes = decode(name, value, ":[]@!$'()*+,=&/")?;
        match name {
            "token" => text(&mut self.token, "token", bytes),
            "manufacturer" => text(&mut self.manufacturer, "manufacturer", bytes),
            "model" => text(&mut self.model, "model", bytes),
            "serial" => text(&mut self.serial, "serial", bytes),
            "object" => text(&mut self.object, "object", bytes),
            "id" => once(&mut self.id, "id", bytes),
            "type" => once(&mut self.class, "type", class(&bytes)?),
            "slot-id" => once(&mut self.slot_id, "slot-id", slot_id(&bytes)?),
            "slot-description" => text(&mut self.slot_description, "slot-description", bytes),
            "slot-manufacturer" => text(&mut self.slot_manufacturer, "slot-manufacturer", bytes),
            "library-description" => {
                text(&mut self.library_description, "library-description", bytes)
            }
            "library-manufacturer" => {
                text(&mut self.library_manufacturer, "library-manufacturer", bytes)
            }
            "library-version" => {
                once(&mut self.library_version, "library-version", version(&bytes)?)
            }
            _ => Err(Error::Unknown(name.to_owned())),
        }
    }

    fn query_attribute(&mut self, part: &str) -> Result<(), Error> {
        if !part.contains('=') {
            return Err(Error::NoValueInQuery);
        }
        let (name, value) = split(part)?;
        let bytes = decode(name, value, ":[]@!$'()*+,=/?|")?;
        match name {
            "pin-source" => text(&mut self.pin_source, "pin-source", bytes),
            "pin-value" => once(&mut self.pin_value, "pin-value", PinValue::new(bytes)),
            "module-name" => text(&mut self.module_name, "module-name", bytes),
            "module-path" => text(&mut self.module_path, "module-path", bytes),
            _ => {
                self.other.push((name.to_owned(), value.to_owned()));
                Ok(())
            }
        }
    }
}

fn split(part: &str) -> Result<(&str, &str), Error> {
    let (name, value) = part.split_once('=').ok_or_else(|| Error::NoValue(part.to_owned()))?;
    let valid = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(valid) {
        return Err(Error::Name(name.to_owned()));
    }
    Ok((name, value))
}

/// Undoes the escapes; `also` are the characters that may stand for themselves beside the
/// unreserved ones.
fn decode(name: &str, value: &str, also: &str) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.char_indices();
    while let Some((at, c)) = rest.next() {
        if c == '%' {
            let digits = value.get(at + 1..at + 3).filter(|digits| hexadecimal(digits));
            let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
            bytes.push(byte.ok_or_else(|| Error::Escape(name.to_owned(), at))?);
            rest.nth(1);
        } else if c.is_ascii_alphanumeric() || "-._~".contains(c) || also.contains(c) {
            bytes.extend(c.encode_utf8(&mut [0; 4]).bytes());
        } else {
            return Err(Error::Character(name.to_owned(), c));
        }
    }
    Ok(bytes)
}

fn hexadecimal(digits: &str) -> bool {
    digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn once<T>(place: &mut Option<T>, name: &'static str, value: T) -> Result<(), Error> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Error::Twice(name)),
    }
}

fn text(place: &mut Option<String>, name: &'static str, bytes: Vec<u8>) -> Result<(), Error> {
    once(place, name, String::from_utf8(bytes).map_err(|_| Error::Utf8(name))?)
}

fn class(bytes: &[u8]) -> Result<Class, Error> {
    let found = Class::NAMES.iter().find(|row| row.1.as_bytes() == bytes);
    let takes = "one of cert, data, private, public, secret-key";
    found.map(|row| row.0).ok_or(Error::Value("type", takes))
}

fn slot_id(bytes: &[u8]) -> Result<u64, Error> {
    number(bytes).ok_or(Error::Value("slot-id", "a decimal number"))
}

fn version(bytes: &[u8]) -> Result<(u8, u8), Error> {
    let mut parts = bytes.splitn(2, |byte| *byte == b'.');
    let major = parts.next().and_then(number);
    let minor = parts.next().map_or(Some(0), number);
    let takes = "a version, as 3 or 3.2";
    major.zip(minor).ok_or(Error::Value("library-version", takes))
}

/// Decimal digits alone: no sign, as `FromStr` would take.
fn number<T: FromStr>(bytes: &[u8]) -> Option<T> {
    let digits = str::from_utf8(bytes).ok()?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}
