// SPDX-License-Identifier: Apache-2.0
//! One key in many tokens: a token of ours whose keys are in several tokens of other modules.
//!
//! The same key pair in several tokens is known by its public half, and is one object here. What is done with the private half is
//! done by any token that has it, each in its turn; where one fails the next is asked. A token that fails is left alone for a
//! while, and is asked again by one caller: sessions, login and handles come back as they do for a token by itself.

mod home;
mod store;
mod table;

pub use store::PoolStore;

use crate::error::is_refusal;
use crate::store::ForeignStore;
use crate::token::Token;
use metaslot_ck::{Error, Result};
use metaslot_memory::{PerProcess, Secret};
use metaslot_spi::Key;
use metaslot_spi::provider::Algorithm;
use metaslot_spi::store::{Role, Scope};
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use table::{Login, Table};

/// How long a token that failed is left alone, in milliseconds.
const PAUSE: u64 = 200;
/// How often a token is looked at that has lost a key, in milliseconds: it may get it back.
const LOOK: u64 = 5_000;
/// How long, in milliseconds, all of them may take to fail for each to be asked once more: what hangs is not waited for twice.
const SOON: u64 = 2_000;

/// A pool. It lives for as long as the process.
#[derive(Debug)]
pub(crate) struct Pool {
    name: &'static str,
    members: Vec<Member>,
    late: Late,
    /// Who looks whether they have come.
    joins: Looker,
    /// Whose turn it is.
    next: AtomicUsize,
    table: Mutex<Table>,
    /// [`Table::generation`], for those who look without the lock.
    generation: Arc<AtomicU64>,
    /// Whose login there is; taken over the beginning and the end of one.
    logins: Mutex<Logins>,
    rows: OnceLock<&'static [Algorithm]>,
    begin: Instant,
}

/// Who is logged in.
#[derive(Debug, Default)]
struct Logins {
    /// Who uses the pool's own slot.
    own: bool,
    /// Who uses a view that shows the pool, by configured PINs.
    view: bool,
}

/// Tokens that were not there when the pool was made: which of them are its own is known when they come.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Late {
    labels: Vec<String>,
    tokens: Vec<Same>,
}

/// A token, which is only itself.
#[derive(Clone, Copy, Debug)]
struct Same(&'static Token);

impl PartialEq for Same {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

/// One of the tokens.
#[derive(Debug)]
struct Member {
    /// Empty until a late one has come.
    token: OnceLock<&'static Token>,
    /// In milliseconds since the pool began: until then it is left alone. 0 while it works.
    rests_until: AtomicU64,
    /// Whether its objects have been looked at since the login began or ended.
    seen: AtomicBool,
    /// As `rests_until`: when it is looked at again. 0 while it has what it had.
    look_at: AtomicU64,
    looker: Looker,
}

/// Since when a caller looks at what is late, in milliseconds since the pool began; 0 while none does. The others do not wait where
/// it does not answer.
#[derive(Debug, Default)]
struct Looker(AtomicU64);

/// Held by the one caller who looks.
struct Looking<'a>(&'a Looker);

impl Drop for Looking<'_> {
    fn drop(&mut self) {
        self.0.0.store(0, Ordering::Release);
    }
}

/// The pools that were ever open in this process.
static KNOWN: PerProcess<Mutex<Vec<&'static Pool>>> = PerProcess::new(|_| Mutex::default());

impl Member {
    fn token(&self) -> Option<&'static Token> {
        self.token.get().copied()
    }
}

impl Late {
    pub(crate) fn new(labels: &[String], tokens: impl Iterator<Item = &'static Token>) -> Self {
        Self { labels: labels.to_vec(), tokens: tokens.map(Same).collect() }
    }
}

impl Pool {
    /// The pool over these tokens. What is known of an earlier initialisation is used again: it is never freed.
    fn find(name: &str, tokens: &[&'static Token], late: Late) -> &'static Self {
        let mut known = KNOWN.get().lock().unwrap_or_else(PoisonError::into_inner);
        let same = |pool: &&&'static Self| {
            let came = pool.members.len() - pool.late.labels.len();
            let members = pool.members[..came].iter().filter_map(Member::token).map(Same);
            pool.name == name && pool.late == late && members.eq(tokens.iter().copied().map(Same))
        };
        if let Some(pool) = known.iter().find(same).copied() {
            let joined = pool.members[tokens.len()..].iter().filter_map(Member::token);
            joined.for_each(|token| token.pool(true));
            return pool;
        }
        let there = tokens.iter().map(|token| Some(*token));
        let members = there.chain(late.labels.iter().map(|_| None)).map(|token| Member {
            token: token.map_or_else(OnceLock::new, OnceLock::from),
            rests_until: AtomicU64::new(0),
            seen: AtomicBool::new(false),
            look_at: AtomicU64::new(0),
            looker: Looker::default(),
        });
        let members: Vec<_> = members.collect();
        let name: &'static str = Box::leak(Box::from(name));
        let table = Table::new(name, members.len());
        let pool: &'static Self = Box::leak(Box::new(Self {
            name,
            next: AtomicUsize::new(0),
            generation: Arc::clone(&table.generation),
            table: Mutex::new(table),
            logins: Mutex::default(),
            members,
            late,
            joins: Looker::default(),
            rows: OnceLock::new(),
            begin: Instant::now(),
        }));
        known.push(pool);
        pool
    }

    /// The tokens that have come.
    fn tokens(&self) -> impl Iterator<Item = &'static Token> {
        self.members.iter().filter_map(Member::token)
    }

    /// Looks whether late tokens have come: one caller does it, now and then, or one who insists.
    fn join(&self, insists: bool) {
        let first = self.members.len() - self.late.labels.len();
        if self.members[first..].iter().all(|place| place.token().is_some()) {
            return;
        }
        let Some(_looking) = self.begin_to_look(&self.joins, insists) else { return };
        for (place, label) in self.members[first..].iter().zip(&self.late.labels) {
            if place.token().is_some() || !(insists || self.is_awake(place)) {
                continue;
            }
            let is_it = |token: &&Same| {
                !token.0.is_pooled() && view(token.0).label().as_ref() == Some(label)
            };
            let mut came = self.late.tokens.iter().filter(is_it);
            // Which of two is meant is not known, and the PIN would go to it.
            let one = came.next().filter(|_| came.next().is_none());
            if !one.is_some_and(|token| self.admit(place, token.0)) {
                place.rests_until.store(self.now() + PAUSE, Ordering::Relaxed);
            }
        }
    }

    /// A late token takes its place, and the login that the others have, unless that begins or ends meanwhile.
    fn admit(&self, place: &Member, token: &'static Token) -> bool {
        let login = self.table().login;
        let pin = self.tokens().find_map(Token::remembered).filter(|_| login.user);
        let table = self.table();
        // Another caller may have found the one that belongs here.
        if table.login != login || place.token().is_some() {
            return place.token().is_some();
        }
        // From here on it has no slot of its own.
        token.pool(true);
        if let Some(pin) = pin {
            // Without memory for the PIN it stays logged out.
            token.remember(pin.as_ref().map_or(&[], Secret::expose)).ok();
        }
        place.token.set(token).ok();
        place.rests_until.store(0, Ordering::Relaxed);
        true
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Whether a member is to be asked. Of one whose rest is over, one caller finds out.
    fn is_awake(&self, member: &Member) -> bool {
        member.rests_until.load(Ordering::Relaxed) == 0 || self.is_over(&member.rests_until, PAUSE)
    }

    /// Whether a time has come, for one caller; it comes again after a pause.
    fn is_over(&self, time: &AtomicU64, pause: u64) -> bool {
        let (until, now, relaxed) = (time.load(Ordering::Relaxed), self.now(), Ordering::Relaxed);
        until != 0
            && now >= until
            && time.compare_exchange(until, now + pause, relaxed, relaxed).is_ok()
    }

    /// Whether this caller may look; none where another does, who is waited for, if it is wanted, while it may soon be done.
    fn begin_to_look<'a>(&self, looker: &'a Looker, waits: bool) -> Option<Looking<'a>> {
        let relaxed = Ordering::Relaxed;
        loop {
            let now = self.now().max(1);
            match looker.0.compare_exchange(0, now, Ordering::Acquire, relaxed) {
                Ok(_) => return Some(Looking(looker)),
                Err(since) if !waits || now > since + SOON => return None,
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
    }

    /// What a member's answer says of it.
    fn judge<T>(&self, member: &Member, answer: &Result<T>) {
        let until = match answer {
            Err(code) if is_failure(*code) || is_refusal(*code) => self.now() + PAUSE,
            _ => 0,
        };
        member.rests_until.store(until, Ordering::Relaxed);
    }

    /// [`Self::look`], of what is late: by one caller at a time, as it may not answer.
    fn look_alone(&self, at: usize, waits: bool) {
        if let Some(_looking) = self.begin_to_look(&self.members[at].looker, waits) {
            // It goes on resting.
            self.look(at).ok();
        }
    }

    /// Looks at what a member has. What was looked at before a login began or ended does not count after it.
    fn look(&self, at: usize) -> Result<()> {
        let member = &self.members[at];
        let token = member.token().ok_or(Error::TOKEN_NOT_PRESENT)?;
        let login = self.table().login;
        let seen = table::seen(&view(token), if login.user { Scope::Both } else { Scope::Public });
        self.judge(member, &seen);
        let seen = seen?;
        let mut table = self.table();
        if table.login == login {
            let lost = table.enter(at, seen);
            member.look_at.store(if lost { self.now() + LOOK } else { 0 }, Ordering::Relaxed);
            member.seen.store(true, Ordering::SeqCst);
        }
        Ok(())
    }

    /// The user is logged in from now on, or no more: every member is to be looked at again.
    fn turn(&self, user: bool) -> MutexGuard<'_, Table> {
        let mut table = self.table();
        table.login = Login { user, epoch: table.login.epoch + 1 };
        self.members.iter().for_each(|member| member.seen.store(false, Ordering::SeqCst));
        table
    }

    /// Looks at members that were not there when it was time to, or have lost a key.
    fn look_at_late_ones(&self) {
        self.join(false);
        for (at, member) in self.members.iter().enumerate() {
            let came = member.token().is_some();
            let seen = member.seen.load(Ordering::Relaxed) && !self.is_over(&member.look_at, LOOK);
            if came && !seen && self.is_awake(member) {
                self.look_alone(at, false);
            }
        }
    }

    /// Has a member do something with a key. One that was dead when it was asked may be back when the last one has died.
    fn with<T>(&self, key: &Key, mut work: impl FnMut(usize, &Arc<Key>) -> Result<T>) -> Result<T> {
        let row = crate::mechanism::Mechanism::row(key)?;
        self.look_at_late_ones();
        let (begin, died) = (self.now(), Cell::new(false));
        let mut work = |at, key: &_| {
            let answer = work(at, key);
            died.set(died.get() || answer.as_ref().is_err_and(|code| is_failure(*code)));
            answer
        };
        let first = self.ask_each(row, &mut work);
        if !first.as_ref().is_err_and(|code| may_be_ones_own(*code))
            || !died.get()
            || self.now() - begin > SOON
        {
            return first;
        }
        let late =
            |member: &Member| member.token().is_some() && !member.seen.load(Ordering::Relaxed);
        for (at, _) in self.members.iter().enumerate().filter(|(_, member)| late(member)) {
            // Though it rests: there is no other.
            self.look_alone(at, true);
        }
        self.ask_each(row, &mut work)
    }

    /// Asks one member, and the next one if that fails: those that rest come last.
    fn ask_each<T>(
        &self,
        row: u64,
        work: &mut impl FnMut(usize, &Arc<Key>) -> Result<T>,
    ) -> Result<T> {
        let keys = self.table().keys(row).ok_or(Error::KEY_HANDLE_INVALID)?;
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % keys.len();
        let turns = (turn..keys.len()).chain(0..turn).map(|at| &keys[at]);
        let mut resting = Vec::new();
        let mut last = Err(Error::KEY_HANDLE_INVALID);
        let mut ask = |(at, key): &(usize, Arc<Key>)| {
            last = work(*at, key);
            self.judge(&self.members[*at], &last);
            if last.as_ref().is_err_and(|code| is_gone(*code)) {
                let (soon, relaxed) = (self.now() + PAUSE, Ordering::Relaxed);
                // Where that is foreseen it is not put off.
                self.members[*at].look_at.compare_exchange(0, soon, relaxed, relaxed).ok();
            }
            !last.as_ref().is_err_and(|code| may_be_ones_own(*code))
        };
        for turn in turns {
            // Whether one is awake is found out when it is to be asked: then it is.
            match self.is_awake(&self.members[turn.0]) {
                true if ask(turn) => return last,
                true => {}
                false => resting.push(turn),
            }
        }
        resting.into_iter().any(ask);
        last
    }

    /// `C_Login`
    fn login(&self, pin: &[u8]) -> Result<()> {
        let mut logins = self.logins();
        if logins.view {
            if let Some(is_it) = self.is_configured(pin) {
                logins.own = is_it;
                return if is_it { Ok(()) } else { Err(Error::PIN_INCORRECT) };
            }
            // Whose PIN is right is known by a login, and there can be only one.
            self.tokens().for_each(Token::logout);
        }
        let answer = self.begin_login(pin);
        logins.own = answer.is_ok();
        match (logins.own, logins.view) {
            (true, _) => {}
            (false, true) => {
                self.tokens().for_each(Token::logout);
                self.begin_later();
            }
            (false, false) => self.end_login(),
        }
        answer
    }

    /// Whether this is the configured PIN of every token, by which a view has opened one of them: none of them is asked then.
    fn is_configured(&self, pin: &[u8]) -> Option<bool> {
        let said: Option<Vec<_>> = self.tokens().map(|token| token.is_configured(pin)).collect();
        said.filter(|_| self.tokens().any(Token::is_open)).map(|said| said.into_iter().all(|is| is))
    }

    /// A view that shows the pool has a login: by the configured PINs the tokens have one too, from their next sessions on.
    pub(crate) fn join_view(&self) {
        let mut logins = self.logins();
        if !self.asks_by_itself() {
            return;
        }
        logins.view = true;
        if !logins.own {
            self.begin_later();
        }
    }

    /// The view's login is over.
    pub(crate) fn leave_view(&self) {
        let mut logins = self.logins();
        if std::mem::take(&mut logins.view) && !logins.own {
            self.end_login();
        }
    }

    fn begin_later(&self) {
        self.tokens().for_each(Token::join_pool);
        drop(self.turn(true));
    }

    fn logins(&self) -> MutexGuard<'_, Logins> {
        self.logins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a login without a PIN works.
    fn asks_by_itself(&self) -> bool {
        self.tokens().all(|token| token.pin_source.is_some())
    }

    /// What was read counts until this number is another.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// A login in every token. One that fails is logged in when it comes back, one that takes no PIN is left out; one that
    /// refuses this one refuses it for all, and the caller logs out.
    fn begin_login(&self, pin: &[u8]) -> Result<()> {
        let mut answer = Err(Error::TOKEN_NOT_RECOGNIZED);
        self.join(true);
        for member in &self.members {
            let Some(token) = member.token() else { continue };
            let one = token.login(Role::User, pin);
            self.judge(member, &one);
            match one {
                Err(code) if !is_failure(code) && !takes_none(code) => return one,
                one if answer.is_err() => answer = one,
                _ => {}
            }
        }
        if answer.is_ok() {
            drop(self.turn(true));
            // Also of tokens that have come meanwhile.
            answer = self.tokens().try_for_each(|token| token.remember(pin));
        }
        answer
    }

    /// Looks at what every member has, but those that rest.
    fn look_at_all(&self) {
        self.join(false);
        for (at, member) in self.members.iter().enumerate() {
            if member.token().is_some() && self.is_awake(member) {
                match member.seen.load(Ordering::Relaxed) {
                    true => self.look(at).unwrap_or_default(),
                    false => self.look_alone(at, true),
                }
            }
        }
    }

    /// What is known of the tokens and of a login.
    fn forget(&self) {
        *self.logins() = Logins::default();
        self.turn(false).forget_all();
    }

    /// `C_Logout`
    fn logout(&self) {
        let mut logins = self.logins();
        logins.own = false;
        if !logins.view {
            self.end_login();
        }
    }

    fn end_login(&self) {
        self.turn(false).forget_private();
        self.tokens().for_each(Token::logout);
    }
}

/// As a store; [`PoolStore`] or its slot closes it.
fn view(token: &'static Token) -> ManuallyDrop<ForeignStore> {
    ManuallyDrop::new(ForeignStore::new(token))
}

/// Whether the token, its session or its login is what failed, and not what was asked of it.
const fn is_failure(code: Error) -> bool {
    matches!(
        code,
        Error::DEVICE_ERROR
            | Error::DEVICE_MEMORY
            | Error::DEVICE_REMOVED
            | Error::GENERAL_ERROR
            | Error::TOKEN_NOT_PRESENT
            | Error::TOKEN_NOT_RECOGNIZED
            | Error::USER_NOT_LOGGED_IN
    )
}

/// Whether the token takes no PIN at all, right or wrong.
const fn takes_none(code: Error) -> bool {
    matches!(code, Error::PIN_EXPIRED | Error::PIN_LOCKED | Error::USER_PIN_NOT_INITIALIZED)
}

/// Whether the token does not have the key any more, or knows it by another handle.
const fn is_gone(code: Error) -> bool {
    matches!(code, Error::KEY_HANDLE_INVALID | Error::OBJECT_HANDLE_INVALID)
}

/// Whether another token may answer otherwise.
const fn may_be_ones_own(code: Error) -> bool {
    is_failure(code) || is_refusal(code) || is_ones_own(code)
}

/// Whether another token may do what this one does not with its copy of the key.
const fn is_ones_own(code: Error) -> bool {
    let refused = matches!(
        code,
        Error::FUNCTION_NOT_SUPPORTED
            | Error::KEY_FUNCTION_NOT_PERMITTED
            | Error::MECHANISM_INVALID
    );
    refused || is_gone(code)
}
