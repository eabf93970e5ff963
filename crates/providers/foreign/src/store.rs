// SPDX-License-Identifier: Apache-2.0
//! A module's token where the engine expects a store: its objects are rows, its PINs are passed on.

use crate::keyless;
use crate::read::{attributes, find, of_class};
use crate::token::{Token, is_public};
use crate::value;
use metaslot_ck::attribute::is_secret;
use metaslot_ck::*;
use metaslot_client::{Error as Failure, Result as Called, Session, Template, TokenInfo};
use metaslot_memory::Secret;
use metaslot_spi::provider::Provider;
use metaslot_spi::store::{
    Change, Examination, Examined, Found, Home, Name, ObjectRow, OtherToken, PinState, Remark,
    Role, Scope, Store, Term, TokenRow,
};
use metaslot_spi::{Attributes, Secrets, detail};

/// A token of another module.
#[derive(Debug)]
pub struct ForeignStore(&'static Token);

impl ForeignStore {
    pub(crate) const fn new(token: &'static Token) -> Self {
        Self(token)
    }

    pub(crate) const fn token(&self) -> &'static Token {
        self.0
    }

    /// What the configuration calls its module.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// What its module does without keys for every caller, where the configuration wants that and the token does it.
    #[must_use]
    pub fn provider(&self) -> Option<&'static dyn Provider> {
        keyless::provider(self.0)
    }

    /// The token's own name for itself.
    #[must_use]
    pub fn label(&self) -> Option<String> {
        Store::token(self).ok().map(|row| row.label)
    }

    /// What its slot is, for people.
    #[must_use]
    pub fn description(&self) -> String {
        let token = self.0;
        let slot = token.call_anew(|| token.module.library.slot_info(token.slot()));
        slot.map_or_else(
            |_| token.name.to_owned(),
            |slot| format!("{}: {}", token.name, printable(&slot.description)),
        )
    }
}

impl Drop for ForeignStore {
    fn drop(&mut self) {
        let token = self.0;
        token.pool(false);
        token.close();
        (token.around)(&mut || token.module.leave());
    }
}

impl Store for ForeignStore {
    fn token(&self) -> Result<TokenRow> {
        if self.0.is_pooled() {
            return Err(Error::TOKEN_NOT_PRESENT);
        }
        if !self.0.has_started() {
            self.0.tell_absence();
            return Err(Error::TOKEN_NOT_PRESENT);
        }
        let info = self.0.call_anew(|| self.0.module.library.token_info(self.0.slot()));
        let info = info.map_err(|code| match code {
            Error::DEVICE_REMOVED if !self.0.is_there() => Error::TOKEN_NOT_PRESENT,
            code => code,
        });
        Ok(token_row(info?, self.0.pin_source.is_some()))
    }

    fn initialize(&self, so_pin: &[u8], label: &str) -> Result<()> {
        self.0.release();
        self.0.call(|| self.0.module.library.init_token(self.0.slot(), so_pin, label))?;
        self.0.close();
        Ok(())
    }

    fn login(&self, role: Role, pin: &[u8]) -> Result<()> {
        self.0.login(role, pin)
    }

    fn login_as(&self, name: Name, pin: &[u8]) -> Result<()> {
        self.0.login_as(name, pin)
    }

    fn set_pin_as(&self, name: Name, old: &[u8], new: &[u8]) -> Result<()> {
        self.0.change_own_pin(name, old, new)
    }

    /// The module says so where a key is used, as of every login.
    fn incarnation(&self, _: Name) -> Result<Option<u64>> {
        Ok(Some(0))
    }

    /// Of such a token [`Home::keep_pin`] is asked.
    fn check_pin(&self, _: Role, _: &[u8]) -> Result<()> {
        Err(Error::FUNCTION_NOT_SUPPORTED)
    }

    fn logout(&self) {
        // The login of one that has gone to a pool is the pool's.
        if !self.0.is_pooled() {
            self.0.logout();
        }
    }

    /// Of other logins than an identity's the module says so where a key is used.
    fn keeps_login(&self) -> bool {
        self.0.keeps_login()
    }

    fn init_pin(&self, pin: &[u8]) -> Result<()> {
        self.0.by_keeper(|_, keeper| keeper.init_pin(pin))
    }

    fn set_pin(&self, role: Role, old: &[u8], new: &[u8]) -> Result<()> {
        self.0.by_keeper(|_, keeper| keeper.set_pin(old, new))?;
        if role == Role::User {
            self.0.has_new_pin(new);
        }
        Ok(())
    }

    fn write(&self, changes: Vec<Change>) -> Result<Vec<u64>> {
        for change in changes {
            match change {
                Change::Insert(_) => {
                    let name = self.0.name;
                    detail::set(format_args!("{name} makes its keys itself: none is put there"));
                    return Err(Error::FUNCTION_NOT_SUPPORTED);
                }
                Change::Update { id, version, .. } | Change::Delete { id, version, .. }
                    if !self.0.objects().is_at(id, version) =>
                {
                    // What was decided by what was read may be wrong by now.
                    return Err(Error::OBJECT_HANDLE_INVALID);
                }
                Change::Update { id, record, .. } => {
                    self.update(id, &Attributes::decode(&record.attributes)?)?;
                }
                Change::Delete { id, .. } => {
                    self.0.destroy(id)?;
                    self.0.objects().forget(id);
                }
            }
        }
        Ok(Vec::new())
    }

    fn read(&self, id: u64) -> Result<Option<ObjectRow>> {
        let Some(private) = self.0.objects().is_private(id) else { return Ok(None) };
        let attributes = self.0.with(|session| {
            let handle = self.0.handle(session, id);
            match handle.and_then(|handle| attributes(self.0.name, session, handle, id, private)) {
                Err(failure) if is_gone(failure.code) => Ok(None),
                read => read.map(Some),
            }
        })?;
        let Some(attributes) = attributes else {
            self.0.objects().forget(id);
            return Ok(None);
        };
        let Some(version) = self.0.objects().read(id, &attributes) else { return Ok(None) };
        let class = attributes.ulong(CKA_CLASS);
        let has_secrets = class.is_some_and(is_secret);
        let attributes = attributes.encode();
        Ok(Some(ObjectRow { version, private, verified: true, attributes, has_secrets }))
    }

    /// The values that the module shows; none of a key that is sensitive there.
    fn secrets(&self, id: u64, _: u64) -> Result<Secret> {
        let (class, readable) = {
            let objects = self.0.objects();
            let known = objects.attributes(id).ok_or(Error::OBJECT_HANDLE_INVALID)?;
            let readable = known.bool(CKA_EXTRACTABLE) && !known.bool(CKA_SENSITIVE);
            (known.ulong(CKA_CLASS).unwrap_or(UNAVAILABLE), readable)
        };
        let mut secrets = Secrets::new();
        if readable {
            let wanted = of_class(class, |row| row.secret);
            let values =
                self.0.with(|session| session.attributes(self.0.handle(session, id)?, &wanted))?;
            for (attribute, value) in wanted.into_iter().zip(values) {
                let Some(mut value) = value else { continue };
                let secret = Secret::try_copy_of(&value);
                value::wipe(&mut value);
                secrets.set(attribute, secret.ok_or(Error::DEVICE_MEMORY)?);
            }
        }
        secrets.encode()
    }

    fn search(&self, query: &[Term], scope: Scope, after: u64, limit: usize) -> Result<Vec<Found>> {
        if after > 0
            && let Some(found) = self.0.objects().more(query, scope, after, limit)
        {
            return Ok(found);
        }
        let template = search_template(query, scope);
        let mut doubted = false;
        let all = self.0.with(|session| {
            let ends = self.0.ends();
            self.0.must_be_its(session)?;
            let there = find(session, &template)?.into_iter();
            let meant = there.filter(|handle| !is_other(session, *handle, query));
            let all = meant.filter_map(|handle| self.found(session, handle));
            // What was private when it was found cannot be read any more when a login has ended.
            let all = all.filter(|found| found.is_ok() || self.0.ends() == ends);
            let all = all.collect::<Called<Vec<_>>>()?;
            // A token that has begun anew hides what is private. One that shows its login nowhere is believed the second time.
            let hidden = scope != Scope::Public && !all.iter().any(|found| found.private);
            if hidden && !std::mem::replace(&mut doubted, true) && self.0.lacks_its_login(session) {
                return Err(Failure::new(Function::FindObjects, Error::USER_NOT_LOGGED_IN));
            }
            Ok(all)
        })?;
        let mut objects = self.0.objects();
        if after == 0 {
            // Others may have changed what is found.
            objects.changed();
        }
        objects.found(query, scope, all);
        Ok(objects.more(query, scope, after, limit).unwrap_or_default())
    }

    fn examine(
        &self,
        _: Role,
        _: &[u8],
        _: Examination<'_>,
        _: &mut dyn FnMut(Remark<'_>) -> bool,
    ) -> Result<Examined> {
        detail::set(format_args!("{} looks after its token itself", self.0.name));
        Err(Error::FUNCTION_NOT_SUPPORTED)
    }

    fn restored(&self) -> Result<u64> {
        Ok(0)
    }

    fn generation(&self) -> Option<u64> {
        Some(self.0.generation())
    }

    fn home(&self) -> Option<&'static dyn Home> {
        Some(self.0)
    }
}

impl ForeignStore {
    /// The row of an object that a search gave.
    fn found(&self, session: &Session, handle: ObjectHandle) -> Option<Called<Found>> {
        if let Some(found) = self.0.objects().row(handle) {
            return Some(Ok(found));
        }
        match session.attributes(handle, &[CKA_PRIVATE]).map(|mut values| values.swap_remove(0)) {
            Ok(said) => {
                let private = match said.as_deref() {
                    Some([byte]) => *byte != 0,
                    // What is found without a login is public.
                    _ => !is_public(session),
                };
                match self.0.row(session, handle, private) {
                    Err(failure) if is_gone(failure.code) => None,
                    found => Some(found),
                }
            }
            // It went away since it was found, or says more of itself than there can be.
            Err(failure) if is_gone(failure.code) || failure.code == Error::HOST_MEMORY => None,
            Err(failure) => Some(Err(failure)),
        }
    }

    /// Changes what differs.
    fn update(&self, id: u64, new: &Attributes) -> Result<()> {
        let changes: Template = {
            let objects = self.0.objects();
            let old = objects.attributes(id).ok_or(Error::OBJECT_HANDLE_INVALID)?;
            let changed = new.iter().filter(|(attribute, now)| old.get(*attribute) != Some(now));
            changed.map(|(attribute, now)| (attribute, value::encoded(now))).collect()
        };
        if changes.is_empty() {
            return Ok(());
        }
        self.0.with(|session| session.set_attributes(self.0.handle(session, id)?, &changes))?;
        self.0.objects().changed();
        Ok(())
    }
}

/// Only objects of the token: none is made in the sessions of the pool.
fn search_template(query: &[Term], scope: Scope) -> Template {
    let template = Template::new().token(true);
    let template = match scope {
        Scope::Both => template,
        Scope::Private => template.bool(CKA_PRIVATE, true),
        Scope::Public => template.bool(CKA_PRIVATE, false),
    };
    query.iter().fold(template, |all, (attribute, value)| all.bytes(*attribute, value))
}

/// Whether the module itself says that an object is not what was searched for. One that finds more than that must not have
/// its objects taken for others.
fn is_other(session: &Session, handle: ObjectHandle, query: &[Term]) -> bool {
    let wanted: Vec<_> = query.iter().map(|(attribute, _)| *attribute).collect();
    let said = if wanted.is_empty() { Ok(Vec::new()) } else { session.attributes(handle, &wanted) };
    let mut both = said.into_iter().flatten().zip(query);
    both.any(|(said, (attribute, wanted))| {
        let said = said.and_then(|said| value::decoded(*attribute, said));
        said.is_some() && said != value::decoded(*attribute, wanted.clone())
    })
}

const fn is_gone(code: Error) -> bool {
    matches!(code, Error::OBJECT_HANDLE_INVALID | Error::KEY_HANDLE_INVALID)
}

/// What a module calls itself is shown in terminals, which must not be told anything by it.
fn printable(text: &str) -> String {
    text.chars().map(|sign| if sign.is_control() { '?' } else { sign }).collect()
}

fn token_row(info: TokenInfo, configured: bool) -> TokenRow {
    let has = |flag| info.has(flag);
    // A module says low, last or locked, and no number: these stand for that.
    let pin = |low, last, locked| PinState {
        failures: u32::from(has(low)),
        left: match (has(locked), has(last), has(low)) {
            (true, ..) => 0,
            (_, true, _) => 1,
            (_, _, true) => 2,
            _ => 10,
        },
        ..PinState::default()
    };
    TokenRow {
        initialized: has(CKF_TOKEN_INITIALIZED),
        user_pin_set: has(CKF_USER_PIN_INITIALIZED),
        so: pin(CKF_SO_PIN_COUNT_LOW, CKF_SO_PIN_FINAL_TRY, CKF_SO_PIN_LOCKED),
        user: pin(CKF_USER_PIN_COUNT_LOW, CKF_USER_PIN_FINAL_TRY, CKF_USER_PIN_LOCKED),
        writable: !Token::is_write_protected(info.flags),
        shortest_pin: info.pin_lengths.0,
        other: Some(OtherToken {
            login_required: has(CKF_LOGIN_REQUIRED),
            asks_by_itself: configured || has(CKF_PROTECTED_AUTHENTICATION_PATH),
            manufacturer: printable(&info.manufacturer),
            model: printable(&info.model),
        }),
        label: printable(&info.label),
        serial: printable(&info.serial),
    }
}
