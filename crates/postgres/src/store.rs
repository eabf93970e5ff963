// SPDX-License-Identifier: Apache-2.0
//! The engine's trait.

use crate::cache::{Moment, Query};
use crate::levels::Asked;
use crate::link::{Open, lock};
use crate::open::{PostgresStore, Result};
use crate::rows::{Picture, Whole, Writing};
use crate::search::Wanted;
use crate::{named, pin, search, table};
use metaslot_ck as ck;
use metaslot_counters as counters;
use metaslot_keystore::Error;
use metaslot_keystore::elsewhere::{self, Group, Keys, Reading, Stored, nothing};
use metaslot_memory::Secret;
use metaslot_spi::detail;
use metaslot_spi::store::{
    Change, Examination, Examined, Found, Name, ObjectRow, Remark, Role, Scope, Store, Term,
    TokenRow,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl PostgresStore {
    fn report<T>(&self, result: Result<T>) -> ck::Result<T> {
        result.map_err(|error| {
            let error = error.at(self.link.place());
            if matches!(error, Error::Damaged { .. }) {
                counters::event(counters::Event::DamagedRow);
            }
            detail::set(format_args!("{error}"));
            error.into()
        })
    }

    fn write_by(&self, who: Option<(Name, u64)>, changes: Vec<Change>) -> ck::Result<Vec<u64>> {
        let changed = |change: &Change| match change {
            Change::Insert(_) => None,
            Change::Update { id, .. } | Change::Delete { id, .. } => Some(*id),
        };
        let changed = Vec::from_iter(changes.iter().filter_map(changed));
        let done = self.current_keys().and_then(|keys| {
            self.queue.submit(changes, (keys, who), |take| self.commit_group(take))
        });
        // Also where it is not known whether they were changed.
        self.cache.forget(&changed);
        self.report(done)
    }

    /// Commits what waits by then, in as few transactions as it takes: [`Queue::submit`]. What fails where it is not known whose
    /// fault that is, is tried again by itself, unless the connection has failed.
    fn commit_group(&self, take: &dyn Fn() -> Group) {
        let mut group = None;
        let done = self.link.open().and_then(|open| {
            let _turn = lock(&open.lines.turn);
            let Err(error) = self.commit(&open, &mut group, take) else { return Ok(()) };
            let alone = group.take().map(Group::split).unwrap_or_default();
            if alone.len() < 2 || open.is_given_up() {
                alone.iter().for_each(|one| one.fail(&error));
                return if alone.is_empty() { Err(error) } else { Ok(()) };
            }
            // A row that stays locked keeps all of them waiting once.
            let mut locked = None;
            for one in alone {
                let mut one = Some(one);
                let done = match &locked {
                    Some(error) => Err(Error::clone(error)),
                    None => self.commit(&open, &mut one, take),
                };
                if let (Err(error), Some(one)) = (done, &one) {
                    one.fail(&error);
                    locked = Some(error).filter(|error| matches!(error, Error::File { .. }));
                }
            }
            Ok(())
        });
        if let Err(error) = done {
            group.unwrap_or_else(take).fail(&error);
        }
    }

    /// Commits a group, which is taken once the token's row is locked, and answers it; one that is left unanswered has failed
    /// before it was committed, or with the connection.
    fn commit(
        &self,
        open: &Open<'_>,
        group: &mut Option<Group>,
        take: &dyn Fn() -> Group,
    ) -> Result<()> {
        loop {
            let mut at_fault = None;
            let done = self.transact(open, |whole| {
                let group = group.get_or_insert_with(take);
                let is_ours = |keys: &&Keys| elsewhere::current(keys, &whole.head).is_ok();
                if let Some(keys) = group.keys().find(is_ours) {
                    self.check_floor(keys, &whole.head, self.floor(keys))?;
                    self.advance_anchor(keys, &whole.head)?;
                }
                let whole = self.refuse_revoked(open, whole, group)?;
                let writing = Writing::new(open, whole.number, whole.head);
                let applied = elsewhere::apply(&writing, group, &self.written_last);
                let outcomes = applied.map_err(|(at, error)| {
                    at_fault = at;
                    error
                })?;
                Ok(((outcomes, writing.wrote.take()), true))
            });
            let Some(group) = group.as_mut() else { return done.map(drop) };
            match (done, at_fault) {
                (Ok((outcomes, head)), _) => {
                    let sealed = outcomes.keys.as_ref().zip(head.as_ref());
                    let followed =
                        sealed.map_or(Ok(()), |(keys, head)| self.follow(open, keys, head));
                    match followed {
                        Ok(()) => group.succeed(outcomes),
                        Err(error) => group.fail(&error),
                    }
                    return Ok(());
                }
                (Err(error), Some(at)) if !group.refuse(at, &error) => return Ok(()),
                (Err(_), Some(_)) => {}
                (Err(_), None) if group.is_answered() => return Ok(()),
                (Err(error), None) => return Err(error),
            }
        }
    }

    fn moment(&self, keys: Option<&Keys>) -> Moment {
        let (generation, key) = (self.link.generation(), keys.map(Keys::id));
        Moment { generation, key, forgotten: self.cache.forgotten() }
    }

    /// What `kept` has of this moment, or `read` gives; what it has of an older one while the database is away.
    fn kept_or_read<T>(
        &self,
        kept: impl Fn(bool) -> Option<T>,
        read: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        if let Some(known) = kept(false) {
            return Ok(known);
        }
        let older = || kept(true).filter(|_| self.link.bridge());
        match older() {
            Some(known) => Ok(known),
            None => read().or_else(|error| older().ok_or(error)),
        }
    }

    /// A row that is the one that was last written; without keys, as it is there.
    fn row(&self, keys: Option<&Keys>, id: u64) -> Result<Option<Arc<Stored>>> {
        let kept = |or_older| self.cache.row(self.moment(keys), id, or_older);
        self.kept_or_read(kept, || {
            let open = self.link.open()?;
            let (moment, floor) = (self.moment(keys), keys.map_or(0, |keys| self.floor(keys)));
            let picture = Picture::read(&open, id)?;
            let row = match keys {
                None => picture.into_row()?,
                Some(keys) => {
                    let _comparing = lock(&self.comparing);
                    let mut reading = Reading::of(&picture, keys, &self.read_last)?;
                    let row = reading.row(id)?;
                    self.finish(reading, keys, floor)?;
                    row
                }
            };
            let row = row.map(Arc::new);
            self.cache.keep_row(moment, id, row.clone());
            Ok(row)
        })
    }

    fn find(
        &self,
        keys: Option<&Keys>,
        query: &[Term],
        scope: Scope,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Found>> {
        let asked = Query::new(query, scope, after, limit);
        let kept = |or_older| self.cache.search(self.moment(keys), &asked, or_older);
        let found = self.kept_or_read(kept, || {
            let open = self.link.open()?;
            let moment = self.moment(keys);
            let (mut all, mut after) = (Vec::new(), after);
            let wanted = Wanted::new(keys, query, scope)?;
            let mut most = wanted.first(limit);
            let mut levels = wanted.levels(&self.levels, moment.generation);
            loop {
                let floor = keys.map_or(0, |keys| self.floor(keys));
                let page = most.min(limit - all.len());
                let (found, picture) = search::search(&open, &wanted, (after, page), levels)?;
                // All that is found is of one moment.
                if found.len() == page && page < limit - all.len() {
                    most = limit;
                    continue;
                }
                match (keys, &picture) {
                    (Some(keys), Some(picture)) => {
                        let shown = (picture, levels);
                        let rows = self.authentic(shown, keys, &wanted, &found, floor)?;
                        // That may be all, or of a tree that was higher.
                        levels = self.levels.whole();
                        let Some(rows) = rows else { continue };
                        for (found, row) in rows {
                            self.cache.keep_row(moment, found.id, Some(Arc::new(row)));
                            all.push(found);
                        }
                    }
                    _ => all.extend(&found),
                }
                // Others take the place of what is damaged.
                let is_last = found.len() < page;
                (most, after) = (limit, found.last().map_or(after, |last| last.id));
                if is_last || all.len() == limit {
                    break;
                }
            }
            let found: Arc<[Found]> = all.into();
            self.cache.keep_search(moment, asked.clone(), Arc::clone(&found));
            Ok(found)
        });
        Ok(found?.to_vec())
    }

    /// Those that are as they were last written, compared with one state, which is none older than was seen before: nothing of an older
    /// one is given to be kept. `None` where nodes are needed that neither were read nor are remembered.
    fn authentic(
        &self,
        (picture, levels): (&Picture, Asked),
        keys: &Keys,
        wanted: &Wanted,
        found: &[Found],
        floor: u64,
    ) -> Result<Option<Vec<(Found, Stored)>>> {
        let _comparing = lock(&self.comparing);
        let mut reading = Reading::of(picture, keys, &self.read_last)?;
        let needed = found.iter().map(|found| reading.unread(found.id)).max().unwrap_or(0);
        let is_read = reading.height() <= levels.height && needed <= levels.levels;
        let mut rows = Vec::with_capacity(found.len());
        for found in found.iter().filter(|_| is_read) {
            let row = search::check(&mut reading, wanted, *found)?;
            rows.extend(row.map(|row| (*found, row)));
        }
        self.levels.grown(reading.height());
        if is_read {
            self.levels.needed(needed);
        }
        self.finish(reading, keys, floor)?;
        Ok(is_read.then_some(rows))
    }

    fn token_row(&self) -> Result<TokenRow> {
        let shortest_pin = self.config.shortest_pin;
        let read = self.link.open().and_then(|open| Whole::read(&open));
        match read {
            Ok(whole) => {
                let token = whole.token;
                let row = TokenRow {
                    initialized: true,
                    user_pin_set: token.user.wrap.is_some(),
                    so: elsewhere::pin_state(&token.so, whole.now),
                    user: elsewhere::pin_state(&token.user, whole.now),
                    serial: token.serial.iter().map(|byte| format!("{byte:02x}")).collect(),
                    label: token.label,
                    writable: true,
                    shortest_pin,
                    other: None,
                };
                *lock(&self.known) = Some(row.clone());
                Ok(row)
            }
            Err(Error::Uninitialized { .. }) => {
                *lock(&self.known) = None;
                Ok(TokenRow { writable: true, shortest_pin, ..TokenRow::default() })
            }
            Err(error) => {
                let known = lock(&self.known).clone().filter(|_| self.link.bridge());
                known.ok_or(error)
            }
        }
    }
}

impl Store for PostgresStore {
    fn token(&self) -> ck::Result<TokenRow> {
        self.report(self.token_row())
    }

    fn initialize(&self, so_pin: &[u8], label: &str) -> ck::Result<()> {
        self.report(pin::initialize(self, so_pin, label))
    }

    fn login(&self, role: Role, pin: &[u8]) -> ck::Result<()> {
        let result = self.report(pin::login(self, role, pin));
        if result.is_ok() {
            counters::event(counters::Event::Login);
        }
        result
    }

    fn check_pin(&self, role: Role, pin: &[u8]) -> ck::Result<()> {
        self.report(pin::check(self, role, pin).map(drop))
    }

    fn login_as(&self, name: Name, pin: &[u8]) -> ck::Result<()> {
        let result = self.report(named::login(self, name, pin));
        if result.is_ok() {
            counters::event(counters::Event::Login);
        }
        result
    }

    fn check_pin_as(&self, name: Name, pin: &[u8]) -> ck::Result<()> {
        self.report(named::check(self, name, pin).map(drop))
    }

    fn set_pin_as(&self, name: Name, old: &[u8], new: &[u8]) -> ck::Result<()> {
        self.report(named::change(self, name, old, new))
    }

    fn incarnation(&self, name: Name) -> ck::Result<Option<u64>> {
        match nothing(self.incarnation_of(self.keys().as_deref(), name)) {
            // None of them is one that the officer has added.
            Err(Error::Tampered { .. }) => Ok(None),
            found => self.report(found),
        }
    }

    fn retry_at(&self, name: Option<Name>) -> ck::Result<u64> {
        match name {
            None => Ok(self.token()?.user.retry_at),
            Some(name) => self.report(nothing(named::retry_at(self, name))),
        }
    }

    fn share_login(&self) -> ck::Result<()> {
        let keys = self.keys().map(|keys| keys.unbound()).transpose();
        self.report(keys.map(|keys| self.set_keys(keys)))
    }

    fn logout(&self) {
        self.set_keys(None);
    }

    fn keeps_login(&self) -> bool {
        let Some(keys) = self.keys().filter(|keys| self.is_still_there(keys)) else {
            return false;
        };
        let now = self.link.generation();
        if now == Some(self.kept_login.load(Ordering::Relaxed)) {
            return true;
        }
        let read = self.link.open().and_then(|open| {
            let now = self.link.generation();
            Ok((now, Whole::read(&open)?.head.key_id))
        });
        match read {
            Ok((now, key)) => {
                if let Some(now) = now.filter(|_| key == keys.id()) {
                    self.kept_login.store(now, Ordering::Relaxed);
                }
                key == keys.id()
            }
            Err(error) => !matches!(error, Error::Uninitialized { .. }),
        }
    }

    fn init_pin(&self, pin: &[u8]) -> ck::Result<()> {
        self.report(pin::init_user(self, pin))
    }

    fn set_pin(&self, role: Role, old: &[u8], new: &[u8]) -> ck::Result<()> {
        self.report(pin::change(self, role, old, new))
    }

    fn write(&self, changes: Vec<Change>) -> ck::Result<Vec<u64>> {
        self.write_by(None, changes)
    }

    fn write_as(&self, identity: (Name, u64), changes: Vec<Change>) -> ck::Result<Vec<u64>> {
        self.write_by(Some(identity), changes)
    }

    fn read(&self, id: u64) -> ck::Result<Option<ObjectRow>> {
        let keys = self.report(self.current_keys())?;
        let row = nothing(self.row(keys.as_deref(), id));
        self.report(row.and_then(|row| {
            let opened = row.map(|row| elsewhere::open(&row, keys.as_deref(), id));
            Ok(opened.transpose()?.flatten())
        }))
    }

    fn secrets(&self, id: u64, version: u64) -> ck::Result<Secret> {
        let keys = self.current_keys();
        self.report(keys.and_then(|keys| {
            let keys = keys.ok_or(Error::NotLoggedIn)?;
            let row = self.row(Some(&keys), id)?.ok_or(Error::Gone { id })?;
            elsewhere::secrets(&row, &keys, id, version)
        }))
    }

    fn search(
        &self,
        query: &[Term],
        scope: Scope,
        after: u64,
        limit: usize,
    ) -> ck::Result<Vec<Found>> {
        let keys = match scope {
            // What is open is compared with what was written, where there is a login; a revoked one's keys do for that.
            Scope::Public => self.keys(),
            _ => self.report(self.current_keys())?,
        };
        let scope = match scope {
            Scope::Private if keys.is_none() => return Ok(Vec::new()),
            Scope::Both if keys.is_none() => Scope::Public,
            scope => scope,
        };
        self.report(nothing(self.find(keys.as_deref(), query, scope, after, limit)))
    }

    fn examine(
        &self,
        role: Role,
        pin: &[u8],
        what: Examination<'_>,
        remark: &mut dyn FnMut(Remark<'_>) -> bool,
    ) -> ck::Result<Examined> {
        match what {
            Examination::Look => self.report(table::look(self, role, pin, remark)),
            Examination::Rename(label) => self.report(pin::rename(self, (role, pin), label)),
            Examination::Remove(label) => self.report(pin::remove(self, (role, pin), label)),
            Examination::Backup(to) => self.report(table::save(self, (role, pin), to, remark)),
            Examination::Restore(from) => self.report(table::load(self, (role, pin), from, remark)),
            Examination::Identities(asked) => {
                self.report(named::administer(self, (role, pin), asked, remark))
            }
            Examination::Repair => {
                detail::set(format_args!(
                    "{}: a token in a database is not repaired: what can be read of it is copied",
                    self.config.address
                ));
                Err(ck::Error::FUNCTION_NOT_SUPPORTED)
            }
        }
    }

    fn restored(&self) -> ck::Result<u64> {
        let keys = self.current_keys();
        self.report(keys.and_then(|keys| {
            let keys = keys.ok_or(Error::NotLoggedIn)?;
            let open = self.link.open()?;
            elsewhere::restored(&keys, &Whole::read(&open)?.head)
        }))
    }

    fn generation(&self) -> Option<u64> {
        self.link.generation()
    }
}
