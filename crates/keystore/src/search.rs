// SPDX-License-Identifier: Apache-2.0
//! Finding rows by their index entries. Those that are found are compared with what was asked for: `SqliteStore::find`.

use crate::crypto::{self, Keys, LOOKUP};
use crate::error::{Error, Result};
use crate::schema::{Stored, signed, unsigned};
use metaslot_ck::CK_ATTRIBUTE_TYPE;
use metaslot_ck::attribute::AttributeRow;
use metaslot_spi::store::{Found, Scope, Term};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ToSql, params_from_iter};
use std::borrow::Cow;
use std::sync::OnceLock;

/// What is wrong with an entry of the index that leads to a row without it.
pub(crate) const MOVED: &str = "a search finds it by what it does not have";

/// What is asked for, as the index has it, the most selective attribute first.
#[derive(Debug)]
pub(crate) struct Asked {
    scope: Scope,
    open: Vec<[u8; LOOKUP]>,
    keyed: Vec<[u8; LOOKUP]>,
}

impl Asked {
    /// Private rows are named with `keys`.
    pub(crate) fn new(query: &[Term], scope: Scope, keys: Option<&Keys>) -> Result<Self> {
        let (mut open, mut keyed) = (Vec::new(), Vec::new());
        if scope != Scope::Private {
            open = values(None, query)?;
        }
        if scope != Scope::Public {
            keyed = values(keys, query)?;
        }
        Ok(Self { scope, open, keyed })
    }

    /// Whether that is everything.
    pub(crate) const fn is_all(&self) -> bool {
        self.open.is_empty() && self.keyed.is_empty()
    }

    /// Whether a row has all of it, of the kind that it was found as.
    pub(crate) fn is_in(&self, row: &Stored, found: Found) -> bool {
        let asked = if found.private { &self.keyed } else { &self.open };
        let has: &[[u8; LOOKUP]] = row.terms.as_chunks().0;
        row.private == found.private && asked.iter().all(|value| has.contains(value))
    }
}

/// What the index has for a query: of private rows with keys, of open ones without.
pub(crate) fn values(keys: Option<&Keys>, query: &[Term]) -> Result<Vec<[u8; LOOKUP]>> {
    let mut terms: Vec<&Term> = query.iter().collect();
    terms.sort_by_key(|term| rank(term.0));
    terms.into_iter().map(|term| crypto::lookup(keys, term)).collect()
}

/// Rows above `after`, ascending, at most `limit`, as the index has them.
pub(crate) fn search(
    connection: &Connection,
    asked: &Asked,
    after: u64,
    limit: usize,
) -> Result<Vec<Found>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let terms = asked.open.len().max(asked.keyed.len());
    let mut statement = connection.prepare_cached(&statement(terms, asked.scope))?;
    let after = signed(after);
    let values = asked.open.iter().chain(&asked.keyed).map(|value| value as &dyn ToSql);
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
fn rank(attribute: CK_ATTRIBUTE_TYPE) -> usize {
    let mut indexed = AttributeRow::indexed();
    indexed.position(|known| known == attribute).unwrap_or(usize::MAX)
}
