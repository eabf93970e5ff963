// SPDX-License-Identifier: Apache-2.0
//! Finding rows by their index entries, without opening any.

use crate::link::Open;
use crate::open::Result;
use crate::rows::{OBJECT, Picture, signed};
use metaslot_counters as counters;
use metaslot_keystore::Error;
use metaslot_keystore::elsewhere::{Keys, Stored, authentic, values};
use metaslot_spi::store::{Found, Scope, Term};
use tokio_postgres::types::ToSql;

/// Rows above `after`, ascending, at most `limit`; private ones are named with `keys`. With keys comes what shows that they have
/// what was asked for, where anything was and is found.
pub(crate) fn search(
    open: &Open<'_>,
    keys: Option<&Keys>,
    query: &[Term],
    scope: Scope,
    (after, limit): (u64, usize),
) -> Result<(Vec<Found>, Option<Picture>)> {
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
    let is_shown = keys.is_some() && !query.is_empty();
    let statement = statement(query.len(), scope);
    let statement = if is_shown { shown(&statement) } else { statement };
    let rows = open.read(&statement, &with)?;
    let mut found: Vec<Found> = Vec::with_capacity(rows.len());
    for row in &rows {
        let wrong = |_| Error::not_token("a search finds what is no object");
        let id: i64 = row.try_get(0).map_err(wrong)?;
        let id =
            u64::try_from(id).map_err(|_| Error::not_token("an object has a negative number"))?;
        if found.last().is_some_and(|last| last.id >= id) {
            return Err(Error::not_token("a search goes in circles"));
        }
        found.push(Found { id, private: row.try_get(1).map_err(wrong)? });
    }
    let first = rows.first().filter(|_| is_shown);
    Ok((found, first.map(|first| Picture::of(first, &rows, 2)).transpose()?))
}

/// Refuses a row that has not all that a search asked for: who has the database's tables may have moved entries of the index. Gives the
/// row; none where it is damaged, or not the one that was written last, and the others are found.
pub(crate) fn check(
    picture: &Picture,
    keys: &Keys,
    query: &[Term],
    found: Found,
) -> Result<Option<Stored>> {
    let wrong = || Error::damaged(found.id, "a search finds it by what it does not have");
    let row = match authentic(picture, keys, found.id) {
        Err(Error::Damaged { .. }) => {
            counters::event(counters::Event::DamagedRow);
            return Ok(None);
        }
        row => row?.ok_or_else(wrong)?,
    };
    let asked = values(Some(keys).filter(|_| row.private), query)?;
    let has: &[[u8; 16]] = row.terms.as_chunks().0;
    match row.private == found.private && asked.iter().all(|value| has.contains(value)) {
        true => Ok(Some(row)),
        false => Err(wrong()),
    }
}

/// The search with the rows that it finds, and in the first of its rows, once, what shows that they are the token's: its head, and
/// the nodes of the tree that [`metaslot_keystore::elsewhere::path`] numbers. Written so that rows are taken by their keys whatever
/// the planner thinks of their count.
fn shown(search: &str) -> String {
    format!(
        "WITH f AS MATERIALIZED(SELECT s.*, row_number() OVER(ORDER BY 1) AS nth FROM ({search}) s(id, private)),
              p AS MATERIALIZED(SELECT ARRAY(
                SELECT DISTINCT (n + 1) * below + (n >> 6) + (n >> 12) + (n >> 18) + (n >> 24) + (n >> 30) - 1
                  FROM f, (VALUES(6, 1::bigint), (12, 65), (18, 4161), (24, 266305), (30, 17043521)) l(bits, below),
                       LATERAL(SELECT f.id >> bits) m(n)) AS path)
         SELECT f.id, f.private, CASE nth WHEN 1 THEN t.key_id END, CASE nth WHEN 1 THEN t.next_id END,
                CASE nth WHEN 1 THEN t.row_set END,
                CASE nth WHEN 1 THEN (SELECT array_agg(n.node ORDER BY n.node) FROM metaslot.tree n
                  WHERE n.token = t.id AND n.node = ANY((SELECT path FROM p)::bigint[])) END,
                CASE nth WHEN 1 THEN (SELECT array_agg(n.entries ORDER BY n.node) FROM metaslot.tree n
                  WHERE n.token = t.id AND n.node = ANY((SELECT path FROM p)::bigint[])) END,
                o.*
           FROM f CROSS JOIN (SELECT * FROM metaslot.token WHERE name = $1) t
                LEFT JOIN LATERAL(SELECT o.id, {OBJECT} FROM metaslot.object o
                  WHERE o.token = t.id AND o.id = f.id LIMIT 1) o ON true
          ORDER BY f.id"
    )
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
