// SPDX-License-Identifier: Apache-2.0
//! Finding rows by their index entries, without opening any.

use crate::crypto::{self, Keys};
use crate::error::Result;
use crate::schema::signed;
use metaslot_ck::*;
use metaslot_engine::store::Term;
use rusqlite::{Connection, ToSql, params_from_iter};
use std::fmt::Write as _;

/// The most selective attribute first: it drives the search, the others are looked up for each of
/// its rows. The last three are shared by many rows; what is not named here comes before them.
pub(crate) const SEARCHED: [CK_ATTRIBUTE_TYPE; 11] = [
    CKA_UNIQUE_ID,
    CKA_ID,
    CKA_MODULUS,
    CKA_EC_POINT,
    CKA_SERIAL_NUMBER,
    CKA_SUBJECT,
    CKA_LABEL,
    CKA_ISSUER,
    CKA_CERTIFICATE_TYPE,
    CKA_KEY_TYPE,
    CKA_CLASS,
];
const SHARED: usize = 3;

/// Ids above `after`, ascending, at most `limit`: private rows with keys, public ones without.
pub(crate) fn search(
    connection: &Connection,
    keys: Option<&Keys>,
    query: &[Term],
    after: u64,
    limit: usize,
) -> Result<Vec<u64>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    if query.is_empty() {
        let mut statement = connection.prepare_cached(
            "SELECT id FROM object WHERE private = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
        )?;
        let rows = statement.query_map((keys.is_some(), signed(after), limit), |row| {
            crate::schema::unsigned(row, 0)
        })?;
        return Ok(rows.collect::<rusqlite::Result<_>>()?);
    }
    let mut terms: Vec<&Term> = query.iter().collect();
    terms.sort_by_key(|term| rank(term.0));
    let mut values = Vec::with_capacity(terms.len());
    for term in terms {
        values.push(crypto::lookup(keys, term)?);
    }
    let mut sql = "SELECT a.object FROM lookup a WHERE a.value = ?3 AND a.object > ?1".to_owned();
    for at in 1..values.len() {
        write!(
            sql,
            " AND EXISTS(SELECT 1 FROM lookup b WHERE b.value = ?{} AND b.object = a.object)",
            at + 3
        )
        .map_err(|_| crate::error::Error::Cryptography)?;
    }
    sql.push_str(" ORDER BY a.object LIMIT ?2");
    let mut statement = connection.prepare_cached(&sql)?;
    let after = signed(after);
    let values = values.iter().map(|value| value as &dyn ToSql);
    let numbers = [&after as &dyn ToSql, &limit];
    let parameters = params_from_iter(numbers.into_iter().chain(values));
    let rows = statement.query_map(parameters, |row| crate::schema::unsigned(row, 0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn rank(attribute: CK_ATTRIBUTE_TYPE) -> usize {
    // Odd numbers are those in between.
    let known = SEARCHED.iter().position(|known| *known == attribute);
    known.map_or(2 * (SEARCHED.len() - SHARED) - 1, |at| 2 * at)
}
