// SPDX-License-Identifier: Apache-2.0
//! A look at all of the token, of one moment.

use crate::link::{Open, lock};
use crate::open::{PostgresStore, Result, SNAPSHOT, announced};
use crate::rows::{OBJECT, Whole, Writing, signed, stored};
use crate::{named, pin, schema};
use metaslot_keystore::Error;
use metaslot_keystore::elsewhere::{
    Head, Listed, Loading, Node, Rows, RowsMut as _, Saving, Sink, Source, Stored, Table, Token,
    survey,
};
use metaslot_spi::store::{Examined, Remark, Role};
use std::cell::Cell;
use std::path::Path;

/// [`metaslot_spi::store::Examination::Look`]
pub(crate) fn look(
    store: &PostgresStore,
    role: Role,
    pin: &[u8],
    remark: &mut dyn FnMut(Remark<'_>) -> bool,
) -> Result<Examined> {
    let open = store.link.open()?;
    let keys = pin::keys(store, &open, role, pin)?;
    let _turn = lock(&open.lines.turn);
    let (seen, head) = store.around(&open, SNAPSHOT, || {
        let whole = Whole::here(&open)?.complete(&open)?;
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

/// [`metaslot_spi::store::Examination::Backup`]: a file that `metaslot token restore` takes.
pub(crate) fn save(
    store: &PostgresStore,
    (role, pin): (Role, &[u8]),
    to: &Path,
    remark: &mut dyn FnMut(Remark<'_>) -> bool,
) -> Result<Examined> {
    let open = store.link.open()?;
    // A wrong PIN counts on the token itself.
    drop(pin::keys(store, &open, role, pin)?);
    let _turn = lock(&open.lines.turn);
    let saving = store.around(&open, SNAPSHOT, || {
        let all = All::new(&open, Whole::here(&open)?.complete(&open)?);
        Ok((Saving::of(&all, to)?, None))
    })?;
    saving.finish(store.pins(), (role, pin), remark)
}

/// [`metaslot_spi::store::Examination::Restore`]: a token where none is, of a file that `metaslot token backup` has made.
pub(crate) fn load(
    store: &PostgresStore,
    (role, pin): (Role, &[u8]),
    from: &Path,
    remark: &mut dyn FnMut(Remark<'_>) -> bool,
) -> Result<Examined> {
    let open = store.link.open()?;
    let _turn = lock(&open.lines.turn);
    match Whole::read(&open) {
        Err(Error::Uninitialized { .. }) => {}
        Err(error) => return Err(error),
        Ok(_) => {
            let reason = String::from("a token is there already");
            return Err(Error::File { path: open.place().to_owned(), action: "restore", reason });
        }
    }
    let (seen, loading) = Loading::of(from, store.pins(), (role, pin), remark)?;
    if let Some(loading) = loading {
        store.around(&open, "BEGIN", || {
            schema::migrate(&open, open.place())?;
            loading.write(&Filling { open: &open, number: Cell::new(0) })?;
            Ok(((), Some(announced(&open)?)))
        })?;
    }
    Ok(seen)
}

/// A token that comes, row by row.
struct Filling<'a> {
    open: &'a Open<'a>,
    number: Cell<i32>,
}

impl Filling<'_> {
    fn objects(&self) -> Writing<'_> {
        let head = Head { key_id: [0; 16], next_id: 0, state: Vec::new() };
        Writing::new(self.open, self.number.get(), head)
    }
}

impl Sink for Filling<'_> {
    fn token(&self, token: &Token, head: &Head) -> Result<()> {
        let sql = "INSERT INTO metaslot.token(name, serial, label, key_id, so_wrap, so_failures, so_failed_at,
                          user_wrap, user_failures, user_failed_at, next_id, row_set)
                   VALUES($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING id";
        let (serial, key) = (token.serial.as_slice(), head.key_id.as_slice());
        let failures =
            [&token.so, &token.user].map(|pin| i32::try_from(pin.failures).unwrap_or(i32::MAX));
        let failed_at = [&token.so, &token.user].map(|pin| signed(pin.failed_at));
        let rows = self.open.write(
            sql,
            &[
                &self.open.name(),
                &serial,
                &token.label,
                &key,
                &token.so.wrap,
                &failures[0],
                &failed_at[0],
                &token.user.wrap,
                &failures[1],
                &failed_at[1],
                &signed(head.next_id),
                &head.state,
            ],
        )?;
        let number = rows.first().and_then(|row| row.try_get(0).ok());
        self.number.set(number.ok_or_else(|| Error::not_token("it was not made"))?);
        let all = &token.identities;
        all.iter().try_for_each(|one| named::insert(self.open, self.number.get(), one))
    }

    fn row(&self, id: u64, row: &Stored) -> Result<()> {
        let rows = self.objects();
        rows.insert(id, row)?;
        rows.list(id, row.terms.as_chunks().0)?;
        rows.flush();
        Ok(())
    }

    fn node(&self, (number, entries): &Node) -> Result<()> {
        let rows = self.objects();
        rows.write_node(*number, entries)?;
        rows.flush();
        Ok(())
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
        Self { rows: Writing::new(open, number, head), token }
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

impl Source for All<'_> {
    fn nodes(&self, after: i64, limit: usize) -> Result<Vec<Node>> {
        let sql = "SELECT node, entries FROM metaslot.tree WHERE token = $1 AND node > $2
                   ORDER BY node LIMIT $3";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.rows.open.write(sql, &[&self.rows.number, &after, &limit])?;
        let wrong = |_| Error::not_token("a node of its tree is none");
        let nodes = rows.iter();
        nodes
            .map(|row| Ok((row.try_get(0).map_err(wrong)?, row.try_get(1).map_err(wrong)?)))
            .collect()
    }
}
