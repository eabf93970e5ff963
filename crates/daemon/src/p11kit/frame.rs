// SPDX-License-Identifier: Apache-2.0
//! The beginning of a connection, and the frames that follow: a header of three numbers, options that are not used, a message.

use crate::stream::{beginning, filled, length_of, malformed, part};
use metaslot_client::Message;
use metaslot_client::protocol::{VERSION, Writer};
use std::io::{self, Read, Write};

/// The longest message, in bytes, in either direction.
pub(super) const LONGEST: usize = 1 << 26;
/// The longest options.
const LONGEST_OPTIONS: usize = 1 << 12;
/// A header's length.
const HEADER: usize = 12;

/// The version that both sides speak, after the client has said its own; `None` where it has gone before.
pub(super) fn greet(stream: &mut (impl Read + Write)) -> io::Result<Option<u8>> {
    let mut theirs = [0];
    if !filled(stream, &mut theirs)? {
        return Ok(None);
    }
    let version = theirs[0].min(VERSION);
    stream.write_all(&[version])?;
    Ok(Some(version))
}

/// What a client sent.
#[derive(Debug)]
pub(super) enum Request {
    Whole(Message),
    /// Its beginning: for the rest there is no room.
    TooLong(Message),
}

/// The next message, if there is room for its length, with the number that its answer has to bear; `None` where there is no next
/// one.
pub(super) fn read(
    stream: &mut impl Read,
    has_room: impl FnOnce(usize) -> bool,
) -> io::Result<Option<(u32, Request)>> {
    let mut header = [0; HEADER];
    if !filled(stream, &mut header)? {
        return Ok(None);
    }
    let [code, options, length] = *header.as_chunks().0 else { return Err(malformed()) };
    let code = u32::from_be_bytes(code);
    if code == 0 {
        return Err(malformed());
    }
    part(stream, length_of(options, LONGEST_OPTIONS)?)?;
    let length = length_of(length, LONGEST)?;
    let request = match has_room(length) {
        true => Request::Whole(part(stream, length)?),
        false => Request::TooLong(beginning(stream, length)?),
    };
    Ok(Some((code, request)))
}

/// A message that is written behind room for its header.
pub(super) fn answer() -> Writer {
    let mut header = Message::default();
    header.grow(HEADER).expect("there is memory for a header");
    Writer::after(header)
}

/// What [`answer`] began, with its header.
pub(super) fn finished(code: u32, answer: Message) -> io::Result<Message> {
    let mut answer = answer;
    let length = answer.as_ref().len().checked_sub(HEADER).ok_or_else(malformed)?;
    let length = u32::try_from(length).map_err(|_| malformed())?;
    let header = [code, 0, length].map(u32::to_be_bytes);
    answer.as_mut()[..HEADER].copy_from_slice(header.as_flattened());
    Ok(answer)
}
