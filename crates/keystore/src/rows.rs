// SPDX-License-Identifier: Apache-2.0
//! The tables of a token as changes and checks of objects see them, within one transaction or one snapshot: whichever
//! database has them.

use crate::error::Result;
use crate::schema::{Head, Stored, signed};
use rusqlite::{Connection, OptionalExtension};

/// The longest a node of the tree is, in bytes.
pub(crate) const LONGEST_NODE: usize = 64 * 16;

/// Reads a token's tables, all of one moment.
pub trait Rows {
    /// The part of the token's own row that every change needs.
    ///
    /// # Errors
    /// What the database says.
    fn head(&self) -> Result<Head>;

    /// An object's row.
    ///
    /// # Errors
    /// [`Error::Damaged`](crate::Error::Damaged) for a row that was never written so; what the database says.
    fn stored(&self, id: u64) -> Result<Option<Stored>>;

    /// The entries of a node of the tree, by its number; none where it is missing, or is longer than a node.
    ///
    /// # Errors
    /// What the database says.
    fn node(&self, number: i64) -> Result<Option<Vec<u8>>>;
}

/// Changes them, within a transaction that no other writer is in.
pub trait RowsMut: Rows {
    /// A new object's row.
    ///
    /// # Errors
    /// What the database says.
    fn insert(&self, id: u64, row: &Stored) -> Result<()>;

    /// Another row for an object.
    ///
    /// # Errors
    /// What the database says.
    fn update(&self, id: u64, row: &Stored) -> Result<()>;

    /// No row for an object any more.
    ///
    /// # Errors
    /// What the database says.
    fn delete(&self, id: u64) -> Result<()>;

    /// Puts an object into the index under these values, 16 bytes each.
    ///
    /// # Errors
    /// What the database says.
    fn list(&self, id: u64, values: &[[u8; 16]]) -> Result<()>;

    /// Takes it out of there.
    ///
    /// # Errors
    /// What the database says.
    fn unlist(&self, id: u64, values: &[[u8; 16]]) -> Result<()>;

    /// Entries for a node of the tree; it goes where there are none.
    ///
    /// # Errors
    /// What the database says.
    fn write_node(&self, number: i64, entries: &[u8]) -> Result<()>;

    /// The next id, and another state of the token where there is one.
    ///
    /// # Errors
    /// What the database says.
    fn write_head(&self, next_id: u64, state: Option<&[u8]>) -> Result<()>;
}

impl Rows for Connection {
    fn head(&self) -> Result<Head> {
        Ok(Head::read(self)?)
    }

    fn stored(&self, id: u64) -> Result<Option<Stored>> {
        Stored::read(self, id)
    }

    fn node(&self, number: i64) -> Result<Option<Vec<u8>>> {
        let entries = self.prepare_cached("SELECT entries FROM tree WHERE node = ?1")?.query_row(
            [number],
            |row| {
                let entries = row.get_ref(0)?.as_blob().ok();
                Ok(entries.filter(|entries| entries.len() <= LONGEST_NODE).map(<[u8]>::to_vec))
            },
        );
        Ok(entries.optional()?.flatten())
    }
}

impl RowsMut for Connection {
    fn insert(&self, id: u64, row: &Stored) -> Result<()> {
        self.prepare_cached(
            "INSERT INTO object(id, version, private, verified, attributes, secrets, terms, tag)
             VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(columns(id, row))?;
        Ok(())
    }

    fn update(&self, id: u64, row: &Stored) -> Result<()> {
        self.prepare_cached(
            "UPDATE object SET version = ?2, private = ?3, verified = ?4, attributes = ?5,
                               secrets = ?6, terms = ?7, tag = ?8 WHERE id = ?1",
        )?
        .execute(columns(id, row))?;
        Ok(())
    }

    fn delete(&self, id: u64) -> Result<()> {
        self.prepare_cached("DELETE FROM object WHERE id = ?1")?.execute([signed(id)])?;
        Ok(())
    }

    fn list(&self, id: u64, values: &[[u8; 16]]) -> Result<()> {
        let mut insert =
            self.prepare_cached("INSERT OR IGNORE INTO lookup(value, object) VALUES(?1, ?2)")?;
        values.iter().try_for_each(|value| insert.execute((value, signed(id))).map(drop))?;
        Ok(())
    }

    fn unlist(&self, id: u64, values: &[[u8; 16]]) -> Result<()> {
        let mut delete =
            self.prepare_cached("DELETE FROM lookup WHERE value = ?1 AND object = ?2")?;
        values.iter().try_for_each(|value| delete.execute((value, signed(id))).map(drop))?;
        Ok(())
    }

    fn write_node(&self, number: i64, entries: &[u8]) -> Result<()> {
        match entries.is_empty() {
            true => self.prepare_cached("DELETE FROM tree WHERE node = ?1")?.execute([number])?,
            false => self
                .prepare_cached("INSERT OR REPLACE INTO tree(node, entries) VALUES(?1, ?2)")?
                .execute((number, entries))?,
        };
        Ok(())
    }

    fn write_head(&self, next_id: u64, state: Option<&[u8]>) -> Result<()> {
        let next_id = signed(next_id);
        match state {
            Some(state) => self
                .prepare_cached("UPDATE token SET next_id = ?1, row_set = ?2")?
                .execute((next_id, state))?,
            None => self.prepare_cached("UPDATE token SET next_id = ?1")?.execute([next_id])?,
        };
        Ok(())
    }
}

type Columns<'a> = (i64, i64, bool, bool, &'a [u8], Option<&'a [u8]>, &'a [u8], Option<&'a [u8]>);

fn columns(id: u64, row: &Stored) -> Columns<'_> {
    (
        signed(id),
        signed(row.version),
        row.private,
        row.verified,
        &row.attributes,
        row.secrets.as_deref(),
        &row.terms,
        row.tag.as_deref(),
    )
}
