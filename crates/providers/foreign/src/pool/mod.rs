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

use crate::store::ForeignStore;
use crate::token::{Token, is_refusal};
use metaslot_ck::{Error, Result};
use metaslot_memory::PerProcess;
use metaslot_spi::Key;
use metaslot_spi::provider::Algorithm;
use metaslot_spi::store::{Role, Scope};
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;
use table::{Login, Table};

/// How long a token that failed is left alone, in milliseconds.
const PAUSE: u64 = 200;

/// A pool. It lives for as long as the process.
#[derive(Debug)]
pub(crate) struct Pool {
    name: &'static str,
    members: Vec<Member>,
    /// Whose turn it is.
    next: AtomicUsize,
    table: Mutex<Table>,
    rows: OnceLock<&'static [Algorithm]>,
    begin: Instant,
}

/// One of the tokens.
#[derive(Debug)]
struct Member {
    token: &'static Token,
    /// As a store; [`PoolStore`] closes it.
    view: ManuallyDrop<ForeignStore>,
    /// In milliseconds since the pool began: until then it is left alone. 0 while it works.
    rests_until: AtomicU64,
    /// Whether its objects have been looked at since the login began or ended.
    seen: AtomicBool,
}

/// The pools that were ever open in this process.
static KNOWN: PerProcess<Mutex<Vec<&'static Pool>>> = PerProcess::new(|_| Mutex::default());

impl Pool {
    /// The pool over these tokens. What is known of an earlier initialisation is used again: it is never freed.
    fn find(name: &str, tokens: &[&'static Token]) -> &'static Self {
        let mut known = KNOWN.get().lock().unwrap_or_else(PoisonError::into_inner);
        let same = |pool: &&&'static Self| {
            let members = pool.members.iter().map(|member| std::ptr::from_ref(member.token));
            pool.name == name && members.eq(tokens.iter().map(|token| std::ptr::from_ref(*token)))
        };
        if let Some(pool) = known.iter().find(same).copied() {
            return pool;
        }
        let member = |token: &&'static Token| Member {
            token,
            view: ManuallyDrop::new(ForeignStore::new(token)),
            rests_until: AtomicU64::new(0),
            seen: AtomicBool::new(false),
        };
        let pool: &'static Self = Box::leak(Box::new(Self {
            name: Box::leak(Box::from(name)),
            members: tokens.iter().map(member).collect(),
            next: AtomicUsize::new(0),
            table: Mutex::new(Table::new(tokens.len())),
            rows: OnceLock::new(),
            begin: Instant::now(),
        }));
        known.push(pool);
        pool
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Whether a member is to be asked. Of one whose rest is over, one caller finds out.
    fn is_awake(&self, member: &Member) -> bool {
        let until = member.rests_until.load(Ordering::Relaxed);
        let wake = || {
            let next = self.now() + PAUSE;
            let exchange = Ordering::Relaxed;
            member.rests_until.compare_exchange(until, next, exchange, exchange).is_ok()
        };
        until == 0 || (self.now() >= until && wake())
    }

    /// What a member's answer says of it.
    fn judge<T>(&self, member: &Member, answer: &Result<T>) {
        let until = match answer {
            Err(code) if is_failure(*code) || is_refusal(*code) => self.now() + PAUSE,
            _ => 0,
        };
        member.rests_until.store(until, Ordering::Relaxed);
    }

    /// Looks at what a member has. What was looked at before a login began or ended does not count after it.
    fn look(&self, at: usize) -> Result<()> {
        let member = &self.members[at];
        let login = self.table().login;
        let seen = table::seen(&member.view, if login.user { Scope::Both } else { Scope::Public });
        self.judge(member, &seen);
        let seen = seen?;
        let mut table = self.table();
        if table.login == login {
            table.enter(at, seen);
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

    /// Looks at members that were not there when it was time to.
    fn look_at_late_ones(&self) {
        for (at, member) in self.members.iter().enumerate() {
            if !member.seen.load(Ordering::Relaxed) && self.is_awake(member) {
                // It goes on resting.
                self.look(at).ok();
            }
        }
    }

    /// Has a member do something with a key, the next one if that fails: those that rest come last.
    fn with<T>(&self, key: &Key, mut work: impl FnMut(usize, &Arc<Key>) -> Result<T>) -> Result<T> {
        let row = crate::mechanism::Mechanism::row(key)?;
        self.look_at_late_ones();
        let keys = self.table().keys(row).ok_or(Error::KEY_HANDLE_INVALID)?;
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % keys.len();
        let turns = (turn..keys.len()).chain(0..turn).map(|at| &keys[at]);
        let mut resting = Vec::new();
        let mut last = Err(Error::KEY_HANDLE_INVALID);
        let mut ask = |(at, key): &(usize, Arc<Key>)| {
            last = work(*at, key);
            self.judge(&self.members[*at], &last);
            let next = |code| is_failure(code) || is_refusal(code) || is_ones_own(code);
            !last.as_ref().is_err_and(|code| next(*code))
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

    /// `C_Login` in every token. One that fails is logged in when it comes back, one that takes no PIN is left out; one that
    /// refuses this one ends it.
    fn login(&self, pin: &[u8]) -> Result<()> {
        let mut answer = Err(Error::TOKEN_NOT_RECOGNIZED);
        for member in &self.members {
            let one = member.token.login(Role::User, pin);
            self.judge(member, &one);
            match one {
                Err(code) if !is_failure(code) && !takes_none(code) => {
                    self.logout();
                    return one;
                }
                one if answer.is_err() => answer = one,
                _ => {}
            }
            if let Err(code) = member.token.remember(pin) {
                self.logout();
                return Err(code);
            }
        }
        match answer {
            Ok(()) => drop(self.turn(true)),
            Err(_) => self.logout(),
        }
        answer
    }

    /// Looks at what every member has, but those that rest.
    fn look_at_all(&self) {
        for (at, member) in self.members.iter().enumerate() {
            if self.is_awake(member) {
                self.look(at).ok();
            }
        }
    }

    /// What is known of the tokens and of a login.
    fn forget(&self) {
        self.turn(false).forget_all();
    }

    fn logout(&self) {
        self.turn(false).forget_private();
        self.members.iter().for_each(|member| member.token.logout());
    }
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

/// Whether another token may do what this one does not with its copy of the key.
const fn is_ones_own(code: Error) -> bool {
    matches!(
        code,
        Error::FUNCTION_NOT_SUPPORTED
            | Error::KEY_FUNCTION_NOT_PERMITTED
            | Error::KEY_HANDLE_INVALID
            | Error::MECHANISM_INVALID
            | Error::OBJECT_HANDLE_INVALID
    )
}
