// SPDX-License-Identifier: Apache-2.0
//! Templates: arrays of `CK_ATTRIBUTE`.

use super::{Caller, MAX_ATTRIBUTES, check_room};
use metaslot_ck::attribute::{AttributeRow, Kind};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::{DEEPEST, RawValue, Template};

/// No single attribute is longer, in bytes.
const LONGEST: CK_ULONG = 1 << 28;

impl Caller<'_> {
    /// An array of attributes, copied.
    ///
    /// # Errors
    /// `CKR_ARGUMENTS_BAD`, `CKR_ATTRIBUTE_VALUE_INVALID`
    pub(crate) fn template(self, at: *const CK_ATTRIBUTE, count: CK_ULONG) -> Result<Template> {
        self.nested(at, count, 0)
    }

    fn nested(self, at: *const CK_ATTRIBUTE, count: CK_ULONG, depth: usize) -> Result<Template> {
        if count > MAX_ATTRIBUTES || depth > DEEPEST {
            return Err(Error::ARGUMENTS_BAD);
        }
        // `count` is small, so the conversion cannot fail.
        let count = usize::try_from(count).unwrap_or(0);
        let mut template = Template::with_capacity(count);
        for index in 0..count {
            let attribute = self.read(nth(at, index)?)?;
            template.push((attribute.type_, self.value(attribute, depth)?));
        }
        Ok(template)
    }

    fn value(self, attribute: CK_ATTRIBUTE, depth: usize) -> Result<RawValue> {
        let (at, length) = (attribute.pValue, attribute.ulValueLen);
        if length > LONGEST || (at.is_null() && length > 0) {
            return Err(Error::ATTRIBUTE_VALUE_INVALID);
        }
        if AttributeRow::kind_of(attribute.type_) == Some(Kind::Template) {
            let size = size_of::<CK_ATTRIBUTE>() as CK_ULONG;
            if length % size != 0 {
                return Err(Error::ATTRIBUTE_VALUE_INVALID);
            }
            return self.nested(at.cast(), length / size, depth + 1).map(RawValue::Template);
        }
        let bytes = self.bytes(at.cast(), length).map_err(|_| Error::ATTRIBUTE_VALUE_INVALID)?;
        check_room(bytes.len())?;
        Ok(if AttributeRow::can_be_secret(attribute.type_) {
            RawValue::Secret(Secret::try_copy_of(bytes).ok_or(Error::HOST_MEMORY)?)
        } else {
            RawValue::Bytes(bytes.to_vec())
        })
    }
}

/// The place of one element of the caller's array.
///
/// # Errors
/// `CKR_ARGUMENTS_BAD` for NULL.
pub(super) fn nth<T>(at: *const T, index: usize) -> Result<*const T> {
    if at.is_null() { Err(Error::ARGUMENTS_BAD) } else { Ok(at.wrapping_add(index)) }
}
