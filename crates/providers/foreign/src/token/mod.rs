// SPDX-License-Identifier: Apache-2.0
//! One token of a module: its sessions, its login, and every call of it.

mod calls;
mod login;

pub(crate) use login::is_public;

use crate::config::{Around, Config, Serves};
use crate::error::{is_loss, is_refusal, leaves_a_trace, told};
use crate::isolated::Bound;
use crate::loaded::{Loaded, absence};
use crate::objects::Objects;
use crate::read::{self, find};
use metaslot_ck::attribute::CKA_FOREIGN_ROW;
use metaslot_ck::{
    CK_MECHANISM_TYPE, CKA_ALWAYS_AUTHENTICATE, CKF_USER_PIN_COUNT_LOW, CKF_USER_PIN_FINAL_TRY,
    CKF_USER_PIN_LOCKED, CKF_WRITE_PROTECTED, Error, Function, ObjectHandle, Result, SlotId,
};
use metaslot_client::{Access, Error as Failure, Once, Result as Called, Session, TokenInfo};
use metaslot_memory::Secret;
use metaslot_spi::provider::{Algorithm, Provider};
use metaslot_spi::store::{Found, Name, Role, Ticket};
use metaslot_spi::{Key, Value, detail};
use std::cell::Cell;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Sessions that are kept open for the next call.
const IDLE: usize = 16;

/// The slot of a token whose module has not started.
pub(crate) const NO_SLOT: SlotId = SlotId(u64::MAX);
/// How long a module that did not start is left alone.
const PAUSE: Duration = Duration::from_secs(5);
/// A server at a socket, to look for which costs little.
const SHORT_PAUSE: Duration = Duration::from_millis(50);

/// Between two questions to a server that answers, and refuses.
const AGAIN: Duration = Duration::from_millis(5);

/// What a token says of a PIN of which attempts have failed since the last that did not.
const PIN_IN_DOUBT: [u64; 3] =
    [CKF_USER_PIN_COUNT_LOW, CKF_USER_PIN_FINAL_TRY, CKF_USER_PIN_LOCKED];

/// A PIN that is not tried again.
const REFUSED: Failure = Failure::new(Function::Login, Error::PIN_INCORRECT);

/// A login that is over, and cannot be made again.
const ENDED: Failure = Failure::new(Function::Login, Error::USER_NOT_LOGGED_IN);

/// A session that is not what it was.
const GONE: Failure = Failure::new(Function::GetSessionInfo, Error::SESSION_HANDLE_INVALID);

/// Codes behind which the daemon has a reason, which its clients are not told.
const LOGGED: [Error; 3] = [Error::DEVICE_ERROR, Error::GENERAL_ERROR, Error::TOKEN_NOT_RECOGNIZED];

/// An object that is not there any more, or not the only one of its kind.
const INVALID: Failure = Failure::new(Function::FindObjects, Error::KEY_HANDLE_INVALID);

/// PINs that are kept for operations: of more than so many that were begun and left, the oldest go.
const PINS: usize = 256;

/// A token. It lives for as long as the process.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) name: &'static str,
    pub(crate) module: &'static Loaded,
    slot: AtomicU64,
    /// When a module that did not start was tried last.
    tried: Mutex<Instant>,
    pub(crate) pin_source: Option<PathBuf>,
    pub(crate) trusted: bool,
    pub(crate) mechanisms: Vec<CK_MECHANISM_TYPE>,
    /// Of those, what it may not do.
    pub(crate) without: Vec<CK_MECHANISM_TYPE>,
    /// What its module does, in our vocabulary, once it was asked.
    pub(crate) rows: OnceLock<&'static [Algorithm]>,
    pub(crate) serves: Serves,
    /// As a provider, once it was asked what it does without keys.
    pub(crate) keyless: OnceLock<&'static dyn Provider>,
    /// Whether a pool has it to which it came late: its own slot is empty then.
    pooled: AtomicBool,
    pub(crate) around: Around,
    state: Mutex<State>,
    objects: Mutex<Objects>,
    /// [`Objects::generation`]
    generation: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct State {
    /// Goes up when everything has to be opened again.
    connection: u64,
    /// The module's life in which these sessions were looked at.
    life: u64,
    /// The connection that they are of, where the module is in another process.
    link: Option<u64>,
    /// After how many of its failures the keeper's login was.
    failures: u64,
    /// Stays open: with the last session of an application the login ends.
    keeper: Option<Session>,
    idle: Vec<Session>,
    /// Who shall be logged in.
    login: Option<Role>,
    /// By which name, where it is an identity's.
    name: Option<Name>,
    /// The PIN of that login, where it is to be repeated by it.
    pin: Option<Secret>,
    /// Whether that login was made here; otherwise the host had made it.
    mine: bool,
    /// Whether it is the login of the token's own slot, or of a pool.
    own: bool,
    /// Whether it is, too, that of a view which shows the token, by the configured PIN.
    view: bool,
    /// Whether a view's login is to be made when the SO's ends.
    waits: bool,
    /// Whether the configured PIN is known to be that of the login.
    configured: bool,
    /// How often a login has ended.
    ends: u64,
    /// Whether the configured PIN was wrong when it was last tried: it is not tried again before a program asks for that.
    refused: bool,
    /// Whose sessions these are: manufacturer, model, serial number.
    identity: Option<[String; 3]>,
    /// PINs for operations that want one each, shown and not used yet.
    pins: Vec<(Ticket, Secret)>,
    /// How many PINs were ever kept.
    tickets: u64,
}

/// A session taken from the pool, and the connection that it belongs to.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) session: Session,
    connection: u64,
    life: u64,
    link: Option<u64>,
}

impl Token {
    /// A token that nothing frees.
    pub(crate) fn leaked(
        module: &'static Loaded,
        slot: SlotId,
        config: &Config,
        mechanisms: Vec<CK_MECHANISM_TYPE>,
        around: Around,
    ) -> &'static Self {
        let objects = Objects::default();
        Box::leak(Box::new(Self {
            name: Box::leak(config.name.clone().into_boxed_str()),
            module,
            slot: AtomicU64::new(slot.0),
            tried: Mutex::new(Instant::now()),
            pin_source: config.pin_source.clone(),
            trusted: config.trusted,
            mechanisms,
            without: config.without.clone(),
            rows: OnceLock::new(),
            serves: config.serves,
            keyless: OnceLock::new(),
            pooled: AtomicBool::new(false),
            around,
            state: Mutex::default(),
            generation: objects.generation(),
            objects: Mutex::new(objects),
        }))
    }

    /// Whether it is this slot's token as it was configured.
    pub(crate) fn is(
        &self,
        module: &Loaded,
        slot: SlotId,
        config: &Config,
        mechanisms: &[CK_MECHANISM_TYPE],
    ) -> bool {
        std::ptr::eq(self.module, module)
            && self.slot() == slot
            && self.name == config.name
            && self.pin_source == config.pin_source
            && self.trusted == config.trusted
            && self.without == config.without
            && self.serves == config.serves
            && self.mechanisms == mechanisms
    }

    /// [`NO_SLOT`] while the module has not started.
    pub(crate) fn slot(&self) -> SlotId {
        SlotId(self.slot.load(Ordering::Relaxed))
    }

    /// Tries a module again that did not start, after a pause: its first token is this one. Whether it is known by
    /// now which that is.
    pub(crate) fn has_started(&self) -> bool {
        if self.slot() != NO_SLOT {
            return true;
        }
        if !self.may_try() {
            return false;
        }
        let first = self.call(|| {
            self.module.initialize()?;
            Ok(self.module.library.slots(true)?.first().copied())
        });
        let Ok(Some(first)) = first else { return false };
        self.slot.store(first.0, Ordering::Relaxed);
        true
    }

    /// Whether a module that does not start has been left alone for long enough.
    fn may_try(&self) -> bool {
        let mut tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        let pause = if self.module.server().is_some() { SHORT_PAUSE } else { PAUSE };
        let may = tried.elapsed() >= pause;
        if may {
            *tried = Instant::now();
        }
        may
    }

    /// Starts a module again that has no slot any more, now and then; says whether it has one.
    pub(crate) fn comes_back(&self) -> bool {
        self.may_try() && self.is_restarted(self.module.life())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was read counts until this number is another.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// What a failure is for the caller.
    pub(crate) fn told(&self, failure: Failure) -> Error {
        let code = told(self.name, failure);
        let is_daemon = self.module.server().is_some() && self.module.library.shows_templates();
        if self.module.is_away(failure) {
            self.tell_absence();
        } else if is_daemon && LOGGED.contains(&failure.code) {
            detail::set(format_args!("{}: {failure}; the log of metaslotd says why", self.name));
        }
        code
    }

    /// Of a server that does not answer.
    pub(crate) fn tell_absence(&self) {
        if let Some(socket) = self.module.server() {
            let (name, absence, socket) = (self.name, absence(socket), socket.display());
            detail::set(format_args!("{name}: the server at {socket} {absence}"));
        }
    }

    /// The module gave something that no module may give.
    pub(crate) fn lied(&self, what: &str) -> Error {
        detail::set(format_args!("{}: the module gave {what}", self.name));
        Error::DEVICE_ERROR
    }

    /// A PIN for one operation whose key wants it.
    pub(crate) fn keep(&self, pin: Secret) -> Result<Ticket> {
        let mut state = self.state();
        if state.pins.len() == PINS {
            // Of operations that were given up.
            state.pins.remove(0);
        }
        state.tickets += 1;
        let ticket = Ticket(NonZeroU64::new(state.tickets).ok_or(Error::GENERAL_ERROR)?);
        state.pins.push((ticket, pin));
        Ok(ticket)
    }

    /// The PIN of the operation that this thread computes; none where its key wants none.
    pub(crate) fn pin_for(&self, key: &Key) -> Result<Option<Secret>> {
        if !key.attributes().bool(CKA_ALWAYS_AUTHENTICATE) {
            return Ok(None);
        }
        let ticket = Ticket::presented();
        let mut state = self.state();
        let found = state.pins.iter().position(|(kept, _)| Some(*kept) == ticket);
        let pin = found.map(|at| state.pins.remove(at).1);
        pin.map(Some).ok_or(Error::USER_NOT_LOGGED_IN)
    }

    /// Takes a session and begins an operation of several calls in it.
    pub(crate) fn begin(&self, work: impl Fn(&Session) -> Called<()>) -> Result<Taken> {
        self.call_again(|| {
            let begin = || {
                let taken = self.take()?;
                let begun = {
                    let _bound = Bound::to(taken.link);
                    work(&taken.session)
                };
                match begun {
                    Ok(()) => Ok(taken),
                    Err(failure) => {
                        self.failed(taken, failure.code);
                        Err(failure)
                    }
                }
            };
            match begin() {
                Err(failure) if is_loss(failure.code) => begin(),
                begun => begun,
            }
        })
    }

    /// The next call of such an operation; none where it has failed.
    pub(crate) fn go_on<T>(
        &self,
        taken: &mut Option<Taken>,
        work: impl Fn(&Session) -> Called<T>,
    ) -> Result<T> {
        let on = taken.as_ref().ok_or(Error::OPERATION_NOT_INITIALIZED)?;
        let answer = self.call(|| match self.is_still_ours(&on.session, on.life) {
            true => {
                let _bound = Bound::to(on.link);
                work(&on.session)
            }
            false => Err(GONE),
        });
        if answer.is_err() {
            self.abandon(taken);
        }
        answer
    }

    /// The last call of it.
    pub(crate) fn finish<T>(
        &self,
        taken: &mut Option<Taken>,
        work: impl Fn(&Session) -> Called<T>,
    ) -> Result<T> {
        let answer = self.go_on(taken, work);
        if taken.is_some() {
            self.apart(|| taken.take().into_iter().for_each(|on| self.give(on)));
        }
        answer
    }

    /// Ends an operation with its session.
    pub(crate) fn abandon(&self, taken: &mut Option<Taken>) {
        if let Some(taken) = taken.take() {
            let mut taken = Some(taken);
            self.apart(|| {
                taken.take().into_iter().for_each(|on| self.let_go(on.session, on.life));
            });
        }
    }

    /// A session without any operation.
    pub(crate) fn take(&self) -> Called<Taken> {
        let mut state = self.state();
        if (state.life, state.failures) != (self.module.life(), self.module.failures()) {
            self.look_at(&mut state);
        }
        let (connection, life, link) = (state.connection, state.life, state.link);
        if let Some(session) = state.idle.pop() {
            return Ok(Taken { session, connection, life, link });
        }
        self.connect(&mut state)?;
        let (connection, life, link) = (state.connection, state.life, state.link);
        // A module that keeps this call waiting keeps no other one waiting.
        drop(state);
        match self.open() {
            Err(failure) if is_loss(failure.code) => {
                let mut state = self.state();
                self.module.suspect();
                if state.connection == connection {
                    self.forget(&mut state);
                }
                self.connect(&mut state)?;
                let (connection, life, link) = (state.connection, state.life, state.link);
                drop(state);
                Ok(Taken { session: self.open()?, connection, life, link })
            }
            session => Ok(Taken { session: session?, connection, life, link }),
        }
    }

    /// Looks whether these sessions are still this token's: one that was taken out lost them, and others have their numbers.
    /// After a failure, whether the login is still there, too.
    fn look_at(&self, state: &mut State) {
        let (life, failures) = (self.module.life(), self.module.failures());
        let mut all = state.keeper.iter().chain(&state.idle);
        let lost = !all.all(|session| self.is_still_ours(session, state.life));
        if lost || (state.failures != failures && self.lost_its_keeper(state)) {
            self.module.suspect();
            self.forget(state);
        }
        (state.life, state.failures) = (life, failures);
    }

    fn is_this_tokens(&self, session: &Session) -> bool {
        self.must_be_its(session).is_ok()
    }

    /// Objects are asked for in a session of this token only: to another one their handles say something else. A module that
    /// cannot say whose a session is is believed.
    pub(crate) fn must_be_its(&self, session: &Session) -> Called<()> {
        match session.info() {
            Ok(info) if info.slot == self.slot() => Ok(()),
            Ok(_) => Err(GONE),
            Err(failure) if failure.code == Error::FUNCTION_NOT_SUPPORTED => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// A module that has begun anew gives the numbers of before to others, of this token too.
    fn is_still_ours(&self, session: &Session, life: u64) -> bool {
        life == self.module.life()
            || (!self.module.began_since(life) && self.is_this_tokens(session))
    }

    /// Closes a session, unless its number is another's by now.
    fn let_go(&self, session: Session, life: u64) {
        match self.is_still_ours(&session, life) {
            true => drop(session),
            false => std::mem::forget(session),
        }
    }

    /// Gives a session back that has no operation.
    pub(crate) fn give(&self, taken: Taken) {
        let mut state = self.state();
        let fits = state.connection == taken.connection && state.idle.len() < IDLE;
        match fits && taken.life == self.module.life() {
            true => state.idle.push(taken.session),
            false => self.let_go(taken.session, taken.life),
        }
    }

    /// What becomes of a session whose call failed.
    pub(crate) fn failed(&self, taken: Taken, code: Error) {
        if is_loss(code) || self.lost_its_login(code) {
            let mut state = self.state();
            if is_loss(code) {
                self.module.suspect();
            }
            if state.connection == taken.connection {
                self.forget(&mut state);
            }
            self.let_go(taken.session, taken.life);
        } else if leaves_a_trace(code) {
            self.let_go(taken.session, taken.life);
        } else {
            self.give(taken);
        }
    }

    /// Whether another session would do it.
    fn may_repeat(&self, code: Error) -> bool {
        // The last one is so where who had the session's number before has ended our operation.
        is_loss(code)
            || matches!(code, Error::OPERATION_ACTIVE | Error::OPERATION_NOT_INITIALIZED)
            || self.lost_its_login(code)
    }

    /// Whether the module has forgotten a login that can be made again.
    fn lost_its_login(&self, code: Error) -> bool {
        code == Error::USER_NOT_LOGGED_IN && self.repeats_login(&self.state())
    }

    /// Nothing that was opened is any more.
    fn forget(&self, state: &mut State) {
        state.connection += 1;
        let all = state.idle.drain(..).chain(state.keeper.take());
        all.for_each(|session| self.let_go(session, state.life));
        state.life = self.module.life();
        self.objects().disconnect();
    }

    fn open(&self) -> Called<Session> {
        let open = |access| self.module.library.open_session(self.slot(), access);
        match open(Access::ReadWrite) {
            Err(failure) if failure.code == Error::TOKEN_WRITE_PROTECTED => open(Access::ReadOnly),
            session => session,
        }
    }

    /// Where there is none, the first session, with the login that it shall have.
    fn connect(&self, state: &mut State) -> Called<()> {
        self.look_at(state);
        if state.keeper.is_some() {
            return Ok(());
        }
        state.link = self.module.link();
        let keeper = match self.open() {
            Err(failure) if failure.code == Error::CRYPTOKI_NOT_INITIALIZED => {
                self.module.initialize()?;
                // Opened from now on, a session is of this life.
                state.life = self.module.life();
                state.link = self.module.link();
                self.open()?
            }
            session => session?,
        };
        let info = self.recognize(state)?;
        if self.repeats_login(state) {
            // What nobody asked for by itself costs no attempt at a PIN that was wrong before.
            let guest = state.view && !state.own;
            let doubted = guest && PIN_IN_DOUBT.into_iter().any(|flag| info.has(flag));
            match if doubted { Err(REFUSED) } else { self.repeat_login(state, &keeper) } {
                Err(failure) if guest && !is_loss(failure.code) => self.part(state),
                // It was revoked, or has another PIN by now.
                Err(failure) if state.name.is_some() && is_refusal(failure.code) => {
                    return Err(ENDED);
                }
                again => again?,
            }
        }
        state.keeper = Some(keeper);
        Ok(())
    }

    /// Another token in the same slot gets neither our PIN nor the handles of this one.
    fn recognize(&self, state: &mut State) -> Called<TokenInfo> {
        let info = self.module.library.token_info(self.slot())?;
        let there = [&info.manufacturer, &info.model, &info.serial].map(String::clone);
        match *state.identity.get_or_insert_with(|| there.clone()) == there {
            true => Ok(info),
            false => Err(Failure::new(Function::OpenSession, Error::TOKEN_NOT_RECOGNIZED)),
        }
    }

    pub(crate) fn is_pooled(&self) -> bool {
        self.pooled.load(Ordering::SeqCst)
    }

    /// It is a slot of its own, or a pool's: what it has is to be found there only.
    pub(crate) fn pool(&self, has: bool) {
        if self.pooled.swap(has, Ordering::SeqCst) != has {
            self.objects().forget_all();
        }
    }

    /// Goes up when a login ends: what is read meanwhile may fail.
    pub(crate) fn ends(&self) -> u64 {
        self.state().ends
    }

    /// What the keeper does: what depends on the login, an identity's or not, is done where it was made.
    pub(crate) fn by_keeper(
        &self,
        work: impl Fn(Option<Name>, &Session) -> Called<()>,
    ) -> Result<()> {
        self.call(|| {
            let mut state = self.state();
            self.connect(&mut state)?;
            let _bound = Bound::to(state.link);
            state.keeper.as_ref().map_or(Ok(()), |keeper| work(state.name, keeper))
        })
    }

    /// Closes every session; a login is made again with the next one.
    pub(crate) fn release(&self) {
        self.apart(|| self.end_sessions(&mut self.state()));
    }

    fn end_sessions(&self, state: &mut State) {
        self.look_at(state);
        // Sessions of the host would keep our login.
        let keeper = state.keeper.take().filter(|_| state.login.is_some() && state.mine);
        let _bound = Bound::to(state.link);
        keeper.map(|keeper| keeper.logout());
        self.forget(state);
    }

    /// Closes every session, and forgets whose they were.
    pub(crate) fn close(&self) {
        self.apart(|| {
            let mut state = self.state();
            self.end_sessions(&mut state);
            state.login = None;
            (state.mine, state.own, state.configured) = (false, false, false);
            (state.view, state.waits) = (false, false);
            state.pin = None;
            state.identity = None;
            state.pins.clear();
            self.objects().forget_all();
        });
    }

    /// The module's handle of an object, as this connection has it.
    pub(crate) fn handle(&self, session: &Session, row: u64) -> Called<ObjectHandle> {
        self.must_be_its(session)?;
        let losses = self.objects().losses();
        if let Some(handle) = self.objects().handle(row) {
            return Ok(handle);
        }
        let [handle] = self.same(session, row)?[..] else { return Err(INVALID) };
        self.objects_since(losses)?.revive(row, handle);
        Ok(handle)
    }

    /// An operation of one call, by an object's key where a row is named. What is known of a module in another process is asked for at once;
    /// `None` where it has to be done in steps.
    pub(crate) fn at_once(
        &self,
        session: &Session,
        row: Option<u64>,
        once: Once<'_>,
        out: &mut [u8],
    ) -> Option<Called<usize>> {
        let once = match row {
            None => once,
            Some(row) => {
                let key = Some(self.objects().handle(row)?);
                Once { slot: Some(self.slot()), key, ..once }
            }
        };
        session.at_once(&once, out)
    }

    /// The objects, if a server's are as they were: a handle that it gave before a loss is another object's after it.
    pub(crate) fn objects_since(&self, losses: u64) -> Called<MutexGuard<'_, Objects>> {
        let objects = self.objects();
        let lost = self.module.server().is_some() && objects.losses() != losses;
        if lost { Err(GONE) } else { Ok(objects) }
    }

    /// What can be that object: after a loss the module may have given its objects new numbers, and there may be others.
    fn same(&self, session: &Session, row: u64) -> Called<Vec<ObjectHandle>> {
        let template = self.objects().description(row).ok_or(INVALID)?;
        let private = self.objects().is_private(row).ok_or(INVALID)?;
        let mut same = Vec::new();
        for handle in find(session, &template)? {
            let now = read::attributes(self.name, session, handle, row, private)?;
            if self.objects().is_same(row, &now) {
                same.push(handle);
            }
        }
        Ok(same)
    }

    /// The row of an object that a search gave. One of a server's is known at once by what finds it again after a loss.
    pub(crate) fn row(
        &self,
        session: &Session,
        handle: ObjectHandle,
        private: bool,
    ) -> Called<Found> {
        if self.module.server().is_none() && !self.objects().has_lost() {
            return Ok(self.objects().add(handle, private));
        }
        let losses = self.objects().losses();
        let mut now = read::attributes(self.name, session, handle, 0, private)?;
        let rows = self.objects().lost(&now);
        for id in rows {
            match self.handle(session, id) {
                Ok(known) if known == handle => return Ok(Found { id, private }),
                Err(failure) if failure != INVALID => return Err(failure),
                _ => {}
            }
        }
        let mut objects = self.objects_since(losses)?;
        let found = objects.add(handle, private);
        if now.get(CKA_FOREIGN_ROW).is_some() {
            now.set(CKA_FOREIGN_ROW, Value::Ulong(found.id));
        }
        objects.read(found.id, &now);
        Ok(found)
    }

    /// Destroys an object. One that has gone since it was tried was destroyed then.
    pub(crate) fn destroy(&self, row: u64) -> Result<()> {
        let tried = Cell::new(false);
        self.with(|session| {
            if tried.get()
                && self.objects().handle(row).is_none()
                && self.same(session, row)?.is_empty()
            {
                return Ok(());
            }
            let handle = self.handle(session, row)?;
            tried.set(true);
            session.destroy(handle)
        })
    }

    /// Whether its info says that it cannot be written.
    pub(crate) const fn is_write_protected(flags: u64) -> bool {
        flags & CKF_WRITE_PROTECTED != 0
    }
}
