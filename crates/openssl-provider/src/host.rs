// SPDX-License-Identifier: Apache-2.0
//! What one process has of the module: tokens with their sessions and logins, handles of keys. A forked child begins anew.

use crate::failure::{Failure, Gone, Reason, Result, is_stale};
use crate::pin::{Pin, Whose, is_refused, refuse};
use metaslot_ck::*;
use metaslot_client::{Access, AsyncSession, Module, Session, TokenInfo, User};
use std::collections::HashMap;
use std::ops::Deref;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sessions that a token keeps for later.
const IDLE: usize = 64;

/// What a process has.
#[derive(Debug, Default)]
pub(crate) struct Host {
    module: Option<Module>,
    tokens: Vec<Arc<Token>>,
    /// The one of what is in none.
    any: Option<Arc<Token>>,
    /// By the numbers of keys.
    keys: HashMap<u64, (Arc<Token>, ObjectHandle)>,
    ends: Ends,
}

/// How often the module was initialised again, after another part of the program had finalised it: nothing of before is there.
type Ends = Arc<AtomicUsize>;

/// A token and what is open of it.
#[derive(Debug)]
pub(crate) struct Token {
    module: Module,
    slot: SlotId,
    info: TokenInfo,
    mechanisms: Vec<CK_MECHANISM_TYPE>,
    idle: Mutex<Vec<Session>>,
    idle_async: Mutex<Vec<AsyncSession>>,
    /// Sessions whose objects stay: keys that the program has.
    keeping: Mutex<Vec<Session>>,
    /// The session that keeps the user logged in.
    login: Mutex<Option<Session>>,
    /// Whether it takes keys on curves, by their object identifiers: mechanisms do not say it.
    curves: Mutex<HashMap<&'static [u8], bool>>,
    /// The process whose sessions these are.
    process: u32,
    /// The module said that they are gone: none is closed, for its number may be that of another part of the program.
    gone: AtomicBool,
    /// And how often they all were when they were opened.
    ends: Ends,
    ended: usize,
}

/// A session that is given back where its operation succeeded, and closed where it did not: what it began may go on there.
#[derive(Debug)]
pub(crate) struct Lease {
    token: Arc<Token>,
    session: Option<Session>,
    keep: bool,
}

impl Host {
    pub(crate) fn module(&self) -> Option<Module> {
        self.module.clone()
    }

    /// Loads and initialises it. Another part of the program may have done that, and it stays so in the end.
    pub(crate) fn load(&mut self, path: &Path) -> Result<Module> {
        let failure = |text: String| Failure::new(Reason::Module, text);
        let module = Module::load(path).map_err(|error| failure(error.to_string()))?;
        match module.initialize() {
            Err(error) if error.code != Error::CRYPTOKI_ALREADY_INITIALIZED => {
                let detail = module.detail().unwrap_or_default();
                return Err(failure(format!("{}: {error} {detail}", path.display())));
            }
            _ => {}
        }
        self.module = Some(module.clone());
        Ok(module)
    }

    /// The token that is in the slot now.
    pub(crate) fn token(&mut self, module: &Module, slot: SlotId, info: TokenInfo) -> Arc<Token> {
        let same = |token: &&Arc<Token>| {
            let old = &token.info;
            let same = token.slot == slot && old.serial == info.serial && old.label == info.label;
            same && token.is_open()
        };
        if let Some(token) = self.tokens.iter().find(same) {
            return Arc::clone(token);
        }
        self.tokens.retain(|token| token.slot != slot);
        let mut mechanisms = module.mechanisms(slot).unwrap_or_default();
        mechanisms.sort_unstable();
        let (idle, idle_async, keeping, login, curves) = Default::default();
        let token = Token {
            module: module.clone(),
            slot,
            info,
            mechanisms,
            idle,
            idle_async,
            keeping,
            login,
            curves,
            process: std::process::id(),
            gone: AtomicBool::new(false),
            ended: self.ends.load(Ordering::Relaxed),
            ends: Arc::clone(&self.ends),
        };
        self.tokens.push(Arc::new(token));
        Arc::clone(&self.tokens[self.tokens.len() - 1])
    }

    pub(crate) fn key(&self, number: u64) -> Option<(Arc<Token>, ObjectHandle)> {
        self.keys.get(&number).filter(|(token, _)| !token.is_gone()).cloned()
    }

    /// What is kept: what was found first.
    pub(crate) fn found(
        &mut self,
        number: u64,
        token: Arc<Token>,
        handle: ObjectHandle,
    ) -> (Arc<Token>, ObjectHandle) {
        if self.key(number).is_none() {
            self.keys.remove(&number);
        }
        self.keys.entry(number).or_insert((token, handle)).clone()
    }

    pub(crate) fn forget(&mut self, number: u64) -> Option<(Arc<Token>, ObjectHandle)> {
        self.keys.remove(&number).filter(|(token, _)| !token.is_gone())
    }

    pub(crate) fn any(&self) -> Option<Arc<Token>> {
        self.any.clone().filter(|token| !token.is_gone())
    }

    pub(crate) fn set_any(&mut self, token: &Arc<Token>) {
        self.any = Some(Arc::clone(token));
    }

    /// Initialises the module where another part of the program has finalised it.
    pub(crate) fn revive(&self) {
        if let Some(module) = &self.module {
            revive(module, &self.ends);
        }
    }

    /// Looks at the token and its keys again, after this error of a call to it; what there is of other tokens stays.
    pub(crate) fn renew(&mut self, token: &Arc<Token>, error: metaslot_client::Error) {
        token.hears(error);
        let is_other = |other: &Arc<Token>| !Arc::ptr_eq(other, token);
        self.keys.retain(|_, (other, _)| is_other(other));
        self.tokens.retain(is_other);
        self.any = self.any.take().filter(is_other);
        token.revive();
    }

    /// At the end of the provider. Our own module stands that at any time, in exit handlers too; others do not, and have their
    /// sessions closed by the end of the process.
    pub(crate) fn close(&mut self) {
        let host = std::mem::take(self);
        if !host.module.as_ref().is_some_and(Module::is_metaslot) {
            std::mem::forget(host);
        }
    }
}

impl Token {
    pub(crate) fn label(&self) -> &str {
        &self.info.label
    }

    #[inline]
    pub(crate) const fn module(&self) -> &Module {
        &self.module
    }

    pub(crate) const fn info(&self) -> &TokenInfo {
        &self.info
    }

    /// By what its PINs are known.
    pub(crate) fn whose(&self) -> Whose {
        (self.info.serial.clone(), self.info.label.clone())
    }

    pub(crate) fn has(&self, mechanism: CK_MECHANISM_TYPE) -> bool {
        self.mechanisms.binary_search(&mechanism).is_ok()
    }

    /// Whether a mechanism encrypts in it.
    pub(crate) fn encrypts(&self, mechanism: CK_MECHANISM_TYPE) -> bool {
        let info = self.module.mechanism_info(self.slot, mechanism);
        info.is_ok_and(|info| info.flags & CKF_ENCRYPT != 0)
    }

    /// Whether it takes keys on a curve, as it is found out once.
    pub(crate) fn has_curve(&self, oid: &'static [u8], find: impl FnOnce() -> bool) -> bool {
        if let Some(known) = lock(&self.curves).get(oid) {
            return *known;
        }
        let found = find();
        lock(&self.curves).insert(oid, found);
        found
    }

    /// Initialises the module where another part of the program has finalised it.
    pub(crate) fn revive(&self) {
        revive(&self.module, &self.ends);
    }

    /// A failed call in words.
    pub(crate) fn failed(&self, what: &str, error: metaslot_client::Error) -> Failure {
        let what = format!("{what}, token {}", self.info.label);
        Failure::call(&what, error, self.module.detail())
    }

    /// A session.
    pub(crate) fn session(self: &Arc<Self>) -> Result<Lease> {
        self.lease().map_err(|error| self.failed("open a session", error))
    }

    /// The same, with the module's code where it fails.
    pub(crate) fn lease(self: &Arc<Self>) -> metaslot_client::Result<Lease> {
        let idle = lock(&self.idle).pop();
        let session = match idle {
            Some(session) => session,
            None => self.module.open_session(self.slot, Access::ReadOnly)?,
        };
        Ok(Lease { token: Arc::clone(self), session: Some(session), keep: false })
    }

    /// Whether it is our own module's.
    pub(crate) fn is_metaslot(&self) -> bool {
        self.module.is_metaslot()
    }

    /// A session whose operations may be pending.
    pub(crate) fn async_session(&self) -> Result<AsyncSession> {
        let idle = lock(&self.idle_async).pop();
        let opened = idle.map_or_else(|| self.module.open_async_session(self.slot), Ok);
        opened.map_err(|error| self.failed("open a session", error))
    }

    /// Takes one back whose operation is over.
    pub(crate) fn keep(&self, session: AsyncSession) {
        let mut idle = lock(&self.idle_async);
        if idle.len() < IDLE {
            idle.push(session);
        }
    }

    /// What `call` makes in a session that stays open, and with it the objects.
    pub(crate) fn keeping<T>(
        &self,
        call: impl FnOnce(&Session) -> metaslot_client::Result<T>,
    ) -> metaslot_client::Result<T> {
        let kept = lock(&self.keeping).pop();
        let session =
            kept.map_or_else(|| self.module.open_session(self.slot, Access::ReadOnly), Ok)?;
        let done = call(&session);
        self.keep_open(session, done.as_ref().err());
        done
    }

    fn keep_open(&self, session: Session, error: Option<&metaslot_client::Error>) {
        if let Some(error) = error {
            self.hears(*error);
        }
        if error.is_some() && self.is_gone() {
            std::mem::forget(session);
        } else {
            lock(&self.keeping).push(session);
        }
    }

    /// An error of the module's may be that all sessions are gone.
    pub(crate) fn hears(&self, error: metaslot_client::Error) {
        if is_stale(error) && Gone::of(error) == Some(Gone::Sessions) {
            self.gone.store(true, Ordering::Relaxed);
        }
    }

    /// Whether its sessions are there, as one of them says.
    fn is_open(&self) -> bool {
        let idle = lock(&self.idle);
        // Who has the lock of the login may be asking the user.
        let login = self.login.try_lock();
        let one = login.as_ref().ok().and_then(|login| login.as_ref()).or_else(|| idle.last());
        if let Some(Err(error)) = one.map(Session::info) {
            self.hears(error);
        }
        !self.is_gone()
    }

    fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Relaxed) || self.ends.load(Ordering::Relaxed) != self.ended
    }

    /// A session of one's own.
    pub(crate) fn open(&self, access: Access) -> Result<Session> {
        let session = self.module.open_session(self.slot, access);
        session.map_err(|error| self.failed("open a session", error))
    }

    /// Logs in, if that is necessary; the PIN that it took.
    pub(crate) fn login(&self, pin: impl FnOnce() -> Result<Option<Pin>>) -> Result<Option<Pin>> {
        let mut login = lock(&self.login);
        // Another part of the program may have logged out since.
        let session = login.take().map_or_else(|| self.open(Access::ReadOnly), Ok)?;
        let inside = session.info().is_ok_and(|info| {
            info.state == CKS_RO_USER_FUNCTIONS || info.state == CKS_RW_USER_FUNCTIONS
        });
        if inside || !self.info.has(CKF_LOGIN_REQUIRED) {
            *login = Some(session);
            return Ok(None);
        }
        let failure = |text| Failure::new(Reason::Pin, text);
        let Some(pin) = pin()? else {
            if self.info.has(CKF_PROTECTED_AUTHENTICATION_PATH) {
                session
                    .login_protected(User::User)
                    .map_err(|error| self.failed("log in", error))?;
                *login = Some(session);
                return Ok(None);
            }
            let label = &self.info.label;
            return Err(failure(format!(
                "token {label} wants a PIN, and there is none: 'pin-source' in the URI or in openssl.cnf names its file"
            )));
        };
        if is_refused(&self.whose(), &pin) {
            let label = &self.info.label;
            return Err(failure(format!(
                "token {label} refused this PIN before: it is not tried again"
            )));
        }
        match session.login(User::User, pin.expose()) {
            Err(error) if error.code != Error::USER_ALREADY_LOGGED_IN => {
                self.note(error, pin);
                let failed = self.failed("log in", error);
                Err(Failure { reason: Reason::Pin, ..failed })
            }
            _ => {
                *login = Some(session);
                Ok(Some(pin))
            }
        }
    }
}

impl Token {
    /// The login for one use of a key.
    pub(crate) fn authorize(
        &self,
        session: &Session,
        pin: Option<Pin>,
    ) -> metaslot_client::Result<()> {
        let failed = |code| metaslot_client::Error::new(Function::Login, code);
        let Some(pin) = pin else {
            if self.info.has(CKF_PROTECTED_AUTHENTICATION_PATH) {
                return session.login_protected(User::ContextSpecific);
            }
            return Err(failed(Error::USER_NOT_LOGGED_IN));
        };
        if is_refused(&self.whose(), &pin) {
            return Err(failed(Error::PIN_INCORRECT));
        }
        let done = session.login(User::ContextSpecific, pin.expose());
        done.inspect_err(|error| self.note(*error, pin))
    }

    /// A login failed; was it for the PIN?
    fn note(&self, error: metaslot_client::Error, pin: Pin) {
        if error.code == Error::PIN_INCORRECT {
            refuse(self.whose(), pin);
        }
    }
}

impl Lease {
    /// Its operation is at its end.
    pub(crate) const fn succeeded(&mut self) {
        self.keep = true;
    }

    pub(crate) const fn token(&self) -> &Arc<Token> {
        &self.token
    }

    /// Whether it is this process's, and not of the one that it was forked from.
    pub(crate) fn is_here(&self) -> bool {
        self.token.process == std::process::id()
    }
}

impl Deref for Lease {
    type Target = Session;

    fn deref(&self) -> &Session {
        self.session.as_ref().expect("there until it is dropped")
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if self.is_gone() {
            std::mem::forget((
                std::mem::take(&mut *lock(&self.idle)),
                std::mem::take(&mut *lock(&self.idle_async)),
                std::mem::take(&mut *lock(&self.keeping)),
                lock(&self.login).take(),
            ));
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.is_here() || !self.keep && self.token.is_gone() {
            // Its number may be another session's here, and the lock may stay locked.
            std::mem::forget(self.session.take());
            return;
        }
        let mut idle = lock(&self.token.idle);
        if self.keep && idle.len() < IDLE {
            idle.extend(self.session.take());
        }
    }
}

/// Where the module is initialised, that is well.
fn revive(module: &Module, ends: &Ends) {
    if module.initialize().is_ok() {
        ends.fetch_add(1, Ordering::Relaxed);
    }
}

/// A panic under a lock leaves nothing half done here.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
