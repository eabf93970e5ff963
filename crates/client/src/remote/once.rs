// SPDX-License-Identifier: Apache-2.0
//! What an operation of one call consists of, asked for at once: its answers are waited for together.

use super::request::Request;
use super::wire::{MALFORMED, Reader};
use super::{Parts, Remote, write};
use crate::{Error, Mechanism, Result, Session};
use metaslot_ck::{self as ck, Function, ObjectHandle, SlotId};

/// An operation of one call.
#[derive(Clone, Copy, Debug)]
pub struct Once<'a> {
    /// What begins it, and what it is: `C_SignInit` and `C_Sign`, …
    pub calls: [Function; 2],
    /// The slot that the session has to be of for the result to count.
    pub slot: Option<SlotId>,
    /// What is done.
    pub mechanism: &'a Mechanism<'a>,
    /// By which key, where there is one.
    pub key: Option<ObjectHandle>,
    /// What the second call is given.
    pub data: &'a [&'a [u8]],
}

impl Session {
    /// An operation of one call, where the module is in another process: what it takes is asked for at once, and no answer is waited
    /// for before. How many bytes of the result are in `out`; `None` where the module is in this process.
    ///
    /// # Errors
    /// The code of the first call that failed; `CKR_SESSION_HANDLE_INVALID` where the session is of another slot.
    pub fn at_once(&self, once: &Once<'_>, out: &mut [u8]) -> Option<Result<usize>> {
        let remote = self.module().other_process()?;
        Some(remote.at_once(self.handle().0, once, out))
    }
}

impl Remote {
    fn at_once(&self, session: u64, once: &Once<'_>, out: &mut [u8]) -> Result<usize> {
        let [begins, does] = once.calls;
        let asks = |request: &mut Request| write(request, &[session]);
        let begin = |request: &mut Request| {
            asks(request)?;
            request.mechanism(once.mechanism)?;
            write(request, once.key.as_ref().map_or(&[][..], |key| std::slice::from_ref(&key.0)))
        };
        let run = |request: &mut Request| {
            asks(request)?;
            once.data.iter().for_each(|data| request.parts.bytes(Some(data)));
            if has_result(does) {
                request.parts.half(u32::try_from(out.len().max(1)).unwrap_or(u32::MAX));
            }
            Ok(())
        };
        let whose = once.slot.map(|_| (Function::GetSessionInfo, &asks as Parts<'_>));
        let all = whose.into_iter().chain([(begins, &begin as Parts<'_>), (does, &run)]);
        let mut calls = Vec::with_capacity(3);
        let mut requests = Vec::with_capacity(3);
        for (function, parts) in all {
            let (call, request) =
                self.request(function, parts).map_err(|code| Error::new(function, code))?;
            calls.push(call);
            requests.push(request);
        }
        let answers = self.carrier.exchange_all(&requests);
        let answers = answers.map_err(|code| Error::new(begins, code))?;
        if answers.len() != calls.len() {
            return Err(Error::new(begins, MALFORMED));
        }
        let mut answers = calls.into_iter().zip(&answers).map(|(call, answer)| {
            let failed = |code| Error::new(call.function, code);
            (call.function, Reader::answer(answer, call).map_err(failed))
        });
        let mut next = || answers.next().expect("it was counted").1;
        if let Some(slot) = once.slot {
            is_of(slot, next())?;
        }
        next()?;
        let mut result = next()?;
        let failed = |code| Error::new(does, code);
        if !has_result(does) {
            return Ok(0);
        }
        let bytes = result.bytes().map_err(failed)?;
        let bytes = bytes.map_err(|_| failed(ck::Error::BUFFER_TOO_SMALL))?;
        let room = out.get_mut(..bytes.len()).ok_or_else(|| failed(ck::Error::BUFFER_TOO_SMALL))?;
        room.copy_from_slice(bytes);
        Ok(bytes.len())
    }
}

/// Whether a session is of this slot, or its module cannot say of which it is.
fn is_of(slot: SlotId, info: Result<Reader<'_>>) -> Result<()> {
    let failed = |code| Error::new(Function::GetSessionInfo, code);
    match info {
        Ok(mut info) => match info.number().map_err(failed)? == slot.0 {
            true => Ok(()),
            false => Err(failed(ck::Error::SESSION_HANDLE_INVALID)),
        },
        Err(refused) if refused.code == ck::Error::FUNCTION_NOT_SUPPORTED => Ok(()),
        Err(refused) => Err(refused),
    }
}

const fn has_result(function: Function) -> bool {
    !matches!(function, Function::Verify)
}
