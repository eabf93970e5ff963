// SPDX-License-Identifier: Apache-2.0
//! One file of vectors: groups that share parameters, vectors in them, hexadecimal values.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, Result};
use metaslot_ck::ObjectHandle;
use serde_json::Value;

/// A file of vectors.
pub(crate) struct File(Value);

/// What a vector says about itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Expected {
    Valid,
    Invalid,
    /// Either answer is right.
    Acceptable,
}

/// What the module did with a vector.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It computed or took what the vector says.
    Accepted,
    /// It refused, or computed something else; the text says which.
    Refused(String),
    /// This cannot be expressed through the C ABI.
    NotApplicable,
}

/// One vector with its group.
pub(crate) struct Vector<'a> {
    algorithm: &'a str,
    group: &'a Value,
    test: &'a Value,
    /// The key of the group, once it was made.
    key: Rc<Cell<Option<ObjectHandle>>>,
}

impl File {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read(path).with_context(|| format!("read {}", path.display()))?;
        Ok(Self(serde_json::from_slice(&text).context("parse the vectors")?))
    }

    pub(crate) fn vectors(&self) -> impl Iterator<Item = Vector<'_>> {
        let algorithm = self.0["algorithm"].as_str().unwrap_or_default();
        let groups = self.0["testGroups"].as_array().into_iter().flatten();
        groups.flat_map(move |group| {
            let tests = group["tests"].as_array().into_iter().flatten();
            let key = Rc::default();
            tests.map(move |test| Vector { algorithm, group, test, key: Rc::clone(&key) })
        })
    }
}

impl Vector<'_> {
    pub(crate) fn number(&self) -> u64 {
        self.test["tcId"].as_u64().unwrap_or_default()
    }

    /// The key of the group, which is made for the first of its vectors and stays until the session ends.
    pub(crate) fn key_of_group<E>(
        &self,
        make: impl FnOnce() -> Result<ObjectHandle, E>,
    ) -> Result<ObjectHandle, E> {
        let key = self.key.get().map_or_else(make, Ok)?;
        self.key.set(Some(key));
        Ok(key)
    }

    /// Is this the file's algorithm?
    pub(crate) fn is_file_of(&self, algorithm: &str) -> bool {
        self.algorithm == algorithm
    }

    pub(crate) fn comment(&self) -> &str {
        self.test["comment"].as_str().unwrap_or_default()
    }

    pub(crate) fn expected(&self) -> Expected {
        match self.test["result"].as_str() {
            Some("valid") => Expected::Valid,
            Some("acceptable") => Expected::Acceptable,
            _ => Expected::Invalid,
        }
    }

    /// A hexadecimal value of the vector.
    pub(crate) fn bytes(&self, name: &str) -> Result<Vec<u8>> {
        hex(&self.test[name]).with_context(|| format!("the value {name}"))
    }

    /// Has the vector this value?
    pub(crate) fn has(&self, name: &str) -> bool {
        self.test[name].is_string()
    }

    /// Has the group?
    pub(crate) fn group_has(&self, name: &str) -> bool {
        self.group[name].is_string()
    }

    /// A hexadecimal value of the group.
    pub(crate) fn group_bytes(&self, name: &str) -> Result<Vec<u8>> {
        hex(&self.group[name]).with_context(|| format!("the group's {name}"))
    }

    /// A part of a key written as JSON, which is in base64.
    pub(crate) fn web_key_part(&self, key: &str, name: &str) -> Result<Vec<u8>> {
        let text = self.test[key][name].as_str();
        text.and_then(base64).with_context(|| format!("{name} of {key}"))
    }

    /// A word in a key written as JSON.
    pub(crate) fn web_key_word(&self, key: &str, name: &str) -> &str {
        self.test[key][name].as_str().unwrap_or_default()
    }

    /// A number of the vector.
    pub(crate) fn number_of(&self, name: &str) -> Result<u64> {
        self.test[name].as_u64().with_context(|| format!("the number {name}"))
    }

    /// A word of the group.
    pub(crate) fn word(&self, name: &str) -> &str {
        self.group[name].as_str().unwrap_or_default()
    }

    /// A size of the group, which is in bits, as bytes.
    pub(crate) fn size(&self, name: &str) -> usize {
        let bits = self.group[name].as_u64().unwrap_or_default();
        usize::try_from(bits / 8).unwrap_or_default()
    }

    /// A number of the group.
    pub(crate) fn group_number(&self, name: &str) -> u64 {
        self.group[name].as_u64().unwrap_or_default()
    }

    /// A hexadecimal part of the group's key.
    pub(crate) fn key_part(&self, key: &str, name: &str) -> Result<Vec<u8>> {
        hex(&self.group[key][name]).with_context(|| format!("{name} of {key}"))
    }

    /// Does the group's key have this part?
    pub(crate) fn has_key_part(&self, key: &str, name: &str) -> bool {
        self.group[key][name].is_string()
    }

    /// A word in the group's key.
    pub(crate) fn key_word(&self, key: &str, name: &str) -> &str {
        self.group[key][name].as_str().unwrap_or_default()
    }
}

impl Verdict {
    /// Judges a computed value.
    pub(crate) fn of(computed: metaslot_client::Result<Vec<u8>>, expected: &[u8]) -> Self {
        match computed {
            Ok(value) if value == expected => Self::Accepted,
            Ok(value) => Self::Refused(format!("{} other bytes", value.len())),
            Err(error) => Self::Refused(error.to_string()),
        }
    }

    /// Judges a verification.
    pub(crate) fn of_check(checked: metaslot_client::Result<()>) -> Self {
        match checked {
            Ok(()) => Self::Accepted,
            Err(error) => Self::Refused(error.to_string()),
        }
    }

    pub(crate) const fn is_accepted(&self) -> bool {
        matches!(self, Self::Accepted)
    }
}

pub(crate) fn hex(value: &Value) -> Result<Vec<u8>> {
    let text = value.as_str().context("no text")?.as_bytes();
    // Numbers of an odd count of digits occur where a leading zero was left out.
    let (first, pairs) = text.split_at(text.len() % 2);
    let mut bytes = Vec::with_capacity(text.len() / 2 + 1);
    for pair in first.chunks(1).chain(pairs.chunks(2)) {
        let digits = std::str::from_utf8(pair)?;
        bytes.push(u8::from_str_radix(digits, 16)?);
    }
    Ok(bytes)
}

/// RFC 4648 §5, without padding.
fn base64(text: &str) -> Option<Vec<u8>> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let (mut bytes, mut held, mut bits) = (Vec::new(), 0_u32, 0);
    for letter in text.bytes() {
        let digit = DIGITS.iter().position(|known| *known == letter)?;
        held = (held << 6 | u32::try_from(digit).ok()?) & 0xffff;
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            bytes.push(u8::try_from(held >> bits & 0xff).ok()?);
        }
    }
    Some(bytes)
}
