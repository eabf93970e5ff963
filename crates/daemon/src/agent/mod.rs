// SPDX-License-Identifier: Apache-2.0
//! OpenSSH's agent protocol: `ssh`, `ssh-add -l` and `ssh-keygen -Y sign` use the keys of a token.
//!
//! Keys are neither added nor removed through this door, and no certificates are told.

mod keys;
mod sign;

use crate::stream::{be_patient, beginning, filled, length_of, part};
use crate::told;
use keys::Pair;
use metaslot_ck::{CKF_SERIAL_SESSION, CKF_SIGN, Error, Result, SessionHandle};
use metaslot_client::Message;
use metaslot_client::protocol::{Reader, Writer};
use metaslot_counters::clients::{Count, Level};
use metaslot_engine::Engine;
use metaslot_wiring::Company;
use metaslot_wiring::caught::caught;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// The longest message in either direction, in bytes, as OpenSSH has it.
const LONGEST: usize = 1 << 18;
/// What an answer takes at most while it is made: its keys, all of it, and all of it behind its length.
const ANSWER: usize = 3 * LONGEST;

/// Messages of the protocol.
const FAILURE: u8 = 5;
const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;

/// Serves one client with the keys of all tokens, until it has gone.
///
/// Nothing stays of a request, for which there is room while it is answered. No PIN is asked for: there are the keys that an engine has without a login.
///
/// # Errors
/// Where the connection breaks or stalls in the middle of a message, or one is longer than any that is served.
pub fn serve(stream: impl Into<Arc<UnixStream>>, client: &crate::Client) -> io::Result<()> {
    let crate::Client { engine, allowance, seat, .. } = client;
    let stream = stream.into();
    let mut stream = &*stream;
    be_patient(stream, client.patience)?;
    let _serves = Company::one_more();
    let open = |slot| engine.open_session(slot, CKF_SERIAL_SESSION).ok();
    let client = Client { engine, sessions: engine.slot_list(true).filter_map(open).collect() };
    let mut length = [0; 4];
    while filled(&mut stream, &mut length)? {
        let length = length_of(length, LONGEST)?;
        let room = allowance.room(length + ANSWER);
        let answer = match &room {
            Some(_) => client.answer(&part(&mut stream, length)?),
            None => {
                beginning(&mut stream, length)?;
                framed(failure())
            }
        };
        seat.add(Count::Calls, 1);
        seat.add(Count::Received, length as u64);
        seat.add(Count::Sent, answer.as_ref().len() as u64);
        // Behind its length.
        match answer.as_ref().get(4) {
            Some(&SIGN_RESPONSE) => seat.add(Count::Operations, 1),
            Some(&FAILURE) => seat.add(Count::Errors, 1),
            _ => {}
        }
        if room.is_none() {
            seat.add(Count::NoMemory, 1);
        }
        seat.set(Level::Sessions, client.sessions.len());
        let [taken, allowed] = allowance.levels();
        seat.set(Level::Memory, taken);
        seat.set(Level::Allowed, allowed);
        stream.write_all(answer.as_ref())?;
        drop(room);
    }
    Ok(())
}

fn failure() -> Writer {
    let mut answer = Writer::default();
    answer.byte(FAILURE);
    answer
}

/// Behind its length.
fn framed(answer: Writer) -> Message {
    let mut framed = Writer::default();
    framed.counted(answer.finish().as_ref());
    framed.finish()
}

/// A client has sessions of its own.
struct Client<'e> {
    engine: &'e Engine,
    /// One for each token.
    sessions: Vec<SessionHandle>,
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        for session in &self.sessions {
            // With its token it may have gone before.
            self.engine.close_session(*session).ok();
        }
    }
}

impl Client<'_> {
    /// What a request is answered with, behind its length.
    fn answer(&self, request: &Message) -> Message {
        let answered = caught(|| self.perform(&mut Reader::new(request.as_ref())));
        framed(answered.unwrap_or_else(|error| {
            told::failed(error);
            failure()
        }))
    }

    fn perform(&self, request: &mut Reader<'_>) -> Result<Writer> {
        match request.byte()? {
            REQUEST_IDENTITIES => {
                request.end()?;
                self.identities()
            }
            SIGN_REQUEST => self.sign(request),
            _ => Err(Error::FUNCTION_NOT_SUPPORTED),
        }
    }

    /// Those of each token; one that fails has none.
    fn keys(&self) -> impl Iterator<Item = (SessionHandle, Pair)> {
        self.sessions.iter().flat_map(|session| {
            let keys = keys::all(self.engine, *session).into_iter().flatten();
            keys.map(|key| (*session, key))
        })
    }

    fn identities(&self) -> Result<Writer> {
        let (mut count, mut list) = (0, Writer::default());
        for (_, key) in self.keys() {
            // What no message holds is left out.
            if list.length() + key.blob.len() + key.comment.len() + 64 < LONGEST {
                list.counted(&key.blob);
                list.counted(key.comment.as_bytes());
                count += 1;
            }
        }
        let mut answer = Writer::default();
        answer.byte(IDENTITIES_ANSWER);
        answer.count(count);
        answer.raw(list.finish().as_ref());
        Ok(answer)
    }

    fn sign(&self, request: &mut Reader<'_>) -> Result<Writer> {
        let mut text = || request.counted()?.ok_or(Error::ARGUMENTS_BAD);
        let (blob, data) = (text()?, text()?);
        let flags = request.half()?;
        request.end()?;
        let found = self.keys().find(|(_, key)| key.blob == blob);
        let (session, key) = found.ok_or(Error::KEY_HANDLE_INVALID)?;
        let signature = sign::signature(self.engine, session, &key, data, flags);
        // Nothing of one that failed is left for the next.
        let failed = |_: &Error| self.engine.session_cancel(session, CKF_SIGN).unwrap_or(());
        let signature = signature.inspect_err(failed)?;
        let mut answer = Writer::default();
        answer.byte(SIGN_RESPONSE);
        answer.counted(&signature);
        Ok(answer)
    }
}
