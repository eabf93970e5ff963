// SPDX-License-Identifier: Apache-2.0
//! Requests and answers in the form of p11-kit's protocol: numbers with their highest byte first, and what is in a message
//! said by a signature at its beginning.

use super::kinds::{Kind, has_no_parameter, kind};
use crate::{Mechanism, Params, Template, Value};
use metaslot_ck::{
    self as ck, CK_ATTRIBUTE_TYPE, CK_MECHANISM_TYPE, CKM_RSA_PKCS_OAEP, CKM_RSA_PKCS_PSS,
    CKZ_DATA_SPECIFIED, Function,
};
use std::sync::atomic::{Ordering, compiler_fence};

type Result<T> = std::result::Result<T, ck::Error>;

/// Where bytes would stand, and there are none.
const NO_BYTES: u32 = u32::MAX;
/// From this version on a mechanism says whether it has a parameter.
const SAYS_PARAMETERS: u8 = 2;

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
        compiler_fence(Ordering::SeqCst);
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

    pub(super) fn copy_of(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }

    /// Where there is no room it moves, and leaves nothing behind.
    fn extend(&mut self, bytes: &[u8]) {
        let needed = self.0.len() + bytes.len();
        if needed > self.0.capacity() {
            let mut larger = Vec::with_capacity(needed.next_power_of_two().max(256));
            larger.extend_from_slice(&self.0);
            drop(std::mem::replace(self, Self(larger)));
        }
        self.0.extend_from_slice(bytes);
    }
}

/// One call's number and what its request and its answer consist of.
pub(super) struct Call {
    pub(super) function: Function,
    pub(super) number: u32,
    pub(super) request: &'static str,
    pub(super) answer: &'static str,
}

/// A request that is being written.
pub(super) struct Request {
    message: Message,
    version: u8,
}

impl Request {
    pub(super) fn new(call: &Call, version: u8) -> Self {
        let mut request = Self { message: Message::default(), version };
        request.half(call.number);
        request.counted(call.request.as_bytes());
        request
    }

    pub(super) const fn message(&self) -> &Message {
        &self.message
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.message.extend(&[byte]);
    }

    /// A number of four bytes: a count, or the room for an answer.
    pub(super) fn half(&mut self, number: u32) {
        self.message.extend(&number.to_be_bytes());
    }

    pub(super) fn number(&mut self, number: u64) {
        self.message.extend(&number.to_be_bytes());
    }

    fn count(&mut self, count: usize) {
        self.half(u32::try_from(count).unwrap_or(NO_BYTES));
    }

    /// Bytes with their number before them.
    pub(super) fn counted(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.message.extend(bytes);
    }

    /// Bytes that may be none at all.
    pub(super) fn bytes(&mut self, bytes: Option<&[u8]>) {
        self.byte(u8::from(bytes.is_some()));
        self.counted(bytes.unwrap_or_default());
    }

    pub(super) fn template(&mut self, template: &Template) -> Result<()> {
        self.count(template.len());
        template.iter().try_for_each(|(attribute, value)| self.attribute(attribute, value))
    }

    fn attribute(&mut self, attribute: CK_ATTRIBUTE_TYPE, value: &Value) -> Result<()> {
        let kind = kind(attribute).ok_or(ck::Error::ATTRIBUTE_TYPE_INVALID)?;
        self.half(u32::try_from(attribute).map_err(|_| ck::Error::ATTRIBUTE_TYPE_INVALID)?);
        self.byte(1);
        let one;
        let eight;
        let bytes = match value {
            Value::Bool(flag) => {
                one = [u8::from(*flag)];
                &one[..]
            }
            Value::Ulong(number) => {
                eight = number.to_ne_bytes();
                &eight[..]
            }
            Value::Bytes(bytes) => bytes,
            Value::Mechanisms(list) if kind == Kind::Numbers => {
                self.count(list.len() * 8);
                self.count(list.len());
                list.iter().for_each(|number| self.number(*number));
                return Ok(());
            }
            Value::Mechanisms(_) | Value::Template(_) => {
                return Err(ck::Error::ATTRIBUTE_VALUE_INVALID);
            }
        };
        self.count(bytes.len());
        match (kind, bytes) {
            (Kind::Byte, [byte]) => self.byte(*byte),
            (Kind::Number, bytes) => {
                let bytes = bytes.try_into().map_err(|_| ck::Error::ATTRIBUTE_VALUE_INVALID)?;
                self.number(u64::from_ne_bytes(bytes));
            }
            (Kind::Bytes, bytes) => self.counted(bytes),
            (Kind::Byte | Kind::Numbers, _) => return Err(ck::Error::ATTRIBUTE_VALUE_INVALID),
        }
        Ok(())
    }

    pub(super) fn mechanism(&mut self, mechanism: &Mechanism<'_>) -> Result<()> {
        let number = mechanism.number;
        self.half(u32::try_from(number).map_err(|_| ck::Error::MECHANISM_INVALID)?);
        let plain = has_no_parameter(number);
        let has = !matches!(mechanism.params, Params::None);
        match (self.version >= SAYS_PARAMETERS, plain) {
            (true, true) if !has => return Ok(()),
            (true, false) => self.byte(u8::from(has)),
            (false, true) if !has => {
                self.half(NO_BYTES);
                return Ok(());
            }
            (false, false) if has => {}
            _ => return Err(ck::Error::MECHANISM_PARAM_INVALID),
        }
        match (number, mechanism.params) {
            (CKM_RSA_PKCS_PSS, Params::Pss { hash, mgf, salt_length }) => {
                [hash, mgf, salt_length].into_iter().for_each(|number| self.number(number));
            }
            (CKM_RSA_PKCS_OAEP, Params::Oaep { hash, mgf, label }) => {
                [hash, mgf, CKZ_DATA_SPECIFIED].into_iter().for_each(|number| self.number(number));
                self.counted(label);
            }
            (CKM_RSA_PKCS_PSS | CKM_RSA_PKCS_OAEP, _) => {
                return Err(ck::Error::MECHANISM_PARAM_INVALID);
            }
            (_, Params::Bytes(bytes)) => self.counted(bytes),
            _ => return Err(ck::Error::MECHANISM_PARAM_INVALID),
        }
        Ok(())
    }
}

/// An answer that is being read. What another process says is believed to be of the right form only where it is.
pub(super) struct Answer<'a> {
    rest: &'a [u8],
}

/// An answer that no module gives.
pub(super) const WRONG: ck::Error = ck::Error::DEVICE_ERROR;

impl<'a> Answer<'a> {
    /// What the call gave, or its error.
    pub(super) fn read(message: &'a Message, call: &Call) -> Result<Self> {
        let mut answer = Self { rest: &message.0 };
        let number = answer.half()?;
        let signature = answer.counted()?.ok_or(WRONG)?;
        match (number, signature) {
            (0, b"u") => Err(ck::Error::check(answer.number()?).err().unwrap_or(WRONG)),
            (number, signature) if number == call.number && signature == call.answer.as_bytes() => {
                Ok(answer)
            }
            _ => Err(WRONG),
        }
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(WRONG)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| WRONG)
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn half(&mut self) -> Result<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn number(&mut self) -> Result<u64> {
        self.array().map(u64::from_be_bytes)
    }

    pub(super) fn text(&mut self) -> Result<String> {
        Ok(crate::info::text(self.counted()?.ok_or(WRONG)?))
    }

    fn counted(&mut self) -> Result<Option<&'a [u8]>> {
        match self.half()? {
            NO_BYTES => Ok(None),
            length => self.take(usize::try_from(length).map_err(|_| WRONG)?).map(Some),
        }
    }

    /// Bytes, or how many they would be.
    pub(super) fn bytes(&mut self) -> Result<std::result::Result<&'a [u8], usize>> {
        match self.byte()? {
            0 => Ok(Err(usize::try_from(self.half()?).map_err(|_| WRONG)?)),
            _ => Ok(Ok(self.counted()?.ok_or(WRONG)?)),
        }
    }

    /// Numbers, or how many they would be.
    pub(super) fn numbers(&mut self) -> Result<std::result::Result<Vec<u64>, usize>> {
        let there = self.byte()? != 0;
        let count = usize::try_from(self.half()?).map_err(|_| WRONG)?;
        if !there {
            return Ok(Err(count));
        }
        let numbers = self.take(count.checked_mul(8).ok_or(WRONG)?)?.as_chunks().0;
        Ok(Ok(numbers.iter().map(|number| u64::from_be_bytes(*number)).collect()))
    }

    /// One attribute: its number, and its value where there is one, as the C ABI has it.
    pub(super) fn attribute(&mut self) -> Result<(CK_ATTRIBUTE_TYPE, Option<Vec<u8>>)> {
        let attribute = CK_ATTRIBUTE_TYPE::from(self.half()?);
        if self.byte()? == 0 {
            return Ok((attribute, None));
        }
        let length = usize::try_from(self.half()?).map_err(|_| WRONG)?;
        let value = match kind(attribute).ok_or(WRONG)? {
            Kind::Byte => vec![self.byte()?],
            Kind::Number => self.number()?.to_ne_bytes().to_vec(),
            Kind::Bytes => self.counted()?.unwrap_or_default().to_vec(),
            Kind::Numbers => {
                let count = usize::try_from(self.half()?).map_err(|_| WRONG)?;
                let numbers = self.take(count.checked_mul(8).ok_or(WRONG)?)?.as_chunks::<8>().0;
                numbers.iter().flat_map(|one| u64::from_be_bytes(*one).to_ne_bytes()).collect()
            }
        };
        // One that is empty is written as if it were not.
        Ok((attribute, Some(if length == 0 { Vec::new() } else { value })))
    }
}

/// Whether a mechanism can be asked for in every version of the protocol.
pub(super) fn carries(mechanism: CK_MECHANISM_TYPE) -> bool {
    has_no_parameter(mechanism) || super::kinds::has_parameter(mechanism)
}
