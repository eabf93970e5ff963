// SPDX-License-Identifier: Apache-2.0
//! The lifecycle of an operation, once for all kinds.

use super::OperationKind;
use crate::object::Object;
use crate::object::recent::Recent;
use crate::output::{Output, Room, Written};
use metaslot_ck::{CK_MECHANISM_TYPE, Error, Result};
use metaslot_counters::Watch;
use metaslot_router::Count;
use metaslot_spi::provider::{Cipher, Derive, Digest, Pending, Postponed, Recover, Signature};
use metaslot_spi::store::Ticket;
use metaslot_spi::{Attributes, Key, Params};
use std::fmt::Debug;
use std::sync::Arc;

/// What an algorithm keeps between the calls of a multi-part operation.
pub(crate) trait Streams {
    /// The state; an empty type where there is no multi-part form.
    type Stream: Debug;
}

/// What `*Init` chose.
#[derive(Debug)]
pub(crate) struct Chosen<A: ?Sized + 'static> {
    pub(crate) count: Count,
    pub(crate) mechanism: CK_MECHANISM_TYPE,
    pub(crate) algorithm: &'static A,
    pub(crate) params: Params,
    /// `None` for a digest.
    pub(crate) object: Option<Arc<Object>>,
    pub(crate) lock: Lock,
    /// Whether the policy under which it began refuses what is not approved.
    pub(crate) approved: bool,
}

/// `CKA_ALWAYS_AUTHENTICATE`
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Lock {
    Open,
    /// A context-specific login is still missing.
    Locked,
    /// It was done: by this PIN, which the token's keeper wants with the data.
    Shown(Ticket),
}

/// What `*Init` chose for a key, before the parameters stand beside it.
#[derive(Debug)]
pub(crate) struct Choice<A: ?Sized + 'static> {
    pub(crate) count: Count,
    pub(crate) algorithm: &'static A,
    pub(crate) object: Arc<Object>,
    pub(crate) lock: Lock,
    pub(crate) approved: bool,
}

impl<A: ?Sized> Choice<A> {
    /// With what the caller said.
    #[inline]
    pub(crate) fn with(self, mechanism: CK_MECHANISM_TYPE, params: Params) -> Chosen<A> {
        let Self { count, algorithm, object, lock, approved } = self;
        Chosen { count, mechanism, algorithm, params, object: Some(object), lock, approved }
    }
}

impl<A: ?Sized> Chosen<A> {
    /// The key, to ask about it.
    pub(crate) fn key(&self) -> Result<&Arc<Key>> {
        self.object.as_ref().and_then(|object| object.key()).ok_or(Error::KEY_HANDLE_INVALID)
    }

    /// The key, to compute with it.
    pub(crate) fn unlocked_key(&self) -> Result<&Arc<Key>> {
        match self.lock {
            Lock::Open => {}
            Lock::Locked => return Err(Error::USER_NOT_LOGGED_IN),
            Lock::Shown(ticket) => ticket.present(),
        }
        self.key()
    }
}

/// One operation of one kind in one session.
#[derive(Debug, Default)]
pub(crate) enum Active<A: Streams + ?Sized + 'static> {
    #[default]
    Idle,
    Initialized(Chosen<A>),
    MultiPart(Chosen<A>, A::Stream),
    /// The one call that does everything has returned and the work goes on.
    Pending(Chosen<A>, Later),
}

impl<A: Streams + ?Sized> Active<A> {
    /// `*Init` may begin only where nothing is active.
    pub(crate) const fn free(&self) -> Result<()> {
        match self {
            Self::Idle => Ok(()),
            _ => Err(Error::OPERATION_ACTIVE),
        }
    }

    /// What `*Init` chose, for a call that does everything at once.
    pub(crate) const fn single(&self) -> Result<&Chosen<A>> {
        match self {
            Self::Idle => Err(Error::OPERATION_NOT_INITIALIZED),
            Self::Initialized(chosen) => Ok(chosen),
            Self::MultiPart(..) | Self::Pending(..) => Err(Error::OPERATION_ACTIVE),
        }
    }

    /// What `*Init` chose, for a call that closes a multi-part operation.
    pub(crate) const fn chosen(&self) -> Result<&Chosen<A>> {
        match self {
            Self::Idle => Err(Error::OPERATION_NOT_INITIALIZED),
            Self::Initialized(chosen) | Self::MultiPart(chosen, _) => Ok(chosen),
            Self::Pending(..) => Err(Error::OPERATION_ACTIVE),
        }
    }

    /// The stream of a multi-part operation; `start` makes it at the first data.
    pub(crate) fn stream(
        &mut self,
        start: impl FnOnce(&Chosen<A>) -> Result<A::Stream>,
    ) -> Result<(&mut Chosen<A>, &mut A::Stream)> {
        if let Self::Initialized(chosen) = self {
            let stream = start(chosen)?;
            let Self::Initialized(chosen) = std::mem::take(self) else {
                return Err(Error::GENERAL_ERROR);
            };
            *self = Self::MultiPart(chosen, stream);
        }
        match self {
            Self::MultiPart(chosen, stream) => Ok((chosen, stream)),
            Self::Pending(..) => Err(Error::OPERATION_ACTIVE),
            _ => Err(Error::OPERATION_NOT_INITIALIZED),
        }
    }

    /// Gives data to the stream. The first data are taken before it stands here: where that fails nothing was
    /// taken, and another provider may begin.
    pub(crate) fn feed(
        &mut self,
        start: impl FnOnce(&Chosen<A>) -> Result<A::Stream>,
        feed: impl Fn(&mut A::Stream) -> Result<()>,
    ) -> Result<&mut Chosen<A>> {
        let begins = matches!(self, Self::Initialized(_));
        let (chosen, stream) = self.stream(|chosen| {
            let mut stream = start(chosen)?;
            feed(&mut stream).map(|()| stream)
        })?;
        if !begins {
            feed(stream)?;
        }
        Ok(chosen)
    }

    /// The work goes on after the call.
    fn postpone(&mut self, later: Later) {
        match std::mem::take(self) {
            Self::Initialized(chosen) => *self = Self::Pending(chosen, later),
            other => *self = other,
        }
    }

    /// Ends the operation: what it is counted under, and its key. The rest is dropped where it is: a move of the
    /// parameters would cost as much as a short operation.
    #[inline]
    fn end(&mut self) -> Option<(Count, Option<Arc<Object>>)> {
        let (Self::Initialized(chosen) | Self::MultiPart(chosen, _) | Self::Pending(chosen, _)) =
            self
        else {
            return None;
        };
        let ended = (chosen.count, chosen.object.take());
        *self = Self::Idle;
        Some(ended)
    }

    /// After a call that closes the operation (`C_Sign`, `C_SignFinal`, …).
    ///
    /// PKCS#11 3.2 §5.8.2 and its like: such a call always ends the operation, unless it asked for
    /// the length, found a short buffer, or its work goes on.
    #[inline]
    pub(crate) fn conclude(
        &mut self,
        recent: &mut Recent,
        bytes: usize,
        watch: Watch,
        result: Result<Written>,
    ) -> Result<()> {
        if matches!(result, Ok(Written::Asked) | Err(Error::BUFFER_TOO_SMALL)) || self.is_pending()
        {
            return result.map(drop);
        }
        let approved = self.any().is_some_and(|chosen| chosen.approved);
        if let Some((count, object)) = self.end() {
            count.done(bytes, result.is_ok(), watch);
            if result.is_ok() {
                recent.completes(approved);
            }
            recent.keep(object);
        }
        result.map(drop)
    }

    /// After a call that takes more data (`C_SignUpdate`, …): only a failure ends the operation, and
    /// a short buffer is none (PKCS#11 3.2 §5.8.3).
    #[inline]
    pub(crate) fn proceed(&mut self, recent: &mut Recent, result: Result<Written>) -> Result<()> {
        if result.is_err_and(|error| error != Error::BUFFER_TOO_SMALL) && !self.is_pending() {
            Operation::fail(self, recent);
        }
        result.map(drop)
    }

    /// After a call that closes one message of several (PKCS#11 3.2 §5.9.2 and its like): the message is over,
    /// unless the call asked for the length or found a short buffer, and what `*Init` chose stays. A key that wants a
    /// login for each use wants the next one.
    pub(crate) fn next_message(
        &mut self,
        recent: &mut Recent,
        bytes: usize,
        watch: Watch,
        result: Result<Written>,
    ) -> Result<()> {
        if matches!(result, Ok(Written::Asked) | Err(Error::BUFFER_TOO_SMALL)) {
            return result.map(drop);
        }
        self.end_message(bytes, watch, result.is_ok());
        if result.is_ok() {
            recent.completes(self.any().is_some_and(|chosen| chosen.approved));
        }
        result.map(drop)
    }

    fn end_message(&mut self, bytes: usize, watch: Watch, ok: bool) {
        if let Self::MultiPart(..) = self
            && let Self::MultiPart(chosen, _) = std::mem::take(self)
        {
            *self = Self::Initialized(chosen);
        }
        if let Self::Initialized(chosen) = self {
            chosen.count.done(bytes, ok, watch);
            chosen.count.next();
            let always = chosen.object.as_ref().is_some_and(|key| key.facts().always_authenticate);
            chosen.lock = if always { Lock::Locked } else { Lock::Open };
        }
    }

    /// After a call that takes a part of a message: only a failure ends it.
    pub(crate) fn same_message(&mut self, result: Result<Written>) -> Result<()> {
        if result.is_err_and(|error| error != Error::BUFFER_TOO_SMALL) {
            self.end_message(0, Watch::OFF, false);
        }
        result.map(drop)
    }

    /// What is in the middle of a message.
    pub(crate) fn message(&mut self) -> Result<(&mut Chosen<A>, &mut A::Stream)> {
        match self {
            Self::MultiPart(chosen, stream) => Ok((chosen, stream)),
            _ => Err(Error::OPERATION_NOT_INITIALIZED),
        }
    }

    fn any(&self) -> Option<&Chosen<A>> {
        match self {
            Self::Idle => None,
            Self::Initialized(chosen) | Self::MultiPart(chosen, _) | Self::Pending(chosen, _) => {
                Some(chosen)
            }
        }
    }
}

/// An operation on its way, and what is needed when it arrives.
#[derive(Debug)]
pub(crate) struct Later {
    pub(crate) work: Box<dyn Pending>,
    /// None where the result is an object.
    pub(crate) room: Room,
    pub(crate) bytes: usize,
    pub(crate) watch: Watch,
}

impl<A: Streams + ?Sized> Active<A> {
    /// Begins what an asynchronous session may complete later: `CKR_PENDING`. `Ok`: the provider
    /// computes this one at once, or the caller only asked for a length.
    pub(crate) fn begin_later(
        &mut self,
        longest: usize,
        out: &mut Output<'_>,
        bytes: usize,
        watch: Watch,
        begin: impl FnOnce(&Chosen<A>) -> Postponed,
    ) -> Result<()> {
        let Some(room) = out.room(longest)? else { return Ok(()) };
        let Some(work) = begin(self.single()?)? else { return Ok(()) };
        self.postpone(Later { work, room, bytes, watch });
        Err(Error::PENDING)
    }

    /// One that is pending, if its result is there; then the operation is over.
    ///
    /// # Errors
    /// `CKR_PENDING`, `CKR_OPERATION_NOT_INITIALIZED`
    pub(crate) fn arrived(&mut self) -> Result<(Chosen<A>, Later)> {
        self.polled()?;
        match std::mem::take(self) {
            Self::Pending(chosen, later) => Ok((chosen, later)),
            _ => Err(Error::GENERAL_ERROR),
        }
    }

    /// Whether it would be; it stays.
    pub(crate) fn polled(&mut self) -> Result<()> {
        let Self::Pending(_, later) = self else { return Err(Error::OPERATION_NOT_INITIALIZED) };
        if later.work.poll() { Ok(()) } else { Err(Error::PENDING) }
    }
}

/// An operation of any kind, for what is the same for all.
pub(crate) trait Operation {
    fn is_active(&self) -> bool;

    fn is_pending(&self) -> bool;

    /// The key that it uses.
    fn object(&self) -> Option<&Arc<Object>>;

    /// What it does.
    fn mechanism(&self) -> Option<CK_MECHANISM_TYPE>;

    /// A message of it begins, approved or not.
    fn begins(&mut self, approved: bool);

    /// Whether a context-specific login is missing.
    fn is_locked(&self) -> bool;

    /// The context-specific login is done.
    fn unlock(&mut self, lock: Lock);

    /// Ends it without a result.
    fn cancel(&mut self, recent: &mut Recent);

    /// Ends it, as a failure.
    fn fail(&mut self, recent: &mut Recent);

    /// Ends the message that it is at, as a failure.
    fn fail_message(&mut self);

    /// Whether a message may begin, or the process end.
    ///
    /// # Errors
    /// `CKR_OPERATION_NOT_INITIALIZED`, `CKR_OPERATION_ACTIVE`
    fn between_messages(&self) -> Result<()>;

    /// As [`Active::arrived`].
    fn arrive(&mut self, recent: &mut Recent) -> Result<(Later, Count, bool)>;
}

impl<A: Streams + ?Sized> Operation for Active<A> {
    fn is_active(&self) -> bool {
        !matches!(self, Self::Idle)
    }

    fn is_pending(&self) -> bool {
        matches!(self, Self::Pending(..))
    }

    fn object(&self) -> Option<&Arc<Object>> {
        self.any().and_then(|chosen| chosen.object.as_ref())
    }

    fn mechanism(&self) -> Option<CK_MECHANISM_TYPE> {
        self.any().map(|chosen| chosen.mechanism)
    }

    fn begins(&mut self, approved: bool) {
        if let Self::Initialized(chosen) = self {
            chosen.approved = approved;
        }
    }

    fn is_locked(&self) -> bool {
        self.any().is_some_and(|chosen| chosen.lock == Lock::Locked)
    }

    fn unlock(&mut self, lock: Lock) {
        if let Self::Initialized(chosen) | Self::MultiPart(chosen, _) = self {
            chosen.lock = lock;
        }
    }

    fn cancel(&mut self, recent: &mut Recent) {
        if let Some((_, object)) = self.end() {
            recent.keep(object);
        }
    }

    fn fail(&mut self, recent: &mut Recent) {
        if let Some((count, object)) = self.end() {
            count.done(0, false, Watch::OFF);
            recent.keep(object);
        }
    }

    fn between_messages(&self) -> Result<()> {
        self.single().map(drop)
    }

    fn fail_message(&mut self) {
        if let Self::MultiPart(..) = self {
            self.end_message(0, Watch::OFF, false);
        }
    }

    fn arrive(&mut self, recent: &mut Recent) -> Result<(Later, Count, bool)> {
        let (chosen, later) = self.arrived()?;
        recent.keep(chosen.object);
        Ok((later, chosen.count, chosen.approved))
    }
}

/// The operations of one session: one of each kind, independently.
#[derive(Debug, Default)]
pub(crate) struct Operations {
    pub(crate) digest: Active<dyn Digest>,
    pub(crate) encrypt: Active<dyn Cipher>,
    pub(crate) decrypt: Active<dyn Cipher>,
    pub(crate) sign: Active<dyn Signature>,
    pub(crate) sign_recover: Active<dyn Signature>,
    pub(crate) verify: Active<dyn Signature>,
    pub(crate) verify_recover: Active<dyn Recover>,
    pub(crate) verify_signature: Active<dyn Signature>,
    /// What is verified by that, until it is.
    pub(crate) signature: Vec<u8>,
    pub(crate) message_encrypt: Active<dyn Cipher>,
    pub(crate) message_decrypt: Active<dyn Cipher>,
    pub(crate) message_sign: Active<dyn Signature>,
    pub(crate) message_verify: Active<dyn Signature>,
    pub(crate) derive: Active<dyn Derive>,
    /// What is asked of the key that is derived by that, until it is there.
    pub(crate) derived: Attributes,
}

impl Operations {
    pub(crate) fn of(&mut self, kind: OperationKind) -> &mut dyn Operation {
        match kind {
            OperationKind::Digest => &mut self.digest,
            OperationKind::Encrypt => &mut self.encrypt,
            OperationKind::Decrypt => &mut self.decrypt,
            OperationKind::Sign => &mut self.sign,
            OperationKind::SignRecover => &mut self.sign_recover,
            OperationKind::Verify => &mut self.verify,
            OperationKind::VerifyRecover => &mut self.verify_recover,
            OperationKind::VerifySignature => &mut self.verify_signature,
            OperationKind::MessageEncrypt => &mut self.message_encrypt,
            OperationKind::MessageDecrypt => &mut self.message_decrypt,
            OperationKind::MessageSign => &mut self.message_sign,
            OperationKind::MessageVerify => &mut self.message_verify,
            OperationKind::Derive => &mut self.derive,
        }
    }

    /// Every operation: the one place that visits all of them.
    pub(crate) fn each(&mut self, mut visit: impl FnMut(OperationKind, &mut dyn Operation)) {
        for kind in OperationKind::ALL {
            visit(kind, self.of(kind));
        }
    }

    /// Cancels those for which `wanted` holds.
    pub(crate) fn cancel(
        &mut self,
        recent: &mut Recent,
        wanted: impl Fn(OperationKind, &dyn Operation) -> bool,
    ) {
        self.each(|kind, operation| {
            if operation.is_active() && wanted(kind, operation) {
                operation.cancel(recent);
            }
        });
    }

    /// Ends those of these kinds, as failures, but what goes on after its call; of those that have messages, the message.
    pub(crate) fn fail(&mut self, recent: &mut Recent, kinds: &[OperationKind]) {
        for kind in kinds {
            let operation = self.of(*kind);
            if kind.has_messages() {
                operation.fail_message();
            } else if !operation.is_pending() {
                operation.fail(recent);
            }
        }
    }

    pub(crate) fn any(&mut self, is: impl Fn(OperationKind, &dyn Operation) -> bool) -> bool {
        OperationKind::ALL.into_iter().any(|kind| is(kind, self.of(kind)))
    }
}
