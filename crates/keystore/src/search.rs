// SPDX-License-Identifier: Apache-2.0
//! Finding rows by their index entries, without opening any.

use crate::crypto::{self, Keys};
use crate::error::{Error, Result};
use crate::schema::{signed, unsigned};
use metaslot_ck::CK_ATTRIBUTE_TYPE;
use metaslot_ck::attribute::AttributeRow;
use metaslot_spi::store::{Found, Scope, Term};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ToSql, params_from_iter};
use std::borrow::Cow;
use std::sync::OnceLock;

/// Rows above `after`, ascending, at most `limit`; private ones are named with `keys`.
pub(crate) fn search(
    connection: &Connection,
    keys: Option<&Keys>,
    query: &[Term],
    scope: Scope,
    after: u64,
    limit: usize,
) -> Result<Vec<Found>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut terms: Vec<&Term> = query.iter().collect();
    terms.sort_by_key(|term| rank(term.0));
    let mut values = Vec::with_capacity(2 * terms.len());
    for keys in named(scope, keys) {
        for term in &terms {
            values.push(crypto::lookup(keys, term)?);
        }
    }
    let mut statement = connection.prepare_cached(&statement(terms.len(), scope))?;
    let after = signed(after);
    let values = values.iter().map(|value| value as &dyn ToSql);
    let numbers = [&after as &dyn ToSql, &limit];
    let parameters = params_from_iter(numbers.into_iter().chain(values));
    let mut rows = statement.query(parameters)?;
    let mut found: Vec<Found> = Vec::new();
    while let Some(row) = rows.next()? {
        let id = unsigned(row, 0)?;
        if found.last().is_some_and(|last| last.id >= id) {
            return Err(Error::not_token("its pages are damaged: a search goes in circles"));
        }
        // Whatever it is: it is not shown without a login, and an error when it is read.
        let private = row.get_ref(1)? != ValueRef::Integer(0);
        found.push(Found { id, private });
    }
    Ok(found)
}

/// The keys under which the parts of a search name their values.
fn named(scope: Scope, keys: Option<&Keys>) -> impl Iterator<Item = Option<&Keys>> {
    let public = (scope != Scope::Private).then_some(None);
    let private = (scope != Scope::Public).then_some(keys);
    public.into_iter().chain(private)
}

/// The statement for so many terms: parameters 1 and 2 are where to begin and how many, then come
/// the values, the public ones first. Public and private rows are two streams in the order of
/// their ids, which SQLite merges: one statement, one read transaction, nothing sorted.
fn statement(terms: usize, scope: Scope) -> Cow<'static, str> {
    /// Written once each: nearly every search has three terms at most.
    static TEXTS: [[OnceLock<String>; 3]; 4] = [const { [const { OnceLock::new() }; 3] }; 4];
    let text = || {
        let parts = match scope {
            Scope::Public => vec![part(terms, 0, false)],
            Scope::Private => vec![part(terms, 0, true)],
            Scope::Both if terms == 0 => {
                vec!["SELECT id, private FROM object WHERE id > ?1".into()]
            }
            Scope::Both => vec![part(terms, 0, false), part(terms, terms, true)],
        };
        format!("{} ORDER BY 1 LIMIT ?2", parts.join(" UNION ALL "))
    };
    match TEXTS.get(terms) {
        Some(scopes) => Cow::Borrowed(scopes[scope as usize].get_or_init(text)),
        None => Cow::Owned(text()),
    }
}

/// The rows of one kind; `before` values belong to the other. An entry that has no number is left out
/// here: it would take a row's place among those that were asked for.
fn part(terms: usize, before: usize, private: bool) -> String {
    let kind = u8::from(private);
    if terms == 0 {
        return format!("SELECT id, {kind} FROM object WHERE private = {kind} AND id > ?1");
    }
    let first = before + 3;
    let others = (first + 1..first + terms).map(|at| {
        format!(" AND EXISTS(SELECT 1 FROM lookup b WHERE b.value = ?{at} AND b.object = a.object)")
    });
    format!(
        "SELECT a.object, {kind} FROM lookup a
         WHERE a.value = ?{first} AND a.object > ?1 AND typeof(a.object) = 'integer'{}",
        others.collect::<String>()
    )
}

/// The most selective attribute drives the search; the others are looked up for each of its rows.
pub(crate) fn rank(attribute: CK_ATTRIBUTE_TYPE) -> usize {
    let mut indexed = AttributeRow::indexed();
    indexed.position(|known| known == attribute).unwrap_or(usize::MAX)
}
