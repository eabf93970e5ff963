// SPDX-License-Identifier: Apache-2.0
//! What one process has of the module: tokens with their sessions and logins, handles of keys. A forked child begins anew; from its parent it
//! has the PINs only.

use crate::failure::{Failure, Reason, Result};
use crate::pin::Pin;
use metaslot_ck::*;
use metaslot_client::{Access, Module, Session, TokenInfo, User};
use std::collections::HashMap;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Sessions that a token keeps for later.
const IDLE: usize = 64;

/// What a process has.
#[derive(Debug, Default)]
pub(crate) struct Host {
    module: Option<Module>,
    tokens: Vec<Arc<Token>>,
    /// By the numbers of keys.
    keys: HashMap<u64, (Arc<Token>, ObjectHandle)>,
    /// By serial numbers and labels.
    pins: Vec<((String, String), Pin)>,
}

/// A token and what is open of it.
#[derive(Debug)]
pub(crate) struct Token {
    module: Module,
    slot: SlotId,
    info: TokenInfo,
    mechanisms: Vec<CK_MECHANISM_TYPE>,
    idle: Mutex<Vec<Session>>,
    login: Mutex<Login>,
}

/// The session that keeps the user logged in, and a PIN that was wrong: it is not tried again, for tokens count.
#[derive(Debug, Default)]
struct Login {
    anchor: Option<Session>,
    wrong: Option<Pin>,
}

/// A session that is given back where its operation succeeded, and closed where it did not: what it began may go on there.
#[derive(Debug)]
pub(crate) struct Lease {
    token: Arc<Token>,
    session: Option<Session>,
    keep: bool,
}

impl Host {
    /// What a process begins with: the PINs of the one that it was forked from.
    pub(crate) fn after(parent: Option<&'static Mutex<Self>>) -> Mutex<Self> {
        let parent = parent.and_then(|parent| parent.try_lock().ok());
        let pins = parent.map(|parent| parent.pins.clone()).unwrap_or_default();
        Mutex::new(Self { pins, ..Self::default() })
    }

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
            token.slot == slot && old.serial == info.serial && old.label == info.label
        };
        if let Some(token) = self.tokens.iter().find(same) {
            return Arc::clone(token);
        }
        self.tokens.retain(|token| token.slot != slot);
        let mut mechanisms = module.mechanisms(slot).unwrap_or_default();
        mechanisms.sort_unstable();
        let (idle, login) = Default::default();
        let token = Token { module: module.clone(), slot, info, mechanisms, idle, login };
        self.tokens.push(Arc::new(token));
        Arc::clone(&self.tokens[self.tokens.len() - 1])
    }

    pub(crate) fn pin(&self, token: &Token) -> Option<Pin> {
        self.pins.iter().find(|(whose, _)| *whose == token.identity()).map(|(_, pin)| pin.clone())
    }

    /// Keeps a PIN that the token took.
    pub(crate) fn remember(&mut self, token: &Token, pin: Pin) {
        self.pins.retain(|(whose, _)| *whose != token.identity());
        self.pins.push((token.identity(), pin));
    }

    pub(crate) fn key(&self, number: u64) -> Option<(Arc<Token>, ObjectHandle)> {
        self.keys.get(&number).cloned()
    }

    pub(crate) fn found(&mut self, number: u64, token: Arc<Token>, handle: ObjectHandle) {
        self.keys.insert(number, (token, handle));
    }

    pub(crate) fn forget(&mut self, number: u64) {
        self.keys.remove(&number);
    }

    /// Looks at slots, tokens and the module again.
    pub(crate) fn renew(&mut self) {
        self.keys.clear();
        self.tokens.clear();
        if let Some(module) = &self.module {
            // Where it is initialised, that is well.
            module.initialize().ok();
        }
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

    pub(crate) const fn info(&self) -> &TokenInfo {
        &self.info
    }

    fn identity(&self) -> (String, String) {
        (self.info.serial.clone(), self.info.label.clone())
    }

    pub(crate) fn has(&self, mechanism: CK_MECHANISM_TYPE) -> bool {
        self.mechanisms.binary_search(&mechanism).is_ok()
    }

    /// A failed call in words.
    pub(crate) fn failed(&self, what: &str, error: metaslot_client::Error) -> Failure {
        let what = format!("{what}, token {}", self.info.label);
        Failure::call(&what, error, self.module.detail())
    }

    /// A session.
    pub(crate) fn session(self: &Arc<Self>) -> Result<Lease> {
        let idle = lock(&self.idle).pop();
        let session = match idle {
            Some(session) => session,
            None => self.open(Access::ReadOnly)?,
        };
        Ok(Lease { token: Arc::clone(self), session: Some(session), keep: false })
    }

    /// A session of one's own.
    pub(crate) fn open(&self, access: Access) -> Result<Session> {
        let session = self.module.open_session(self.slot, access);
        session.map_err(|error| self.failed("open a session", error))
    }

    /// Logs in, if that is necessary; the PIN that it took.
    pub(crate) fn login(&self, pin: impl FnOnce() -> Result<Option<Pin>>) -> Result<Option<Pin>> {
        let mut login = lock(&self.login);
        if login.anchor.is_some() {
            return Ok(None);
        }
        let session = self.open(Access::ReadOnly)?;
        let inside = session.info().is_ok_and(|info| {
            info.state == CKS_RO_USER_FUNCTIONS || info.state == CKS_RW_USER_FUNCTIONS
        });
        if inside || !self.info.has(CKF_LOGIN_REQUIRED) {
            login.anchor = Some(session);
            return Ok(None);
        }
        let failure = |text| Failure::new(Reason::Pin, text);
        let Some(pin) = pin()? else {
            if self.info.has(CKF_PROTECTED_AUTHENTICATION_PATH) {
                session
                    .login_protected(User::User)
                    .map_err(|error| self.failed("log in", error))?;
                login.anchor = Some(session);
                return Ok(None);
            }
            let label = &self.info.label;
            return Err(failure(format!(
                "token {label} wants a PIN, and there is none: 'pin-source' in the URI or in openssl.cnf names its file"
            )));
        };
        if login.wrong.as_ref() == Some(&pin) {
            let label = &self.info.label;
            return Err(failure(format!(
                "token {label} refused this PIN before: it is not tried again"
            )));
        }
        match session.login(User::User, pin.expose()) {
            Err(error) if error.code != Error::USER_ALREADY_LOGGED_IN => {
                if error.code == Error::PIN_INCORRECT {
                    login.wrong = Some(pin);
                }
                let failed = self.failed("log in", error);
                Err(Failure { reason: Reason::Pin, ..failed })
            }
            _ => {
                login.anchor = Some(session);
                Ok(Some(pin))
            }
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
}

impl Deref for Lease {
    type Target = Session;

    fn deref(&self) -> &Session {
        self.session.as_ref().expect("there until it is dropped")
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut idle = lock(&self.token.idle);
        if self.keep && idle.len() < IDLE {
            idle.extend(self.session.take());
        }
    }
}

/// A panic under a lock leaves nothing half done here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
