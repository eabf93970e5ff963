// SPDX-License-Identifier: Apache-2.0
//! What arrives, of the length that was said before it.

use metaslot_client::Message;
use std::io::{self, ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Of a message that is said to be longer, memory is taken as it arrives.
const CHUNK: usize = 1 << 16;

/// Who stops in the middle of a message, or of an answer to be read, is waited for so long.
pub(crate) fn be_patient(stream: &UnixStream, patience: Duration) -> io::Result<()> {
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))
}

/// Whether all of `room` was filled, rather than nothing of it. Its first byte is waited for without end: there is no message yet.
pub(crate) fn filled(stream: &mut impl Read, room: &mut [u8]) -> io::Result<bool> {
    loop {
        match stream.read(room) {
            Ok(0) => return Ok(false),
            Ok(read) => return stream.read_exact(&mut room[read..]).map(|()| true),
            Err(error)
                if [ErrorKind::Interrupted, ErrorKind::WouldBlock].contains(&error.kind()) => {}
            Err(error) => return Err(error),
        }
    }
}

/// What a header says of a length.
pub(crate) fn length_of(said: [u8; 4], longest: usize) -> io::Result<usize> {
    let length = usize::try_from(u32::from_be_bytes(said)).ok();
    length.filter(|length| *length <= longest).ok_or_else(malformed)
}

/// A part of a message, of this length.
pub(crate) fn part(stream: &mut impl Read, length: usize) -> io::Result<Message> {
    let mut message = Message::default();
    while message.as_ref().len() < length {
        let there = message.as_ref().len();
        let more = (length - there).min(there.max(CHUNK));
        message.grow(more).ok_or(ErrorKind::OutOfMemory)?;
        stream.read_exact(&mut message.as_mut()[there..])?;
    }
    Ok(message)
}

/// The beginning of a message of this length, of which the rest is not kept.
pub(crate) fn beginning(stream: &mut impl Read, length: usize) -> io::Result<Message> {
    let beginning = part(stream, length.min(CHUNK))?;
    let mut rest = length - beginning.as_ref().len();
    let mut passed = Message::zeroed(rest.min(CHUNK)).ok_or(ErrorKind::OutOfMemory)?;
    while rest > 0 {
        let now = rest.min(CHUNK);
        stream.read_exact(&mut passed.as_mut()[..now])?;
        rest -= now;
    }
    Ok(beginning)
}

pub(crate) fn malformed() -> io::Error {
    ErrorKind::InvalidData.into()
}
