// SPDX-License-Identifier: Apache-2.0
//! One token for all clients: its store is opened once, and each client has a login of its own.
//!
//! What PKCS#11 calls an application is here a client, with an engine of its own over a [`View`]: what one of them opened by
//! its PIN is closed to the others, although the store has the keys of both.

use crate::granted::Granted;
use crate::login::{Known, Login, Owner, Refused};
use crate::manager::say;
use crate::rights::Rights;
use metaslot_ck::{CKA_LABEL, Error, Result};
use metaslot_memory::Secret;
use metaslot_spi::detail;
use metaslot_spi::store::{
    Change, Examination, Examined, Found, Home, Name, ObjectRow, OtherToken, Remark, Role, Scope,
    Store, Term, TokenRow,
};
use metaslot_wiring::audit::Log;
use metaslot_wiring::text::words;
use metaslot_wiring::version::MANUFACTURER;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard, Weak};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fmt, io};

/// The store of one token.
pub struct Shared {
    store: Box<dyn Store>,
    /// By which the daemon itself opens the token.
    own: Option<Own>,
    /// Held while a PIN is tried, which takes long: one at a time.
    entering: Mutex<()>,
    /// Held while another token may come in the place of the one that is open, and shared by who changes what is open.
    opening: RwLock<()>,
    /// Held for a few instructions: every call of every client looks at it.
    login: Mutex<Login>,
    /// Where it is told when the daemon's login begins and ends.
    log: Mutex<Option<Arc<Log>>>,
    /// Who has rights by the daemon's login, and keys in an engine of its own as long as it is connected.
    services: Mutex<Vec<Weak<Granted>>>,
}

/// By which the daemon itself opens a token.
#[derive(Debug)]
pub struct Own {
    /// Whose PIN it is; `None` for the user without a name.
    pub identity: Option<Name>,
    /// The PIN.
    pub pin: Secret,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("login", &self.login).finish_non_exhaustive()
    }
}

impl Shared {
    /// `own`: by which the daemon opens the token for clients that have rights without a PIN.
    #[must_use]
    pub fn new(store: Box<dyn Store>, own: Option<Own>) -> Self {
        let (entering, opening, login) = (Mutex::default(), RwLock::default(), Mutex::default());
        let (log, services) = (Mutex::default(), Mutex::default());
        Self { store, own, entering, opening, login, log, services }
    }

    /// Tells an audit log from now on when the daemon's login begins or ends.
    pub(crate) fn log(&self, log: Option<Arc<Log>>) {
        *self.log.lock().unwrap_or_else(PoisonError::into_inner) = log;
    }

    /// Tells it that the daemon has opened the token, if it has: it did before there was a log. What comes of later logins is told then.
    ///
    /// # Errors
    /// Where it must not be open without a line.
    pub(crate) fn tell_opened(&self) -> io::Result<()> {
        let mut login = self.login();
        login.pin.tried = true;
        let is_open = login.own.is_some();
        drop(login);
        match (self.to_log(), &self.own) {
            (Some(log), Some(own)) if is_open => log.opened(&self.label(), own.identity, Ok(())),
            _ => Ok(()),
        }
    }

    fn to_log(&self) -> Option<Arc<Log>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn label(&self) -> String {
        self.store.token().map(|token| token.label).unwrap_or_default()
    }

    /// Whose the daemon's PIN is; `None` for the user without a name.
    fn identity(&self) -> Option<Name> {
        self.own.as_ref().and_then(|own| own.identity)
    }

    /// Who has these rights loses its connection with the daemon's login, and comes again for what there is then.
    pub(crate) fn serves(&self, granted: &Arc<Granted>) {
        let mut services = self.services();
        services.retain(|service| service.strong_count() > 0);
        services.push(Arc::downgrade(granted));
    }

    fn end_services(&self) {
        self.services()
            .drain(..)
            .filter_map(|service| service.upgrade())
            .for_each(|service| service.end());
    }

    fn services(&self) -> MutexGuard<'_, Vec<Weak<Granted>>> {
        self.services.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The token as one client has it, whose connection this is.
    #[must_use]
    pub fn view(
        self: &Arc<Self>,
        rights: Option<Rights>,
        connection: Option<Arc<UnixStream>>,
    ) -> View {
        // Rows of other tokens that are shown with this one are not named by them.
        let is_alone = || self.store.guests().is_empty();
        let rights = rights.filter(|_| self.own.is_some() && is_alone());
        let known = AtomicU64::new(u64::MAX);
        View { shared: Arc::clone(self), rights, connection, known, role: Mutex::default() }
    }

    /// The token's own row.
    ///
    /// # Errors
    /// Those of the store.
    pub fn token(&self) -> Result<TokenRow> {
        self.store.token()
    }

    /// Whether the daemon has a PIN of the token, without which services have nothing of it.
    #[must_use]
    pub const fn has_pin(&self) -> bool {
        self.own.is_some()
    }

    /// Whether an object has this label, as far as the token is open.
    ///
    /// # Errors
    /// Those of the store.
    pub fn has(&self, label: &str) -> Result<bool> {
        let query = [(CKA_LABEL, label.as_bytes().to_vec())];
        Ok(!self.store.search(&query, Scope::Both, 0, 1)?.is_empty())
    }

    /// Opens the token with the daemon's PIN, if it is not open.
    ///
    /// # Errors
    /// As `C_Login`; `CKR_PIN_INCORRECT` where the daemon has no PIN, or one that was wrong before, or its identity is gone;
    /// `CKR_PIN_LOCKED` in the [pause](Self::retry_at) after others' failures; those of the store; `CKR_FUNCTION_FAILED` where it must not
    /// be open without a line in the log.
    pub fn open(&self) -> Result<()> {
        if self.is_open() {
            return Ok(());
        }
        let _entering = self.entering();
        if self.is_open() {
            return Ok(());
        }
        let own = self.own.as_ref().ok_or(Error::PIN_INCORRECT)?;
        self.end_if_revoked();
        // By keys of another token it would not be seen whose the PIN is in this one.
        if self.login().role.is_some() && !self.store.keeps_login() {
            drop(self.forget());
        }
        // Looked for before: one that is added in its place meanwhile is another.
        let owner = self.owner()?;
        self.check_may_try(owner)?;
        let opened = self.show(Role::User, own.identity, own.pin.expose());
        // Added meanwhile: it would not be seen when this one is revoked.
        let opened = opened.and_then(|()| owner.ok_or(Error::PIN_INCORRECT)).map(drop);
        let opened = self.learn(owner, opened);
        self.close_unused();
        opened
    }

    /// From when on the daemon's PIN is tried, in seconds since 1970, after others' failures; 0 for now.
    ///
    /// # Errors
    /// Those of the store.
    pub fn retry_at(&self) -> Result<u64> {
        self.store.retry_at(self.identity())
    }

    /// Whether the daemon's PIN is tried now. A name that was there and is not any more is not tried again and again.
    fn check_may_try(&self, owner: Option<Owner>) -> Result<()> {
        let Known { tried, refused, pause } = self.login().pin;
        let holds = |owner| refused.is_some_and(|refused| refused.holds(owner));
        if tried && owner.is_none_or(holds) {
            return Err(Error::PIN_INCORRECT);
        }
        let retry_at = self.retry_at()?;
        if retry_at == 0 {
            return Ok(());
        }
        if tried && retry_at != pause {
            self.login().pin.pause = retry_at;
            self.say_nothing_is_had(&format!(
                "no PIN is taken for {}, after wrong ones",
                from_now(retry_at)
            ));
        }
        detail::set(format_args!("no PIN is taken before second {retry_at} of the epoch"));
        Err(Error::PIN_LOCKED)
    }

    /// What comes of a try of the daemon's PIN. The caller holds `entering`.
    fn learn(&self, owner: Option<Owner>, opened: Result<()>) -> Result<()> {
        if !matches!(opened, Ok(()) | Err(Error::PIN_INCORRECT)) {
            return opened;
        }
        let told = self.tell_again(owner, opened);
        let opened = opened.and(told);
        let mut login = self.login();
        login.pin.tried = true;
        match opened {
            Ok(()) => login.own = owner,
            Err(Error::PIN_INCORRECT) => {
                login.pin.refused = owner.map(|owner| Refused::again(login.pin.refused, owner));
            }
            Err(_) => {}
        }
        opened
    }

    /// Says what became of a login after the one at the start, before it is one; of a PIN that is refused when it is given up.
    fn tell_again(&self, owner: Option<Owner>, opened: Result<()>) -> Result<()> {
        let Known { tried, refused, .. } = self.login().pin;
        if !tried {
            return Ok(());
        }
        let goes_on = owner.is_some_and(|owner| !Refused::again(refused, owner).holds(owner));
        let identity = self.identity();
        let (label, whose) = (self.label(), owner_in_words(identity));
        if let Some(log) = self.to_log() {
            log.opened(&label, identity, opened).map_err(|error| {
                self.say_nothing_is_had(&format!(
                    "the audit log cannot be written: {}",
                    words(&error)
                ));
                Error::FUNCTION_FAILED
            })?;
        }
        match opened {
            Ok(()) => say(&format!("the token {label:?} is open again, by the PIN of {whose}")),
            Err(_) if goes_on => {}
            Err(_) => self.say_nothing_is_had(&format!(
                "the PIN is not that of {whose} any more: give the daemon the right one, and restart it"
            )),
        }
        Ok(())
    }

    /// Why services are not served.
    fn say_nothing_is_had(&self, why: &str) {
        say(&format!("services have nothing of the token {:?}: {why}", self.label()));
    }

    /// Ends the daemon's login where its identity is not one of the token's any more; the keys go, too, unless clients have them
    /// by PINs of their own. The caller holds `entering`.
    fn end_if_revoked(&self) {
        let is_own = self.identity().filter(|_| self.login().own.is_some());
        let Some(name) = is_own.filter(|_| !self.is_own_still()) else { return };
        self.end_own();
        self.close_unused();
        self.say_nothing_is_had(&format!(
            "its officer has revoked the identity {:?}, or the token was made anew",
            name.as_str()
        ));
    }

    /// The daemon's login is over, if there was one: services come again for what there is then.
    fn end_own(&self) {
        if self.login().own.take().is_none() {
            return;
        }
        self.end_services();
        if let (Some(log), Some(name)) = (self.to_log(), self.identity()) {
            log.closed(&self.label(), Some(name));
        }
    }

    /// The keys go with the last who has them. The caller holds `entering`.
    fn close_unused(&self) {
        let mut login = self.login();
        if login.clients == 0 && login.own.is_none() && login.role.take().is_some() {
            drop(login);
            self.store.logout();
        }
    }

    fn is_open(&self) -> bool {
        self.is_own_still() && self.store.keeps_login()
    }

    /// Whose the daemon's PIN is now; `None` where there is no identity of that name.
    fn owner(&self) -> Result<Option<Owner>> {
        match self.identity() {
            None => Ok(Some(Owner::User)),
            Some(name) => Ok(self.store.incarnation(name)?.map(Owner::Identity)),
        }
    }

    /// Whether the daemon's login has not ended, as that of an identity does that is revoked. If the store cannot be read, it stays.
    fn is_own_still(&self) -> bool {
        let own = self.login().own;
        own == Some(Owner::User) || own.is_some() && self.owner().map_or(true, |now| now == own)
    }

    fn entering(&self) -> MutexGuard<'_, ()> {
        self.entering.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn login(&self) -> MutexGuard<'_, Login> {
        self.login.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the store, or tries the PIN where it is open. The caller holds `entering`.
    fn show(&self, role: Role, name: Option<Name>, pin: &[u8]) -> Result<()> {
        let open = self.login().role;
        let open = open.filter(|_| self.store.keeps_login());
        match (open, role) {
            (None, role) => self.begin(role, name, pin),
            (Some(Role::User), Role::User) => match self.try_pin(name, pin) {
                // Another module's token: without a login no PIN is tried there.
                Err(Error::FUNCTION_NOT_SUPPORTED) => Err(taken()),
                tried => tried,
            },
            (Some(_), _) => Err(taken()),
        }
    }

    fn try_pin(&self, name: Option<Name>, pin: &[u8]) -> Result<()> {
        match name {
            Some(name) => self.store.check_pin_as(name, pin),
            None => self.store.check_pin(Role::User, pin),
        }
    }

    /// What was open of a token that has been made anew is nothing any more, nor are the logins to that.
    fn forget(&self) -> RwLockWriteGuard<'_, ()> {
        self.end_own();
        let opening = self.opening.write().unwrap_or_else(PoisonError::into_inner);
        let mut login = self.login();
        let (times, pin, before) = (login.times + 1, login.pin, login.role);
        *login = Login { times, pin, ..Login::default() };
        drop(login);
        if before.is_some() {
            self.store.logout();
        }
        opening
    }

    /// Opens the store, after what was open before.
    fn begin(&self, role: Role, name: Option<Name>, pin: &[u8]) -> Result<()> {
        let _opening = self.forget();
        match name {
            None => self.store.login(role, pin)?,
            // Others may come in who have nothing to do with it.
            Some(name) => {
                self.store.login_as(name, pin)?;
                self.store.share_login().inspect_err(|_| self.store.logout())?;
            }
        }
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
        drop(login);
        self.end_if_revoked();
        self.close_unused();
    }
}

/// How long it is until then, in seconds since 1970.
pub(crate) fn from_now(second: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    match second.saturating_sub(now).max(1) {
        1 => String::from("a second"),
        seconds => format!("{seconds} seconds"),
    }
}

/// Whose PIN it is, in words.
fn owner_in_words(identity: Option<Name>) -> String {
    identity.map_or_else(|| String::from("the user"), |name| format!("the identity {name:?}"))
}

fn taken() -> Error {
    detail::set(format_args!("another client of the daemon is logged in to this token"));
    Error::USER_ANOTHER_ALREADY_LOGGED_IN
}

/// Whether nothing that is said on a connection can arrive. Who has only ended what it says itself waits for its answers.
fn has_ended(connection: &UnixStream) -> bool {
    let mut one = [PollFd::new(connection, PollFlags::empty())];
    let looked = poll(&mut one, Some(&Timespec::default()));
    looked.is_ok() && one[0].revents().contains(PollFlags::HUP)
}

/// One client's token.
#[derive(Debug)]
pub struct View {
    shared: Arc<Shared>,
    /// What it has without a PIN.
    rights: Option<Rights>,
    /// By which it is seen whether the client is still there; without one it always is.
    connection: Option<Arc<UnixStream>>,
    /// At which of the times that the store was opened the token was known to be theirs.
    known: AtomicU64,
    /// Who it is by a PIN.
    role: Mutex<Option<Entry>>,
}

/// A client that came in with a PIN.
#[derive(Clone, Copy, Debug)]
struct Entry {
    role: Role,
    /// The identity's name, and its incarnation: another one of this name is another.
    identity: Option<(Name, u64)>,
    /// At which of the times that the store was opened.
    time: u64,
}

/// What a client may see.
enum Sight<'a> {
    /// What anyone sees.
    Public,
    /// What its rights say, as if it were public, of the token that was opened at this time.
    Rights(&'a Rights, u64),
    /// Everything.
    All,
}

impl View {
    fn store(&self) -> &dyn Store {
        &*self.shared.store
    }

    /// The turn to try a PIN. For a client that has gone while it waited none is tried: others wait behind it.
    fn entering(&self) -> Result<MutexGuard<'_, ()>> {
        let entering = self.shared.entering();
        if self.connection.as_deref().is_some_and(has_ended) {
            detail::set(format_args!("no PIN is tried for a client that has gone"));
            return Err(Error::SESSION_CLOSED);
        }
        Ok(entering)
    }

    /// Comes in with a PIN; at which of the times that the store was opened.
    fn enter(&self, role: Role, name: Option<Name>, pin: &[u8]) -> Result<u64> {
        let _entering = self.entering()?;
        self.shared.show(role, name, pin)?;
        let mut login = self.shared.login();
        login.clients += 1;
        Ok(login.times)
    }

    fn role(&self) -> Option<Role> {
        self.entry().map(|entry| entry.role)
    }

    fn entry(&self) -> Option<Entry> {
        let entry = *self.role.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entry.filter(|entry| self.shared.login().times == entry.time)?;
        Some(entry).filter(|_| self.is_still_there(entry))
    }

    /// Whether its identity has not been revoked since. While the store cannot be looked at it has not.
    fn is_still_there(&self, entry: Entry) -> bool {
        let Some((name, incarnation)) = entry.identity else { return true };
        self.store().incarnation(name).map_or(true, |now| now == Some(incarnation))
    }

    /// What is done by who this is, while no other token is opened.
    fn while_open<T>(&self, work: impl FnOnce(Option<Entry>) -> Result<T>) -> Result<T> {
        let _opening = self.shared.opening.read().unwrap_or_else(PoisonError::into_inner);
        work(self.entry())
    }

    fn change_role(&self, role: Option<Entry>) -> Option<Entry> {
        std::mem::replace(&mut *self.role.lock().unwrap_or_else(PoisonError::into_inner), role)
    }

    fn sight(&self) -> Sight<'_> {
        match (self.role(), &self.rights) {
            (Some(Role::User), _) => Sight::All,
            // Where the token cannot be opened nothing of them is there.
            (None, Some(rights)) if self.shared.open().is_ok() => {
                let time = self.shared.login().times;
                if self.are_to_what_is_open(rights, time) {
                    Sight::Rights(rights, time)
                } else {
                    Sight::Public
                }
            }
            _ => Sight::Public,
        }
    }

    /// Whether the token that was opened at this time is the one that the rights name, and none that was made in its place.
    fn are_to_what_is_open(&self, rights: &Rights, time: u64) -> bool {
        let is_known = self.known.load(Ordering::Relaxed) == time;
        let is_it = is_known || self.store().token().is_ok_and(|row| rights.are_to(&row));
        if is_it {
            self.known.store(time, Ordering::Relaxed);
        }
        is_it
    }

    /// A row as a client sees it that sees so much.
    fn row(&self, sight: &Sight<'_>, id: u64) -> Result<Option<ObjectRow>> {
        let row = self.store().read(id)?;
        match sight {
            Sight::All => Ok(row),
            Sight::Rights(rights, _) => row.map_or(Ok(None), |row| rights.narrowed(row)),
            Sight::Public => Ok(row.filter(|row| !row.private)),
        }
    }

    /// What a client finds by its rights.
    fn search_by(
        &self,
        rights: &Rights,
        query: &[Term],
        after: u64,
        limit: usize,
    ) -> Result<Vec<Found>> {
        let mut all = Vec::new();
        for query in rights.queries(query) {
            all.extend(self.store().search(&query, Scope::Both, after, limit)?);
        }
        all.sort_unstable_by_key(|row| row.id);
        all.dedup();
        all.truncate(limit);
        all.iter_mut().for_each(|row| row.private = false);
        Ok(all)
    }

    /// What the store says to a client that sees so much. If the store was opened anew meanwhile, by another's PIN, it may be
    /// another token's; if the daemon's login ended meanwhile, the client is told what there is without it.
    fn seen<T>(&self, say: impl Fn(&Sight<'_>) -> Result<T>) -> Result<T> {
        let sight = self.sight();
        let said = say(&sight);
        let lasts = match sight {
            Sight::All => self.role().is_some(),
            Sight::Rights(_, time) => {
                self.shared.login().is_own(time) && self.shared.is_own_still()
            }
            Sight::Public => true,
        };
        match sight {
            _ if lasts => said,
            Sight::Rights(_, time) if self.shared.login().times == time => self.seen(say),
            _ => said.and(Err(Error::USER_NOT_LOGGED_IN)),
        }
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
        let _entering = self.entering()?;
        if self.shared.login().role.is_some() {
            return Err(taken());
        }
        self.store().initialize(so_pin, label)
    }

    fn login(&self, role: Role, pin: &[u8]) -> Result<()> {
        let time = self.enter(role, None, pin)?;
        self.change_role(Some(Entry { role, identity: None, time }));
        Ok(())
    }

    fn login_as(&self, name: Name, pin: &[u8]) -> Result<()> {
        // Looked for before: one that is added in its place meanwhile is another.
        let found = self.store().incarnation(name)?;
        let time = self.enter(Role::User, Some(name), pin)?;
        let Some(incarnation) = found else {
            self.shared.leave(time);
            return Err(Error::PIN_INCORRECT);
        };
        let identity = Some((name, incarnation));
        self.change_role(Some(Entry { role: Role::User, identity, time }));
        Ok(())
    }

    fn check_pin_as(&self, name: Name, pin: &[u8]) -> Result<()> {
        let _entering = self.entering()?;
        self.store().check_pin_as(name, pin)
    }

    fn set_pin_as(&self, name: Name, old: &[u8], new: &[u8]) -> Result<()> {
        let _entering = self.entering()?;
        self.store().set_pin_as(name, old, new)
    }

    fn incarnation(&self, name: Name) -> Result<Option<u64>> {
        self.store().incarnation(name)
    }

    fn check_pin(&self, role: Role, pin: &[u8]) -> Result<()> {
        let _entering = self.entering()?;
        self.store().check_pin(role, pin)
    }

    fn logout(&self) {
        if let Some(entry) = self.change_role(None) {
            self.shared.leave(entry.time);
        }
    }

    fn keeps_login(&self) -> bool {
        self.role().is_some() && self.store().keeps_login()
    }

    fn init_pin(&self, pin: &[u8]) -> Result<()> {
        self.while_open(|who| match who {
            Some(Entry { role: Role::So, .. }) => self.store().init_pin(pin),
            _ => Err(Error::USER_NOT_LOGGED_IN),
        })
    }

    fn set_pin(&self, role: Role, old: &[u8], new: &[u8]) -> Result<()> {
        let _entering = self.entering()?;
        self.store().set_pin(role, old, new)
    }

    /// Only by a client with a PIN: in the store somebody is logged in, and would vouch for what a stranger writes.
    fn write(&self, changes: Vec<Change>) -> Result<Vec<u64>> {
        self.while_open(|who| {
            match who {
                Some(Entry { identity: Some(identity), .. }) => {
                    return self.store().write_as(identity, changes);
                }
                Some(_) => return self.store().write(changes),
                None => {}
            }
            if self.rights.is_some() {
                detail::refuse(format_args!("a client without a PIN changes no object of a token"));
            }
            Err(Error::USER_NOT_LOGGED_IN)
        })
    }

    fn read(&self, id: u64) -> Result<Option<ObjectRow>> {
        self.seen(|sight| self.row(sight, id))
    }

    fn secrets(&self, id: u64, version: u64) -> Result<Secret> {
        self.seen(|sight| {
            match sight {
                Sight::Public if self.rights.is_none() => Err(Error::USER_NOT_LOGGED_IN),
                Sight::Public => Err(Error::OBJECT_HANDLE_INVALID),
                // What is not shown is not used.
                Sight::Rights(..) if self.row(sight, id)?.is_none() => {
                    Err(Error::OBJECT_HANDLE_INVALID)
                }
                Sight::Rights(..) | Sight::All => self.store().secrets(id, version),
            }
        })
    }

    fn search(&self, query: &[Term], scope: Scope, after: u64, limit: usize) -> Result<Vec<Found>> {
        self.seen(|sight| match (sight, scope) {
            (Sight::All, scope) => self.store().search(query, scope, after, limit),
            (Sight::Rights(..) | Sight::Public, Scope::Private) => Ok(Vec::new()),
            (Sight::Public, _) => self.store().search(query, Scope::Public, after, limit),
            (Sight::Rights(rights, _), _) => self.search_by(rights, query, after, limit),
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
