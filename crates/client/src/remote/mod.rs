// SPDX-License-Identifier: Apache-2.0
//! A module in a process of its own, by the protocol of p11-kit, or by a version of it that is our own.
//!
//! Trusted is nothing: what the other process says is bytes until it has been read. What carries them is the caller's.

pub(crate) mod calls;
pub(crate) mod kinds;
mod lane;
mod nested;
mod once;
pub(crate) mod params;
mod patience;
mod request;
pub(crate) mod version;
pub(crate) mod wire;

pub use lane::{Found, Lane, Lanes};
pub use once::Once;
pub use patience::Patience;
pub use wire::Message;

use crate::{
    Error, Mechanism, MechanismInfo, Result, SessionInfo, SlotInfo, Template, TokenInfo, length,
};
use calls::{Call, GREETING};
use kinds::Kind;
use metaslot_ck::{self as ck, *};
use request::Request;
use std::ffi::CStr;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use version::{OFFER, OWN, VERSION};
use wire::{MALFORMED, Reader};

/// Carries requests to the process, and its answers back.
pub trait Carrier: fmt::Debug + Send + Sync {
    /// Starts the process; the version of the protocol that it speaks.
    ///
    /// # Errors
    /// `CKR_CRYPTOKI_ALREADY_INITIALIZED` where it runs.
    fn start(&self) -> std::result::Result<u8, ck::Error>;
    /// The newest version of the protocol that is offered to the process: one that is [our own](OWN), or p11-kit's alone.
    fn offers(&self) -> u8 {
        OWN
    }
    /// Ends the process.
    fn end(&self);
    /// One request, and its answer.
    ///
    /// # Errors
    /// `CKR_CRYPTOKI_NOT_INITIALIZED` where the process does not run, or runs no more.
    fn exchange(&self, request: &[u8]) -> std::result::Result<Message, ck::Error>;
    /// Several requests, of which the other side answers one after the other, and as many answers.
    ///
    /// # Errors
    /// As [`Self::exchange`]: then nothing is known of what became of any of them.
    fn exchange_all(&self, requests: &[Message]) -> std::result::Result<Vec<Message>, ck::Error> {
        requests.iter().map(|request| self.exchange(request.as_ref())).collect()
    }
}

#[derive(Debug)]
pub(crate) struct Remote {
    carrier: Arc<dyn Carrier>,
    version: AtomicU8,
}

/// Room for what attributes and results usually are.
const USUAL: usize = 4096;
/// How many slots, mechanisms and objects are asked for at once.
const MANY: usize = 256;

/// Whether a part of a request was written.
type Begun = std::result::Result<(), ck::Error>;
/// How many mechanisms are asked about at once: both sides have room for so much that is on its way.
const TOGETHER: usize = 32;

/// What a request consists of, beside its beginning.
type Parts<'a> = &'a dyn Fn(&mut Request) -> Begun;

impl Remote {
    pub(crate) fn new(carrier: Arc<dyn Carrier>) -> Self {
        Self { carrier, version: AtomicU8::new(0) }
    }

    fn version(&self) -> u8 {
        self.version.load(Ordering::Relaxed)
    }

    pub(crate) fn is_own(&self) -> bool {
        self.version() >= OWN
    }

    /// One call. What is not carried is not supported.
    fn call<T>(
        &self,
        function: Function,
        parts: Parts<'_>,
        read: impl FnOnce(&mut Reader<'_>) -> std::result::Result<T, ck::Error>,
    ) -> Result<T> {
        let asked = || {
            let (call, request) = self.request(function, parts)?;
            let answer = self.carrier.exchange(request.as_ref())?;
            read(&mut Reader::answer(&answer, call)?)
        };
        asked().map_err(|code| Error::new(function, code))
    }

    fn request(
        &self,
        function: Function,
        parts: Parts<'_>,
    ) -> std::result::Result<(&'static Call, Message), ck::Error> {
        let version = self.version();
        let call = Call::asked(function, version).ok_or(ck::Error::FUNCTION_NOT_SUPPORTED)?;
        let mut request = Request::new(call, version);
        parts(&mut request)?;
        Ok((call, request.finish()))
    }

    /// A call of numbers that gives nothing.
    pub(crate) fn tell(&self, function: Function, numbers: &[u64]) -> Result<()> {
        self.call(function, &|request| write(request, numbers), |_| Ok(()))
    }

    /// A call of numbers that gives one.
    pub(crate) fn number(&self, function: Function, numbers: &[u64]) -> Result<u64> {
        self.call(function, &|request| write(request, numbers), |answer| answer.number())
    }

    /// `C_SetOperationState`
    pub(crate) fn set_operation_state(
        &self,
        session: u64,
        state: &[u8],
        [encryption, authentication]: [ObjectHandle; 2],
    ) -> Result<()> {
        let parts = |request: &mut Request| {
            request.parts.number(session);
            request.parts.bytes(Some(state));
            write(request, &[encryption.0, authentication.0])
        };
        self.call(Function::SetOperationState, &parts, |_| Ok(()))
    }

    /// A call of a session's number and bytes that gives nothing.
    pub(crate) fn input(&self, function: Function, session: u64, data: &[&[u8]]) -> Result<()> {
        let parts = |request: &mut Request| {
            request.parts.number(session);
            data.iter().for_each(|bytes| request.parts.bytes(Some(bytes)));
            Ok(())
        };
        self.call(function, &parts, |_| Ok(()))
    }

    /// A call that gives bytes: so many as there is room for, or how many they would be. Its request ends with the room, and its answer
    /// with what `more` reads.
    fn output<T>(
        &self,
        function: Function,
        begin: Parts<'_>,
        out: &mut [u8],
        more: impl FnOnce(&mut Reader<'_>) -> std::result::Result<T, ck::Error>,
    ) -> Result<(std::result::Result<usize, usize>, T)> {
        let parts = |request: &mut Request| {
            begin(request)?;
            // No room would be the question for the length.
            request.parts.half(u32::try_from(out.len().max(1)).unwrap_or(u32::MAX));
            Ok(())
        };
        let ((given, length), more) = self.call(function, &parts, |answer| {
            let given = match answer.bytes()? {
                Ok(bytes) => (Message::copy_of(bytes), bytes.len()),
                Err(length) => (Message::default(), length),
            };
            Ok((given, more(answer)?))
        })?;
        let given = given.as_ref();
        match out.get_mut(..given.len()) {
            Some(room) if given.len() == length => {
                room.copy_from_slice(given);
                Ok((Ok(length), more))
            }
            _ => Ok((Err(length), more)),
        }
    }

    /// What such a call of an operation has.
    fn of_session(session: u64, data: Option<&[u8]>) -> impl Fn(&mut Request) -> Begun {
        move |request| {
            request.parts.number(session);
            if data.is_some() {
                request.parts.bytes(data);
            }
            Ok(())
        }
    }

    /// As a function with a buffer does it.
    pub(crate) fn output_into(
        &self,
        function: Function,
        session: u64,
        data: Option<&[u8]>,
        out: &mut [u8],
    ) -> Result<usize> {
        let short = |_| Error::new(function, ck::Error::BUFFER_TOO_SMALL);
        let begin = Self::of_session(session, data);
        self.output(function, &begin, out, |_| Ok(()))?.0.map_err(short)
    }

    /// The same, with the room that it needs.
    pub(crate) fn output_of(
        &self,
        function: Function,
        session: u64,
        data: Option<&[u8]>,
    ) -> Result<Vec<u8>> {
        let usual = data.map_or(0, <[u8]>::len) + USUAL;
        let begin = Self::of_session(session, data);
        self.whole_output(function, usual, &begin, |_| Ok(())).map(|(out, ())| out)
    }

    /// What a call gives, with the room that is usual or the one that it then says, and what follows.
    fn whole_output<T>(
        &self,
        function: Function,
        usual: usize,
        begin: Parts<'_>,
        more: impl Fn(&mut Reader<'_>) -> std::result::Result<T, ck::Error>,
    ) -> Result<(Vec<u8>, T)> {
        let mut out = crate::room(function, crate::ulong(usual), 0)?;
        let (mut length, mut rest) = self.output(function, begin, &mut out, &more)?;
        if let Err(longer) = length {
            out = crate::room(function, crate::ulong(longer), 0)?;
            (length, rest) = self.output(function, begin, &mut out, &more)?;
        }
        let short = |_| Error::new(function, ck::Error::BUFFER_TOO_SMALL);
        out.truncate(length.map_err(short)?);
        Ok((out, rest))
    }

    /// `C_WrapKey`
    pub(crate) fn wrap(
        &self,
        session: u64,
        mechanism: &Mechanism<'_>,
        [wrapping, key]: [ObjectHandle; 2],
    ) -> Result<Vec<u8>> {
        let begin = |request: &mut Request| {
            request.parts.number(session);
            request.mechanism(mechanism)?;
            write(request, &[wrapping.0, key.0])
        };
        self.whole_output(Function::WrapKey, USUAL, &begin, |_| Ok(())).map(|(wrapped, ())| wrapped)
    }

    /// `C_EncapsulateKey`
    pub(crate) fn encapsulate(
        &self,
        session: u64,
        mechanism: &Mechanism<'_>,
        public: ObjectHandle,
        template: &Template,
    ) -> Result<(Vec<u8>, ObjectHandle)> {
        let begin = |request: &mut Request| {
            request.parts.number(session);
            request.mechanism(mechanism)?;
            request.parts.number(public.0);
            request.template(template)
        };
        let secret = |answer: &mut Reader<'_>| answer.number().map(ObjectHandle);
        self.whole_output(Function::EncapsulateKey, USUAL, &begin, secret)
    }

    /// All bytes that were asked for: fewer are none.
    pub(crate) fn random(&self, session: u64, bytes: &mut [u8]) -> Result<()> {
        match self.output_into(Function::GenerateRandom, session, None, bytes)? {
            length if length == bytes.len() => Ok(()),
            _ => Err(Error::new(Function::GenerateRandom, MALFORMED)),
        }
    }

    pub(crate) fn initialize(&self, reserved: Option<&CStr>) -> Result<()> {
        let started = self.carrier.start();
        let version = started.map_err(|code| Error::new(Function::Initialize, code))?;
        self.version.store(version, Ordering::Relaxed);
        let newest = self.carrier.offers();
        let offers = reserved.is_none() && version >= VERSION && newest >= OWN;
        let offer = [OFFER, &[newest]].concat();
        let none = if offers { &offer[..] } else { &[] };
        let parts = |request: &mut Request| {
            request.parts.bytes(Some(GREETING));
            request.parts.byte(u8::from(reserved.is_some()));
            request.parts.bytes(Some(reserved.map_or(none, CStr::to_bytes_with_nul)));
            Ok(())
        };
        let agreed = |answer: &mut Reader<'_>| match answer.end() {
            Ok(()) => Ok(version),
            Err(_) => {
                let agreed = answer.byte()?;
                let can_be = offers && (OWN..=newest).contains(&agreed);
                answer.end().and(if can_be { Ok(agreed) } else { Err(MALFORMED) })
            }
        };
        let begun = self.call(Function::Initialize, &parts, agreed);
        let agreed = begun.inspect_err(|_| self.carrier.end())?;
        self.version.store(agreed, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn finalize(&self) -> Result<()> {
        let ended = self.tell(Function::Finalize, &[]);
        self.carrier.end();
        ended
    }

    /// A list, in one portion or, where it is longer, in one that is long enough.
    fn list(
        &self,
        function: Function,
        begin: impl Fn(&mut Request),
        most: usize,
    ) -> Result<std::result::Result<Vec<u64>, usize>> {
        let parts = |request: &mut Request| {
            begin(request);
            request.parts.half(u32::try_from(most).unwrap_or(u32::MAX));
            Ok(())
        };
        self.call(function, &parts, |answer| answer.numbers())
    }

    fn whole_list(&self, function: Function, begin: impl Fn(&mut Request)) -> Result<Vec<u64>> {
        let list = match self.list(function, &begin, MANY)? {
            // A module that names more than anyone has is not asked for them.
            Err(more) if more <= 1 << 16 => self.list(function, &begin, more)?,
            list => list,
        };
        list.map_err(|_| Error::new(function, ck::Error::HOST_MEMORY))
    }

    pub(crate) fn slots(&self, present: bool) -> Result<Vec<SlotId>> {
        let begin = |request: &mut Request| request.parts.byte(u8::from(present));
        let slots = self.whole_list(Function::GetSlotList, begin)?;
        Ok(slots.into_iter().map(SlotId).collect())
    }

    /// Of what the module does, what can be asked of it here.
    pub(crate) fn mechanisms(&self, slot: SlotId) -> Result<Vec<CK_MECHANISM_TYPE>> {
        let begin = |request: &mut Request| request.parts.number(slot.0);
        let mut list = self.whole_list(Function::GetMechanismList, begin)?;
        let version = self.version();
        list.retain(|mechanism| request::carries(*mechanism, version));
        Ok(list)
    }

    pub(crate) fn mechanism_info(
        &self,
        slot: SlotId,
        mechanism: CK_MECHANISM_TYPE,
    ) -> Result<MechanismInfo> {
        let parts = |request: &mut Request| write(request, &[slot.0, mechanism]);
        self.call(Function::GetMechanismInfo, &parts, mechanism_info)
    }

    /// The same of several, asked for at once.
    pub(crate) fn mechanism_infos(
        &self,
        slot: SlotId,
        mechanisms: &[CK_MECHANISM_TYPE],
    ) -> Result<Vec<Result<MechanismInfo>>> {
        let function = Function::GetMechanismInfo;
        let failed = |code| Error::new(function, code);
        let mut infos = Vec::with_capacity(mechanisms.len());
        for some in mechanisms.chunks(TOGETHER) {
            let request = |mechanism: &CK_MECHANISM_TYPE| {
                let parts = |request: &mut Request| write(request, &[slot.0, *mechanism]);
                self.request(function, &parts)
            };
            let asked = some.iter().map(request).collect::<std::result::Result<Vec<_>, _>>();
            let (calls, requests): (Vec<_>, Vec<_>) = asked.map_err(failed)?.into_iter().unzip();
            let answers = self.carrier.exchange_all(&requests).map_err(failed)?;
            if answers.len() != calls.len() {
                return Err(failed(MALFORMED));
            }
            infos.extend(answers.iter().zip(calls).map(|(answer, call)| {
                let info =
                    Reader::answer(answer, call).and_then(|mut info| mechanism_info(&mut info));
                info.map_err(failed)
            }));
        }
        Ok(infos)
    }

    pub(crate) fn slot_info(&self, slot: SlotId) -> Result<SlotInfo> {
        let parts = |request: &mut Request| write(request, &[slot.0]);
        self.call(Function::GetSlotInfo, &parts, |answer| {
            let (description, manufacturer) = (answer.text()?, answer.text()?);
            Ok(SlotInfo { description, manufacturer, flags: answer.number()? })
        })
    }

    pub(crate) fn token_info(&self, slot: SlotId) -> Result<TokenInfo> {
        let parts = |request: &mut Request| write(request, &[slot.0]);
        self.call(Function::GetTokenInfo, &parts, |answer| {
            let (label, manufacturer) = (answer.text()?, answer.text()?);
            let (model, serial, flags) = (answer.text()?, answer.text()?, answer.number()?);
            let (_most, sessions) = (answer.number()?, answer.number()?);
            let (_most, _written) = (answer.number()?, answer.number()?);
            let (longest, shortest) = (length(answer.number()?), length(answer.number()?));
            let sessions = (sessions != UNAVAILABLE).then_some(sessions);
            let pin_lengths = (shortest, longest);
            Ok(TokenInfo { label, manufacturer, model, serial, flags, sessions, pin_lengths })
        })
    }

    pub(crate) fn init_token(&self, slot: SlotId, so_pin: &[u8], label: &[u8; 32]) -> Result<()> {
        let parts = |request: &mut Request| {
            request.parts.number(slot.0);
            request.parts.bytes(Some(so_pin));
            request.parts.counted(label);
            Ok(())
        };
        self.call(Function::InitToken, &parts, |_| Ok(()))
    }

    pub(crate) fn open_session(&self, slot: SlotId, flags: CK_FLAGS) -> Result<u64> {
        let parts = |request: &mut Request| write(request, &[slot.0, flags]);
        self.call(Function::OpenSession, &parts, |answer| answer.number())
    }

    pub(crate) fn session_info(&self, session: u64) -> Result<SessionInfo> {
        let parts = |request: &mut Request| write(request, &[session]);
        self.call(Function::GetSessionInfo, &parts, |answer| {
            let (slot, state) = (SlotId(answer.number()?), answer.number()?);
            Ok(SessionInfo { slot, state, flags: answer.number()? })
        })
    }

    pub(crate) fn login(&self, session: u64, user: CK_USER_TYPE, pin: Option<&[u8]>) -> Result<()> {
        let parts = |request: &mut Request| {
            write(request, &[session, user])?;
            request.parts.bytes(pin);
            Ok(())
        };
        self.call(Function::Login, &parts, |_| Ok(()))
    }

    pub(crate) fn login_user(
        &self,
        session: u64,
        user: CK_USER_TYPE,
        pin: &[u8],
        name: &[u8],
    ) -> Result<()> {
        let parts = |request: &mut Request| {
            write(request, &[session, user])?;
            request.parts.bytes(Some(pin));
            request.parts.bytes(Some(name));
            Ok(())
        };
        self.call(Function::LoginUser, &parts, |_| Ok(()))
    }

    /// Numbers, a mechanism and templates, in this order; `after` stands behind the mechanism.
    pub(crate) fn with_key(
        &self,
        function: Function,
        session: u64,
        mechanism: &Mechanism<'_>,
        key: &[u64],
    ) -> Result<()> {
        let parts = |request: &mut Request| {
            request.parts.number(session);
            request.mechanism(mechanism)?;
            write(request, key)
        };
        self.call(function, &parts, |_| Ok(()))
    }

    /// A call that makes an object of a template by a key and, where there are some, bytes.
    pub(crate) fn make_by(
        &self,
        function: Function,
        session: u64,
        mechanism: &Mechanism<'_>,
        (key, data): (ObjectHandle, Option<&[u8]>),
        template: &Template,
    ) -> Result<ObjectHandle> {
        let parts = |request: &mut Request| {
            request.parts.number(session);
            request.mechanism(mechanism)?;
            request.parts.number(key.0);
            if data.is_some() {
                request.parts.bytes(data);
            }
            request.template(template)
        };
        self.call(function, &parts, |answer| answer.number().map(ObjectHandle))
    }

    /// A call that makes objects of templates, by a mechanism or from others.
    pub(crate) fn make<const N: usize>(
        &self,
        function: Function,
        numbers: &[u64],
        mechanism: Option<&Mechanism<'_>>,
        templates: &[&Template],
    ) -> Result<[ObjectHandle; N]> {
        let parts = |request: &mut Request| {
            write(request, numbers)?;
            mechanism.map_or(Ok(()), |mechanism| request.mechanism(mechanism))?;
            templates.iter().try_for_each(|template| request.template(template))
        };
        self.call(function, &parts, |answer| {
            let mut made = [ObjectHandle(0); N];
            made.iter_mut().try_for_each(|handle| answer.number().map(|one| handle.0 = one))?;
            Ok(made)
        })
    }

    /// The values that there are. Bytes that are longer than usual are asked for again, in the length that the module says.
    pub(crate) fn attributes(
        &self,
        session: u64,
        object: ObjectHandle,
        wanted: &[CK_ATTRIBUTE_TYPE],
    ) -> Result<Vec<Option<Vec<u8>>>> {
        self.whole_values(session, object, wanted).map(|(values, _)| values)
    }

    /// One that there is, or why not.
    pub(crate) fn attribute(
        &self,
        session: u64,
        object: ObjectHandle,
        wanted: CK_ATTRIBUTE_TYPE,
    ) -> Result<Vec<u8>> {
        let (mut values, why) = self.whole_values(session, object, &[wanted])?;
        let why = why.unwrap_or(ck::Error::ATTRIBUTE_TYPE_INVALID);
        values.swap_remove(0).ok_or_else(|| Error::new(Function::GetAttributeValue, why))
    }

    /// The values, and why one of them is not there, if the process says so.
    #[expect(clippy::type_complexity, reason = "it is used here only")]
    fn whole_values(
        &self,
        session: u64,
        object: ObjectHandle,
        wanted: &[CK_ATTRIBUTE_TYPE],
    ) -> Result<(Vec<Option<Vec<u8>>>, Option<ck::Error>)> {
        let version = self.version();
        // What is in an array of attributes has no bytes here.
        let carried = |attribute: &&CK_ATTRIBUTE_TYPE| {
            kinds::carried(**attribute, version).is_some_and(|kind| kind != Kind::Template)
        };
        let rooms: Vec<_> = wanted.iter().filter(carried).map(|one| (*one, USUAL)).collect();
        let (mut values, mut why) = self.values(session, object, &rooms)?;
        if why == Some(ck::Error::BUFFER_TOO_SMALL) {
            let longer = rooms.iter().map(|(attribute, _)| (*attribute, 1 << 20));
            (values, why) = self.values(session, object, &longer.collect::<Vec<_>>())?;
        }
        let take = |attribute: &CK_ATTRIBUTE_TYPE| {
            let found = values.iter_mut().find(|(one, _)| one == attribute)?;
            found.1.take()
        };
        Ok((wanted.iter().map(take).collect(), why))
    }

    /// The values for which there is room, and why one is not there.
    #[expect(clippy::type_complexity, reason = "it is used here only")]
    fn values(
        &self,
        session: u64,
        object: ObjectHandle,
        rooms: &[(CK_ATTRIBUTE_TYPE, usize)],
    ) -> Result<(Vec<(CK_ATTRIBUTE_TYPE, Option<Vec<u8>>)>, Option<ck::Error>)> {
        let half = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let parts = |request: &mut Request| {
            write(request, &[session, object.0])?;
            request.parts.half(half(rooms.len()));
            for (attribute, room) in rooms {
                request.parts.half(u32::try_from(*attribute).unwrap_or(u32::MAX));
                request.parts.half(half(*room));
            }
            Ok(())
        };
        let version = self.version();
        self.call(Function::GetAttributeValue, &parts, |answer| {
            let count = usize::try_from(answer.half()?).map_err(|_| MALFORMED)?;
            if count != rooms.len() {
                return Err(MALFORMED);
            }
            let values = (0..count)
                .map(|_| attribute(answer, version))
                .collect::<std::result::Result<_, _>>()?;
            match ck::Error::check(answer.number()?) {
                Ok(()) => Ok((values, None)),
                Err(
                    why @ (ck::Error::ATTRIBUTE_SENSITIVE
                    | ck::Error::ATTRIBUTE_TYPE_INVALID
                    | ck::Error::BUFFER_TOO_SMALL),
                ) => Ok((values, Some(why))),
                Err(code) => Err(code),
            }
        })
    }

    pub(crate) fn set_attributes(
        &self,
        session: u64,
        object: ObjectHandle,
        changes: &Template,
    ) -> Result<()> {
        self.make::<0>(Function::SetAttributeValue, &[session, object.0], None, &[changes])
            .map(drop)
    }

    pub(crate) fn search(&self, session: u64, template: &Template) -> Result<()> {
        self.make::<0>(Function::FindObjectsInit, &[session], None, &[template]).map(drop)
    }

    pub(crate) fn found(&self, session: u64, handles: &mut [ObjectHandle]) -> Result<usize> {
        let begin = |request: &mut Request| request.parts.number(session);
        let found = self.list(Function::FindObjects, begin, handles.len())?.unwrap_or_default();
        let count = found.len().min(handles.len());
        handles.iter_mut().zip(found).for_each(|(handle, number)| handle.0 = number);
        Ok(count)
    }
}

fn mechanism_info(answer: &mut Reader<'_>) -> std::result::Result<MechanismInfo, ck::Error> {
    let (min_key_size, max_key_size) = (answer.number()?, answer.number()?);
    Ok(MechanismInfo { min_key_size, max_key_size, flags: answer.number()? })
}

/// One attribute: its number, and its value where there is one, as the C ABI has it.
fn attribute(
    answer: &mut Reader<'_>,
    version: u8,
) -> std::result::Result<(CK_ATTRIBUTE_TYPE, Option<Vec<u8>>), ck::Error> {
    let (attribute, length) = answer.attribute()?;
    let Some(length) = length else { return Ok((attribute, None)) };
    let value = answer.value(kinds::carried(attribute, version).ok_or(MALFORMED)?)?;
    // One that is empty is written as if it were not.
    Ok((attribute, Some(if length == 0 { Vec::new() } else { value.into_owned() })))
}

fn write(request: &mut Request, numbers: &[u64]) -> std::result::Result<(), ck::Error> {
    request.numbers(numbers);
    Ok(())
}

#[cfg(test)]
mod tests;
