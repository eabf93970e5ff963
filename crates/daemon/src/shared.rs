// SPDX-License-Identifier: Apache-2.0
//! One token for all clients: its store is opened once, and each client has a login of its own.
//!
//! What PKCS#11 calls an application is here a client, with an engine of its own over a [`View`]: what one of them opened by
//! its PIN is closed to the others, although the store has the keys of both.

use crate::rights::Rights;
use metaslot_ck::{Error, Result};
use metaslot_memory::Secret;
use metaslot_spi::detail;
use metaslot_spi::store::{
    Change, Examination, Examined, Found, Home, ObjectRow, OtherToken, Remark, Role, Row, Scope,
    Store, Term, TokenRow,
};
use metaslot_wiring::version::MANUFACTURER;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The store of one token.
pub struct Shared {
    store: Box<dyn Store>,
    /// By which the daemon itself opens the token.
    pin: Option<Secret>,
    /// Held while a PIN is tried, which takes long: one at a time.
    entering: Mutex<()>,
    /// Held for a few instructions: every call of every client looks at it.
    login: Mutex<Login>,
}

/// Who has opened the store.
#[derive(Debug, Default)]
struct Login {
    role: Option<Role>,
    /// How often it was opened: a login of before is none.
    times: u64,
    /// The daemon's PIN is right, too: it has opened the store, or could have.
    own: bool,
    /// How many clients.
    clients: usize,
    /// The daemon's PIN is not the token's any more: each further try would count, and lock it in the end.
    refused: bool,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("login", &self.login).finish_non_exhaustive()
    }
}

impl Shared {
    /// `pin`: by which the daemon opens the token for clients that have rights without one.
    #[must_use]
    pub fn new(store: Box<dyn Store>, pin: Option<Secret>) -> Self {
        Self { store, pin, entering: Mutex::default(), login: Mutex::default() }
    }

    /// The token as one client has it.
    #[must_use]
    pub fn view(self: &Arc<Self>, rights: Option<Rights>) -> View {
        let rights = rights.filter(|_| self.pin.is_some());
        let label = self.store.token().map(|row| row.label).unwrap_or_default();
        let labelled = AtomicU64::new(self.login().times);
        View { shared: Arc::clone(self), rights, label, labelled, role: Mutex::default() }
    }

    /// The token's own row.
    ///
    /// # Errors
    /// Those of the store.
    pub fn token(&self) -> Result<TokenRow> {
        self.store.token()
    }

    /// Opens the token with the daemon's PIN, if it is not open.
    ///
    /// # Errors
    /// As `C_Login`; `CKR_PIN_INCORRECT` where the daemon has no PIN, or one that was wrong before.
    pub fn open(&self) -> Result<()> {
        if self.is_open() {
            return Ok(());
        }
        let _entering = self.entering();
        if self.is_open() {
            return Ok(());
        }
        let pin = self.pin.as_ref().filter(|_| !self.login().refused);
        let opened = self.show(Role::User, pin.ok_or(Error::PIN_INCORRECT)?.expose());
        let mut login = self.login();
        login.own |= opened.is_ok();
        // Where it was too soon after the failures of others nothing was tried.
        login.refused |= matches!(opened, Err(Error::PIN_INCORRECT));
        opened
    }

    fn is_open(&self) -> bool {
        let own = self.login().own;
        own && self.store.keeps_login()
    }

    fn entering(&self) -> MutexGuard<'_, ()> {
        self.entering.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn login(&self) -> MutexGuard<'_, Login> {
        self.login.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client comes in with a PIN; at which of the times that the store was opened.
    fn enter(&self, role: Role, pin: &[u8]) -> Result<u64> {
        let _entering = self.entering();
        self.show(role, pin)?;
        let mut login = self.login();
        login.clients += 1;
        Ok(login.times)
    }

    /// Opens the store, or tries the PIN where it is open. The caller holds `entering`.
    fn show(&self, role: Role, pin: &[u8]) -> Result<()> {
        let open = self.login().role;
        let open = open.filter(|_| self.store.keeps_login());
        match (open, role) {
            (None, role) => self.begin(role, pin),
            (Some(Role::User), Role::User) => match self.store.check_pin(Role::User, pin) {
                // Another module's token: without a login no PIN is tried there.
                Err(Error::FUNCTION_NOT_SUPPORTED) => Err(taken()),
                tried => tried,
            },
            (Some(_), _) => Err(taken()),
        }
    }

    /// What was open of a token that has been made anew is nothing any more, nor are the logins to that.
    fn begin(&self, role: Role, pin: &[u8]) -> Result<()> {
        let mut login = self.login();
        let (times, refused, before) = (login.times + 1, login.refused, login.role);
        *login = Login { times, refused, ..Login::default() };
        drop(login);
        if before.is_some() {
            self.store.logout();
        }
        self.store.login(role, pin)?;
        self.login().role = Some(role);
        Ok(())
    }

    /// A client has gone that came in at this time; the last one takes the keys with it, unless the daemon keeps the token open.
    fn leave(&self, time: u64) {
        let _entering = self.entering();
        let mut login = self.login();
        if login.times != time {
            return;
        }
        login.clients = login.clients.saturating_sub(1);
        if login.clients == 0 && !login.own && login.role.take().is_some() {
            drop(login);
            self.store.logout();
        }
    }
}

fn taken() -> Error {
    detail::set(format_args!("another client of the daemon is logged in to this token"));
    Error::USER_ANOTHER_ALREADY_LOGGED_IN
}

/// One client's token.
#[derive(Debug)]
pub struct View {
    shared: Arc<Shared>,
    /// What it has without a PIN.
    rights: Option<Rights>,
    /// Of which token, by its label, and at which of the times that the store was opened it had that.
    label: String,
    labelled: AtomicU64,
    /// Who it is by a PIN, and at which of the times that the store was opened.
    role: Mutex<Option<(Role, u64)>>,
}

/// What a client may see.
enum Sight<'a> {
    /// What anyone sees.
    Public,
    /// What its rights say, as if it were public.
    Rights(&'a Rights),
    /// Everything.
    All,
}

impl View {
    fn store(&self) -> &dyn Store {
        &*self.shared.store
    }

    /// Whether a row is of the token that the rights name, and not of one that is shown with it.
    fn is_own(&self, row: u64) -> bool {
        Row::of(row, self.store().guests().len()).guest.is_none()
    }

    fn role(&self) -> Option<Role> {
        let role = *self.role.lock().unwrap_or_else(PoisonError::into_inner);
        role.filter(|(_, time)| self.shared.login().times == *time).map(|(role, _)| role)
    }

    fn change_role(&self, role: Option<(Role, u64)>) -> Option<(Role, u64)> {
        std::mem::replace(&mut *self.role.lock().unwrap_or_else(PoisonError::into_inner), role)
    }

    fn sight(&self) -> Sight<'_> {
        match (self.role(), &self.rights) {
            (Some(Role::User), _) => Sight::All,
            // Where the token cannot be opened nothing of them is there.
            (None, Some(rights)) if self.shared.open().is_ok() && self.is_labelled() => {
                Sight::Rights(rights)
            }
            _ => Sight::Public,
        }
    }

    /// Whether the token that is open is the one that the rights name, and none that was made in its place.
    fn is_labelled(&self) -> bool {
        let time = self.shared.login().times;
        let is_known = self.labelled.load(Ordering::Relaxed) == time;
        let is_it = is_known || self.store().token().is_ok_and(|row| row.label == self.label);
        if is_it {
            self.labelled.store(time, Ordering::Relaxed);
        }
        is_it
    }

    /// A row as a client sees it that sees so much.
    fn row(&self, sight: &Sight<'_>, id: u64) -> Result<Option<ObjectRow>> {
        let row = self.store().read(id)?;
        match sight {
            Sight::All => Ok(row),
            Sight::Rights(rights) => {
                row.filter(|_| self.is_own(id)).map_or(Ok(None), |row| rights.narrowed(row))
            }
            Sight::Public => Ok(row.filter(|row| !row.private)),
        }
    }

    /// What a client finds by its rights: as many rows as there is room for, or all.
    fn search_by(
        &self,
        rights: &Rights,
        query: &[Term],
        after: u64,
        limit: usize,
    ) -> Result<Vec<Found>> {
        let (mut after, mut all) = (after, Vec::new());
        loop {
            let mut page = Vec::new();
            for query in rights.queries(query) {
                page.extend(self.store().search(&query, Scope::Both, after, limit)?);
            }
            page.sort_unstable_by_key(|row| row.id);
            page.dedup();
            page.truncate(limit);
            let last = page.last().filter(|_| page.len() == limit).map(|row| row.id);
            let own = page.into_iter().filter(|row| self.is_own(row.id));
            all.extend(own.map(|row| Found { private: false, ..row }));
            match last.filter(|_| all.len() < limit) {
                Some(last) => after = last,
                None => break,
            }
        }
        all.truncate(limit);
        Ok(all)
    }

    /// What the store says to a client that sees so much. If the store was opened anew meanwhile, by another's PIN, it may be
    /// another token's.
    fn seen<T>(&self, say: impl FnOnce(&Sight<'_>) -> Result<T>) -> Result<T> {
        let sight = self.sight();
        let said = say(&sight)?;
        let lasts = match sight {
            Sight::All => self.role().is_some(),
            Sight::Rights(_) => self.shared.login().own,
            Sight::Public => true,
        };
        if lasts { Ok(said) } else { Err(Error::USER_NOT_LOGGED_IN) }
    }
}

impl Store for View {
    /// A client that has rights needs no login for what they give. None logs in without a PIN, by one that the daemon knows.
    fn token(&self) -> Result<TokenRow> {
        let mut row = self.store().token()?;
        if let Some(other) = &mut row.other {
            other.asks_by_itself = false;
        }
        if self.rights.is_some() && row.other.is_none() {
            row.other = Some(OtherToken {
                manufacturer: String::from(MANUFACTURER),
                model: String::from("Metaslot"),
                login_required: false,
                asks_by_itself: false,
            });
        }
        Ok(row)
    }

    fn initialize(&self, so_pin: &[u8], label: &str) -> Result<()> {
        let _entering = self.shared.entering();
        if self.shared.login().role.is_some() {
            return Err(taken());
        }
        self.store().initialize(so_pin, label)
    }

    fn login(&self, role: Role, pin: &[u8]) -> Result<()> {
        let time = self.shared.enter(role, pin)?;
        self.change_role(Some((role, time)));
        Ok(())
    }

    fn check_pin(&self, role: Role, pin: &[u8]) -> Result<()> {
        let _entering = self.shared.entering();
        self.store().check_pin(role, pin)
    }

    fn logout(&self) {
        if let Some((_, time)) = self.change_role(None) {
            self.shared.leave(time);
        }
    }

    fn keeps_login(&self) -> bool {
        self.role().is_some() && self.store().keeps_login()
    }

    fn init_pin(&self, pin: &[u8]) -> Result<()> {
        match self.role() {
            Some(Role::So) => self.store().init_pin(pin),
            _ => Err(Error::USER_NOT_LOGGED_IN),
        }
    }

    fn set_pin(&self, role: Role, old: &[u8], new: &[u8]) -> Result<()> {
        let _entering = self.shared.entering();
        self.store().set_pin(role, old, new)
    }

    /// Only by a client with a PIN: in the store somebody is logged in, and would vouch for what a stranger writes.
    fn write(&self, changes: Vec<Change>) -> Result<Vec<u64>> {
        if self.role().is_some() {
            return self.store().write(changes);
        }
        if self.rights.is_some() {
            detail::refuse(format_args!("a client without a PIN changes no object of a token"));
        }
        Err(Error::USER_NOT_LOGGED_IN)
    }

    fn read(&self, id: u64) -> Result<Option<ObjectRow>> {
        self.seen(|sight| self.row(sight, id))
    }

    fn secrets(&self, id: u64, version: u64) -> Result<Secret> {
        self.seen(|sight| {
            match sight {
                Sight::Public => Err(Error::USER_NOT_LOGGED_IN),
                // What is not shown is not used.
                Sight::Rights(_) if self.row(sight, id)?.is_none() => {
                    Err(Error::OBJECT_HANDLE_INVALID)
                }
                Sight::Rights(_) | Sight::All => self.store().secrets(id, version),
            }
        })
    }

    fn search(&self, query: &[Term], scope: Scope, after: u64, limit: usize) -> Result<Vec<Found>> {
        self.seen(|sight| match (sight, scope) {
            (Sight::All, scope) => self.store().search(query, scope, after, limit),
            (Sight::Rights(_) | Sight::Public, Scope::Private) => Ok(Vec::new()),
            (Sight::Public, _) => self.store().search(query, Scope::Public, after, limit),
            (Sight::Rights(rights), _) => self.search_by(rights, query, after, limit),
        })
    }

    fn examine(
        &self,
        _: Role,
        _: &[u8],
        _: Examination<'_>,
        _: &mut dyn FnMut(Remark<'_>) -> bool,
    ) -> Result<Examined> {
        detail::set(format_args!("a token is checked, copied and repaired by its file"));
        Err(Error::FUNCTION_NOT_SUPPORTED)
    }

    fn restored(&self) -> Result<u64> {
        self.role().ok_or(Error::USER_NOT_LOGGED_IN)?;
        self.store().restored()
    }

    fn generation(&self) -> Option<u64> {
        self.store().generation()
    }

    fn generation_of(&self, row: u64) -> Option<u64> {
        self.store().generation_of(row)
    }

    fn home(&self) -> Option<&'static dyn Home> {
        self.store().home()
    }

    fn guests(&self) -> Vec<&'static dyn Home> {
        self.store().guests()
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.logout();
    }
}
