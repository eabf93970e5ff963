// SPDX-License-Identifier: Apache-2.0
//! The server's side of p11-kit's protocol: `p11-kit-client.so` of any distribution is a client.

mod arguments;
mod attributes;
mod calls;
mod connection;
mod frame;
mod general;
mod keys;
mod mechanism;
mod message;
mod objects;
mod sessions;
mod shapes;
mod text;

use crate::stream::be_patient;
use crate::tokens::Client;
use connection::{Asked, Connection};
use metaslot_ck::{CKR_OK, Error, Function, Result, SlotId};
use metaslot_client::Message;
use metaslot_client::protocol::{Call, MALFORMED, Reader, Writer};
use metaslot_counters as counters;
use metaslot_wiring::audit::{Act, Log, Note, audited};
use metaslot_wiring::caught::caught;
use std::io;
use std::os::unix::net::UnixStream;

/// Serves one client, until it has gone; then its sessions are closed.
///
/// # Errors
/// Where the connection breaks or stalls in the middle of a message, or one is longer than any that is served.
pub fn serve(stream: UnixStream, client: &Client) -> io::Result<()> {
    let mut stream = stream;
    be_patient(&stream, client.patience)?;
    let Some(version) = frame::greet(&mut stream)? else { return Ok(()) };
    let mut connection = Connection::new(client, version);
    while let Some((code, request)) = frame::read(&mut stream)? {
        let answer = connection.answer(&request);
        drop(request);
        frame::write(&mut stream, code, answer)?;
    }
    Ok(())
}

impl Connection<'_> {
    /// What a request is answered with, behind room for a header.
    fn answer(&mut self, request: &Message) -> Message {
        let mut answer = frame::answer();
        let Err(failed) = caught(|| self.perform(request, &mut answer)) else {
            return answer.finish();
        };
        let mut answer = frame::answer();
        answer.begin(0, "u");
        answer.number(failed.rv());
        answer.finish()
    }

    fn perform(&mut self, request: &Message, answer: &mut Writer) -> Result<()> {
        let mut request = Reader::new(request.as_ref());
        let (number, signature) = request.begin()?;
        let call = Call::numbered(number).ok_or(Error::FUNCTION_NOT_SUPPORTED)?;
        let result = self.call(call, signature, request, answer);
        counters::call(call.function, result.map_or_else(Error::rv, |()| CKR_OK));
        result
    }

    fn call(
        &mut self,
        call: &'static Call,
        signature: &[u8],
        request: Reader<'_>,
        answer: &mut Writer,
    ) -> Result<()> {
        if signature != call.request.as_bytes() {
            return Err(MALFORMED);
        }
        if !self.initialized && call.function != Function::Initialize {
            return Err(Error::CRYPTOKI_NOT_INITIALIZED);
        }
        let work = calls::work(call.function).ok_or(Error::FUNCTION_NOT_SUPPORTED)?;
        answer.begin(call.number, call.answer);
        let Client { engine, log, .. } = self.client;
        let first = request.clone().number();
        let session = first.ok().and_then(|handle| self.session(handle).ok());
        // What another thread or process did to the token may be the reason.
        let foremost = |error| session.map_or(error, |session| engine.foremost(session, error));
        let place = |log: &Log| match (session, first) {
            (Some(session), _) => log.place(engine, session),
            (None, Ok(slot)) if call.function == Function::InitToken => {
                log.slot(engine, SlotId(slot))
            }
            (None, _) => String::new(),
        };
        let asked = |note: &mut Note| work(Asked { connection: self, call, request, answer, note });
        match (Act::logged(call.function), log) {
            (Some(act), log) => {
                audited(log.as_ref(), act, place, |note| asked(note).map_err(foremost))
            }
            (None, log) => asked(&mut Note::default()).map_err(|error| {
                let error = foremost(error);
                if let Some(log) = log {
                    log.refused(call.function.name(), error, || place(log));
                }
                error
            }),
        }
    }
}
