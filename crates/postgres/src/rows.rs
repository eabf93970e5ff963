// SPDX-License-Identifier: Apache-2.0
//! A token's tables: read by single statements, which see all of one moment, and changed within a transaction.

use crate::link::{Kept, Open};
use metaslot_keystore::Error;
use metaslot_keystore::elsewhere::{
    Head, Identities, Identity, PinRow, Rows, RowsMut, Stored, Token, path,
};
use metaslot_spi::store::{Found, Name};
use std::cell::RefCell;
use std::collections::BTreeMap;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, ToSql};

type Result<T> = std::result::Result<T, Error>;

/// The token's own row.
#[derive(Debug)]
pub(crate) struct Whole {
    /// Its number here.
    pub(crate) number: i32,
    pub(crate) token: Token,
    pub(crate) head: Head,
    /// The server's clock, in seconds since 1970.
    pub(crate) now: u64,
    pub(crate) generation: i64,
    /// Of the tables.
    pub(crate) version: i32,
}

/// The columns of [`Whole`].
const WHOLE: &str = "SELECT id, serial, label, key_id, so_wrap, so_failures, so_failed_at, user_wrap, user_failures, \
     user_failed_at, next_id, row_set, extract(epoch FROM clock_timestamp())::bigint, \
     (SELECT version FROM metaslot.format), generation
     FROM metaslot.token WHERE name = $1";

impl Whole {
    /// As it is committed.
    pub(crate) fn read(open: &Open<'_>) -> Result<Self> {
        Self::found(open, open.read(WHOLE, &[&open.name()])?)
    }

    /// Within a transaction, which no other writer is in until it ends.
    pub(crate) fn locked(open: &Open<'_>) -> Result<Self> {
        Self::found(open, open.write(&format!("{WHOLE} FOR UPDATE"), &[&open.name()])?)
    }

    /// Within a transaction of one moment.
    pub(crate) fn here(open: &Open<'_>) -> Result<Self> {
        Self::found(open, open.write(WHOLE, &[&open.name()])?)
    }

    fn found(open: &Open<'_>, rows: Vec<Row>) -> Result<Self> {
        let row = rows.first();
        let row = row.ok_or_else(|| Error::Uninitialized { path: open.place().to_owned() })?;
        let version = column(row, 13)?;
        crate::schema::check(version, open.place())?;
        let pin = |at: usize| -> Result<PinRow> {
            let failures: i32 = column(row, at + 1)?;
            let failures = u32::try_from(failures).map_err(|_| damaged())?;
            Ok(PinRow { wrap: column(row, at)?, failures, failed_at: number(row, at + 2)? })
        };
        let token = Token {
            serial: fixed(row, 1)?,
            label: column(row, 2)?,
            so: pin(4)?,
            user: pin(7)?,
            identities: Identities::default(),
        };
        let head =
            Head { key_id: fixed(row, 3)?, next_id: number(row, 10)?, state: column(row, 11)? };
        let (now, generation) = (number(row, 12)?, column(row, 14)?);
        Ok(Self { number: column(row, 0)?, token, head, now, generation, version })
    }

    /// With its identities, within the same transaction: only what compares the token with its state needs them.
    pub(crate) fn complete(self, open: &Open<'_>) -> Result<Self> {
        self.complete_by(|sql, with| open.write(sql, with))
    }

    /// The same, of a later moment: whether they are those of the token's state is to be seen.
    pub(crate) fn complete_later(self, open: &Open<'_>) -> Result<Self> {
        self.complete_by(|sql, with| open.read(sql, with))
    }

    fn complete_by(
        mut self,
        read: impl FnOnce(&str, &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>>,
    ) -> Result<Self> {
        if self.version >= crate::schema::IDENTITIES {
            let sql = "SELECT name, incarnation, wrap, failures, failed_at FROM metaslot.identity
                       WHERE token = $1 AND name <> ''";
            let rows = read(sql, &[&self.number])?;
            let all = rows.iter().map(|row| identity(row).ok());
            self.token.identities = Identities::new(all.collect());
        }
        Ok(self)
    }
}

fn identity(row: &Row) -> Result<Identity> {
    let name = Name::new(column::<&str>(row, 0)?.as_bytes()).ok_or_else(damaged)?;
    let failures = u32::try_from(column::<i32>(row, 3)?).map_err(|_| damaged())?;
    let pin = PinRow { wrap: Some(column(row, 2)?), failures, failed_at: number(row, 4)? };
    Ok(Identity { name, incarnation: column::<i64>(row, 1)?.cast_unsigned(), pin })
}

fn damaged() -> Error {
    Error::not_token("its own row is damaged")
}

fn column<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T> {
    row.try_get(at).map_err(|_| damaged())
}

fn number(row: &Row, at: usize) -> Result<u64> {
    u64::try_from(column::<i64>(row, at)?).map_err(|_| damaged())
}

fn fixed<const N: usize>(row: &Row, at: usize) -> Result<[u8; N]> {
    column::<&[u8]>(row, at)?.try_into().map_err(|_| damaged())
}

/// The database's integers are signed; ours never reach the sign.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The columns of an object's row, in the order in which [`stored`] reads them.
pub(crate) const OBJECT: &str =
    "o.version, o.private, o.verified, o.attributes, o.secrets, o.terms, o.tag";

/// An object's row, whose columns begin at `first`.
pub(crate) fn stored(row: &Row, first: usize, id: u64) -> Result<Stored> {
    let wrong = |_| Error::damaged(id, "a column has the wrong type");
    let version: i64 = row.try_get(first).map_err(wrong)?;
    let version = u64::try_from(version);
    Ok(Stored {
        version: version
            .map_err(|_| Error::damaged(id, "a column has a number that is never written"))?,
        private: row.try_get(first + 1).map_err(wrong)?,
        verified: row.try_get(first + 2).map_err(wrong)?,
        attributes: row.try_get(first + 3).map_err(wrong)?,
        secrets: row.try_get(first + 4).map_err(wrong)?,
        terms: row.try_get(first + 5).map_err(wrong)?,
        tag: row.try_get(first + 6).map_err(wrong)?,
    })
}

/// What is needed to read objects, all of one moment.
pub(crate) struct Picture {
    head: Head,
    /// Where one is damaged, why.
    rows: BTreeMap<u64, Result<Stored>>,
    nodes: BTreeMap<i64, Vec<u8>>,
}

impl Picture {
    /// Without a state only the row is of interest: no user is logged in.
    pub(crate) fn read(open: &Open<'_>, id: u64) -> Result<Self> {
        let sql = format!(
            "SELECT t.key_id, t.next_id, t.row_set,
                    (SELECT array_agg(n.node ORDER BY n.node) FROM metaslot.tree n
                      WHERE n.token = t.id AND n.node = ANY($3)),
                    (SELECT array_agg(n.entries ORDER BY n.node) FROM metaslot.tree n
                      WHERE n.token = t.id AND n.node = ANY($3)),
                    o.id, {OBJECT}
               FROM metaslot.token t LEFT JOIN metaslot.object o ON o.token = t.id AND o.id = $2
              WHERE t.name = $1"
        );
        let rows = open.read(&sql, &[&open.name(), &signed(id), &path(id)])?;
        if rows.is_empty() {
            return Err(Error::Uninitialized { path: open.place().to_owned() });
        }
        Self::of(&rows, 0)
    }

    /// Of what was read: from column `at` on the first of `rows` has the head, and each nodes that lead to objects, and after these
    /// an object's number and row.
    pub(crate) fn of(rows: &[Row], at: usize) -> Result<Self> {
        let mut picture = Self::with_head(rows, at)?;
        for row in rows {
            let numbers: Option<Vec<Option<i64>>> = column(row, at + 3)?;
            let entries: Option<Vec<Option<Vec<u8>>>> = column(row, at + 4)?;
            let both = numbers.into_iter().flatten().zip(entries.into_iter().flatten());
            picture.nodes.extend(both.filter_map(|(number, entries)| Some((number?, entries?))));
            let id: Option<i64> = column(row, at + 5)?;
            if let Some(id) = id.and_then(|id| u64::try_from(id).ok()) {
                picture.rows.insert(id, stored(row, at + 6, id));
            }
        }
        Ok(picture)
    }

    /// The same of rows that have all that shows them, each of the object that is found there: from column `at` on the head, the
    /// nodes of so many levels that lead to the object, and its row.
    pub(crate) fn of_each(rows: &[Row], at: usize, found: &[Found], levels: u8) -> Result<Self> {
        let mut picture = Self::with_head(rows, at)?;
        for (row, Found { id, .. }) in rows.iter().zip(found) {
            let mut at = at + 3;
            for number in path(*id).into_iter().take(usize::from(levels)) {
                let entries: Option<Vec<u8>> = column(row, at)?;
                picture.nodes.extend(entries.map(|entries| (number, entries)));
                at += 1;
            }
            let is_there = !matches!(row.try_get::<_, Option<i64>>(at), Ok(None));
            picture.rows.extend(is_there.then(|| (*id, stored(row, at, *id))));
        }
        Ok(picture)
    }

    fn with_head(rows: &[Row], at: usize) -> Result<Self> {
        let first = rows.first().ok_or_else(damaged)?;
        let head = Head {
            key_id: fixed(first, at)?,
            next_id: number(first, at + 1)?,
            state: column(first, at + 2)?,
        };
        Ok(Self { head, rows: BTreeMap::new(), nodes: BTreeMap::new() })
    }

    pub(crate) fn into_row(self) -> Result<Option<Stored>> {
        self.rows.into_values().next().transpose()
    }
}

impl Rows for Picture {
    fn head(&self) -> Result<Head> {
        Ok(self.head.clone())
    }

    fn stored(&self, id: u64) -> Result<Option<Stored>> {
        self.rows.get(&id).cloned().transpose()
    }

    fn node(&self, number: i64) -> Result<Option<Vec<u8>>> {
        Ok(self.nodes.get(&number).cloned())
    }
}

/// A transaction that has the token's row, and with it the turn among all writers.
pub(crate) struct Writing<'a> {
    pub(crate) open: &'a Open<'a>,
    pub(crate) number: i32,
    pub(crate) head: Head,
    /// The head as it was written.
    pub(crate) wrote: RefCell<Option<Head>>,
    added: RefCell<Added>,
}

/// What comes anew, to be written by one statement for each table.
#[derive(Default)]
struct Added {
    ids: Vec<i64>,
    rows: Vec<Stored>,
    values: Vec<Vec<u8>>,
    listed: Vec<i64>,
    nodes: BTreeMap<i64, Vec<u8>>,
    size: usize,
}

/// So many bytes are written at once, and some.
const AT_ONCE: usize = 1 << 20;
/// What a row has beside its attributes and secrets, in bytes, and some.
const ROW: usize = 512;

impl<'a> Writing<'a> {
    pub(crate) fn new(open: &'a Open<'a>, number: i32, head: Head) -> Self {
        Self { open, number, head, wrote: RefCell::default(), added: RefCell::default() }
    }

    /// Sends with the next statement what is to be added.
    pub(crate) fn flush(&self) {
        let Added { ids, rows, values, listed, nodes, .. } = self.added.take();
        if !ids.is_empty() {
            fn all<T: ToSql + Sync + 'static>(rows: &[Stored], of: impl Fn(&Stored) -> T) -> Kept {
                Box::new(rows.iter().map(of).collect::<Vec<T>>())
            }
            let sql = "INSERT INTO metaslot.object(token, id, version, private, verified, attributes, secrets, terms, tag)
                       SELECT $1, n.* FROM unnest($2::bigint[], $3::bigint[], $4::boolean[], $5::boolean[], $6::bytea[],
                                                  $7::bytea[], $8::bytea[], $9::bytea[]) n";
            self.execute(
                sql,
                vec![
                    Box::new(ids),
                    all(&rows, |row| signed(row.version)),
                    all(&rows, |row| row.private),
                    all(&rows, |row| row.verified),
                    all(&rows, |row| row.attributes.clone()),
                    all(&rows, |row| row.secrets.clone()),
                    all(&rows, |row| row.terms.clone()),
                    all(&rows, |row| row.tag.clone()),
                ],
            );
        }
        if !values.is_empty() {
            let sql = "INSERT INTO metaslot.lookup(token, value, object)
                       SELECT $1, n.* FROM unnest($2::bytea[], $3::bigint[]) n ON CONFLICT DO NOTHING";
            self.execute(sql, vec![Box::new(values), Box::new(listed)]);
        }
        if !nodes.is_empty() {
            let (numbers, entries): (Vec<i64>, Vec<Vec<u8>>) = nodes.into_iter().unzip();
            let sql = "INSERT INTO metaslot.tree(token, node, entries)
                       SELECT $1, n.* FROM unnest($2::bigint[], $3::bytea[]) n
                       ON CONFLICT(token, node) DO UPDATE SET entries = excluded.entries";
            self.execute(sql, vec![Box::new(numbers), Box::new(entries)]);
        }
    }

    fn add(&self, size: usize, what: impl FnOnce(&mut Added)) -> Result<()> {
        let is_full = {
            let mut added = self.added.borrow_mut();
            what(&mut added);
            added.size += size;
            added.size > AT_ONCE
        };
        if is_full {
            self.flush();
        }
        Ok(())
    }
}

impl Rows for Writing<'_> {
    fn head(&self) -> Result<Head> {
        Ok(self.head.clone())
    }

    fn stored(&self, id: u64) -> Result<Option<Stored>> {
        let Ok(signed) = i64::try_from(id) else { return Ok(None) };
        self.flush();
        let sql =
            format!("SELECT {OBJECT} FROM metaslot.object o WHERE o.token = $1 AND o.id = $2");
        let rows = self.open.write(&sql, &[&self.number, &signed])?;
        rows.first().map(|row| stored(row, 0, id)).transpose()
    }

    fn node(&self, number: i64) -> Result<Option<Vec<u8>>> {
        self.flush();
        let sql = "SELECT entries FROM metaslot.tree WHERE token = $1 AND node = $2";
        let rows = self.open.write(sql, &[&self.number, &number])?;
        rows.first().map(|row| column(row, 0)).transpose()
    }
}

impl Writing<'_> {
    fn execute(&self, sql: &str, more: Vec<Kept>) {
        let number: Kept = Box::new(self.number);
        self.open.later(sql, [number].into_iter().chain(more).collect());
    }

    /// A statement that goes after all before it.
    fn then(&self, sql: &str, more: Vec<Kept>) -> Result<()> {
        self.flush();
        self.execute(sql, more);
        Ok(())
    }
}

fn listed(values: &[[u8; 16]]) -> Vec<Vec<u8>> {
    values.iter().map(|value| value.to_vec()).collect()
}

impl RowsMut for Writing<'_> {
    fn insert(&self, id: u64, row: &Stored) -> Result<()> {
        let size = row.attributes.len() + row.secrets.as_ref().map_or(0, Vec::len) + ROW;
        self.add(size, |added| {
            added.ids.push(signed(id));
            added.rows.push(row.clone());
        })
    }

    fn update(&self, id: u64, row: &Stored) -> Result<()> {
        let sql =
            "UPDATE metaslot.object SET version = $3, private = $4, verified = $5, attributes = $6,
                          secrets = $7, terms = $8, tag = $9 WHERE token = $1 AND id = $2";
        self.then(
            sql,
            vec![
                Box::new(signed(id)),
                Box::new(signed(row.version)),
                Box::new(row.private),
                Box::new(row.verified),
                Box::new(row.attributes.clone()),
                Box::new(row.secrets.clone()),
                Box::new(row.terms.clone()),
                Box::new(row.tag.clone()),
            ],
        )
    }

    fn delete(&self, id: u64) -> Result<()> {
        let sql = "DELETE FROM metaslot.object WHERE token = $1 AND id = $2";
        self.then(sql, vec![Box::new(signed(id))])
    }

    fn list(&self, id: u64, values: &[[u8; 16]]) -> Result<()> {
        self.add(0, |added| {
            added.values.extend(listed(values));
            added.listed.extend(values.iter().map(|_| signed(id)));
        })
    }

    fn unlist(&self, id: u64, values: &[[u8; 16]]) -> Result<()> {
        let sql =
            "DELETE FROM metaslot.lookup WHERE token = $1 AND object = $2 AND value = ANY($3)";
        self.then(sql, vec![Box::new(signed(id)), Box::new(listed(values))])
    }

    fn write_node(&self, number: i64, entries: &[u8]) -> Result<()> {
        if entries.is_empty() {
            let sql = "DELETE FROM metaslot.tree WHERE token = $1 AND node = $2";
            return self.then(sql, vec![Box::new(number)]);
        }
        self.add(entries.len(), |added| _ = added.nodes.insert(number, entries.to_vec()))
    }

    fn write_head(&self, next_id: u64, state: Option<&[u8]>) -> Result<()> {
        let state_now = state.map_or_else(|| self.head.state.clone(), <[u8]>::to_vec);
        let head = Head { key_id: self.head.key_id, next_id, state: state_now };
        *self.wrote.borrow_mut() = Some(head);
        let sql =
            "UPDATE metaslot.token SET next_id = $2, row_set = coalesce($3, row_set) WHERE id = $1";
        self.then(sql, vec![Box::new(signed(next_id)), Box::new(state.map(<[u8]>::to_vec))])
    }
}
