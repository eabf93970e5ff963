// SPDX-License-Identifier: Apache-2.0
//! What arrives, of the length that was said before it.

use metaslot_client::Message;
use std::io::{self, ErrorKind, Read};

/// Of a message that is said to be longer, memory is taken as it arrives.
const CHUNK: usize = 1 << 16;

/// Whether all of `room` was filled, rather than nothing of it.
pub(crate) fn filled(stream: &mut impl Read, room: &mut [u8]) -> io::Result<bool> {
    loop {
        match stream.read(room) {
            Ok(0) => return Ok(false),
            Ok(read) => return stream.read_exact(&mut room[read..]).map(|()| true),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A part of a message, of the length that its header says.
pub(crate) fn part(stream: &mut impl Read, length: [u8; 4], longest: usize) -> io::Result<Message> {
    let length = usize::try_from(u32::from_be_bytes(length)).ok();
    let length = length.filter(|length| *length <= longest).ok_or_else(malformed)?;
    let mut message = Message::default();
    while message.as_ref().len() < length {
        let there = message.as_ref().len();
        let more = (length - there).min(there.max(CHUNK));
        message.grow(more).ok_or(ErrorKind::OutOfMemory)?;
        stream.read_exact(&mut message.as_mut()[there..])?;
    }
    Ok(message)
}

pub(crate) fn malformed() -> io::Error {
    ErrorKind::InvalidData.into()
}
