// SPDX-License-Identifier: Apache-2.0
//! A look at all of the token, of one moment.

use crate::link::{Open, lock};
use crate::open::{PostgresStore, Result};
use crate::pin;
use crate::rows::{OBJECT, Whole, Writing, signed, stored};
use metaslot_keystore::Error;
use metaslot_keystore::elsewhere::{Head, Listed, Rows, Stored, Table, Token, survey};
use metaslot_spi::store::{Examined, Remark, Role};
use std::cell::RefCell;

/// [`metaslot_spi::store::Examination::Look`]
pub(crate) fn look(
    store: &PostgresStore,
    role: Role,
    pin: &[u8],
    remark: &mut dyn FnMut(Remark<'_>) -> bool,
) -> Result<Examined> {
    let open = store.link.open()?;
    let _turn = lock(&open.lines.turn);
    let keys = pin::keys(store, &open, role, pin)?;
    let begin = "ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
    let (seen, head) = store.around(&open, begin, || {
        let whole = Whole::here(&open)?;
        let head = whole.head.clone();
        let all = All::new(&open, whole);
        let seen = survey(&all, &keys, remark)?;
        Ok(((seen, head), None))
    })?;
    match store.follow(&open, &keys, &head) {
        Err(Error::Tampered { reason, .. }) => {
            let told = remark(Remark::Finding { id: None, what: &reason });
            let findings = seen.findings + 1;
            if told { Ok(Examined { findings, ..seen }) } else { Err(Error::Canceled) }
        }
        // Its own row has been told of already.
        done => done.map(|()| seen),
    }
}

/// Everything, within one transaction.
struct All<'a> {
    rows: Writing<'a>,
    token: Token,
}

impl<'a> All<'a> {
    fn new(open: &'a Open<'a>, whole: Whole) -> Self {
        let Whole { number, token, head, .. } = whole;
        Self { rows: Writing { open, number, head, wrote: RefCell::default() }, token }
    }

    fn number(&self, sql: &str) -> Result<u64> {
        let rows = self.rows.open.write(sql, &[&self.rows.number])?;
        let number: Option<i64> = rows.first().and_then(|row| row.try_get(0).ok());
        Ok(number.and_then(|number| u64::try_from(number).ok()).unwrap_or(0))
    }
}

impl Rows for All<'_> {
    fn head(&self) -> Result<Head> {
        self.rows.head()
    }

    fn stored(&self, id: u64) -> Result<Option<Stored>> {
        self.rows.stored(id)
    }

    fn node(&self, number: i64) -> Result<Option<Vec<u8>>> {
        self.rows.node(number)
    }
}

impl Table for All<'_> {
    fn token(&self) -> Result<Token> {
        Ok(self.token.clone())
    }

    fn count(&self) -> Result<u64> {
        self.number("SELECT count(*) FROM metaslot.object WHERE token = $1")
    }

    fn page(&self, after: u64, limit: usize) -> Result<Vec<Listed>> {
        let sql = format!(
            "SELECT o.id, (SELECT array_agg(l.value ORDER BY l.value) FROM metaslot.lookup l
                            WHERE l.token = o.token AND l.object = o.id), {OBJECT}
               FROM metaslot.object o WHERE o.token = $1 AND o.id > $2 ORDER BY o.id LIMIT $3"
        );
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.rows.open.write(&sql, &[&self.rows.number, &signed(after), &limit])?;
        let listed = rows.iter().map(|row| {
            let wrong = |_| Error::not_token("a row is no object's");
            let id: i64 = row.try_get(0).map_err(wrong)?;
            let id = u64::try_from(id).map_err(|_| Error::not_token("a number is negative"))?;
            let terms: Option<Vec<Vec<u8>>> = row.try_get(1).map_err(wrong)?;
            let terms = terms.unwrap_or_default().concat();
            Ok(Listed { id, row: stored(row, 2, id), terms })
        });
        listed.collect()
    }

    fn strays(&self) -> Result<u64> {
        self.number(
            "SELECT count(*) FROM metaslot.lookup l WHERE l.token = $1 AND NOT EXISTS(
                SELECT 1 FROM metaslot.object o WHERE o.token = l.token AND o.id = l.object)",
        )
    }
}
