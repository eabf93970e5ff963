// SPDX-License-Identifier: Apache-2.0
//! The tables, which are those of `docs/format-keystore.md` with the token's number before each key, and who may do what with
//! them.

use crate::link::Open;
use metaslot_keystore::Error;
use std::path::Path;

/// The version that this release writes.
pub(crate) const FORMAT: i32 = 2;
/// The first that has identities.
pub(crate) const IDENTITIES: i32 = 2;

/// What each version brought, beginning with the first.
const STEPS: [&str; FORMAT as usize] = [
    "
CREATE SCHEMA metaslot;
CREATE TABLE metaslot.format(
    one boolean PRIMARY KEY DEFAULT true CHECK(one),
    version integer NOT NULL
);
INSERT INTO metaslot.format(version) VALUES(1);
CREATE TABLE metaslot.token(
    id integer PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    name text NOT NULL UNIQUE,
    generation bigint NOT NULL DEFAULT 1,
    serial bytea NOT NULL,
    label text NOT NULL,
    key_id bytea NOT NULL,
    so_wrap bytea NOT NULL,
    so_failures integer NOT NULL DEFAULT 0,
    so_failed_at bigint NOT NULL DEFAULT 0,
    user_wrap bytea,
    user_failures integer NOT NULL DEFAULT 0,
    user_failed_at bigint NOT NULL DEFAULT 0,
    next_id bigint NOT NULL,
    row_set bytea NOT NULL
);
CREATE TABLE metaslot.object(
    token integer NOT NULL REFERENCES metaslot.token ON DELETE CASCADE,
    id bigint NOT NULL,
    version bigint NOT NULL,
    private boolean NOT NULL,
    verified boolean NOT NULL,
    attributes bytea NOT NULL,
    secrets bytea,
    terms bytea NOT NULL,
    tag bytea,
    PRIMARY KEY(token, id)
);
CREATE INDEX object_private ON metaslot.object(token, private, id);
CREATE INDEX object_unverified ON metaslot.object(token) WHERE NOT verified;
CREATE TABLE metaslot.lookup(
    token integer NOT NULL REFERENCES metaslot.token ON DELETE CASCADE,
    value bytea NOT NULL,
    object bigint NOT NULL,
    PRIMARY KEY(token, value, object)
);
CREATE INDEX lookup_object ON metaslot.lookup(token, object);
CREATE TABLE metaslot.tree(
    token integer NOT NULL REFERENCES metaslot.token ON DELETE CASCADE,
    node bigint NOT NULL,
    entries bytea NOT NULL,
    PRIMARY KEY(token, node)
);
",
    "
CREATE TABLE metaslot.identity(
    token integer NOT NULL REFERENCES metaslot.token ON DELETE CASCADE,
    name text NOT NULL,
    incarnation bigint NOT NULL,
    wrap bytea NOT NULL,
    failures integer NOT NULL,
    failed_at bigint NOT NULL,
    PRIMARY KEY(token, name)
);
DO $$ BEGIN
    IF EXISTS(SELECT FROM pg_roles WHERE rolname = 'metaslot_use') THEN
        GRANT SELECT, UPDATE(failures, failed_at) ON metaslot.identity TO metaslot_use;
    END IF;
    IF EXISTS(SELECT FROM pg_roles WHERE rolname = 'metaslot_change') THEN
        GRANT INSERT, UPDATE, DELETE ON metaslot.identity TO metaslot_change;
    END IF;
END $$;
",
];

/// What roles need, to be given by who owns the schema: `metaslot_use` opens tokens and uses their objects, `metaslot_change` also
/// makes, changes and destroys these. Neither makes a token.
pub const ROLES: &str = "\
CREATE ROLE metaslot_use NOLOGIN;
GRANT USAGE ON SCHEMA metaslot TO metaslot_use;
GRANT SELECT ON ALL TABLES IN SCHEMA metaslot TO metaslot_use;
GRANT UPDATE(so_failures, so_failed_at, user_failures, user_failed_at) ON metaslot.token TO metaslot_use;
GRANT UPDATE(failures, failed_at) ON metaslot.identity TO metaslot_use;
CREATE ROLE metaslot_change NOLOGIN IN ROLE metaslot_use;
GRANT UPDATE ON metaslot.token TO metaslot_change;
GRANT INSERT, UPDATE, DELETE ON metaslot.object, metaslot.lookup, metaslot.tree, metaslot.identity TO metaslot_change;
";

/// Which version the tables have; `None` where there are none.
fn version(open: &Open<'_>) -> Result<Option<i32>, Error> {
    let there = "SELECT to_regclass('metaslot.format') IS NOT NULL";
    if !one::<bool>(open, there)? {
        return Ok(None);
    }
    one(open, "SELECT version FROM metaslot.format").map(Some)
}

fn one<T>(open: &Open<'_>, sql: &str) -> Result<T, Error>
where
    T: for<'a> tokio_postgres::types::FromSql<'a>,
{
    let rows = open.write(sql, &[])?;
    let value = rows.first().and_then(|row| row.try_get(0).ok());
    value.ok_or_else(|| Error::not_token("its tables are not those of a token"))
}

/// Makes the tables, or what they lack of the current version. The caller is in a transaction.
///
/// # Errors
/// [`Error::NewerFormat`], and what the database says: that this role may not, for example.
pub(crate) fn migrate(open: &Open<'_>, place: &Path) -> Result<(), Error> {
    // One at a time, also where there is no row yet that could be locked.
    open.write("SELECT pg_advisory_xact_lock(1297304660, 0)", &[])?;
    let found = version(open)?;
    found.map_or(Ok(()), |found| check(found, place))?;
    let found = found.unwrap_or(0);
    for step in STEPS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        open.run(step)?;
    }
    if found < FORMAT {
        open.write("UPDATE metaslot.format SET version = $1", &[&FORMAT])?;
    }
    Ok(())
}

/// Refuses tables of a later release, and such as no release has made.
pub(crate) fn check(found: i32, place: &Path) -> Result<(), Error> {
    let what = match found {
        1..=FORMAT => return Ok(()),
        ..1 => String::from("which no release has made"),
        _ => format!("newer than this release, which knows {FORMAT}; left untouched"),
    };
    let reason = format!("its tables are of version {found}, {what}");
    Err(Error::Database { path: place.to_owned(), reason })
}
