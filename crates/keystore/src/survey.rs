// SPDX-License-Identifier: Apache-2.0
//! A look at every row of a token that is in another database than SQLite's. [`crate::verify`] has its own, which also mends.

use crate::apply;
use crate::crypto::Keys;
use crate::error::{Error, Result};
use crate::rows::Rows;
use crate::schema::{Stored, Token};
use crate::state::State;
use crate::tree::{Entry, Found};
use crate::verify::check_row;
use metaslot_spi::store::{Examined, Remark};
use std::collections::BTreeMap;

/// So many rows are read at a time.
const PAGE: usize = 256;

/// A row, and what the index has of it.
#[derive(Debug)]
pub struct Listed {
    /// Its number.
    pub id: u64,
    /// What it has, or what is wrong with it.
    pub row: Result<Stored>,
    /// The values under which the index has it, sorted, 16 bytes each.
    pub terms: Vec<u8>,
}

/// All of a token, of one moment.
pub trait Table: Rows {
    /// The token's own row.
    ///
    /// # Errors
    /// What the database says.
    fn token(&self) -> Result<Token>;

    /// How many rows there are.
    ///
    /// # Errors
    /// What the database says.
    fn count(&self) -> Result<u64>;

    /// At most so many rows whose numbers are above this one, in their order.
    ///
    /// # Errors
    /// What the database says.
    fn page(&self, after: u64, limit: usize) -> Result<Vec<Listed>>;

    /// How many entries of the index are of objects that have no row.
    ///
    /// # Errors
    /// What the database says.
    fn strays(&self) -> Result<u64>;
}

/// Tells what is wrong with the token, until `remark` says that it is enough.
///
/// # Errors
/// [`Error::Canceled`]; what the database says.
pub fn survey(
    table: &dyn Table,
    keys: &Keys,
    remark: &mut dyn FnMut(Remark<'_>) -> bool,
) -> Result<Examined> {
    let mut survey = Survey { keys, remark, seen: Examined::default() };
    let state = survey.token(table)?;
    let mut expected = Expected::default();
    match &state {
        Some(state) => state.tree().visit(table, keys, &mut |found| {
            match found {
                Found::Row(id, entry) => drop(expected.rows.insert(id, entry)),
                Found::Damage(from, to) => expected.unknown.push((from, to)),
            }
            Ok(())
        })?,
        None => expected.unknown.push((0, u64::MAX)),
    }
    if state.is_some() {
        for (from, to) in &expected.unknown {
            let what = format!(
                "the hashes of objects {from} to {to} were changed or are damaged: they may be \
                 older than the last"
            );
            survey.find(None, &what)?;
        }
    }
    survey.rows(table, &mut expected)?;
    for id in expected.rows.into_keys() {
        survey.find(Some(id), apply::TAKEN_OUT)?;
    }
    if table.strays()? > 0 {
        survey.find(None, "its index has entries of objects that are not there")?;
    }
    Ok(survey.seen)
}

/// Which rows there should be.
#[derive(Default)]
struct Expected {
    rows: BTreeMap<u64, Entry>,
    /// Where that is not known.
    unknown: Vec<(u64, u64)>,
}

struct Survey<'a> {
    keys: &'a Keys,
    remark: &'a mut dyn FnMut(Remark<'_>) -> bool,
    seen: Examined,
}

impl Survey<'_> {
    /// The token's own row, and its state where that is to be believed.
    fn token(&mut self, table: &dyn Table) -> Result<Option<State>> {
        let (head, token) = (table.head()?, table.token()?);
        let state = match State::open(self.keys, &head.state) {
            Ok(state) => state,
            Err(Error::Tampered { reason, .. }) => {
                self.find(None, &reason)?;
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        if head.key_id != self.keys.id {
            self.find(None, "the name of its key was changed")?;
        }
        for difference in state.differences(&token, &head) {
            self.find(None, difference.sentence())?;
        }
        Ok(Some(state))
    }

    fn rows(&mut self, table: &dyn Table, expected: &mut Expected) -> Result<()> {
        let total = table.count()?;
        let mut after = 0;
        loop {
            let page = table.page(after, PAGE)?;
            let Some(last) = page.last().map(|listed| listed.id) else { return Ok(()) };
            if last <= after {
                return Err(Error::not_token("its rows are not in the order of their numbers"));
            }
            after = last;
            for listed in page {
                self.row(&listed, expected)?;
            }
            self.tell(Remark::Progress { done: self.seen.rows, total })?;
        }
    }

    fn row(&mut self, listed: &Listed, expected: &mut Expected) -> Result<()> {
        let id = listed.id;
        self.seen.rows += 1;
        let entry = expected.rows.remove(&id);
        let is_known = !expected.unknown.iter().any(|(from, to)| (*from..=*to).contains(&id));
        let checked = match &listed.row {
            Ok(row) => {
                self.seen.unverified += u64::from(!row.verified);
                check_row(self.keys, id, row).and_then(|()| match is_known {
                    true => apply::compare(id, Some(row), entry),
                    false => Ok(()),
                })
            }
            Err(error) => Err(error.clone()),
        };
        match (checked, &listed.row) {
            (Err(Error::Damaged { reason, .. }), _) => self.find(Some(id), reason),
            (Err(error), _) => Err(error),
            (Ok(()), Ok(row)) if row.terms != listed.terms => {
                self.find(Some(id), "a search does not find it by what it has")
            }
            (Ok(()), _) => Ok(()),
        }
    }

    fn find(&mut self, id: Option<u64>, what: &str) -> Result<()> {
        self.seen.findings += 1;
        self.tell(Remark::Finding { id, what })
    }

    fn tell(&mut self, remark: Remark<'_>) -> Result<()> {
        if (self.remark)(remark) { Ok(()) } else { Err(Error::Canceled) }
    }
}
