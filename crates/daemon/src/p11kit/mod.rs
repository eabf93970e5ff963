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

use connection::{Asked, Connection};
use metaslot_ck::{CKR_OK, Error, Function, Result};
use metaslot_client::Message;
use metaslot_client::protocol::{Call, MALFORMED, Reader, Writer};
use metaslot_counters as counters;
use metaslot_engine::Engine;
use metaslot_wiring::caught::caught;
use std::io;
use std::os::unix::net::UnixStream;

/// Serves one client, until it has gone; then its sessions are closed.
///
/// # Errors
/// Where the connection breaks in the middle of a message, or one is longer than any that is served.
pub fn serve(stream: UnixStream, engine: &Engine) -> io::Result<()> {
    let mut stream = stream;
    let Some(version) = frame::greet(&mut stream)? else { return Ok(()) };
    let mut connection = Connection::new(engine, version);
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
        work(Asked { connection: self, call, request, answer })
    }
}
