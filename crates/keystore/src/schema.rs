// SPDX-License-Identifier: Apache-2.0
//! Tables, and the token's own row. `docs/format-keystore.md` describes every byte.

use crate::crypto::{KeyId, Serial};
use crate::error::{Error, Result};
use crate::format::{FORMAT, IDENTITIES, OLDEST};
use crate::identity::{Identities, Identity};
pub use crate::limit::PinRow;
use metaslot_spi::store::Name;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, ffi};
use std::time::{SystemTime, UNIX_EPOCH};

/// Everything, in one transaction.
pub(crate) const CREATE: &str = "
CREATE TABLE token(
    one INTEGER PRIMARY KEY CHECK(one = 1),
    serial BLOB NOT NULL,
    label TEXT NOT NULL,
    key_id BLOB NOT NULL,
    so_wrap BLOB NOT NULL,
    so_failures INTEGER NOT NULL,
    so_failed_at INTEGER NOT NULL,
    user_wrap BLOB,
    user_failures INTEGER NOT NULL,
    user_failed_at INTEGER NOT NULL,
    next_id INTEGER NOT NULL,
    row_set BLOB NOT NULL
);
CREATE TABLE object(
    id INTEGER PRIMARY KEY,
    version INTEGER NOT NULL,
    private INTEGER NOT NULL,
    verified INTEGER NOT NULL,
    attributes BLOB NOT NULL,
    secrets BLOB,
    terms BLOB NOT NULL,
    tag BLOB
);
CREATE INDEX object_private ON object(private);
CREATE TABLE lookup(
    value BLOB NOT NULL,
    object INTEGER NOT NULL,
    PRIMARY KEY(value, object)
) WITHOUT ROWID;
CREATE TABLE fast_login(
    owner INTEGER NOT NULL,
    role INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    wrap BLOB NOT NULL,
    PRIMARY KEY(owner, role)
) WITHOUT ROWID;
";

/// What came with version 2.
pub(crate) const CREATE_TREE: &str = "
CREATE TABLE tree(
    node INTEGER PRIMARY KEY,
    entries BLOB NOT NULL
);
";
/// Hardly ever has an entry: rows are counted without those that anybody may have written.
pub(crate) const CREATE_UNVERIFIED: &str =
    "CREATE INDEX object_unverified ON object(verified) WHERE verified = 0;";

/// What comes with the first identity, and version 3. The row without a name counts attempts at names that are not there.
pub(crate) const CREATE_IDENTITY: &str = "
CREATE TABLE identity(
    name TEXT PRIMARY KEY,
    incarnation INTEGER NOT NULL,
    wrap BLOB NOT NULL,
    failures INTEGER NOT NULL,
    failed_at INTEGER NOT NULL
) WITHOUT ROWID;
";

/// Refuses tables and indexes that are not defined as this release defines them: a constraint can make
/// writes vanish, an index of an expression can make them take for ever.
pub(crate) fn check(connection: &Connection, version: i64) -> Result<()> {
    let made = |parts: &[&'static str]| -> Vec<&'static str> {
        let statements = parts.iter().flat_map(|part| part.split(';')).map(str::trim);
        statements.filter(|statement| !statement.is_empty()).collect()
    };
    let all = [CREATE, CREATE_TREE, CREATE_UNVERIFIED, CREATE_IDENTITY];
    let known = made(&all);
    let needed = match version {
        OLDEST => made(&all[..1]).len(),
        FORMAT => made(&all[..3]).len(),
        _ => known.len(),
    };
    let mut found = connection.prepare_cached(
        "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND type IN ('table', 'index')
         AND lower(tbl_name) IN ('token', 'object', 'lookup', 'fast_login', 'tree', 'identity')",
    )?;
    let found = found.query_map((), |row| row.get(0))?;
    let found: Vec<String> = found.collect::<rusqlite::Result<_>>()?;
    match found.len() >= needed && found.iter().all(|sql| known.contains(&sql.as_str())) {
        true => Ok(()),
        false => Err(Error::not_token("its tables or indexes are not those that were made")),
    }
}

/// Whether there is nothing in the database.
pub(crate) fn is_empty(connection: &Connection) -> Result<bool> {
    let any = "SELECT NOT EXISTS(SELECT 1 FROM sqlite_schema)";
    Ok(connection.query_row(any, (), |row| row.get(0))?)
}

/// The token's own row.
#[derive(Clone, Debug)]
pub struct Token {
    /// Its serial number.
    pub serial: Serial,
    /// UTF-8, without padding.
    pub label: String,
    /// The officer's PIN.
    pub so: PinRow,
    /// The user's.
    pub user: PinRow,
    /// Its identities.
    pub identities: Identities,
}

impl Token {
    /// `None` where there is no row; SQLite's error for a damaged one.
    pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Option<Self>> {
        let mut statement = connection.prepare_cached(
            "SELECT serial, label, so_wrap, so_failures, so_failed_at,
                    user_wrap, user_failures, user_failed_at FROM token",
        )?;
        statement
            .query_row((), |row| {
                let pin = |at| -> rusqlite::Result<PinRow> {
                    Ok(PinRow {
                        wrap: row.get(at)?,
                        failures: row.get(at + 1)?,
                        failed_at: unsigned(row, at + 2)?,
                    })
                };
                Ok(Self {
                    serial: row.get(0)?,
                    label: row.get(1)?,
                    so: pin(2)?,
                    user: pin(5)?,
                    identities: identities(connection)?,
                })
            })
            .optional()
    }
}

/// Those of the token; none where the format has none yet. A row that is no identity's shows in the state.
fn identities(connection: &Connection) -> rusqlite::Result<Identities> {
    let version: i64 =
        connection.prepare_cached("PRAGMA user_version")?.query_row((), |row| row.get(0))?;
    if version < IDENTITIES {
        return Ok(Identities::default());
    }
    let mut statement = connection.prepare_cached(
        "SELECT name, incarnation, wrap, failures, failed_at FROM identity WHERE name != ''",
    )?;
    let all = statement.query_map((), |row| Ok(identity(row).ok()))?;
    Ok(Identities::new(all.collect::<rusqlite::Result<_>>()?))
}

fn identity(row: &Row<'_>) -> rusqlite::Result<Identity> {
    let name = Name::new(row.get_ref(0)?.as_str()?.as_bytes());
    let name = name.ok_or(rusqlite::Error::InvalidQuery)?;
    let (failures, failed_at) = (row.get(3)?, unsigned(row, 4)?);
    let pin = PinRow { wrap: Some(row.get(2)?), failures, failed_at };
    Ok(Identity { name, incarnation: row.get::<_, i64>(1)?.cast_unsigned(), pin })
}

/// The part of the token's row that every change of an object needs.
#[derive(Clone, Debug)]
pub struct Head {
    /// The name of the master key.
    pub key_id: KeyId,
    /// The number of the next object.
    pub next_id: u64,
    /// The authenticated state, as it is stored.
    pub state: Vec<u8>,
}

impl Head {
    pub(crate) fn read(connection: &Connection) -> rusqlite::Result<Self> {
        connection
            .prepare_cached("SELECT key_id, next_id, row_set FROM token")?
            .query_row((), Self::from_row)
    }

    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self { key_id: row.get(0)?, next_id: unsigned(row, 1)?, state: row.get(2)? })
    }
}

/// An object's row as it is stored.
#[derive(Clone, Debug)]
pub struct Stored {
    /// Goes up with every change.
    pub version: u64,
    /// Whether the attributes are sealed.
    pub private: bool,
    /// Whether it was written after a login.
    pub verified: bool,
    /// Plain or sealed.
    pub attributes: Vec<u8>,
    /// Sealed.
    pub secrets: Option<Vec<u8>>,
    /// The row's values in the index, sorted, 16 bytes each.
    pub terms: Vec<u8>,
    /// The MAC over the row, where it is verified.
    pub tag: Option<Vec<u8>>,
}

impl Stored {
    /// The columns that [`Self::from_row`] reads, beginning at `first`.
    pub(crate) fn from_row(row: &Row<'_>, first: usize) -> rusqlite::Result<Self> {
        Ok(Self {
            version: unsigned(row, first)?,
            private: flag(row, first + 1)?,
            verified: flag(row, first + 2)?,
            attributes: blob(row, first + 3)?,
            secrets: match row.get_ref(first + 4)? {
                ValueRef::Null => None,
                _ => Some(blob(row, first + 4)?),
            },
            terms: row.get(first + 5)?,
            tag: row.get(first + 6)?,
        })
    }

    pub(crate) fn read(connection: &Connection, id: u64) -> Result<Option<Self>> {
        let Ok(number) = i64::try_from(id) else { return Ok(None) };
        connection
            .prepare_cached(
                "SELECT version, private, verified, attributes, secrets, terms, tag
                 FROM object WHERE id = ?1",
            )?
            .query_row([number], |row| Self::from_row(row, 0))
            .optional()
            .map_err(|error| of_row(id, error))
    }
}

/// The token's part and an object's row, of one moment.
pub(crate) fn read_together(connection: &Connection, id: u64) -> Result<(Head, Option<Stored>)> {
    let mut statement = connection.prepare_cached(
        "SELECT key_id, next_id, row_set,
                id, version, private, verified, attributes, secrets, terms, tag
         FROM token LEFT JOIN object ON id = ?1",
    )?;
    let parts = statement.query_row([i64::try_from(id).ok()], |row| {
        let stored = match row.get_ref(3)? {
            ValueRef::Null => Ok(None),
            _ => Stored::from_row(row, 4).map(Some),
        };
        Ok((Head::from_row(row), stored))
    });
    let (head, row) = parts.map_err(|error| of_row(id, error))?;
    Ok((head?, row.map_err(|error| of_row(id, error))?))
}

/// A row that is not one of ours is damaged; it is not the database's fault.
fn of_row(id: u64, error: rusqlite::Error) -> Error {
    match error {
        rusqlite::Error::InvalidColumnType(..) | rusqlite::Error::FromSqlConversionFailure(..) => {
            Error::damaged(id, "a column has the wrong type")
        }
        rusqlite::Error::IntegralValueOutOfRange(..) => {
            Error::damaged(id, "a column has a number that is never written")
        }
        error if error.sqlite_error_code() == Some(ErrorCode::TooBig) => {
            Error::damaged(id, "it is too long")
        }
        error => error.into(),
    }
}

/// Bytes that may be many.
fn blob(row: &Row<'_>, at: usize) -> rusqlite::Result<Vec<u8>> {
    let bytes = row.get_ref(at)?.as_blob()?;
    let mut copy = Vec::new();
    let no_memory = |_| rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_NOMEM), None);
    copy.try_reserve_exact(bytes.len()).map_err(no_memory)?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

/// Now, in seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// 0 or 1: another number is as true to SQLite, and is not what was authenticated.
fn flag(row: &Row<'_>, at: usize) -> rusqlite::Result<bool> {
    match row.get(at)? {
        0 => Ok(false),
        1 => Ok(true),
        number => Err(rusqlite::Error::IntegralValueOutOfRange(at, number)),
    }
}

/// SQLite's integers are signed; ours never reach the sign.
pub(crate) fn unsigned(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    let number: i64 = row.get(at)?;
    u64::try_from(number).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(at, number))
}

/// The other way.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
