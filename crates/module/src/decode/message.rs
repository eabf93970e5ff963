// SPDX-License-Identifier: Apache-2.0
//! Parameters of single messages. Everything is copied, and what is made for a message is put back when its call has
//! succeeded: an IV that was generated, and the tag.

use super::mechanism::nonce_bytes;
use super::{Caller, Given};
use metaslot_ck::mechanism::{MechanismRow, Shape};
use metaslot_ck::*;
use metaslot_spi::{Bytes, Message};
use std::ffi::c_void;

/// No tag is longer, in bytes.
const LONGEST_TAG: CK_ULONG = 16;

/// What a call does with the tag of its message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Tag {
    /// It is not there yet.
    Later,
    /// It is written.
    Made,
    /// It is read.
    Given,
}

/// The parameter of a message, and where it is the caller's.
pub(crate) struct MessageAt<'a> {
    pub(crate) message: Message,
    iv: Given<'a, u8>,
    tag: Given<'a, u8>,
}

/// What the structures have in common, by the names of GCM's.
struct Fields {
    shape: Shape,
    iv: (*mut CK_BYTE, CK_ULONG),
    fixed_bits: CK_ULONG,
    generator: CK_ULONG,
    tag: (*mut CK_BYTE, CK_ULONG),
    data_length: CK_ULONG,
}

impl<'a> Caller<'a> {
    /// The mechanism of several messages. The parameter is that of a message, which comes with each of them, or none.
    ///
    /// # Errors
    /// `CKR_ARGUMENTS_BAD`, `CKR_MECHANISM_INVALID`, `CKR_MECHANISM_PARAM_INVALID`
    pub(crate) fn message_mechanism(
        self,
        at: Given<'a, CK_MECHANISM>,
    ) -> Result<(CK_MECHANISM_TYPE, Message)> {
        let raw = at.read()?;
        let row = MechanismRow::find(raw.mechanism).ok_or(Error::MECHANISM_INVALID)?;
        let message = Message::plain(row.shape).ok_or(Error::MECHANISM_INVALID)?;
        match raw.ulParameterLen == 0 || shape(raw.ulParameterLen) == Some(row.shape) {
            true => Ok((raw.mechanism, message)),
            false => Err(Error::MECHANISM_PARAM_INVALID),
        }
    }

    /// The parameter of a message. Nothing is read of one whose length is not that of this shape.
    ///
    /// # Errors
    /// `CKR_MECHANISM_PARAM_INVALID`, `CKR_HOST_MEMORY`
    pub(crate) fn message(
        self,
        (at, length): (Given<'a, c_void>, CK_ULONG),
        shape: Shape,
        tag: Tag,
    ) -> Result<MessageAt<'a>> {
        self.decoded(at, length, shape, tag).map_err(|error| match error {
            Error::ARGUMENTS_BAD => Error::MECHANISM_PARAM_INVALID,
            other => other,
        })
    }

    fn decoded(
        self,
        at: Given<'a, c_void>,
        length: CK_ULONG,
        wanted: Shape,
        tag: Tag,
    ) -> Result<MessageAt<'a>> {
        let shape = shape(length).filter(|shape| *shape == wanted);
        let fields = self.fields(at, shape.ok_or(Error::MECHANISM_PARAM_INVALID)?)?;
        let (tag_at, tag_length) = (Given::inside(fields.tag.0), fields.tag.1);
        if tag_length > LONGEST_TAG || tag != Tag::Later && tag_at.is_null() {
            return Err(Error::MECHANISM_PARAM_INVALID);
        }
        let message = Message {
            shape: fields.shape,
            iv: self.owned(fields.iv.0, fields.iv.1)?,
            fixed_bits: fields.fixed_bits,
            generator: fields.generator,
            tag: match tag {
                Tag::Given => self.owned(fields.tag.0, tag_length)?,
                Tag::Later | Tag::Made => {
                    Bytes::from_elem(0, usize::try_from(tag_length).unwrap_or(0))
                }
            },
            data_length: fields.data_length,
        };
        Ok(MessageAt { message, iv: Given::inside(fields.iv.0), tag: tag_at })
    }

    fn fields(self, at: Given<'a, c_void>, shape: Shape) -> Result<Fields> {
        let at = at.pointer();
        match shape {
            shape @ Shape::Gcm => {
                let p = Given::<CK_GCM_MESSAGE_PARAMS>::inside(at.cast()).read()?;
                if !p.ulTagBits.is_multiple_of(8) {
                    return Err(Error::MECHANISM_PARAM_INVALID);
                }
                Ok(Fields {
                    shape,
                    iv: (p.pIv, p.ulIvLen),
                    fixed_bits: p.ulIvFixedBits,
                    generator: p.ivGenerator,
                    tag: (p.pTag, p.ulTagBits / 8),
                    data_length: 0,
                })
            }
            shape @ Shape::Ccm => {
                let p = Given::<CK_CCM_MESSAGE_PARAMS>::inside(at.cast()).read()?;
                Ok(Fields {
                    shape,
                    iv: (p.pNonce, p.ulNonceLen),
                    fixed_bits: p.ulNonceFixedBits,
                    generator: p.nonceGenerator,
                    tag: (p.pMAC, p.ulMACLen),
                    data_length: p.ulDataLen,
                })
            }
            shape => {
                let p =
                    Given::<CK_SALSA20_CHACHA20_POLY1305_MSG_PARAMS>::inside(at.cast()).read()?;
                Ok(Fields {
                    shape,
                    iv: (p.pNonce, nonce_bytes(p.ulNonceLen)),
                    fixed_bits: 0,
                    generator: CKG_NO_GENERATE,
                    tag: (p.pTag, LONGEST_TAG),
                    data_length: 0,
                })
            }
        }
    }
}

impl MessageAt<'_> {
    /// Puts back the IV that was made for a message.
    ///
    /// # Errors
    /// None: it was read from there.
    pub(crate) fn put_iv(&self, caller: Caller<'_>) -> Result<()> {
        if self.message.generator == CKG_NO_GENERATE {
            return Ok(());
        }
        caller.items(self.message.iv.iter().copied(), Given::inside(self.iv.pointer()))
    }

    /// Puts back the tag.
    ///
    /// # Errors
    /// None: that there is a place was seen before.
    pub(crate) fn put_tag(&self, caller: Caller<'_>) -> Result<()> {
        caller.items(self.message.tag.iter().copied(), Given::inside(self.tag.pointer()))
    }
}

/// Whose parameter is so long: no two have the same length.
fn shape(length: CK_ULONG) -> Option<Shape> {
    const LENGTHS: [(usize, Shape); 3] = [
        (size_of::<CK_GCM_MESSAGE_PARAMS>(), Shape::Gcm),
        (size_of::<CK_CCM_MESSAGE_PARAMS>(), Shape::Ccm),
        (size_of::<CK_SALSA20_CHACHA20_POLY1305_MSG_PARAMS>(), Shape::ChaCha20Poly1305),
    ];
    let found = LENGTHS.iter().find(|(known, _)| *known as CK_ULONG == length);
    found.map(|(_, shape)| *shape)
}
