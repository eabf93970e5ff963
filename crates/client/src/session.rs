// SPDX-License-Identifier: Apache-2.0
//! A session: open, login, PINs, random numbers.

use crate::{Error, Module, Result, SessionInfo, User, ulong};
use metaslot_ck::*;
use std::ptr;

/// What a session may do to token objects.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Access {
    /// Read them.
    ReadOnly,
    /// Create, change and destroy them.
    ReadWrite,
}

impl Access {
    pub(crate) const fn flags(self) -> CK_FLAGS {
        match self {
            Self::ReadOnly => CKF_SERIAL_SESSION,
            Self::ReadWrite => CKF_SERIAL_SESSION | CKF_RW_SESSION,
        }
    }
}

/// An open session, closed on drop. It may be shared between threads, as the standard allows; the
/// operations of two threads in one session then disturb each other.
#[derive(Debug)]
pub struct Session {
    module: Module,
    handle: SessionHandle,
    closed: bool,
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.closed {
            // No caller is left to tell, and after C_Finalize there is nothing to close.
            self.close_handle().ok();
        }
    }
}

impl Module {
    /// `C_OpenSession`; the session is closed when it is dropped.
    ///
    /// # Errors
    /// The module's code.
    pub fn open_session(&self, slot: SlotId, access: Access) -> Result<Session> {
        self.open_with(slot, access.flags())
    }

    pub(crate) fn open_with(&self, slot: SlotId, flags: CK_FLAGS) -> Result<Session> {
        let handle = self.open_handle(slot, flags)?;
        Ok(Session::new(self.clone(), SessionHandle(handle)))
    }

    fn open_handle(&self, slot: SlotId, flags: CK_FLAGS) -> Result<CK_SESSION_HANDLE> {
        if let Some(remote) = self.other_process() {
            return remote.open_session(slot, flags);
        }
        let function = self.lists().v2_40.C_OpenSession;
        self.fill(Function::OpenSession, function, |f, handle| {
            // SAFETY: no callback is given; `handle` is to be written.
            unsafe { f(slot.0, flags, ptr::null_mut(), None, handle) }
        })
    }

    /// `C_OpenSession` and `C_CloseSession`, and nothing else: a [`Session`] counts its module, and
    /// threads that measure would fight for that count.
    ///
    /// # Errors
    /// The module's code.
    pub fn open_and_close(&self, slot: SlotId, access: Access) -> Result<()> {
        let handle = self.open_handle(slot, access.flags())?;
        self.call(Function::CloseSession, self.lists().v2_40.C_CloseSession, |f| {
            // SAFETY: takes a number only.
            unsafe { f(handle) }
        })
    }
}

impl Session {
    pub(crate) const fn new(module: Module, handle: SessionHandle) -> Self {
        Self { module, handle, closed: false }
    }

    /// The module that it belongs to.
    #[must_use]
    pub const fn module(&self) -> &Module {
        &self.module
    }

    /// The number that the module gave it.
    #[must_use]
    pub const fn handle(&self) -> SessionHandle {
        self.handle
    }

    pub(crate) fn list(&self) -> &CK_FUNCTION_LIST {
        &self.module.lists().v2_40
    }

    #[inline]
    pub(crate) fn call<F>(
        &self,
        function: Function,
        pointer: Option<F>,
        call: impl FnOnce(F, CK_SESSION_HANDLE) -> CK_RV,
    ) -> Result<()> {
        self.module.call(function, pointer, |f| call(f, self.handle.0))
    }

    fn close_handle(&self) -> Result<()> {
        if let Some(remote) = self.module.other_process() {
            return remote.tell(Function::CloseSession, &[self.handle.0]);
        }
        self.call(Function::CloseSession, self.list().C_CloseSession, |f, session| {
            // SAFETY: takes a number only.
            unsafe { f(session) }
        })
    }

    /// `C_CloseSession`, for those who want to know whether it worked.
    ///
    /// # Errors
    /// The module's code.
    pub fn close(mut self) -> Result<()> {
        self.closed = true;
        self.close_handle()
    }

    /// `C_GetSessionInfo`
    ///
    /// # Errors
    /// The module's code.
    pub fn info(&self) -> Result<SessionInfo> {
        if let Some(remote) = self.module.other_process() {
            return remote.session_info(self.handle.0);
        }
        let function = self.list().C_GetSessionInfo;
        let raw: CK_SESSION_INFO =
            self.module.fill(Function::GetSessionInfo, function, |f, info| {
                // SAFETY: `info` is a CK_SESSION_INFO to be written.
                unsafe { f(self.handle.0, info) }
            })?;
        Ok(raw.into())
    }

    /// `C_Login` with a PIN.
    ///
    /// # Errors
    /// The module's code: `CKR_PIN_INCORRECT`, `CKR_PIN_LOCKED`, `CKR_USER_ALREADY_LOGGED_IN`, …
    pub fn login(&self, user: User, pin: &[u8]) -> Result<()> {
        self.log_in(user, Some(pin))
    }

    /// `C_LoginUser`: as the user of this name.
    ///
    /// # Errors
    /// The module's code; `CKR_FUNCTION_NOT_SUPPORTED` before PKCS#11 3.0.
    pub fn login_user(&self, name: &str, pin: &[u8]) -> Result<()> {
        let user = User::User.number();
        if let Some(remote) = self.module.other_process() {
            return remote.login_user(self.handle.0, user, pin, name.as_bytes());
        }
        let list = self.module.lists().v3_0.as_ref();
        let function = list.ok_or_else(|| Error::missing(Function::LoginUser))?.C_LoginUser;
        let (pin, pin_length) = (pin.as_ptr().cast_mut(), ulong(pin.len()));
        self.call(Function::LoginUser, function, |f, session| {
            // SAFETY: a PIN and a name with their lengths, read only.
            unsafe {
                f(session, user, pin, pin_length, name.as_ptr().cast_mut(), ulong(name.len()))
            }
        })
    }

    /// `C_Login` without a PIN, for a token with its own keypad.
    ///
    /// # Errors
    /// The module's code.
    pub fn login_protected(&self, user: User) -> Result<()> {
        self.log_in(user, None)
    }

    fn log_in(&self, user: User, pin: Option<&[u8]>) -> Result<()> {
        if let Some(remote) = self.module.other_process() {
            return remote.login(self.handle.0, user.number(), pin);
        }
        let at = pin.map_or(ptr::null_mut(), |pin| pin.as_ptr().cast_mut());
        let length = pin.map_or(0, |pin| ulong(pin.len()));
        self.call(Function::Login, self.list().C_Login, |f, session| {
            // SAFETY: a PIN with its length, read only; NULL asks for the token's own way of authentication.
            unsafe { f(session, user.number(), at, length) }
        })
    }

    /// `C_Logout`
    ///
    /// # Errors
    /// The module's code.
    pub fn logout(&self) -> Result<()> {
        if let Some(remote) = self.module.other_process() {
            return remote.tell(Function::Logout, &[self.handle.0]);
        }
        self.call(Function::Logout, self.list().C_Logout, |f, session| {
            // SAFETY: takes a number only.
            unsafe { f(session) }
        })
    }

    /// `C_InitPIN`: the security officer sets the user's PIN.
    ///
    /// # Errors
    /// The module's code.
    pub fn init_pin(&self, pin: &[u8]) -> Result<()> {
        self.input(Function::InitPIN, self.list().C_InitPIN, pin)
    }

    /// `C_SetPIN`: anyone who is logged in changes the own PIN.
    ///
    /// # Errors
    /// The module's code.
    pub fn set_pin(&self, old: &[u8], new: &[u8]) -> Result<()> {
        if let Some(remote) = self.module.other_process() {
            return remote.input(Function::SetPIN, self.handle.0, &[old, new]);
        }
        self.call(Function::SetPIN, self.list().C_SetPIN, |f, session| {
            let (old, old_length) = (old.as_ptr().cast_mut(), ulong(old.len()));
            // SAFETY: two PINs with their lengths, read only.
            unsafe { f(session, old, old_length, new.as_ptr().cast_mut(), ulong(new.len())) }
        })
    }

    /// `C_GenerateRandom`: fills `bytes`.
    ///
    /// # Errors
    /// The module's code.
    pub fn random(&self, bytes: &mut [u8]) -> Result<()> {
        if let Some(remote) = self.module.other_process() {
            return remote.random(self.handle.0, bytes);
        }
        self.call(Function::GenerateRandom, self.list().C_GenerateRandom, |f, session| {
            // SAFETY: room for exactly this many bytes.
            unsafe { f(session, bytes.as_mut_ptr(), ulong(bytes.len())) }
        })
    }

    /// `C_SeedRandom`
    ///
    /// # Errors
    /// The module's code.
    pub fn seed_random(&self, seed: &[u8]) -> Result<()> {
        self.input(Function::SeedRandom, self.list().C_SeedRandom, seed)
    }

    /// `C_SessionCancel` (PKCS#11 3.0): ends the operations named by `flags` (`CKF_SIGN`, …).
    ///
    /// # Errors
    /// The module's code; `CKR_FUNCTION_NOT_SUPPORTED` on a 2.40 module.
    pub fn cancel(&self, flags: CK_FLAGS) -> Result<()> {
        if let Some(remote) = self.module.other_process() {
            return remote.tell(Function::SessionCancel, &[self.handle().0, flags]);
        }
        let list = self.module.lists().v3_0.as_ref();
        let function = list
            .and_then(|list| list.C_SessionCancel)
            .ok_or_else(|| Error::missing(Function::SessionCancel))?;
        self.call(Function::SessionCancel, Some(function), |f, session| {
            // SAFETY: takes numbers only.
            unsafe { f(session, flags) }
        })
    }
}
