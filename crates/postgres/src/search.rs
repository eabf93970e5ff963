// SPDX-License-Identifier: Apache-2.0
//! Finding rows by their index entries, without opening any.

use crate::link::Open;
use crate::open::Result;
use crate::rows::signed;
use metaslot_keystore::Error;
use metaslot_keystore::elsewhere::{Keys, values};
use metaslot_spi::store::{Found, Scope, Term};
use tokio_postgres::types::ToSql;

/// Rows above `after`, ascending, at most `limit`; private ones are named with `keys`.
pub(crate) fn search(
    open: &Open<'_>,
    keys: Option<&Keys>,
    query: &[Term],
    scope: Scope,
    (after, limit): (u64, usize),
) -> Result<Vec<Found>> {
    let mut named = Vec::with_capacity(2 * query.len());
    if scope != Scope::Private {
        named.extend(values(None, query)?);
    }
    if scope != Scope::Public {
        named.extend(values(keys, query)?);
    }
    let named: Vec<&[u8]> = named.iter().map(<[u8; 16]>::as_slice).collect();
    let (name, after) = (open.name(), signed(after));
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut with: Vec<&(dyn ToSql + Sync)> = vec![&name, &after, &limit];
    with.extend(named.iter().map(|value| value as &(dyn ToSql + Sync)));
    let mut found: Vec<Found> = Vec::new();
    for row in open.read(&statement(query.len(), scope), &with)? {
        let wrong = |_| Error::not_token("a search finds what is no object");
        let id: i64 = row.try_get(0).map_err(wrong)?;
        let id =
            u64::try_from(id).map_err(|_| Error::not_token("an object has a negative number"))?;
        if found.last().is_some_and(|last| last.id >= id) {
            return Err(Error::not_token("a search goes in circles"));
        }
        found.push(Found { id, private: row.try_get(1).map_err(wrong)? });
    }
    Ok(found)
}

/// The statement for so many terms: parameters 1 to 3 are the token's name, where to begin and how many, then come the values,
/// the public ones first.
fn statement(terms: usize, scope: Scope) -> String {
    let parts = match scope {
        Scope::Public => vec![part(terms, 0, Some(false))],
        Scope::Private => vec![part(terms, 0, Some(true))],
        Scope::Both if terms == 0 => vec![part(0, 0, None)],
        Scope::Both => vec![part(terms, 0, Some(false)), part(terms, terms, Some(true))],
    };
    // Each is in the order of its index, and read no further than it has to be.
    let parts = parts.iter().map(|part| format!("{part} ORDER BY 1 LIMIT $3"));
    match &*Vec::from_iter(parts) {
        [public, private] => format!("({public}) UNION ALL ({private}) ORDER BY 1 LIMIT $3"),
        parts => parts.concat(),
    }
}

const TOKEN: &str = "(SELECT id FROM metaslot.token WHERE name = $1)";

/// The rows of one kind, or of both; `before` values belong to the other.
fn part(terms: usize, before: usize, private: Option<bool>) -> String {
    if terms == 0 {
        let kind = private.map_or_else(String::new, |kind| format!(" AND private = {kind}"));
        return format!(
            "SELECT id, private FROM metaslot.object WHERE token = {TOKEN} AND id > $2{kind}"
        );
    }
    let first = before + 4;
    let others = (first + 1..first + terms).map(|at| {
        format!(
            " AND EXISTS(SELECT 1 FROM metaslot.lookup b
                          WHERE b.token = a.token AND b.value = ${at} AND b.object = a.object)"
        )
    });
    format!(
        "SELECT a.object, {} FROM metaslot.lookup a
           WHERE a.token = {TOKEN} AND a.value = ${first} AND a.object > $2{}",
        private == Some(true),
        others.collect::<String>()
    )
}
