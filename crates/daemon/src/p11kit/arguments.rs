// SPDX-License-Identifier: Apache-2.0
//! The parts of a request, in their order, and results of variable length.

use super::connection::Asked;
use super::frame::LONGEST;
use metaslot_ck::{Error, ObjectHandle, Result, SessionHandle, SlotId};
use metaslot_client::Message;
use metaslot_client::protocol::NO_BYTES;
use metaslot_engine::{OperationKind, Output};

/// No secret that a client gives (a PIN) is longer, in bytes.
const LONGEST_PIN: usize = 4096;
/// By how much a result is usually longer than what it is made of.
const USUAL: usize = 1 << 13;

/// The room that a client has for a result.
#[derive(Clone, Copy)]
pub(super) enum Room {
    /// It wants the length only.
    Asked,
    /// So many bytes or numbers.
    Of(usize),
}

impl<'m> Asked<'m, '_, '_> {
    pub(super) fn session(&mut self) -> Result<SessionHandle> {
        let handle = self.request.number()?;
        self.connection.kept.session(handle)
    }

    pub(super) fn slot(&mut self) -> Result<SlotId> {
        self.request.number().map(SlotId)
    }

    pub(super) fn object(&mut self) -> Result<ObjectHandle> {
        self.request.number().map(ObjectHandle)
    }

    /// Bytes, or NULL.
    ///
    /// # Errors
    /// `CKR_ARGUMENTS_BAD` for NULL with a length.
    pub(super) fn optional(&mut self) -> Result<Option<&'m [u8]>> {
        if self.request.byte()? != 0 {
            return self.request.counted();
        }
        if self.request.count()? == 0 { Ok(None) } else { Err(Error::ARGUMENTS_BAD) }
    }

    /// Bytes to read; none where there are NULL and no length.
    pub(super) fn data(&mut self) -> Result<&'m [u8]> {
        Ok(self.optional()?.unwrap_or_default())
    }

    /// A PIN that the client has to give.
    pub(super) fn pin(&mut self) -> Result<&'m [u8]> {
        self.optional_pin()?.ok_or(Error::ARGUMENTS_BAD)
    }

    /// A PIN, or that there is another way to show one.
    pub(super) fn optional_pin(&mut self) -> Result<Option<&'m [u8]>> {
        let pin = self.optional()?;
        match pin.is_some_and(|pin| pin.len() > LONGEST_PIN) {
            true => Err(Error::PIN_LEN_RANGE),
            false => Ok(pin),
        }
    }

    pub(super) fn room(&mut self) -> Result<Room> {
        Ok(match self.request.half()? {
            0 => Room::Asked,
            // A buffer, and nothing in it.
            NO_BYTES => Room::Of(0),
            room => Room::Of(usize::try_from(room).unwrap_or(usize::MAX)),
        })
    }

    /// Room for a list of numbers.
    pub(super) fn room_for_numbers(&mut self) -> Result<Room> {
        let room = self.request.count()?;
        Ok(if room == 0 { Room::Asked } else { Room::Of(room) })
    }

    /// The arguments of an operation, behind which nothing follows. Where they cannot be decoded, the operation ends.
    pub(super) fn decoded<T>(
        &mut self,
        session: SessionHandle,
        arguments: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let decoded = arguments(self).and_then(|decoded| self.request.end().map(|()| decoded));
        decoded.inspect_err(|_| {
            let kinds = OperationKind::of(self.call.function);
            self.connection.engine.fail_active(session, kinds);
        })
    }

    /// A result of variable length (PKCS#11 3.2 §5.2). The client is not believed to have as much room as it says: no more is
    /// taken than the result is long. Says whether it has been given.
    pub(super) fn fill(
        &mut self,
        room: Room,
        expected: usize,
        mut work: impl FnMut(&mut Output<'_>) -> Result<()>,
    ) -> Result<bool> {
        let Room::Of(room) = room else {
            let mut out = Output::ask();
            work(&mut out)?;
            self.answer.absent(out.length());
            return Ok(false);
        };
        let mut taken = room.min(expected.saturating_add(USUAL)).min(LONGEST);
        let mut before = 0;
        loop {
            // Once here, once in the answer.
            self.connection.kept.under_way(2 * (taken - before))?;
            let mut buffer = Message::zeroed(taken).ok_or(Error::HOST_MEMORY)?;
            let mut out = Output::buffer(buffer.as_mut());
            let done = work(&mut out);
            let length = out.length();
            match done {
                Ok(()) => {
                    self.answer.bytes(buffer.as_ref().get(..length));
                    return Ok(true);
                }
                Err(Error::BUFFER_TOO_SMALL) if length <= taken || length > room => {
                    self.answer.absent(length);
                    return Ok(false);
                }
                Err(Error::BUFFER_TOO_SMALL) if length > LONGEST => return Err(Error::HOST_MEMORY),
                Err(Error::BUFFER_TOO_SMALL) => (before, taken) = (taken, length),
                Err(error) => return Err(error),
            }
        }
    }

    /// A list of which the client may first ask the length.
    pub(super) fn list(&mut self, room: Room, list: &[u64]) {
        match room {
            Room::Of(room) if list.len() <= room => self.answer.numbers(list),
            _ => self.answer.absent(list.len()),
        }
    }
}
