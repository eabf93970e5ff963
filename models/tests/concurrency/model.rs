// SPDX-License-Identifier: Apache-2.0
//! What the calls mean, one after the other: two processes with sessions and logins of their own over
//! one token, objects in it and in memory, and the handles by which each process knows them.
//!
//! Most calls take effect at one moment. These take several steps, and promise no more:
//! - A call that writes to the token checks, takes the store's keys along, commits, and then names what
//!   it made or ends the operations with what it destroyed.
//! - A copy reads first; what becomes of the original afterwards does not concern it.
//! - Closing a session ends the session, then its objects, then the login if no session is left.
//! - A logout ends the login and with it every private object in memory; then the store's keys go.

mod objects;
mod sessions;

use crate::history::{Answer, Call, Change, Kind};
use metaslot_ck::Error;
use std::collections::BTreeMap;

/// Everything at one moment.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) struct State {
    things: BTreeMap<u8, Thing>,
    processes: [Process; 2],
    sessions: BTreeMap<u64, Session>,
    /// Every handle that a process ever got for an object: which, and in which login.
    names: BTreeMap<(u8, u64), (u8, u32)>,
    /// How often the token was initialised.
    incarnation: u32,
}

/// An object.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Thing {
    kind: Kind,
    /// The session that it goes with, where it is in memory, and that session's process.
    owner: (u64, u8),
    label: u8,
    sensitive: bool,
    single: bool,
    value: u8,
}

#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
struct Process {
    login: Login,
    /// Logins and logouts so far.
    epoch: u32,
    /// Which incarnation's keys the store has open.
    keys: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
enum Login {
    #[default]
    Public,
    User,
    So,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Session {
    process: u8,
    write: bool,
    operation: Option<Operation>,
}

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Operation {
    tag: u8,
    kind: Kind,
    value: u8,
    /// The other process destroyed the key: this one may have noticed.
    doubtful: bool,
}

/// How far a call is, and what it remembers.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub(crate) struct Progress {
    stage: Stage,
    process: u8,
    /// The login in which it passed its checks.
    epoch: u32,
    /// What it took of the store's keys.
    keys: Option<u32>,
    /// What it is about.
    tag: u8,
    thing: Option<Thing>,
}

#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
enum Stage {
    #[default]
    Begun,
    Checked,
    Sealing,
    Committed,
    Closing,
}

/// A possible next step: the state after it, and how far the call is then; `None` when it is over.
type Step = (State, Option<Progress>);

const NO_SESSION: Answer = Answer::No(Error::SESSION_HANDLE_INVALID);
const NO_OBJECT: Answer = Answer::No(Error::OBJECT_HANDLE_INVALID);
const NO_KEY: Answer = Answer::No(Error::KEY_HANDLE_INVALID);
const NO_LOGIN: Answer = Answer::No(Error::USER_NOT_LOGGED_IN);
const READ_ONLY: Answer = Answer::No(Error::SESSION_READ_ONLY);
const NO_OPERATION: Answer = Answer::No(Error::OPERATION_NOT_INITIALIZED);

impl State {
    /// The steps that a call which answers so can take now.
    pub(crate) fn steps(&self, at: Progress, call: Call, answer: Answer) -> Vec<Step> {
        match call {
            Call::Open { process, write, .. } => self.open(process, write, answer),
            Call::InitToken { process } => self.init_token(process, answer),
            Call::Close { session } => self.close(at, session, answer),
            Call::Login { session, user } => self.login(at, session, user, answer),
            Call::Logout { session } => self.logout(at, session, answer),
            Call::Create { session, kind, tag } => self.create(at, session, (kind, tag), answer),
            Call::Copy { session, object, token, tag } => {
                self.copy(at, session, object, (token, tag), answer)
            }
            Call::Set { session, object, change } => self.set(at, session, object, change, answer),
            Call::Get { session, object } => self.get(session, object, answer),
            Call::Find { session, tag } => self.find(at, session, tag, answer),
            Call::Use { session, object } => self.use_key(session, object, answer),
            Call::Encrypt { session } => self.encrypt(session, answer),
            Call::Destroy { session, object } => self.destroy(at, session, object, answer),
        }
    }

    fn of(&self, process: u8) -> &Process {
        &self.processes[usize::from(process)]
    }

    fn process(&mut self, process: u8) -> &mut Process {
        &mut self.processes[usize::from(process)]
    }

    /// Whether keys open and seal the private rows of the token as it is.
    fn fits(&self, kind: Kind, keys: Option<u32>) -> bool {
        !kind.private() || keys == Some(self.incarnation)
    }

    /// Whether a process sees a thing.
    fn sees(&self, process: u8, thing: &Thing) -> bool {
        let Process { login, keys, .. } = *self.of(process);
        let here = match thing.kind.on_token() {
            true => self.fits(thing.kind, keys),
            false => thing.owner.1 == process,
        };
        here && (login == Login::User || !thing.kind.private())
    }

    /// The thing that a process sees under this handle.
    fn find_by(&self, process: u8, handle: u64) -> Option<(u8, Thing)> {
        let (tag, epoch) = *self.names.get(&(process, handle))?;
        let thing = *self.things.get(&tag)?;
        let current = !thing.kind.private() || self.of(process).epoch == epoch;
        (current && self.sees(process, &thing)).then_some((tag, thing))
    }

    /// A step that changes nothing and is the last: possible when the answer is right.
    fn only(&self, right: bool) -> Vec<Step> {
        if right { vec![(self.clone(), None)] } else { Vec::new() }
    }

    fn then(&self, next: Progress) -> Vec<Step> {
        vec![(self.clone(), Some(next))]
    }

    /// A step that changes something.
    fn change<R>(&self, next: Option<Progress>, change: impl FnOnce(&mut Self) -> R) -> Vec<Step> {
        let mut state = self.clone();
        change(&mut state);
        vec![(state, next)]
    }

    /// Ends the operations with things that a process destroyed; the other one may notice that.
    fn end_operations(&mut self, process: u8, gone: impl Fn(&Operation) -> bool) {
        for session in self.sessions.values_mut() {
            if let Some(operation) = &mut session.operation
                && gone(operation)
            {
                match session.process == process {
                    true => session.operation = None,
                    false => operation.doubtful = true,
                }
            }
        }
    }
}

impl Thing {
    fn new(kind: Kind, owner: (u64, u8), tag: u8) -> Self {
        Self { kind, owner, label: 0, sensitive: false, single: false, value: tag }
    }

    fn with(self, change: Change) -> Self {
        match change {
            Change::Label(label) => Self { label, ..self },
            Change::Sensitive => Self { sensitive: true, ..self },
            Change::Single => Self { single: true, ..self },
        }
    }
}
