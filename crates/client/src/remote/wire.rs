// SPDX-License-Identifier: Apache-2.0
//! What requests and answers of p11-kit's protocol are made of, for both sides: numbers with their highest byte first, and
//! what is in a message said by a signature at its beginning.

use super::calls::Call;
use super::kinds::Kind;
use metaslot_ck::{self as ck, CK_ATTRIBUTE_TYPE};
use std::borrow::Cow;

type Result<T> = std::result::Result<T, ck::Error>;

/// Where bytes would stand, and there are none.
pub const NO_BYTES: u32 = u32::MAX;
/// Of a message that is not in the form that it says.
pub const MALFORMED: ck::Error = ck::Error::DEVICE_ERROR;

/// Bytes on their way; they are zeroised on drop, as they may be a PIN or the value of a key.
#[derive(Default)]
pub struct Message(Vec<u8>);

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        self.0.fill(0);
        // Or the compiler could leave out what nothing reads.
        std::hint::black_box(&mut self.0[..]);
    }
}

impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl AsMut<[u8]> for Message {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl Message {
    /// So many bytes, to be filled; none without the memory.
    #[must_use]
    pub fn zeroed(length: usize) -> Option<Self> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).ok()?;
        bytes.resize(length, 0);
        Some(Self(bytes))
    }

    /// A copy.
    #[must_use]
    pub fn copy_of(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// So many zeros more, to be filled; `None` without the memory.
    pub fn grow(&mut self, more: usize) -> Option<()> {
        let needed = self.0.len().checked_add(more)?;
        self.make_room(needed)?;
        self.0.resize(needed, 0);
        Some(())
    }

    /// These bytes more; `None` without the memory.
    pub fn add(&mut self, bytes: &[u8]) -> Option<()> {
        let needed = self.0.len().checked_add(bytes.len())?;
        self.make_room(needed)?;
        self.0.extend_from_slice(bytes);
        Some(())
    }

    fn extend(&mut self, bytes: &[u8]) {
        self.add(bytes).expect("there is memory for a message");
    }

    /// Where there is no room it moves, and leaves nothing behind.
    fn make_room(&mut self, needed: usize) -> Option<()> {
        if needed > self.0.capacity() {
            let mut larger = Vec::new();
            larger.try_reserve_exact(needed.checked_next_power_of_two()?.max(256)).ok()?;
            larger.extend_from_slice(&self.0);
            drop(std::mem::replace(self, Self(larger)));
        }
        Some(())
    }
}

/// A message that is being written.
#[derive(Debug, Default)]
pub struct Writer(Message);

impl Writer {
    /// What follows a header, which is its sender's to fill.
    #[must_use]
    pub fn after(header: Message) -> Self {
        Self(header)
    }

    /// What was written.
    #[must_use]
    pub fn finish(self) -> Message {
        self.0
    }

    /// How many bytes were written.
    #[must_use]
    pub const fn length(&self) -> usize {
        self.0.0.len()
    }

    /// Which call it belongs to, and what is in it.
    pub fn begin(&mut self, number: u32, signature: &str) {
        self.half(number);
        self.counted(signature.as_bytes());
    }

    /// One byte.
    pub fn byte(&mut self, byte: u8) {
        self.0.extend(&[byte]);
    }

    /// A number of four bytes: a count, or the room for an answer.
    pub fn half(&mut self, number: u32) {
        self.0.extend(&number.to_be_bytes());
    }

    /// A number of the standard.
    pub fn number(&mut self, number: u64) {
        self.0.extend(&number.to_be_bytes());
    }

    /// A number of bytes, or of other things.
    pub fn count(&mut self, count: usize) {
        self.half(u32::try_from(count).unwrap_or(NO_BYTES));
    }

    /// Bytes with their number before them.
    pub fn counted(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.raw(bytes);
    }

    /// Bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    /// Bytes that may be none at all.
    pub fn bytes(&mut self, bytes: Option<&[u8]>) {
        self.byte(u8::from(bytes.is_some()));
        self.counted(bytes.unwrap_or_default());
    }

    /// How many bytes or numbers there would be.
    pub fn absent(&mut self, count: usize) {
        self.byte(0);
        self.count(count);
    }

    /// A list of numbers.
    pub fn numbers(&mut self, numbers: &[u64]) {
        self.byte(1);
        self.count(numbers.len());
        numbers.iter().for_each(|number| self.number(*number));
    }

    /// An attribute whose value cannot be said.
    ///
    /// # Errors
    /// `CKR_ATTRIBUTE_TYPE_INVALID` where the protocol has no place for its number.
    pub fn unavailable(&mut self, attribute: CK_ATTRIBUTE_TYPE) -> Result<()> {
        self.half(u32::try_from(attribute).map_err(|_| ck::Error::ATTRIBUTE_TYPE_INVALID)?);
        self.byte(0);
        Ok(())
    }

    /// What stands before the value of an attribute, which is so long as the C ABI has it.
    ///
    /// # Errors
    /// `CKR_ATTRIBUTE_TYPE_INVALID` where the protocol has no place for its number.
    pub fn available(&mut self, attribute: CK_ATTRIBUTE_TYPE, length: usize) -> Result<()> {
        self.half(u32::try_from(attribute).map_err(|_| ck::Error::ATTRIBUTE_TYPE_INVALID)?);
        self.byte(1);
        self.count(length);
        Ok(())
    }

    /// A value, from what it is in the C ABI.
    ///
    /// # Errors
    /// `CKR_ATTRIBUTE_VALUE_INVALID` where it is not of this kind.
    pub fn value(&mut self, kind: Kind, bytes: &[u8]) -> Result<()> {
        match (kind, bytes) {
            (Kind::Byte, [byte]) => self.byte(*byte),
            (Kind::Number, bytes) => {
                let bytes = bytes.try_into().map_err(|_| ck::Error::ATTRIBUTE_VALUE_INVALID)?;
                self.number(u64::from_ne_bytes(bytes));
            }
            (Kind::Bytes, bytes) => self.counted(bytes),
            (Kind::Numbers, bytes) => {
                let (numbers, []) = bytes.as_chunks() else {
                    return Err(ck::Error::ATTRIBUTE_VALUE_INVALID);
                };
                self.count(numbers.len());
                numbers.iter().for_each(|number| self.number(u64::from_ne_bytes(*number)));
            }
            (Kind::Byte | Kind::Template, _) => return Err(ck::Error::ATTRIBUTE_VALUE_INVALID),
        }
        Ok(())
    }
}

/// A message that is being read. What another process says is believed to be of the right form only where it is.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// From its beginning.
    #[must_use]
    pub const fn new(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    /// What the call gave, or its error.
    ///
    /// # Errors
    /// The call's, and [`MALFORMED`] for an answer that no module gives.
    pub fn answer(message: &'a Message, call: &Call) -> Result<Self> {
        let mut answer = Self::new(&message.0);
        match answer.begin()? {
            (0, b"u") => Err(ck::Error::check(answer.number()?).err().unwrap_or(MALFORMED)),
            (number, signature) if number == call.number && signature == call.answer.as_bytes() => {
                Ok(answer)
            }
            _ => Err(MALFORMED),
        }
    }

    /// Which call it belongs to, and what is said to be in it.
    ///
    /// # Errors
    /// [`MALFORMED`], here and below.
    pub fn begin(&mut self) -> Result<(u32, &'a [u8])> {
        Ok((self.half()?, self.counted()?.ok_or(MALFORMED)?))
    }

    /// Nothing follows.
    ///
    /// # Errors
    /// [`MALFORMED`]
    pub const fn end(&self) -> Result<()> {
        if self.rest.is_empty() { Ok(()) } else { Err(MALFORMED) }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(MALFORMED)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| MALFORMED)
    }

    /// One byte.
    ///
    /// # Errors
    /// [`MALFORMED`]
    pub fn byte(&mut self) -> Result<u8> {
        self.array().map(|[byte]| byte)
    }

    /// A number of four bytes.
    ///
    /// # Errors
    /// [`MALFORMED`]
    pub fn half(&mut self) -> Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// A number of the standard.
    ///
    /// # Errors
    /// [`MALFORMED`]
    pub fn number(&mut self) -> Result<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// A number of bytes, or of other things.
    ///
    /// # Errors
    /// [`MALFORMED`]
    pub fn count(&mut self) -> Result<usize> {
        usize::try_from(self.half()?).map_err(|_| MALFORMED)
    }

    pub(super) fn text(&mut self) -> Result<String> {
        Ok(crate::info::text(self.counted()?.ok_or(MALFORMED)?))
    }

    /// Bytes with their number before them, or none.
    ///
    /// # Errors
    /// [`MALFORMED`]
    pub fn counted(&mut self) -> Result<Option<&'a [u8]>> {
        match self.half()? {
            NO_BYTES => Ok(None),
            length => self.take(usize::try_from(length).map_err(|_| MALFORMED)?).map(Some),
        }
    }

    /// Bytes, or how many they would be.
    ///
    /// # Errors
    /// [`MALFORMED`]
    pub fn bytes(&mut self) -> Result<std::result::Result<&'a [u8], usize>> {
        match self.byte()? {
            0 => Ok(Err(self.count()?)),
            _ => Ok(Ok(self.counted()?.ok_or(MALFORMED)?)),
        }
    }

    /// Numbers, or how many they would be.
    ///
    /// # Errors
    /// [`MALFORMED`]
    pub fn numbers(&mut self) -> Result<std::result::Result<Vec<u64>, usize>> {
        let there = self.byte()? != 0;
        let count = self.count()?;
        if !there {
            return Ok(Err(count));
        }
        let numbers = self.take(count.checked_mul(8).ok_or(MALFORMED)?)?.as_chunks().0;
        Ok(Ok(numbers.iter().map(|number| u64::from_be_bytes(*number)).collect()))
    }

    /// What stands before the value of an attribute: its number, and, where there is a value, its length in the C ABI.
    ///
    /// # Errors
    /// [`MALFORMED`]
    pub fn attribute(&mut self) -> Result<(CK_ATTRIBUTE_TYPE, Option<usize>)> {
        let attribute = CK_ATTRIBUTE_TYPE::from(self.half()?);
        let there = self.byte()? != 0;
        Ok((attribute, there.then(|| self.count()).transpose()?))
    }

    /// A value, as the C ABI has it. An array of attributes is for its reader to take apart.
    ///
    /// # Errors
    /// [`MALFORMED`]
    pub fn value(&mut self, kind: Kind) -> Result<Cow<'a, [u8]>> {
        Ok(match kind {
            Kind::Byte => Cow::Borrowed(self.take(1)?),
            Kind::Number => Cow::Owned(self.number()?.to_ne_bytes().to_vec()),
            Kind::Bytes => Cow::Borrowed(self.counted()?.unwrap_or_default()),
            Kind::Numbers => {
                let length = self.count()?.checked_mul(8).ok_or(MALFORMED)?;
                let numbers = self.take(length)?.as_chunks::<8>().0;
                numbers.iter().flat_map(|one| u64::from_be_bytes(*one).to_ne_bytes()).collect()
            }
            Kind::Template => return Err(MALFORMED),
        })
    }
}
