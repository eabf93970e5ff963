// SPDX-License-Identifier: Apache-2.0
//! Answers of `C_GetAttributeValue` (PKCS#11 3.2 §5.7.5), into the caller's template.

use super::{Caller, Given, MAX_ATTRIBUTES};
use metaslot_ck::*;
use metaslot_engine::{Answer, Object};
use metaslot_spi::{Attributes, Value};

impl<'a> Caller<'a> {
    /// Fills what exists and fits, marks the rest as unavailable, and answers with one of the
    /// reasons.
    ///
    /// # Errors
    /// `CKR_ATTRIBUTE_SENSITIVE`, `CKR_ATTRIBUTE_TYPE_INVALID`, `CKR_BUFFER_TOO_SMALL`,
    /// `CKR_ARGUMENTS_BAD`
    pub(crate) fn answer(
        self,
        object: &Object,
        template: Given<'a, CK_ATTRIBUTE>,
        count: CK_ULONG,
    ) -> Result<()> {
        if count > MAX_ATTRIBUTES || (template.is_null() && count > 0) {
            return Err(Error::ARGUMENTS_BAD);
        }
        let mut result = Ok(());
        for index in 0..usize::try_from(count).unwrap_or(0) {
            let at = template.nth(index)?;
            let mut row = at.read()?;
            let filled = object.answer(row.type_).and_then(|answer| self.fill(&mut row, answer));
            if let Err(error) = filled {
                row.ulValueLen = UNAVAILABLE;
                result = Err(error);
            }
            self.place(at)?.set(row);
        }
        result
    }

    fn fill(self, row: &mut CK_ATTRIBUTE, answer: Answer<'_>) -> Result<()> {
        match answer {
            Answer::Secret(bytes) => self.copy(row, bytes),
            Answer::Value(Value::Bool(flag)) => self.copy(row, &[u8::from(*flag)]),
            Answer::Value(Value::Ulong(number)) => self.copy(row, &number.to_ne_bytes()),
            Answer::Value(Value::Bytes(bytes)) => self.copy(row, bytes),
            Answer::Value(Value::Ulongs(numbers)) => {
                let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_ne_bytes()).collect();
                self.copy(row, &bytes)
            }
            Answer::Value(Value::Template(template)) => self.fill_template(row, template),
        }
    }

    fn copy(self, row: &mut CK_ATTRIBUTE, bytes: &[u8]) -> Result<()> {
        let length = bytes.len() as CK_ULONG;
        if !row.pValue.is_null() {
            if row.ulValueLen == UNAVAILABLE || row.ulValueLen < length {
                return Err(Error::BUFFER_TOO_SMALL);
            }
            self.bytes_mut(Given::inside(row.pValue.cast()), length)?.copy_from_slice(bytes);
        }
        row.ulValueLen = length;
        Ok(())
    }

    /// An array of attributes: the caller asks for the array's length, then for the lengths of
    /// the values in it, then for the values.
    fn fill_template(self, row: &mut CK_ATTRIBUTE, template: &Attributes) -> Result<()> {
        let length = (template.len() * size_of::<CK_ATTRIBUTE>()) as CK_ULONG;
        if row.pValue.is_null() {
            row.ulValueLen = length;
            return Ok(());
        }
        if row.ulValueLen == UNAVAILABLE || row.ulValueLen < length {
            return Err(Error::BUFFER_TOO_SMALL);
        }
        let array = Given::<CK_ATTRIBUTE>::inside(row.pValue.cast());
        let mut result = Ok(());
        for (index, (attribute, value)) in template.iter().enumerate() {
            let at = array.nth(index)?;
            let mut inner = at.read()?;
            inner.type_ = attribute;
            if let Err(error) = self.fill(&mut inner, Answer::Value(value)) {
                inner.ulValueLen = UNAVAILABLE;
                result = Err(error);
            }
            self.place(at)?.set(inner);
        }
        row.ulValueLen = length;
        result
    }
}
