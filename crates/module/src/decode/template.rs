// SPDX-License-Identifier: Apache-2.0
//! Templates: arrays of `CK_ATTRIBUTE`.

use super::{Caller, Given, MAX_ATTRIBUTES, check_room};
use metaslot_ck::attribute::{AttributeRow, DEEPEST, Kind};
use metaslot_ck::*;
use metaslot_memory::Secret;
use metaslot_spi::{RawValue, Template};

/// No single attribute is longer, in bytes.
const LONGEST: CK_ULONG = 1 << 28;

impl<'a> Caller<'a> {
    /// An array of attributes, copied.
    ///
    /// # Errors
    /// `CKR_ARGUMENTS_BAD`, `CKR_ATTRIBUTE_VALUE_INVALID`
    pub(crate) fn template(self, at: Given<'a, CK_ATTRIBUTE>, count: CK_ULONG) -> Result<Template> {
        self.nested(&at, count, 0)
    }

    fn nested(
        self,
        at: &Given<'a, CK_ATTRIBUTE>,
        count: CK_ULONG,
        depth: usize,
    ) -> Result<Template> {
        if count > MAX_ATTRIBUTES || depth > DEEPEST {
            return Err(Error::ARGUMENTS_BAD);
        }
        // `count` is small, so the conversion cannot fail.
        let count = usize::try_from(count).unwrap_or(0);
        let mut template = Template::with_capacity(count);
        for index in 0..count {
            let attribute = at.nth(index)?.read()?;
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
            let array = Given::inside(at.cast());
            return self.nested(&array, length / size, depth + 1).map(RawValue::Template);
        }
        let bytes = self.bytes(Given::inside(at.cast()), length);
        let bytes = bytes.map_err(|_| Error::ATTRIBUTE_VALUE_INVALID)?;
        check_room(bytes.len())?;
        Ok(if AttributeRow::can_be_secret(attribute.type_) {
            RawValue::Secret(Secret::try_copy_of(bytes).ok_or(Error::HOST_MEMORY)?)
        } else {
            RawValue::Bytes(bytes.to_vec())
        })
    }
}
