// SPDX-License-Identifier: Apache-2.0
//! Raw SQLite: the same rows into a copy of the same file, without keys, sessions or seals.

use crate::random::Random;
use crate::{Failure, Result};
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A copy of a store's file, and the shape of its last object.
#[derive(Debug)]
pub(crate) struct Raw {
    path: PathBuf,
    shape: Shape,
    next: AtomicU64,
}

/// How long each part of one object's rows is.
#[derive(Clone, Debug)]
struct Shape {
    attributes: u32,
    secrets: Option<u32>,
    terms: u32,
    tag: Option<u32>,
    lookups: Vec<u32>,
    row_set: u32,
}

impl Raw {
    /// Copies the file of a store that no process writes now.
    ///
    /// # Errors
    /// The file is not what this release's store writes.
    pub(crate) fn copy(database: &Path, to: &Path) -> Result<Self> {
        let source = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        source.execute("VACUUM INTO ?1", [to.to_string_lossy()])?;
        drop(source);
        let connection = open(to)?;
        let last: i64 = connection.query_row("SELECT max(id) FROM object", (), |row| row.get(0))?;
        let shape = Shape::of(&connection, last)?;
        let next = AtomicU64::new(last.unsigned_abs() + 1);
        Ok(Self { path: to.to_path_buf(), shape, next })
    }

    /// Inserts for so long on so many threads, each with its own connection; how many it were.
    ///
    /// # Errors
    /// SQLite's.
    pub(crate) fn create(&self, millis: u64, threads: usize) -> Result<f64> {
        let until = Instant::now() + Duration::from_millis(millis);
        self.insert(threads, |_| Instant::now() < until)
    }

    fn insert(&self, threads: usize, go_on: impl Fn(u64) -> bool + Sync) -> Result<f64> {
        let made = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let work = || -> Result<()> {
                let mut connection = open(&self.path)?;
                let mut random = Random::new(self.next.load(Ordering::Relaxed));
                while go_on(made.load(Ordering::Relaxed)) {
                    let id = self.next.fetch_add(1, Ordering::Relaxed);
                    self.shape.insert(&mut connection, id, &mut random)?;
                    made.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            };
            let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            for thread in running {
                thread.join().map_err(|_| Failure::new("a thread panicked"))??;
            }
            Ok::<(), Failure>(())
        })?;
        Ok(made.into_inner() as f64)
    }
}

/// The settings of the store: every commit reaches the disk.
fn open(path: &Path) -> Result<Connection> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(Duration::from_secs(30))?;
    connection.query_row("PRAGMA journal_mode = WAL", (), |_| Ok(()))?;
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA cache_size = -2048;")?;
    Ok(connection)
}

impl Shape {
    fn of(connection: &Connection, id: i64) -> Result<Self> {
        let unknown = |error: rusqlite::Error| {
            Failure::from(error).hint("the store's tables have changed: the lab must follow them")
        };
        let mut shape = connection
            .query_row(
                "SELECT length(attributes), length(secrets), length(terms), length(tag),
                        (SELECT length(row_set) FROM token) FROM object WHERE id = ?1",
                [id],
                |row| {
                    Ok(Self {
                        attributes: row.get(0)?,
                        secrets: row.get(1)?,
                        terms: row.get(2)?,
                        tag: row.get(3)?,
                        lookups: Vec::new(),
                        row_set: row.get(4)?,
                    })
                },
            )
            .map_err(unknown)?;
        let mut lookups =
            connection.prepare("SELECT length(value) FROM lookup WHERE object = ?1")?;
        for length in lookups.query_map([id], |row| row.get(0))? {
            shape.lookups.push(length?);
        }
        Ok(shape)
    }

    fn insert(&self, connection: &mut Connection, id: u64, random: &mut Random) -> Result<()> {
        let mut blob = |length: u32| {
            let mut bytes = vec![0; length as usize];
            random.fill(&mut bytes);
            bytes
        };
        let id = i64::try_from(id).unwrap_or(i64::MAX);
        // Made before the transaction, as the module does.
        let (attributes, terms) = (blob(self.attributes), blob(self.terms));
        let (secrets, tag) = (self.secrets.map(&mut blob), self.tag.map(&mut blob));
        let lookups: Vec<Vec<u8>> = self.lookups.iter().map(|length| blob(*length)).collect();
        let row_set = blob(self.row_set);
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction
            .prepare_cached("INSERT INTO object VALUES (?1, 1, 1, 1, ?2, ?3, ?4, ?5)")?
            .execute(params![id, attributes, secrets, terms, tag])?;
        for value in &lookups {
            transaction
                .prepare_cached("INSERT INTO lookup VALUES (?1, ?2)")?
                .execute(params![value, id])?;
        }
        transaction
            .prepare_cached("UPDATE token SET next_id = ?1, row_set = ?2")?
            .execute(params![id + 1, row_set])?;
        Ok(transaction.commit()?)
    }
}
