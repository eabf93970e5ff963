// SPDX-License-Identifier: Apache-2.0
//! Looking at every row: is it as it was last written, is it found, and are these all of them? And
//! taking out what is not.

use crate::apply;
use crate::crypto::{KeyId, Keys, LOOKUP};
use crate::error::{Error, Result};
use crate::format::{FORMAT, IDENTITIES};
use crate::open::SqliteStore;
use crate::schema::{Head, Stored, Token, signed, unsigned};
use crate::search::MOVED;
use crate::state::{Difference, State};
use crate::tree::{self, Entry, Tree};
use crate::v1::{self, BATCH};
use metaslot_spi::Attributes;
use metaslot_spi::store::{Examined, Remark, Role};
use rusqlite::{Connection, OptionalExtension, Rows};

/// What [`SqliteStore::verify`] found.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Report {
    /// How many there are of what.
    pub examined: Examined,
    /// What is wrong, and with which row; with `None` it is the token as a whole.
    pub findings: Vec<(Option<u64>, String)>,
}

impl Report {
    /// Whether nothing is wrong.
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        self.findings.is_empty()
    }
}

impl SqliteStore {
    /// Checks the whole token. Needs a login; other processes may go on working.
    ///
    /// # Errors
    /// [`Error::NotLoggedIn`]; [`Error::Database`] where the file cannot be read.
    pub fn verify(&self) -> std::result::Result<Report, Error> {
        let keys = self.current_keys()?.ok_or(Error::NotLoggedIn)?;
        let mut findings = Vec::new();
        let mut collect = |remark: Remark<'_>| {
            if let Remark::Finding { id, what } = remark {
                findings.push((id, what.to_owned()));
            }
            true
        };
        let examined = self.gate.read(|database| {
            database.snapshot(|connection| {
                let mut survey = Survey::new(connection, &keys, &mut collect);
                survey.run()?;
                Ok(survey.seen)
            })
        })?;
        Ok(Report { examined, findings })
    }
}

/// [`metaslot_spi::store::Store::examine`]
pub(crate) fn examine(
    store: &SqliteStore,
    role: Role,
    pin: &[u8],
    repair: bool,
    remark: &mut dyn FnMut(Remark<'_>) -> bool,
) -> Result<Examined> {
    Ok(examine_by(store, role, pin, repair, remark)?.0)
}

/// The same, with the keys that the PIN opens.
pub(crate) fn examine_by(
    store: &SqliteStore,
    role: Role,
    pin: &[u8],
    repair: bool,
    remark: &mut dyn FnMut(Remark<'_>) -> bool,
) -> Result<(Examined, Keys)> {
    let mut keys = crate::pin::keys(store, role, pin)?;
    let mut tried = None;
    loop {
        match look(store, &keys, tried, repair, remark) {
            Err(Error::NotLoggedIn) => tried = Some(keys.id),
            done => return done.map(|seen| (seen, keys)),
        }
        keys = crate::pin::keys(store, role, pin)?;
    }
}

/// One look with these keys.
///
/// # Errors
/// [`Error::NotLoggedIn`] where the token was made anew since the PIN opened them: unless it has opened the same ones
/// again, so that somebody has changed the token's row.
fn look(
    store: &SqliteStore,
    keys: &Keys,
    tried: Option<KeyId>,
    repair: bool,
    remark: &mut dyn FnMut(Remark<'_>) -> bool,
) -> Result<Examined> {
    match store.upgrade(keys) {
        // The survey says what is wrong.
        Ok(()) | Err(Error::Tampered { .. }) => {}
        Err(error) => return Err(error),
    }
    let aged = match store.advance_anchor(keys) {
        Ok(()) => None,
        Err(Error::Tampered { reason, .. }) => Some(reason),
        Err(error) => return Err(error),
    };
    if !repair {
        return store.gate.read(|database| {
            database.snapshot(|connection| {
                check_keys(connection, keys, tried)?;
                let mut survey = Survey::new(connection, keys, remark);
                survey.anchor(aged)?;
                survey.run()?;
                Ok(survey.seen)
            })
        });
    }
    store.transact_sealed(keys, |database| {
        check_keys(&database.connection, keys, tried)?;
        let mut survey = Survey::new(&database.connection, keys, remark);
        survey.anchor(aged)?;
        survey.run()?;
        if survey.seen.findings > 0 {
            survey.mend()?;
        }
        Ok(survey.seen)
    })
}

/// See [`look`].
fn check_keys(connection: &Connection, keys: &Keys, tried: Option<KeyId>) -> Result<()> {
    let head = Head::read(connection)?;
    let is_anew = head.key_id != keys.id && State::open(keys, &head.state).is_err();
    if is_anew && tried != Some(keys.id) { Err(Error::NotLoggedIn) } else { Ok(()) }
}

const NUMBERLESS: &str = "SELECT EXISTS(SELECT 1 FROM object WHERE id < 1)";

/// One look at everything, within one transaction, so that all is of one moment.
struct Survey<'a> {
    connection: &'a Connection,
    keys: &'a Keys,
    remark: &'a mut dyn FnMut(Remark<'_>) -> bool,
    seen: Examined,
    total: u64,
    /// The number of the next object: there is none from here on.
    next_id: u64,
    /// What the token's row says, where it is to be believed.
    state: Option<State>,
    /// The same, of a store of an older format that could not be made the current one.
    old: Option<State>,
    /// Why the token's row cannot be mended, and what helps.
    hopeless: Option<String>,
    /// Where it is not known which rows there should be.
    unknown: Vec<(u64, u64)>,
    /// Rows that must go.
    damaged: Vec<u64>,
    misindexed: bool,
}

impl<'a> Survey<'a> {
    fn new(
        connection: &'a Connection,
        keys: &'a Keys,
        remark: &'a mut dyn FnMut(Remark<'_>) -> bool,
    ) -> Self {
        Self {
            connection,
            keys,
            remark,
            seen: Examined::default(),
            total: 0,
            next_id: u64::MAX,
            state: None,
            old: None,
            hopeless: None,
            unknown: Vec::new(),
            damaged: Vec::new(),
            misindexed: false,
        }
    }

    /// What its anchor says of the token.
    fn anchor(&mut self, aged: Option<String>) -> Result<()> {
        let Some(reason) = aged else { return Ok(()) };
        self.find(None, &reason)?;
        self.hopeless = Some(reason);
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        let connection = self.connection;
        self.total = count(connection, "object")?;
        self.token()?;
        if let Some(state) = &self.state {
            self.next_id = ids_end(state, &Head::read(connection)?);
        }
        let tree = self.state.as_ref().map(State::tree);
        let mut statement = connection.prepare("SELECT id FROM object WHERE id > 0 ORDER BY id")?;
        if connection.query_row(NUMBERLESS, (), |row| row.get(0))? {
            self.find(None, "there are rows whose numbers no object has")?;
        }
        let mut rows = Ahead::new(statement.query(())?)?;
        if let Some(tree) = tree {
            tree.visit(connection, self.keys, &mut |found| match found {
                tree::Found::Row(id, entry) => self.expected(&mut rows, id, entry),
                tree::Found::Damage(from, to) => {
                    self.unknown.push((from, to));
                    let what = format!(
                        "the hashes of objects {from} to {to} were changed or are damaged: they may \
                         be older than the last"
                    );
                    self.find(None, &what)
                }
            })?;
        } else {
            self.unknown.push((0, u64::MAX));
        }
        while rows.next.is_some() {
            self.unexpected(&mut rows)?;
        }
        self.index()?;
        self.progress()
    }

    /// The token's own row.
    fn token(&mut self) -> Result<()> {
        let head = Head::read(self.connection)?;
        let token = Token::read(self.connection)?;
        let token = token.ok_or_else(|| Error::not_token("its own row is missing"))?;
        let version: i64 =
            self.connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version < FORMAT {
            match v1::state(self.connection, self.keys) {
                Ok(state) => self.old = Some(state),
                Err(Error::Tampered { reason, .. }) => {
                    self.find(None, &reason)?;
                    self.hopeless = Some(replace_it(&reason));
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
            return self.find(None, v1::OTHER_ROWS);
        }
        let state = match State::open(self.keys, &head.state) {
            Ok(state) => state,
            Err(Error::Tampered { reason, .. }) => {
                self.find(None, &reason)?;
                self.hopeless = Some(replace_it(&reason));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if head.key_id != self.keys.id {
            self.find(None, "the name of its key was changed")?;
        }
        for difference in state.differences(&token, &head) {
            match difference {
                Difference::Label => {
                    let label = &token.label;
                    let kept =
                        format!("its label was changed; a repair keeps the new one, {label:?}");
                    self.find(None, &kept)?;
                }
                difference => self.find(None, difference.sentence())?,
            }
        }
        if !(state.has_wrap(&token, Role::So) && state.has_wrap(&token, self.keys.role)) {
            self.hopeless = Some(replace_it("a PIN is not the one that was last set"));
        }
        self.state = Some(state);
        Ok(())
    }

    /// The row that should come next.
    fn expected(&mut self, rows: &mut Ahead<'_>, id: u64, entry: Entry) -> Result<()> {
        while rows.next.is_some_and(|next| next < id) {
            self.unexpected(rows)?;
        }
        match rows.next == Some(id) {
            true => self.row(rows, Some(entry)),
            false => self.find(Some(id), apply::TAKEN_OUT),
        }
    }

    /// A row of which the tree knows nothing.
    fn unexpected(&mut self, rows: &mut Ahead<'_>) -> Result<()> {
        self.row(rows, None)
    }

    fn row(&mut self, rows: &mut Ahead<'_>, expected: Option<Entry>) -> Result<()> {
        let Some(id) = rows.take()? else { return Ok(()) };
        self.seen.rows += 1;
        if self.seen.rows.is_multiple_of(BATCH) {
            self.progress()?;
        }
        let row = match Stored::read(self.connection, id) {
            Ok(Some(row)) => row,
            Ok(None) => {
                return self
                    .find(Some(id), "its pages are damaged: its number does not lead to it");
            }
            Err(Error::Damaged { reason, .. }) => {
                self.damaged.push(id);
                return self.find(Some(id), reason);
            }
            Err(error) => return Err(error),
        };
        if id >= self.next_id {
            self.damaged.push(id);
            return self.find(Some(id), "no object has its number yet");
        }
        self.seen.unverified += u64::from(!row.verified);
        let is_known = !self.unknown.iter().any(|(from, to)| (*from..=*to).contains(&id));
        let checked = check_row(self.keys, id, &row).and_then(|()| match is_known {
            true => apply::compare(id, Some(&row), expected),
            false => Ok(()),
        });
        match checked {
            Ok(()) if indexed(self.connection, id, &row)? => Ok(()),
            Ok(()) => {
                self.misindexed = true;
                self.find(Some(id), "a search does not find it by all that it has")
            }
            Err(Error::Damaged { reason, .. }) => {
                self.damaged.push(id);
                self.find(Some(id), reason)
            }
            Err(error) => Err(error),
        }
    }

    /// Entries of the index that no row has.
    fn index(&mut self) -> Result<()> {
        let mut statement = self.connection.prepare(
            "SELECT sum(length(terms)) FROM object UNION ALL SELECT count(*) FROM lookup",
        )?;
        let counts: Vec<Option<u64>> = statement
            .query_map((), |row| row.get::<_, Option<i64>>(0))?
            .map(|count| Ok(count?.and_then(|count| u64::try_from(count).ok())))
            .collect::<Result<_>>()?;
        let [terms, entries] = counts[..] else { return Ok(()) };
        if terms.unwrap_or(0) == entries.unwrap_or(0) * LOOKUP as u64 && !self.misindexed {
            return Ok(());
        }
        let known = std::mem::replace(&mut self.misindexed, true);
        let strangers = strangers(self.connection)?;
        for id in &strangers {
            // The damaged ones are in the order of their numbers, too.
            if self.damaged.binary_search(id).is_err() {
                self.find(Some(*id), MOVED)?;
            }
        }
        if !known && strangers.is_empty() {
            self.find(None, "its index was changed")?;
        }
        Ok(())
    }

    fn find(&mut self, id: Option<u64>, what: &str) -> Result<()> {
        self.seen.findings += 1;
        self.tell(Remark::Finding { id, what })
    }

    fn progress(&mut self) -> Result<()> {
        self.tell(Remark::Progress { done: self.seen.rows, total: self.total })
    }

    /// Goes on only where the caller says so.
    fn tell(&mut self, remark: Remark<'_>) -> Result<()> {
        match (self.remark)(remark) {
            true => Ok(()),
            false => Err(Error::Canceled),
        }
    }

    /// Takes out what is damaged, and has the token's row say what is there. Where a PIN may have
    /// been put back nothing is mended: anyone who knew it would be let in for good.
    fn mend(&mut self) -> Result<()> {
        let connection = self.connection;
        if self.old.is_some() {
            v1::create(connection)?;
        }
        let state = self.state.take().or_else(|| self.old.take());
        let Some(mut state) = state.filter(|_| self.hopeless.is_none()) else {
            return Err(Error::tampered(&self.hopeless.take().unwrap_or_default()));
        };
        connection.execute("DELETE FROM object WHERE id < 1", ())?;
        for id in &self.damaged {
            self.seen.removed += connection
                .prepare_cached("DELETE FROM object WHERE id = ?1")?
                .execute([signed(*id)])? as u64;
        }
        if self.misindexed || !self.damaged.is_empty() {
            reindex(connection)?;
        }
        connection
            .execute_batch("DELETE FROM tree; REINDEX object_private; REINDEX object_unverified")?;
        let head = Head::read(connection)?;
        let (tree, count, last) = plant(connection, self.keys)?;
        state.plant(&tree);
        state.count = count;
        if !self.unknown.is_empty() {
            state.doubt_counts()?;
        }
        state.next_id = ids_end(&state, &head).max(last + 1);
        let token = Token::read(connection)?;
        let there = token.as_ref().map(|token| crate::state::identities(&token.identities));
        let is_changed = state.identities != there.unwrap_or_default();
        if forget_identities(connection, is_changed)? {
            state.identities = crate::state::Digest::default();
        }
        state.label = crate::state::name(token.as_ref().map(|token| token.label.as_bytes()));
        connection.execute("UPDATE token SET key_id = ?1", [self.keys.id])?;
        state.write_next(connection, self.keys).map(drop)
    }
}

/// Takes identities out where they were changed: which of them is another's doing is not known. Their table goes from a store that
/// says that it has none, where the first one would make it.
fn forget_identities(connection: &Connection, is_changed: bool) -> Result<bool> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version < IDENTITIES {
        connection.execute_batch("DROP TABLE IF EXISTS identity")?;
    } else if is_changed {
        connection.execute("DELETE FROM identity WHERE name != ''", ())?;
    }
    Ok(is_changed)
}

fn replace_it(reason: &str) -> String {
    format!("{reason}: it cannot be repaired, only replaced by a copy or initialised anew")
}

/// The tree of the authenticated rows, how many there are, and the last id of all.
fn plant(connection: &Connection, keys: &Keys) -> Result<(Tree, u64, u64)> {
    let mut tree = Tree::empty();
    let (mut count, mut last) = (0_u64, 0);
    let mut statement =
        connection.prepare("SELECT id, CASE WHEN verified THEN tag END FROM object ORDER BY id")?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        last = unsigned(row, 0)?;
        let Some(tag) = row.get::<_, Option<Vec<u8>>>(1)? else { continue };
        tree.set(connection, keys, last, Some(tree::entry(&tag)?))?;
        count += 1;
        if count.is_multiple_of(BATCH) {
            tree.finish(connection, keys)?;
            tree.forget_below(last);
        }
    }
    tree.finish(connection, keys)?;
    Ok((tree, count, last))
}

/// Where the numbers of objects end: what the column says, where it can have come from the state.
fn ids_end(state: &State, head: &Head) -> u64 {
    if state.has_ids(head.next_id) { head.next_id } else { state.next_id }
}

/// Ids in their order, read one ahead.
struct Ahead<'a> {
    ids: Rows<'a>,
    next: Option<u64>,
}

impl<'a> Ahead<'a> {
    fn new(ids: Rows<'a>) -> Result<Self> {
        let mut ahead = Self { ids, next: None };
        ahead.take()?;
        Ok(ahead)
    }

    fn take(&mut self) -> Result<Option<u64>> {
        let next = self.ids.next()?.map(|row| unsigned(row, 0)).transpose()?;
        if next.is_some() && next <= self.next {
            return Err(Error::not_token("its pages are damaged: rows come twice"));
        }
        Ok(std::mem::replace(&mut self.next, next))
    }
}

pub(crate) fn check_row(keys: &Keys, id: u64, row: &Stored) -> Result<()> {
    apply::check(keys, id, row)?;
    if !row.verified && Attributes::decode(&row.attributes).is_err() {
        return Err(Error::damaged(id, "its attributes are not written as attributes are"));
    }
    let place = apply::place(keys, id, row);
    if row.private && keys.open_attributes(&place, &row.attributes)?.is_none() {
        return Err(Error::damaged(id, "its attributes do not open"));
    }
    if let Some(sealed) = &row.secrets
        && keys.open_secrets(&place, &row.attributes, sealed)?.is_none()
    {
        return Err(Error::damaged(id, "its secrets do not open"));
    }
    Ok(())
}

/// Whether every entry of the row is in the index.
fn indexed(connection: &Connection, id: u64, row: &Stored) -> Result<bool> {
    let mut statement = connection
        .prepare_cached("SELECT EXISTS(SELECT 1 FROM lookup WHERE value = ?1 AND object = ?2)")?;
    for value in row.terms.chunks(LOOKUP) {
        if !statement.query_row((value, signed(id)), |row| row.get::<_, bool>(0))? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn count(connection: &Connection, table: &str) -> Result<u64> {
    let statement = format!("SELECT count(*) FROM {table}");
    Ok(connection.query_row(&statement, (), |row| unsigned(row, 0))?)
}

/// Rows with entries in the index that they do not have themselves.
fn strangers(connection: &Connection) -> Result<Vec<u64>> {
    let mut found = Vec::new();
    let mut entries = connection.prepare(
        "SELECT value, object FROM lookup
         WHERE typeof(value) = 'blob' AND typeof(object) = 'integer' AND object > 0 ORDER BY object",
    )?;
    let mut of_row =
        connection.prepare("SELECT terms FROM object WHERE id = ?1 AND typeof(terms) = 'blob'")?;
    let (mut last, mut terms) = (0, Vec::new());
    let mut entries = entries.query(())?;
    while let Some(entry) = entries.next()? {
        let (value, id): (Vec<u8>, u64) = (entry.get(0)?, unsigned(entry, 1)?);
        if id != last {
            let row = of_row.query_row([signed(id)], |row| row.get(0)).optional()?;
            (last, terms) = (id, row.unwrap_or_default());
        }
        if found.last() != Some(&id) && !terms.chunks(LOOKUP).any(|term| term == value) {
            found.push(id);
        }
    }
    Ok(found)
}

/// Makes the index that of the rows.
fn reindex(connection: &Connection) -> Result<()> {
    connection.execute("DELETE FROM lookup", ())?;
    let mut insert =
        connection.prepare("INSERT OR IGNORE INTO lookup(value, object) VALUES(?1, ?2)")?;
    let mut statement = connection.prepare("SELECT id, terms FROM object")?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        let (id, terms): (u64, Vec<u8>) = (unsigned(row, 0)?, row.get(1)?);
        for value in terms.chunks(LOOKUP) {
            insert.execute((value, signed(id)))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kdf::{Cost, Kdf};
    use crate::open::Config;
    use metaslot_spi::store::Store;
    use std::cell::Cell;

    #[test]
    fn a_token_that_is_made_anew_meanwhile_is_not_taken_for_a_changed_one() {
        let name = format!("metaslot-keystore-{}-anew", std::process::id());
        let place = std::env::temp_dir().join(name);
        let kdf = Cost::Fixed(Kdf::Argon2id { memory_kib: 64, passes: 1, lanes: 1 });
        let [mine, other] =
            [(); 2].map(|()| SqliteStore::new(Config { kdf, ..Config::new(place.join("db")) }));
        mine.initialize(b"so-pin-1", "first").expect("it is made");
        let keys = crate::pin::keys(&mine, Role::So, b"so-pin-1").expect("the PIN is right");
        other.initialize(b"so-pin-1", "second").expect("it is made anew");
        let findings = Cell::new(0);
        let mut remark = |remark: Remark<'_>| {
            findings.update(|count| count + u32::from(matches!(remark, Remark::Finding { .. })));
            true
        };
        for repair in [false, true] {
            let looked = look(&mine, &keys, None, repair, &mut remark);
            assert_eq!(looked.map(|seen| seen.rows), Err(Error::NotLoggedIn));
            examine(&mine, Role::So, b"so-pin-1", repair, &mut remark).expect("it is another");
        }
        assert_eq!(findings.get(), 0);
        look(&mine, &keys, Some(keys.id), false, &mut remark).expect("it is said what is wrong");
        std::fs::remove_dir_all(&place).expect("it goes");
        assert!(findings.get() > 0, "keys that the PIN opens twice are the token's");
    }
}
