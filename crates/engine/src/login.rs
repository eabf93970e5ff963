// SPDX-License-Identifier: Apache-2.0
//! Login and logout (PKCS#11 3.2 §5.6.8–§5.6.10). The state belongs to the token, not to sessions.

use crate::engine::Engine;
use crate::object::Object;
use crate::operation::Lock;
use crate::session::Info;
use crate::token::{HANDOVER, Login, NO_WITNESS, Token};
use metaslot_ck::*;
use metaslot_spi::detail;
use metaslot_spi::store::{Name, Role, TokenRow};
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;

impl Engine {
    /// How long a PIN can be at all, in bytes; a store may ask for longer ones.
    pub const PIN_LENGTHS: RangeInclusive<usize> = 4..=255;

    /// `C_Login`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.6.8 names them; `CKR_PIN_LOCKED` also when it is too soon after failures,
    /// where a context-specific login answers `CKR_PIN_INCORRECT`: the other would say that the user is
    /// logged out.
    pub fn login(&self, session: SessionHandle, user: CK_USER_TYPE, pin: &[u8]) -> Result<()> {
        match user {
            CKU_SO => self.log_in(session, Role::So, None, pin),
            CKU_USER => self.log_in(session, Role::User, None, pin),
            CKU_CONTEXT_SPECIFIC => self.authenticate(session, pin),
            _ => Err(Error::USER_TYPE_INVALID),
        }
    }

    /// `C_LoginUser` of an identity of the token (PKCS#11 3.2 §5.6.9).
    ///
    /// # Errors
    /// As [`Self::login`], and `CKR_PIN_INCORRECT` also for a PIN that is locked and a name that is unknown.
    pub fn login_as(&self, session: SessionHandle, name: Name, pin: &[u8]) -> Result<()> {
        self.log_in(session, Role::User, Some(name), pin)
    }

    /// Which identity is logged in to a slot's token.
    pub fn identity(&self, slot: SlotId) -> Option<Name> {
        let token = self.token(slot).ok().filter(|token| token.login_state() == Login::User)?;
        *token.identity()
    }

    /// `C_Login` with NULL: by the token's own way of asking, where it has one (PKCS#11 3.2 §5.6.8).
    ///
    /// # Errors
    /// As [`Self::login`]; `CKR_ARGUMENTS_BAD` where the token has none.
    pub fn login_without_pin(&self, session: SessionHandle, user: CK_USER_TYPE) -> Result<()> {
        let token = self.token(self.sessions.info(session)?.slot)?;
        if user == CKU_CONTEXT_SPECIFIC || !token.store.token()?.asks_by_itself() {
            return Err(Error::ARGUMENTS_BAD);
        }
        self.login(session, user, &[])
    }

    fn log_in(
        &self,
        session: SessionHandle,
        role: Role,
        name: Option<Name>,
        pin: &[u8],
    ) -> Result<()> {
        let slot = self.sessions.info(session)?.slot;
        let token = self.token(slot)?;
        let _changing = token.changing();
        self.end_void_login(token);
        match (token.login_state(), role) {
            (Login::So, Role::So) => return Err(Error::USER_ALREADY_LOGGED_IN),
            (Login::User, Role::User) if *token.identity() == name => {
                return Err(Error::USER_ALREADY_LOGGED_IN);
            }
            (Login::User | Login::So, _) => return Err(Error::USER_ANOTHER_ALREADY_LOGGED_IN),
            (Login::Public, Role::So) if self.has_read_only_session(slot) => {
                return Err(Error::SESSION_READ_ONLY_EXISTS);
            }
            (Login::Public, _) => {}
        }
        let row = token.store.token()?;
        if pin.is_empty() && !row.asks_by_itself() {
            return Err(Error::PIN_INCORRECT);
        }
        if !row.initialized {
            return Err(Error::TOKEN_NOT_RECOGNIZED);
        }
        match name {
            Some(name) => token.store.login_as(name, pin)?,
            None => token.store.login(role, pin)?,
        }
        *token.identity() = name;
        // Sessions come and go while the PIN is checked.
        if let Err(refused) = self.admit(token, session, role) {
            token.store.logout();
            return Err(refused);
        }
        Ok(())
    }

    /// Begins the epoch of the role that has shown the PIN.
    fn admit(&self, token: &Token, session: SessionHandle, role: Role) -> Result<()> {
        let login = if role == Role::User { Login::User } else { Login::So };
        let _closed = (login == Login::So).then(|| token.close_to_sessions());
        if login == Login::So {
            self.sessions.settle();
            if self.has_read_only_session(token.slot) {
                return Err(Error::SESSION_READ_ONLY_EXISTS);
            }
        }
        if self.make_witness(token, session, false) != Some(true) && !self.find_witness(token) {
            return Err(Error::SESSION_HANDLE_INVALID);
        }
        token.handles.renew_private();
        token.clock.begin(login);
        Ok(())
    }

    /// Makes the session the witness, if it is open.
    fn make_witness(&self, token: &Token, session: SessionHandle, patient: bool) -> Option<bool> {
        let witness = || token.witness.store(session.0, Ordering::SeqCst);
        self.sessions.while_open(session, patient, witness)
    }

    /// Makes any open session the witness, rather one that is at rest; says whether there is one.
    fn find_witness(&self, token: &Token) -> bool {
        let mine =
            |(session, info): (SessionHandle, Info)| (info.slot == token.slot).then_some(session);
        let found = |patient: bool| {
            let mut open = self.sessions.open_ones().filter_map(mine);
            open.any(|session| self.make_witness(token, session, patient) == Some(true))
        };
        found(false) || found(true)
    }

    fn has_read_only_session(&self, slot: SlotId) -> bool {
        self.sessions.any(|info| info.slot == slot && !info.write)
    }

    /// A context-specific login unlocks one operation of this session: a key that wants the PIN for
    /// each use is used once for it.
    fn authenticate(&self, handle: SessionHandle, pin: &[u8]) -> Result<()> {
        let mut session = self.session(handle)?;
        let operation = session.locked().ok_or(Error::OPERATION_NOT_INITIALIZED)?;
        let home = operation.object().and_then(|object| self.home_of(object));
        let token = self.token(session.slot)?;
        if token.login_state() != Login::User {
            return Err(Error::USER_NOT_LOGGED_IN);
        }
        let shown = match home {
            Some(home) => home.home.keep_pin(pin).map(Lock::Shown),
            None => token.check_pin(pin).map(|()| Lock::Open),
        };
        match shown {
            Ok(lock) => {
                session.locked().into_iter().for_each(|operation| operation.unlock(lock));
                Ok(())
            }
            Err(Error::PIN_LOCKED) => {
                // Logout visits every session, and waits for no thread that holds one.
                drop(session);
                Err(self.locked_meanwhile(token))
            }
            Err(error) => Err(error),
        }
    }

    /// PKCS#11 3.2 §4.9: a PIN that is locked for good logs the user out. One that is locked for
    /// seconds does not: the key stays locked, as after a wrong PIN.
    fn locked_meanwhile(&self, token: &Token) -> Error {
        if !token.store.token().is_ok_and(|row| row.user.left == 0) {
            return Error::PIN_INCORRECT;
        }
        let _changing = token.changing();
        if token.login_state() == Login::User {
            self.log_out(token);
        }
        Error::PIN_LOCKED
    }

    /// `C_Logout`
    ///
    /// # Errors
    /// `CKR_USER_NOT_LOGGED_IN`
    pub fn logout(&self, session: SessionHandle) -> Result<()> {
        let slot = self.sessions.info(session)?.slot;
        let token = self.token(slot)?;
        let _changing = token.changing();
        *token.identity() = None;
        if token.login_state() == Login::Public {
            return Err(Error::USER_NOT_LOGGED_IN);
        }
        self.log_out(token);
        Ok(())
    }

    /// With the end of the epoch every private object is dead, no matter who holds it. After this none of
    /// them, and no copy of a key of the token, remains in the process. The caller holds `changing`.
    pub(crate) fn log_out(&self, token: &Token) {
        token.clock.begin(Login::Public);
        token.witness.store(NO_WITNESS, Ordering::SeqCst);
        token.store.logout();
        token.objects.let_go(Object::needs_login);
        let slot = token.slot;
        self.session_objects
            .take_all(&token.clock, |object| object.slot == slot && object.private());
        self.sweep_all(token);
    }

    /// Logs out where the token has been made anew since the login. The caller holds `changing`.
    pub(crate) fn end_void_login(&self, token: &Token) {
        if token.has_void_login() {
            self.log_out(token);
        }
    }

    /// The witness is closed: another session takes its place. Without one the user is logged out
    /// (PKCS#11 3.2 §5.6.2). The caller holds `changing`.
    pub(crate) fn pass_anchor(&self, token: &Token) {
        if token.witness.load(Ordering::SeqCst) != HANDOVER || self.find_witness(token) {
            return;
        }
        let _closed = token.close_to_sessions();
        self.sessions.settle();
        if !self.find_witness(token) {
            self.log_out(token);
            *token.identity() = None;
        }
    }

    /// `C_InitPIN`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.5.8 names them.
    pub fn init_pin(&self, session: SessionHandle, pin: &[u8]) -> Result<()> {
        let token = self.token(self.sessions.info(session)?.slot)?;
        if token.login_state() != Login::So {
            return Err(Error::USER_NOT_LOGGED_IN);
        }
        check_length(&pin_lengths(&token.store.token()?), pin)?;
        token.store.init_pin(pin)
    }

    /// `C_SetPIN`: that of who is logged in, without a login the user's. An identity that was revoked, and has not logged out, sets
    /// no other PIN than its own.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.5.9 names them.
    pub fn set_pin(&self, session: SessionHandle, old: &[u8], new: &[u8]) -> Result<()> {
        let info = self.sessions.info(session)?;
        if !info.write {
            return Err(Error::SESSION_READ_ONLY);
        }
        let token = self.token(info.slot)?;
        check_length(&pin_lengths(&token.store.token()?), new)?;
        let identity = *token.identity();
        match (token.login_state(), identity) {
            (Login::So, _) => token.store.set_pin(Role::So, old, new),
            (_, Some(name)) => token.store.set_pin_as(name, old, new),
            _ => token.store.set_pin(Role::User, old, new),
        }
    }
}

/// Which lengths a new PIN of this token may have, in bytes.
pub(crate) fn pin_lengths(row: &TokenRow) -> RangeInclusive<usize> {
    let (shortest, longest) = (*Engine::PIN_LENGTHS.start(), *Engine::PIN_LENGTHS.end());
    row.shortest_pin.clamp(shortest, longest)..=longest
}

pub(crate) fn check_length(lengths: &RangeInclusive<usize>, pin: &[u8]) -> Result<()> {
    if lengths.contains(&pin.len()) {
        return Ok(());
    }
    let (shortest, longest) = (lengths.start(), lengths.end());
    detail::set(format_args!("a PIN of this token has {shortest} to {longest} bytes"));
    Err(Error::PIN_LEN_RANGE)
}
