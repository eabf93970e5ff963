// SPDX-License-Identifier: Apache-2.0
//! Objects, and what is done with them.

use super::{
    Login, NO_KEY, NO_LOGIN, NO_OBJECT, NO_OPERATION, NO_SESSION, Operation, Process, Progress,
    READ_ONLY, Session, Stage, State, Step, Thing,
};
use crate::history::{Answer, Change, Kind};
use metaslot_ck::Error;

impl State {
    pub(super) fn create(
        &self,
        at: Progress,
        session: u64,
        (kind, tag): (Kind, u8),
        answer: Answer,
    ) -> Vec<Step> {
        if at.stage != Stage::Begun {
            return self.write(at, answer);
        }
        let Some(Session { process, write, .. }) = self.sessions.get(&session) else {
            return self.only(answer == NO_SESSION);
        };
        if kind.private() && self.of(*process).login != Login::User {
            return self.only(answer == NO_LOGIN);
        }
        if kind.on_token() && !write {
            return self.only(answer == READ_ONLY);
        }
        let thing = Thing::new(kind, (session, *process), tag);
        self.put(at, *process, tag, thing, answer)
    }

    pub(super) fn copy(
        &self,
        at: Progress,
        session: u64,
        object: u64,
        (token, tag): (bool, u8),
        answer: Answer,
    ) -> Vec<Step> {
        let Some(Session { process, write, .. }) = self.sessions.get(&session) else {
            return self.only(at.stage == Stage::Begun && answer == NO_SESSION);
        };
        match (at.stage, at.thing) {
            (Stage::Begun, _) => match self.find_by(*process, object) {
                None => self.only(answer == NO_OBJECT),
                Some((_, thing)) if thing.single => {
                    self.only(answer == Answer::No(Error::ACTION_PROHIBITED))
                }
                Some((_, thing)) if thing.kind.copied(token).on_token() && !write => {
                    self.only(answer == READ_ONLY)
                }
                Some((_, thing)) => {
                    let owner = (session, *process);
                    let thing = Thing { kind: thing.kind.copied(token), owner, ..thing };
                    let epoch = self.of(*process).epoch;
                    let at = Progress { stage: Stage::Checked, epoch, thing: Some(thing), ..at };
                    self.then(at)
                }
            },
            (Stage::Checked, Some(thing)) => {
                let ended = thing.kind.private() && self.of(*process).epoch != at.epoch;
                match ended {
                    true if !thing.kind.on_token() => self.only(answer == NO_LOGIN),
                    true if answer == NO_LOGIN => self.only(true),
                    _ => self.put(at, *process, tag, thing, answer),
                }
            }
            _ => self.write(at, answer),
        }
    }

    /// In memory a thing appears at once; on the token it takes the store's keys along.
    fn put(&self, at: Progress, process: u8, tag: u8, thing: Thing, answer: Answer) -> Vec<Step> {
        let Process { epoch, keys, .. } = *self.of(process);
        if thing.kind.on_token() {
            let epoch = if at.stage == Stage::Begun { epoch } else { at.epoch };
            let (stage, thing) = (Stage::Sealing, Some(thing));
            return self.then(Progress { stage, process, epoch, keys, tag, thing });
        }
        match answer {
            Answer::Handle(handle) if self.is_fresh(process, handle) => self.change(None, |next| {
                next.things.insert(tag, thing);
                next.names.insert((process, handle), (tag, epoch));
            }),
            _ => Vec::new(),
        }
    }

    /// A thing is committed, then named.
    fn write(&self, at: Progress, answer: Answer) -> Vec<Step> {
        let Some(thing) = at.thing else { return Vec::new() };
        match (at.stage, answer) {
            (Stage::Sealing, NO_LOGIN) => self.only(!self.fits(thing.kind, at.keys)),
            (Stage::Sealing, Answer::Handle(_)) if self.fits(thing.kind, at.keys) => {
                let committed = Progress { stage: Stage::Committed, ..at };
                self.change(Some(committed), |next| next.things.insert(at.tag, thing))
            }
            (Stage::Committed, Answer::Handle(handle)) => self.name(at, thing.kind, handle),
            _ => Vec::new(),
        }
    }

    /// A handle that a call gives for a thing: in the login in which it was checked the thing's one
    /// name, and never one that was something else's.
    fn name(&self, at: Progress, kind: Kind, handle: u64) -> Vec<Step> {
        let Progress { process, epoch, tag, .. } = at;
        let same = |name: &(u8, u32)| name.0 == tag && (!kind.private() || name.1 == epoch);
        if let Some(known) = self.names.get(&(process, handle)) {
            return self.only(same(known));
        }
        let current = !kind.private() || self.of(process).epoch == epoch;
        let other = self.names.iter().any(|(key, name)| key.0 == process && same(name));
        if current && other {
            return Vec::new();
        }
        self.change(None, |next| next.names.insert((process, handle), (tag, epoch)))
    }

    fn is_fresh(&self, process: u8, handle: u64) -> bool {
        !self.names.contains_key(&(process, handle))
    }

    /// The thing that a call means; what it answers where it sees none.
    fn target(
        &self,
        session: u64,
        object: u64,
        answer: Answer,
    ) -> Result<(u8, u8, Thing), Vec<Step>> {
        let Some(Session { process, .. }) = self.sessions.get(&session) else {
            return Err(self.only(answer == NO_SESSION));
        };
        match self.find_by(*process, object) {
            Some((tag, thing)) => Ok((*process, tag, thing)),
            None => Err(self.only(answer == NO_OBJECT || answer == NO_KEY)),
        }
    }

    /// A call on a thing of the token has checked, and takes the keys along.
    fn aim(&self, at: Progress, process: u8, tag: u8) -> Vec<Step> {
        let keys = self.of(process).keys;
        self.then(Progress { stage: Stage::Sealing, process, tag, keys, ..at })
    }

    /// What a call on a thing of the token finds when it commits.
    fn aimed_at(&self, at: Progress, answer: Answer) -> Result<Thing, Vec<Step>> {
        let Some(thing) = self.things.get(&at.tag) else {
            return Err(self.only(answer == NO_OBJECT));
        };
        let Process { login, keys, .. } = *self.of(at.process);
        let ended = thing.kind.private() && (login != Login::User || keys.is_none());
        if answer == NO_LOGIN || (answer == NO_OBJECT && ended) {
            return Err(self.only(!self.fits(thing.kind, at.keys) || ended));
        }
        if self.fits(thing.kind, at.keys) { Ok(*thing) } else { Err(Vec::new()) }
    }

    fn writes(&self, session: u64) -> bool {
        self.sessions.get(&session).is_some_and(|session| session.write)
    }

    pub(super) fn set(
        &self,
        at: Progress,
        session: u64,
        object: u64,
        change: Change,
        answer: Answer,
    ) -> Vec<Step> {
        let (tag, thing) = if at.stage == Stage::Begun {
            match self.target(session, object, answer) {
                Err(steps) => return steps,
                Ok((_, _, thing)) if thing.kind.on_token() && !self.writes(session) => {
                    return self.only(answer == READ_ONLY);
                }
                Ok((process, tag, thing)) if thing.kind.on_token() => {
                    return self.aim(at, process, tag);
                }
                Ok((_, tag, thing)) => (tag, thing),
            }
        } else {
            match self.aimed_at(at, answer) {
                Err(steps) => return steps,
                Ok(thing) => (at.tag, thing),
            }
        };
        match answer {
            Answer::Done => self.change(None, |next| next.things.insert(tag, thing.with(change))),
            _ => Vec::new(),
        }
    }

    pub(super) fn get(&self, session: u64, object: u64, answer: Answer) -> Vec<Step> {
        match self.target(session, object, answer) {
            Err(steps) => steps,
            Ok((_, _, thing)) => {
                let value = (!thing.sensitive).then_some(thing.value);
                self.only(answer == Answer::Attributes(thing.label, thing.sensitive, value))
            }
        }
    }

    pub(super) fn find(&self, at: Progress, session: u64, tag: u8, answer: Answer) -> Vec<Step> {
        let Some(Session { process, .. }) = self.sessions.get(&session) else {
            return self.only(at.stage == Stage::Begun && answer == NO_SESSION);
        };
        let seen = self.things.get(&tag).filter(|thing| self.sees(*process, thing));
        match (at.stage, answer, seen) {
            (Stage::Begun, Answer::Found(None), None) => self.only(true),
            (Stage::Begun, Answer::Found(Some(_)), Some(thing)) => {
                let (stage, epoch) = (Stage::Committed, self.of(*process).epoch);
                let thing = Some(*thing);
                self.then(Progress { stage, process: *process, epoch, tag, thing, ..at })
            }
            (Stage::Committed, Answer::Found(Some(handle)), _) => {
                at.thing.map_or_else(Vec::new, |thing| self.name(at, thing.kind, handle))
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn use_key(&self, session: u64, object: u64, answer: Answer) -> Vec<Step> {
        let busy = answer == Answer::No(Error::OPERATION_ACTIVE);
        match self.sessions.get(&session).and_then(|session| session.operation) {
            Some(Operation { doubtful, .. }) if busy || !doubtful => return self.only(busy),
            _ if busy => return Vec::new(),
            _ => {}
        }
        match self.target(session, object, answer) {
            Err(steps) => steps,
            Ok((_, tag, Thing { kind, value, .. })) if answer == Answer::Done => {
                let operation = Operation { tag, kind, value, doubtful: false };
                self.operating(session, Some(operation))
            }
            Ok(_) => Vec::new(),
        }
    }

    pub(super) fn encrypt(&self, session: u64, answer: Answer) -> Vec<Step> {
        let Some(known) = self.sessions.get(&session) else {
            return self.only(answer == NO_SESSION);
        };
        let right = match (known.operation, answer) {
            (None, answer) => answer == NO_OPERATION,
            (Some(operation), NO_OPERATION) => operation.doubtful,
            (Some(operation), answer) => answer == Answer::Encrypted(operation.value),
        };
        if right { self.operating(session, None) } else { Vec::new() }
    }

    fn operating(&self, session: u64, operation: Option<Operation>) -> Vec<Step> {
        self.change(None, |next| {
            if let Some(session) = next.sessions.get_mut(&session) {
                session.operation = operation;
            }
        })
    }

    pub(super) fn destroy(
        &self,
        at: Progress,
        session: u64,
        object: u64,
        answer: Answer,
    ) -> Vec<Step> {
        let ended = move |operation: &Operation| operation.tag == at.tag;
        let (process, tag, thing) = match at.stage {
            Stage::Begun => match self.target(session, object, answer) {
                Err(steps) => return steps,
                Ok((_, _, thing)) if thing.kind.on_token() && !self.writes(session) => {
                    return self.only(answer == READ_ONLY);
                }
                Ok((process, tag, thing)) if thing.kind.on_token() => {
                    return self.aim(at, process, tag);
                }
                Ok(target) => target,
            },
            Stage::Sealing => match self.aimed_at(at, answer) {
                Err(steps) => return steps,
                Ok(thing) => (at.process, at.tag, thing),
            },
            _ => return self.change(None, |next| next.end_operations(at.process, ended)),
        };
        match answer {
            Answer::Done if thing.kind.on_token() => {
                let committed = Progress { stage: Stage::Committed, ..at };
                self.change(Some(committed), |next| next.things.remove(&tag))
            }
            Answer::Done => self.change(None, |next| {
                next.things.remove(&tag);
                next.end_operations(process, |operation| operation.tag == tag);
            }),
            _ => Vec::new(),
        }
    }
}
