// SPDX-License-Identifier: Apache-2.0
//! Login and logout (PKCS#11 3.2 §5.6.8–§5.6.10). The state belongs to the token, not to sessions.

use super::{Login, Token};
use crate::engine::Engine;
use crate::store::Role;
use metaslot_ck::*;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

impl Engine {
    /// `C_Login`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.6.8 names them; `CKR_FUNCTION_REJECTED` when it is too soon after
    /// failures.
    pub fn login(&self, session: SessionHandle, user: CK_USER_TYPE, pin: &[u8]) -> Result<()> {
        match user {
            CKU_SO => self.log_in(session, Role::So, pin),
            CKU_USER => self.log_in(session, Role::User, pin),
            CKU_CONTEXT_SPECIFIC => self.authenticate(session, pin),
            _ => Err(Error::USER_TYPE_INVALID),
        }
    }

    fn log_in(&self, session: SessionHandle, role: Role, pin: &[u8]) -> Result<()> {
        let slot = self.sessions.info(session)?.slot;
        let token = self.token(slot)?;
        let changing = token.changing.lock().unwrap_or_else(PoisonError::into_inner);
        match (token.login_state(), role) {
            (Login::User, Role::User) | (Login::So, Role::So) => {
                return Err(Error::USER_ALREADY_LOGGED_IN);
            }
            (Login::User | Login::So, _) => return Err(Error::USER_ANOTHER_ALREADY_LOGGED_IN),
            (Login::Public, Role::So)
                if self.sessions.any(|info| info.slot == slot && !info.write) =>
            {
                return Err(Error::SESSION_READ_ONLY_EXISTS);
            }
            (Login::Public, _) => {}
        }
        if pin.is_empty() {
            return Err(Error::PIN_INCORRECT);
        }
        if !token.store.token()?.initialized {
            return Err(Error::TOKEN_NOT_RECOGNIZED);
        }
        token.store.login(role, pin)?;
        token.handles.renew_private();
        token.read_again();
        token.anchor.store(session.0, Ordering::Release);
        let state = if role == Role::User { 1 } else { 2 };
        token.login.store(state, Ordering::Release);
        drop(changing);
        // The session may have closed while the PIN was checked.
        if self.sessions.info(session).is_err() {
            self.session_closed(session, slot);
        }
        Ok(())
    }

    /// A context-specific login unlocks the operations of this session that wait for it.
    fn authenticate(&self, handle: SessionHandle, pin: &[u8]) -> Result<()> {
        let mut session = self.session(handle)?;
        if !session.has_locked_operation() {
            return Err(Error::OPERATION_NOT_INITIALIZED);
        }
        let token = self.token(session.slot)?;
        if token.login_state() != Login::User {
            return Err(Error::USER_NOT_LOGGED_IN);
        }
        token.store.check_pin(Role::User, pin)?;
        session.unlock_operations();
        Ok(())
    }

    /// `C_Logout`
    ///
    /// # Errors
    /// `CKR_USER_NOT_LOGGED_IN`
    pub fn logout(&self, session: SessionHandle) -> Result<()> {
        let slot = self.sessions.info(session)?.slot;
        let token = self.token(slot)?;
        let changing = token.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if token.login_state() == Login::Public {
            return Err(Error::USER_NOT_LOGGED_IN);
        }
        self.log_out(token);
        drop(changing);
        Ok(())
    }

    /// After this no private object, and no copy of a key of the token, remains in the process.
    fn log_out(&self, token: &Token) {
        token.login.store(0, Ordering::Release);
        token.store.logout();
        token.handles.renew_private();
        token.forget_private();
        let slot = token.slot;
        self.session_objects.take_all(|object| object.slot == slot && object.private());
        self.sessions.each(|session| {
            if session.slot == slot {
                session.drop_stale();
            }
        });
    }

    /// When the last session of a slot closes, its user is logged out (PKCS#11 3.2 §5.6.2).
    pub(crate) fn session_closed(&self, closed: SessionHandle, slot: SlotId) {
        let Ok(token) = self.token(slot) else { return };
        if token.anchor.load(Ordering::Acquire) != closed.0 {
            return;
        }
        let _changing = token.changing.lock().unwrap_or_else(PoisonError::into_inner);
        while token.login_state() != Login::Public {
            let Some(other) = self.sessions.first(|info| info.slot == slot) else {
                self.log_out(token);
                return;
            };
            token.anchor.store(other.0, Ordering::SeqCst);
            // The new anchor may have closed before it could see that it is one.
            if self.sessions.info(other).is_ok() {
                return;
            }
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
        check_length(pin)?;
        token.store.init_pin(pin)
    }

    /// `C_SetPIN`: the SO's when the SO is logged in, else the user's.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.5.9 names them.
    pub fn set_pin(&self, session: SessionHandle, old: &[u8], new: &[u8]) -> Result<()> {
        let info = self.sessions.info(session)?;
        if !info.write {
            return Err(Error::SESSION_READ_ONLY);
        }
        check_length(new)?;
        let token = self.token(info.slot)?;
        let role = if token.login_state() == Login::So { Role::So } else { Role::User };
        token.store.set_pin(role, old, new)
    }
}

/// Shortest and longest PIN, in bytes.
pub(crate) const PIN_LENGTH: (usize, usize) = (4, 255);

fn check_length(pin: &[u8]) -> Result<()> {
    let (shortest, longest) = PIN_LENGTH;
    if (shortest..=longest).contains(&pin.len()) { Ok(()) } else { Err(Error::PIN_LEN_RANGE) }
}
