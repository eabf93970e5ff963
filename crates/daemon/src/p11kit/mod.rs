// SPDX-License-Identifier: Apache-2.0
//! The server's side of p11-kit's protocol: `p11-kit-client.so` of any distribution is a client, and our library, by a version of the
//! protocol that is our own.

mod arguments;
mod attributes;
mod calls;
mod connection;
mod door;
mod frame;
mod general;
mod kept;
mod keys;
mod mechanism;
mod message;
mod objects;
mod sessions;
mod shapes;
mod text;

use crate::stream::be_patient;
use crate::tokens::Client;
use crate::told;
use connection::{Asked, Connection};
use door::Door;
use frame::Request;
use metaslot_ck::{CKR_DEVICE_MEMORY, CKR_OK, Error, Function, Result, SessionHandle, SlotId};
use metaslot_client::Message;
use metaslot_client::protocol::{Call, MALFORMED, OWN, Reader, Writer};
use metaslot_counters as counters;
use metaslot_counters::clients::{Count, Level};
use metaslot_engine::OperationKind;
use metaslot_wiring::Company;
use metaslot_wiring::audit::{Act, Log, Note, audited};
use metaslot_wiring::caught::caught;
use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// Serves one client, until it has gone; then its sessions are closed.
///
/// # Errors
/// Where the connection breaks or stalls in the middle of a message, or one is longer than any that is served.
pub fn serve(stream: impl Into<Arc<UnixStream>>, client: &Client) -> io::Result<()> {
    serve_to(OWN, stream, client)
}

/// The same, by no newer version of the protocol than this.
///
/// # Errors
/// As [`serve`].
pub fn serve_to(newest: u8, stream: impl Into<Arc<UnixStream>>, client: &Client) -> io::Result<()> {
    let stream = stream.into();
    be_patient(&stream, client.patience)?;
    let mut stream = Door::new(stream)?;
    let Some(version) = frame::greet(&mut stream)? else { return Ok(()) };
    let _serves = Company::one_more();
    let mut connection = Connection::new(client, newest, version);
    let kept = |connection: &mut Connection<'_>, length| connection.kept.under_way(length).is_ok();
    while let Some((code, request)) =
        frame::read(&mut stream, |length| kept(&mut connection, length))?
    {
        if client.has_ended() {
            break;
        }
        let answer = match request {
            Request::Whole(request) => {
                if takes_long(&request) {
                    stream.flush()?;
                }
                connection.answer(&request)
            }
            Request::TooLong(beginning) => connection.refuse(&beginning),
        };
        stream.answer(&frame::finished(code, answer)?)?;
        connection.kept.arrived();
    }
    Ok(())
}

/// Whether a call may take long, as one that makes a key, tries a PIN or waits for others that write does. Another thread of the client
/// may wait for an answer before it.
fn takes_long(request: &Message) -> bool {
    let number = Reader::new(request.as_ref()).begin().map(|(number, _)| number);
    let call = number.ok().and_then(Call::numbered);
    call.is_some_and(|call| Act::logged(call.function).is_some())
}

/// What ends an operation, or uses a key or random numbers otherwise.
const ENDS: [Function; 24] = [
    Function::Digest,
    Function::DigestFinal,
    Function::Encrypt,
    Function::EncryptFinal,
    Function::Decrypt,
    Function::DecryptFinal,
    Function::Sign,
    Function::SignFinal,
    Function::SignRecover,
    Function::Verify,
    Function::VerifyFinal,
    Function::VerifyRecover,
    Function::SignMessage,
    Function::SignMessageNext,
    Function::VerifyMessage,
    Function::VerifyMessageNext,
    Function::GenerateKey,
    Function::GenerateKeyPair,
    Function::WrapKey,
    Function::UnwrapKey,
    Function::DeriveKey,
    Function::EncapsulateKey,
    Function::DecapsulateKey,
    Function::GenerateRandom,
];

/// Whether a call is one of them.
fn ends_operation(request: &Message) -> bool {
    let number = Reader::new(request.as_ref()).begin().map(|(number, _)| number);
    let call = number.ok().and_then(Call::numbered);
    call.is_some_and(|call| ENDS.contains(&call.function))
}

impl Connection<'_> {
    /// What a request is answered with, behind room for a header.
    fn answer(&mut self, request: &Message) -> Message {
        let mut answer = frame::answer();
        let result = caught(|| self.perform(request, &mut answer));
        let answer = match result {
            Ok(()) => answer.finish(),
            Err(failed) => {
                told::failed(failed);
                failure(failed)
            }
        };
        self.count(request, result, &answer);
        answer
    }

    /// The same of a request for which there is no room: the operation that it belongs to ends.
    fn refuse(&mut self, beginning: &Message) -> Message {
        let mut request = Reader::new(beginning.as_ref());
        let call = request.begin().ok().and_then(|(number, _)| Call::numbered(number));
        if let (Some(call), Ok(session)) = (call, request.number()) {
            self.engine.fail_active(SessionHandle(session), OperationKind::of(call.function));
            self.kept.settle(call.function, SessionHandle(session));
            counters::call(call.function, CKR_DEVICE_MEMORY);
        }
        let answer = failure(Error::DEVICE_MEMORY);
        self.count(beginning, Err(Error::DEVICE_MEMORY), &answer);
        answer
    }

    /// For the client's record.
    fn count(&self, request: &Message, result: Result<()>, answer: &Message) {
        let Client { seat, allowance, .. } = self.client;
        seat.add(Count::Calls, 1);
        seat.add(Count::Received, request.as_ref().len() as u64);
        seat.add(Count::Sent, answer.as_ref().len() as u64);
        match result {
            Ok(()) if ends_operation(request) => seat.add(Count::Operations, 1),
            Ok(()) => {}
            Err(error) => {
                seat.add(Count::Errors, 1);
                match error {
                    Error::DEVICE_MEMORY | Error::SESSION_COUNT => seat.add(Count::NoMemory, 1),
                    Error::PIN_INCORRECT => seat.add(Count::WrongPins, 1),
                    _ => {}
                }
            }
        }
        let ([sessions, objects], [taken, allowed]) = (self.kept.levels(), allowance.levels());
        seat.set(Level::Sessions, sessions);
        seat.set(Level::Objects, objects);
        seat.set(Level::Memory, taken);
        seat.set(Level::Allowed, allowed);
    }

    fn perform(&mut self, request: &Message, answer: &mut Writer) -> Result<()> {
        let length = request.as_ref().len();
        let mut request = Reader::new(request.as_ref());
        let (number, signature) = request.begin()?;
        let served = |call: &&Call| !call.is_ours() || self.version >= OWN;
        let call = Call::numbered(number).filter(served).ok_or(Error::FUNCTION_NOT_SUPPORTED)?;
        let result = self.call(call, signature, (request, length), answer);
        counters::call(call.function, result.map_or_else(Error::rv, |()| CKR_OK));
        result
    }

    fn call(
        &mut self,
        call: &'static Call,
        signature: &[u8],
        (request, length): (Reader<'_>, usize),
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
        let session = first.ok().and_then(|handle| self.kept.session(handle).ok());
        // What another thread or process did to the token may be the reason.
        let foremost = |error| session.map_or(error, |session| engine.foremost(session, error));
        let place = |log: &Log| match (session, first) {
            (Some(session), _) => log.place(engine, session),
            (None, Ok(slot)) if call.function == Function::InitToken => {
                log.slot(engine, SlotId(slot))
            }
            (None, _) => String::new(),
        };
        let asked = |note: &mut Note| {
            let done = work(Asked { connection: self, call, request, length, answer, note });
            if let Some(session) = session {
                if matches!(done, Err(Error::DEVICE_MEMORY | Error::HOST_MEMORY)) {
                    // It may be in the middle, and goes no further.
                    engine.fail_active(session, OperationKind::of(call.function));
                }
                self.kept.settle(call.function, session);
            }
            done
        };
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

fn failure(failed: Error) -> Message {
    let mut answer = frame::answer();
    answer.begin(0, "u");
    answer.number(failed.rv());
    answer.finish()
}
