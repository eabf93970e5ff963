// SPDX-License-Identifier: Apache-2.0
//! Slot, token and session management (PKCS#11 3.2 §5.5, §5.6).

use crate::engine::Engine;
use crate::login::{check_length, pin_lengths};
use crate::object::Object;
use crate::operation::OperationKind;
use crate::session::{Info, MAX_SESSIONS, Session};
use crate::token::{HANDOVER, Login, Token};
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::*;
use metaslot_router::{Candidate, HomeRoute};
use metaslot_rules::Policy;
use metaslot_spi::Message;
use metaslot_spi::store::{Examination, Examined, OtherToken, PinState, Remark, Role};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// `CK_SLOT_INFO`, before padding.
#[derive(Clone, Debug)]
pub struct SlotInfo {
    /// At most 64 bytes.
    pub description: String,
    /// `CKF_…`
    pub flags: u64,
}

/// `CK_TOKEN_INFO`, before padding.
#[derive(Clone, Debug)]
pub struct TokenInfo {
    /// UTF-8, at most 32 bytes; empty for a token that is not initialised.
    pub label: String,
    /// At most 16 bytes.
    pub serial: String,
    /// `CKF_…`
    pub flags: u64,
    /// Most sessions, open sessions.
    pub sessions: (u64, u64),
    /// Open sessions that may write.
    pub write_sessions: u64,
    /// Shortest and longest PIN, in bytes.
    pub pin_length: (u64, u64),
    /// The SO's counter.
    pub so: PinState,
    /// The user's counter.
    pub user: PinState,
    /// Of a token of another module.
    pub other: Option<OtherToken>,
}

/// `CK_SESSION_INFO`
#[derive(Clone, Copy, Debug)]
pub struct SessionInfo {
    /// Which slot.
    pub slot: SlotId,
    /// `CKS_…`
    pub state: u64,
    /// `CKF_…`
    pub flags: u64,
}

impl Engine {
    /// `C_GetSlotList`: all slots, or those with a token.
    pub fn slot_list(&self, present: bool) -> impl Iterator<Item = SlotId> {
        self.tokens.iter().filter(move |token| self.look(token) || !present).map(|token| token.slot)
    }

    /// Whether a slot's token is there now; with one that has gone its sessions end.
    fn look(&self, token: &Token) -> bool {
        let there = token.home.is_none_or(|home| home.home.is_there());
        if token.there.swap(there, Ordering::SeqCst) != there {
            token.event.store(true, Ordering::SeqCst);
            if !there {
                self.close_all_sessions(token.slot).ok();
            }
        }
        there
    }

    /// `C_WaitForSlotEvent`: a slot whose token came or went since this was last asked.
    pub fn slot_event(&self) -> Option<SlotId> {
        let changed = |token: &&Token| {
            self.look(token);
            token.event.swap(false, Ordering::SeqCst)
        };
        self.tokens.iter().find(changed).map(|token| token.slot)
    }

    /// Whether tokens can come and go at all: ours do not.
    pub fn slots_change(&self) -> bool {
        self.tokens.iter().any(|token| token.home.is_some())
    }

    /// `C_GetSlotInfo`
    ///
    /// # Errors
    /// `CKR_SLOT_ID_INVALID`
    pub fn slot_info(&self, slot: SlotId) -> Result<SlotInfo> {
        let token = self.token(slot)?;
        let flags = if self.look(token) { CKF_TOKEN_PRESENT } else { 0 };
        Ok(SlotInfo { description: token.description.clone(), flags })
    }

    /// `C_GetTokenInfo`
    ///
    /// # Errors
    /// `CKR_SLOT_ID_INVALID`, `CKR_DEVICE_ERROR`, `CKR_TOKEN_NOT_RECOGNIZED`
    pub fn token_info(&self, slot: SlotId) -> Result<TokenInfo> {
        let token = self.token(slot)?;
        let row = token.store.token()?;
        let open = |write: bool| {
            self.sessions.open_ones().filter(|(_, i)| i.slot == slot && (i.write || !write)).count()
        };
        let flag = |there, flag| if there { flag } else { 0 };
        let flags = CKF_RNG
            | CKF_DUAL_CRYPTO_OPERATIONS
            | CKF_RESTORE_KEY_NOT_NEEDED
            | CKF_ASYNC_SESSION_SUPPORTED
            | flag(row.other.as_ref().is_none_or(|other| other.login_required), CKF_LOGIN_REQUIRED)
            | flag(row.asks_by_itself(), CKF_PROTECTED_AUTHENTICATION_PATH)
            | flag(row.initialized, CKF_TOKEN_INITIALIZED)
            | flag(row.user_pin_set, CKF_USER_PIN_INITIALIZED)
            | flag(row.initialized && !row.writable, CKF_WRITE_PROTECTED);
        let user = [CKF_USER_PIN_COUNT_LOW, CKF_USER_PIN_FINAL_TRY, CKF_USER_PIN_LOCKED];
        let so = [CKF_SO_PIN_COUNT_LOW, CKF_SO_PIN_FINAL_TRY, CKF_SO_PIN_LOCKED];
        let flags = flags
            | flag(row.user_pin_set, pin_flags(row.user, user))
            | flag(row.initialized, pin_flags(row.so, so));
        let lengths = pin_lengths(&row);
        Ok(TokenInfo {
            label: row.label,
            serial: row.serial,
            flags,
            sessions: (MAX_SESSIONS as u64, open(false) as u64),
            write_sessions: open(true) as u64,
            pin_length: (*lengths.start() as u64, *lengths.end() as u64),
            so: row.so,
            user: row.user,
            other: row.other,
        })
    }

    /// What is refused to who uses a token.
    ///
    /// # Errors
    /// `CKR_SLOT_ID_INVALID`
    pub fn token_policy(&self, slot: SlotId) -> Result<Policy> {
        Ok(self.token(slot)?.policy())
    }

    /// `C_GetMechanismList`, sorted.
    ///
    /// # Errors
    /// `CKR_SLOT_ID_INVALID`
    pub fn mechanism_list(&self, slot: SlotId) -> Result<Vec<CK_MECHANISM_TYPE>> {
        let token = self.token(slot)?;
        let approved = |mechanism: &CK_MECHANISM_TYPE| token.policy().approved(*mechanism) != 0;
        let homes = token.homes().flat_map(HomeRoute::served).filter(approved);
        // What needs no key of the token is done here.
        let digests = |mechanism: &CK_MECHANISM_TYPE| {
            MechanismRow::find(*mechanism).is_some_and(|row| row.keys.is_empty())
        };
        let ours = |mechanism: &CK_MECHANISM_TYPE| token.home.is_none() || digests(mechanism);
        let served = self.routes.served().filter(approved).filter(ours);
        let mut all: Vec<_> = homes.chain(served).collect();
        all.sort_unstable();
        all.dedup();
        Ok(all)
    }

    /// `C_GetMechanismInfo`: smallest and largest key, flags.
    ///
    /// # Errors
    /// `CKR_SLOT_ID_INVALID`, `CKR_MECHANISM_INVALID`
    pub fn mechanism_info(
        &self,
        slot: SlotId,
        mechanism: CK_MECHANISM_TYPE,
    ) -> Result<(u64, u64, u64)> {
        let token = self.token(slot)?;
        let of_home = |home: &HomeRoute| home.info(mechanism);
        let of_homes = |error| token.homes().find_map(of_home).ok_or(error);
        let (least, most, flags) = match token.home.as_ref().and_then(of_home) {
            Some(info) => info,
            None => self.routes.info(mechanism).or_else(of_homes)?,
        };
        let approved = token.policy().approved(mechanism);
        let approved = (approved != 0).then_some(approved).ok_or(Error::MECHANISM_INVALID)?;
        let flags = flags & approved;
        Ok((least, most, flags | message_flags(mechanism, flags)))
    }

    /// Looks at all of a token, and mends, copies, restores or removes it; see [`metaslot_spi::store::Store::examine`].
    ///
    /// # Errors
    /// `CKR_SLOT_ID_INVALID`, `CKR_TOKEN_NOT_RECOGNIZED`, `CKR_SESSION_EXISTS` where it is to go, and as the store says.
    pub fn examine_token(
        &self,
        slot: SlotId,
        role: Role,
        pin: &[u8],
        what: Examination<'_>,
        remark: &mut dyn FnMut(Remark<'_>) -> bool,
    ) -> Result<Examined> {
        let token = self.token(slot)?;
        let _changing = token.changing();
        if pin.is_empty() {
            return Err(Error::PIN_INCORRECT);
        }
        if !matches!(what, Examination::Restore(_)) && !token.store.token()?.initialized {
            return Err(Error::TOKEN_NOT_RECOGNIZED);
        }
        match what {
            Examination::Remove(_) => {
                self.replace(slot, token, || token.store.examine(role, pin, what, remark))
            }
            _ => token.store.examine(role, pin, what, remark),
        }
    }

    /// `C_InitToken`: `label` is UTF-8 without padding.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.5.7 names them.
    pub fn init_token(&self, slot: SlotId, so_pin: &[u8], label: &str) -> Result<()> {
        let token = self.token(slot)?;
        // The PIN of a token that is there is shown, not set.
        let row = token.store.token()?;
        let lengths = if row.initialized { Self::PIN_LENGTHS } else { pin_lengths(&row) };
        check_length(&lengths, so_pin)?;
        let _changing = token.changing();
        self.replace(slot, token, || token.store.initialize(so_pin, label))
    }

    /// What leaves nothing of a token's login and objects; it is not done while there is a session.
    fn replace<R>(
        &self,
        slot: SlotId,
        token: &Token,
        work: impl FnOnce() -> Result<R>,
    ) -> Result<R> {
        let _closed = token.close_to_sessions();
        self.sessions.settle();
        if self.sessions.any(|info| info.slot == slot) {
            return Err(Error::SESSION_EXISTS);
        }
        let done = work()?;
        token.clock.begin(Login::Public);
        token.handles.renew();
        token.objects.end_all();
        token.clock.count_death();
        Ok(done)
    }

    /// `C_OpenSession`
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.6.1 names them.
    pub fn open_session(&self, slot: SlotId, flags: u64) -> Result<SessionHandle> {
        let token = self.token(slot)?;
        if flags & CKF_SERIAL_SESSION == 0 {
            return Err(Error::SESSION_PARALLEL_NOT_SUPPORTED);
        }
        if !token.there.load(Ordering::Relaxed) && !self.look(token) {
            return Err(Error::TOKEN_NOT_PRESENT);
        }
        let write = flags & CKF_RW_SESSION != 0;
        let asynchronous = flags & CKF_ASYNC_SESSION != 0;
        loop {
            let mut waits = false;
            let opened = self.sessions.open(Info { slot, write, asynchronous }, || {
                waits = token.is_closed_to_sessions();
                match write || token.login_state() != Login::So {
                    true if !waits => Ok(()),
                    _ => Err(Error::SESSION_READ_WRITE_SO_EXISTS),
                }
            });
            if !waits {
                return opened;
            }
            // The token is being made anew, or a login begins or ends: this session comes after.
            drop(token.changing());
        }
    }

    /// `C_CloseSession`: its session objects go with it.
    ///
    /// # Errors
    /// As PKCS#11 3.2 §5.6.2 names them.
    pub fn close_session(&self, handle: SessionHandle) -> Result<()> {
        let is_other = |slot| {
            self.token(slot).is_ok_and(|token| token.witness.load(Ordering::SeqCst) != handle.0)
        };
        let Some((slot, owned)) = self.sessions.close(handle, is_other)? else {
            return self.close_anchor(handle);
        };
        let token = self.token(slot)?;
        if !owned.is_empty() {
            self.destroy_owned(token, owned);
        }
        if token.witness.load(Ordering::SeqCst) == HANDOVER {
            self.wait_for_anchor(token);
        }
        Ok(())
    }

    /// The session whose being open kept the login is being closed: which one was the last?
    #[cold]
    fn wait_for_anchor(&self, token: &Token) {
        let _changing = token.changing();
        self.pass_anchor(token);
    }

    /// Closes the session for which others did not look whether they are the last.
    #[cold]
    fn close_anchor(&self, handle: SessionHandle) -> Result<()> {
        let token = self.token(self.sessions.info(handle)?.slot)?;
        let _changing = token.changing();
        if token.witness.load(Ordering::SeqCst) == handle.0 {
            token.witness.store(HANDOVER, Ordering::SeqCst);
        }
        let closed = self.sessions.close(handle, |_| true).map(|closed| {
            if let Some((_, owned)) = closed {
                self.destroy_owned(token, owned);
            }
        });
        self.pass_anchor(token);
        closed
    }

    #[inline(never)]
    fn destroy_owned(&self, token: &Token, owned: Vec<ObjectHandle>) {
        let clock = &token.clock;
        let taken = owned
            .into_iter()
            .filter_map(|object| self.session_objects.take(object, clock, |_| Ok(())).ok());
        // Another session may still use one of them.
        let used = |object: &Arc<_>| Arc::strong_count(object) > 1 || Object::has_others(object);
        if taken.fold(false, |any, object| any | used(&object)) {
            self.sweep_all(token);
        }
    }

    /// `C_CloseAllSessions`
    ///
    /// # Errors
    /// `CKR_SLOT_ID_INVALID`
    pub fn close_all_sessions(&self, slot: SlotId) -> Result<()> {
        self.token(slot)?;
        for (handle, _) in self.sessions.open_ones().filter(|(_, info)| info.slot == slot) {
            match self.close_session(handle) {
                // Another thread closed it meanwhile: then it is closed, as was wanted.
                Ok(()) | Err(Error::SESSION_HANDLE_INVALID) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// `C_GetSessionInfo`: takes no lock.
    ///
    /// # Errors
    /// `CKR_SESSION_HANDLE_INVALID`
    pub fn session_info(&self, handle: SessionHandle) -> Result<SessionInfo> {
        let info = self.sessions.info(handle)?;
        let token = self.token(info.slot)?;
        if token.has_void_login() {
            let _changing = token.changing();
            self.end_void_login(token);
        }
        let state = match (token.login_state(), info.write) {
            (Login::Public, false) => CKS_RO_PUBLIC_SESSION,
            (Login::Public, true) => CKS_RW_PUBLIC_SESSION,
            (Login::User, false) => CKS_RO_USER_FUNCTIONS,
            (Login::User, true) => CKS_RW_USER_FUNCTIONS,
            (Login::So, _) => CKS_RW_SO_FUNCTIONS,
        };
        let flag = |there, flag| if there { flag } else { 0 };
        let flags = CKF_SERIAL_SESSION
            | flag(info.write, CKF_RW_SESSION)
            | flag(info.asynchronous, CKF_ASYNC_SESSION);
        Ok(SessionInfo { slot: info.slot, state, flags })
    }

    /// Of `error` and an invalid session, the one that comes first (PKCS#11 3.2 §5.1.7).
    #[must_use]
    #[cold]
    pub fn foremost(&self, session: SessionHandle, error: Error) -> Error {
        self.sessions.info(session).err().unwrap_or(error)
    }

    /// `*Init` without a mechanism: cancels the active operation of these kinds (PKCS#11 3.2 §5.8.1).
    ///
    /// # Errors
    /// `CKR_SESSION_HANDLE_INVALID`; `CKR_ARGUMENTS_BAD` where none is active, which is what a missing
    /// mechanism was before 3.0.
    #[cold]
    pub fn cancel_active(&self, session: SessionHandle, kinds: &[OperationKind]) -> Result<()> {
        let mut session = self.session(session)?;
        let Session { operations, recent, .. } = &mut *session;
        let active = kinds.iter().any(|kind| operations.of(*kind).is_active());
        operations.cancel(recent, |kind, _| kinds.contains(&kind));
        if active { Ok(()) } else { Err(Error::ARGUMENTS_BAD) }
    }

    /// Whether an operation of a kind is active.
    ///
    /// # Errors
    /// `CKR_SESSION_HANDLE_INVALID`
    pub fn is_active(&self, session: SessionHandle, kind: OperationKind) -> Result<bool> {
        Ok(self.session(session)?.operations.of(kind).is_active())
    }

    /// A call for the active operation of these kinds failed before it reached the engine: the
    /// operation ends, but one whose work goes on.
    #[cold]
    pub fn fail_active(&self, session: SessionHandle, kinds: &[OperationKind]) {
        let Ok(mut session) = self.session(session) else { return };
        let Session { operations, recent, .. } = &mut *session;
        operations.fail(recent, kinds);
    }

    /// `C_GetSessionValidationFlags`: whether the operation that the session completed last was one that the policy approves of; never
    /// under a policy that lets pass what is not approved.
    ///
    /// # Errors
    /// `CKR_SESSION_HANDLE_INVALID`
    pub fn last_was_approved(&self, session: SessionHandle) -> Result<bool> {
        Ok(self.session(session)?.recent.was_approved())
    }

    /// `C_SessionCancel`: ends the operations that `flags` (`CKF_ENCRYPT`, …) name.
    ///
    /// # Errors
    /// `CKR_SESSION_HANDLE_INVALID`
    pub fn session_cancel(&self, handle: SessionHandle, flags: u64) -> Result<()> {
        let mut session = self.session(handle)?;
        let Session { operations, recent, find, .. } = &mut *session;
        operations.cancel(recent, |kind, _| flags & kind.cancel_flag() != 0);
        if flags & CKF_FIND_OBJECTS != 0 {
            *find = None;
        }
        Ok(())
    }
}

/// The flags of the functions for several messages, which are made of those for one (`flags`).
fn message_flags(mechanism: CK_MECHANISM_TYPE, flags: u64) -> u64 {
    let shape = MechanismRow::find(mechanism).map(|row| row.shape);
    let seals = shape.is_some_and(|shape| Message::plain(shape).is_some());
    let pairs = [
        (CKF_ENCRYPT, CKF_MESSAGE_ENCRYPT, seals),
        (CKF_DECRYPT, CKF_MESSAGE_DECRYPT, seals),
        (CKF_SIGN, CKF_MESSAGE_SIGN, true),
        (CKF_VERIFY, CKF_MESSAGE_VERIFY, true),
    ];
    let there = pairs.iter().filter(|(one, _, serves)| *serves && flags & one != 0);
    there.fold(0, |all, (_, several, _)| all | several | CKF_MULTI_MESSAGE)
}

/// The flags for low, final and locked (PKCS#11 3.2 §5.5.3).
const fn pin_flags(pin: PinState, [low, last, locked]: [u64; 3]) -> u64 {
    let flag = match pin.left {
        0 => locked,
        1 => last,
        _ => 0,
    };
    if pin.failures > 0 { flag | low } else { 0 }
}

impl Engine {
    /// Who serves a mechanism, in the order in which they are asked; among them, without operations, who could but says why not.
    ///
    /// # Errors
    /// `CKR_MECHANISM_INVALID` when no provider serves it.
    pub fn candidates(&self, mechanism: CK_MECHANISM_TYPE) -> Result<Vec<Candidate>> {
        let candidate = |token: &Token| {
            let home = token.home?;
            let flags = home.row(mechanism)?.flags();
            let remark = format!("keys of slot {} only", token.slot.0);
            Some(Candidate { provider: home.home.name().to_owned(), flags, remark })
        };
        let homes: Vec<_> = self.tokens.iter().filter_map(candidate).collect();
        // What did not start may be there by now.
        let came = |name: &str| {
            let there = self.tokens.iter().filter(|token| token.there.load(Ordering::Relaxed));
            there.filter_map(|token| token.home).any(|home| home.home.name() == name)
        };
        let absent = self.absent.iter().filter(|(name, _)| !came(name));
        let absent = absent.map(|(name, reason)| Candidate {
            provider: name.clone(),
            flags: 0,
            remark: format!("it {reason}"),
        });
        let [ours, disabled] = self.routes.candidates(mechanism);
        if homes.is_empty() && disabled.is_empty() {
            self.routes.info(mechanism)?;
        }
        Ok(ours.into_iter().chain(homes).chain(disabled).chain(absent).collect())
    }
}
