// SPDX-License-Identifier: Apache-2.0
//! Who is logged in to a token: its own slot, a pool, a view that shows it.

use super::{ENDED, GONE, REFUSED, State, Token};
use crate::error::{is_loss, is_refusal, logged_in};
use crate::isolated::Bound;
use crate::pin;
use metaslot_ck::{
    CK_STATE, CKS_RO_PUBLIC_SESSION, CKS_RW_PUBLIC_SESSION, Error, Function, Result,
};
use metaslot_client::{Error as Failure, Result as Called, Session, User};
use metaslot_memory::Secret;
use metaslot_spi::store::{Name, Role};
use std::path::Path;

impl Token {
    /// Whether there is a login that can be made again.
    pub(super) fn repeats_login(&self, state: &State) -> bool {
        state.login == Some(Role::User)
            && (state.pin.is_some() || self.pin_source_of(state.name).is_some())
    }

    /// The configured PIN is the user's: for an identity it would be a wrong one, and count.
    fn pin_source_of(&self, name: Option<Name>) -> Option<&Path> {
        self.pin_source.as_deref().filter(|_| name.is_none())
    }

    /// Whether the keeper's session has gone, or that login from it.
    pub(super) fn lost_its_keeper(&self, state: &State) -> bool {
        let lost = |keeper: &Session| match keeper.info() {
            Ok(info) => self.repeats_login(state) && shows_no_login(info.state),
            Err(failure) => is_loss(failure.code),
        };
        state.keeper.as_ref().is_some_and(lost)
    }

    /// Whether it is not in this session.
    pub(crate) fn lacks_its_login(&self, session: &Session) -> bool {
        self.repeats_login(&self.state()) && is_public(session)
    }

    /// Whether the login of an identity, where it is one, is one still.
    pub(crate) fn keeps_login(&self) -> bool {
        let mut keeps = true;
        self.apart(|| {
            let mut state = self.state();
            if state.name.is_none() {
                return;
            }
            if state.keeper.as_ref().is_some_and(is_public) {
                self.forget(&mut state);
            }
            keeps = match self.connect(&mut state) {
                Ok(()) => !state.keeper.as_ref().is_some_and(is_public),
                Err(failure) => failure.code != ENDED.code,
            };
        });
        keeps
    }

    /// The PIN of the identity that is logged in, by itself. Without its login that would be the user's.
    pub(crate) fn change_own_pin(&self, name: Name, old: &[u8], new: &[u8]) -> Result<()> {
        self.by_keeper(|who, keeper| match who == Some(name) && !is_public(keeper) {
            true => keeper.set_pin(old, new),
            false => Err(ENDED),
        })?;
        self.has_changed_pin(new);
        Ok(())
    }

    /// The login that there was, in a new session.
    pub(super) fn repeat_login(&self, state: &mut State, keeper: &Session) -> Called<()> {
        let pin = match &state.pin {
            Some(pin) => Secret::try_copy_of(pin.expose()),
            None => self.pin_source_of(state.name).and_then(|file| pin::read(file).ok()),
        };
        let pin = pin.filter(|_| !state.refused).ok_or(REFUSED)?;
        let bound = Bound::to(state.link);
        let answer = match state.name {
            Some(name) => keeper.login_user(name.as_str(), pin.expose()),
            None => keeper.login(User::User, pin.expose()),
        };
        drop(bound);
        // One that was right before is so after a pause, and a try in the pause is not counted.
        let waits = |code| state.pin.is_some() && code == Error::PIN_LOCKED;
        let refused = |code| is_refusal(code) && !waits(code);
        state.refused = answer.is_err_and(|failure| refused(failure.code));
        state.mine |= answer.is_ok();
        state.configured |= answer.is_ok() && state.pin.is_none();
        logged_in(answer)
    }

    /// A view that shows the token has a login: by the configured PIN the token has one too, from its next session on.
    pub(crate) fn join_view(&self) {
        if self.pin_source.is_none() || self.is_pooled() {
            return;
        }
        self.apart(|| {
            let mut state = self.state();
            // One by another PIN, or the SO's, ends with its slot.
            if state.login.is_some() && !state.configured {
                state.waits = state.login == Some(Role::So);
                return;
            }
            self.log_in_later(&mut state);
            state.view = true;
        });
    }

    /// A pool's login, by the configured PIN, from the next session on.
    pub(crate) fn join_pool(&self) {
        self.apart(|| {
            self.log_in_later(&mut self.state());
            self.state().own = true;
        });
    }

    fn log_in_later(&self, state: &mut State) {
        if state.login.is_none() {
            state.login = Some(Role::User);
            self.forget(state);
        }
    }

    /// The view's login is over.
    pub(crate) fn leave_view(&self) {
        self.apart(|| {
            let mut state = self.state();
            state.waits = false;
            if std::mem::take(&mut state.view) && !state.own {
                self.end_login(&mut state);
            }
        });
    }

    /// The view's login cannot be made: what is public stays.
    pub(super) fn part(&self, state: &mut State) {
        state.view = false;
        state.login = None;
        self.objects().forget_private();
    }

    /// Where there is a view's login alone, it becomes the slot's too for who has that PIN, and waits for the SO's end.
    fn takes_over(
        &self,
        state: &mut State,
        (role, name): (Role, Option<Name>),
        pin: &[u8],
    ) -> Called<bool> {
        let alone = |state: &State| state.view && !state.own;
        if !alone(state) {
            return Ok(false);
        }
        if role == Role::So || name.is_some() {
            (state.view, state.waits) = (false, true);
            self.end_login(state);
            return Ok(false);
        }
        self.connect(state)?;
        // It may have been refused.
        if !alone(state) {
            return Ok(false);
        }
        let is_it = pin::is(self.pin_source.as_deref(), pin);
        state.own = is_it.map_err(|code| Failure::new(Function::Login, code))?;
        if state.own { Ok(true) } else { Err(REFUSED) }
    }

    /// The view's login that has waited for the SO's end.
    fn resume(&self, state: &mut State) {
        if std::mem::take(&mut state.waits) && state.login.is_none() {
            self.log_in_later(state);
            state.view = true;
        }
    }

    /// Whether this is the PIN by which a view's login was made, or will be: of one that was refused that is not known.
    pub(crate) fn is_configured(&self, pin: &[u8]) -> Option<bool> {
        // One that does not answer is logged in when it is back.
        self.call_again(|| self.connect(&mut self.state())).ok();
        let refused = self.state().refused;
        (!refused).then(|| pin::is(self.pin_source.as_deref(), pin).unwrap_or(false))
    }

    /// Whether it is open by the configured PIN.
    pub(crate) fn is_open(&self) -> bool {
        self.state().configured
    }

    /// The user's PIN is another: what a view began by the configured one ends, unless it is that.
    pub(crate) fn has_new_pin(&self, pin: &[u8]) {
        self.apart(|| {
            let is_it = pin::is(self.pin_source.as_deref(), pin).unwrap_or(false);
            let mut state = self.state();
            state.configured = is_it && state.login == Some(Role::User);
            state.refused &= !is_it;
            if state.pin.is_some() {
                self.keep_login(&mut state, pin);
            }
            if !is_it && std::mem::take(&mut state.view) && !state.own {
                self.end_login(&mut state);
            }
        });
    }

    /// `C_Login`. Without a PIN, by the one of the configuration, or by the token's own keypad.
    pub(crate) fn login(&self, role: Role, pin: &[u8]) -> Result<()> {
        self.log_in_or_resume((role, None), pin)
    }

    /// `C_LoginUser` of an identity of the token.
    pub(crate) fn login_as(&self, name: Name, pin: &[u8]) -> Result<()> {
        self.log_in_or_resume((Role::User, Some(name)), pin)
    }

    fn log_in_or_resume(&self, who: (Role, Option<Name>), pin: &[u8]) -> Result<()> {
        let answer = self.log_in(who, pin);
        if who != (Role::User, None) && answer.is_err() {
            self.apart(|| self.resume(&mut self.state()));
        }
        answer
    }

    fn log_in(&self, who: (Role, Option<Name>), pin: &[u8]) -> Result<()> {
        let (role, name) = who;
        let user = if role == Role::User { User::User } else { User::SecurityOfficer };
        let configured = self.pin_source.as_ref();
        let configured = configured.filter(|_| pin.is_empty() && who == (Role::User, None));
        let configured = configured.map(|file| pin::read(file)).transpose()?;
        self.call_again(|| {
            let mut again = true;
            loop {
                let mut state = self.state();
                // Under the same lock: a login that a view begins meanwhile would make any PIN a right one.
                if self.takes_over(&mut state, who, pin)? {
                    return Ok(());
                }
                self.connect(&mut state)?;
                let keeper = state.keeper.as_ref().ok_or(GONE)?;
                let bound = Bound::to(state.link);
                let answer = match (&configured, name) {
                    (Some(configured), _) => keeper.login(user, configured.expose()),
                    (None, Some(name)) => keeper.login_user(name.as_str(), pin),
                    (None, None) if pin.is_empty() => keeper.login_protected(user),
                    (None, None) => keeper.login(user, pin),
                };
                drop(bound);
                match answer {
                    Err(failure) if again && is_loss(failure.code) => {
                        self.module.suspect();
                        self.forget(&mut state);
                        again = false;
                    }
                    answer => {
                        logged_in(answer)?;
                        state.login = Some(role);
                        state.name = name;
                        state.own = true;
                        state.mine |= answer.is_ok();
                        let is_it = pin::is(self.pin_source.as_deref(), pin);
                        state.configured = who == (Role::User, None) && is_it.unwrap_or(false);
                        state.refused &= !state.configured;
                        if answer.is_ok() {
                            self.keep_login(&mut state, pin);
                        }
                        return Ok(());
                    }
                }
            }
        })
    }

    /// A server that goes takes the login with it: by this PIN it is made again.
    fn keep_login(&self, state: &mut State, pin: &[u8]) {
        let kept =
            self.module.server().filter(|_| state.login == Some(Role::User) && !pin.is_empty());
        if kept.is_some() {
            state.pin = Secret::try_copy_of(pin);
            state.refused = false;
        }
    }

    /// An identity that is logged in has changed its PIN.
    fn has_changed_pin(&self, pin: &[u8]) {
        self.apart(|| {
            let mut state = self.state();
            if state.pin.is_some() && state.name.is_some() {
                self.keep_login(&mut state, pin);
            }
        });
    }

    /// The user shall be logged in whenever the token is there, by this PIN or the configured one.
    pub(crate) fn remember(&self, pin: &[u8]) -> Result<()> {
        let pin = match pin.is_empty() {
            true => None,
            false => Some(Secret::try_copy_of(pin).ok_or(Error::DEVICE_MEMORY)?),
        };
        let mut state = self.state();
        (state.login, state.name) = (Some(Role::User), None);
        state.own = true;
        state.pin = pin;
        state.refused = false;
        Ok(())
    }

    /// What [`Self::remember`] was told, empty for the configured PIN; none without a login.
    pub(crate) fn remembered(&self) -> Option<Option<Secret>> {
        let state = self.state();
        let pin = || match &state.pin {
            Some(pin) => Secret::try_copy_of(pin.expose()).map(Some),
            None => Some(None),
        };
        (state.login == Some(Role::User)).then(pin).flatten()
    }

    /// `C_Logout`; private objects are gone. Where the module refuses, the end of its sessions does it. A login that
    /// the host made stays the host's.
    pub(crate) fn logout(&self) {
        self.apart(|| {
            let mut state = self.state();
            state.own = false;
            if state.view {
                state.pin = None;
            } else {
                self.end_login(&mut state);
                self.resume(&mut state);
            }
        });
    }

    fn end_login(&self, state: &mut State) {
        state.ends += 1;
        state.login = None;
        state.name = None;
        state.configured = false;
        state.pin = None;
        state.pins.clear();
        self.objects().forget_private();
        if !std::mem::take(&mut state.mine) {
            return;
        }
        // After a loss the module may still have the login.
        self.connect(state).ok();
        let _bound = Bound::to(state.link);
        if state.keeper.as_ref().is_none_or(|keeper| keeper.logout().is_err()) {
            self.forget(state);
        }
    }
}

/// Whether no one is logged in.
pub(crate) fn is_public(session: &Session) -> bool {
    session.info().is_ok_and(|info| shows_no_login(info.state))
}

const fn shows_no_login(state: CK_STATE) -> bool {
    matches!(state, CKS_RO_PUBLIC_SESSION | CKS_RW_PUBLIC_SESSION)
}
