// SPDX-License-Identifier: Apache-2.0
//! A token that several engines share, each as a process of its own: what it has open after a login is
//! its own. Without a disk, where threads pause at every turn, or with the real one.

use metaslot_ck::{Error, Result};
use metaslot_keystore::{Config, Cost, Kdf, SqliteStore};
use metaslot_memory::Secret;
use metaslot_models::chance;
use metaslot_spi::store::{
    Change, Examination, Examined, Found, ObjectRow, Record, Remark, Role, Scope, Store, Term,
    TokenRow,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The user's PIN.
pub(crate) const PIN: &[u8] = b"user-pin";
/// The security officer's.
pub(crate) const SO_PIN: &[u8] = b"so-pin";

/// Where the token is.
#[derive(Debug)]
pub(crate) enum Disk {
    InMemory(Arc<Shared>),
    Real(Directory),
}

impl Disk {
    pub(crate) fn in_memory(page: bool, stride: u64) -> Self {
        let (rows, writers) = (Mutex::default(), Mutex::default());
        let generation = AtomicU64::new(0);
        Self::InMemory(Arc::new(Shared { rows, writers, generation, page, stride }))
    }

    /// A new token in a database.
    pub(crate) fn real() -> Self {
        let directory = Directory::new();
        let store = directory.store();
        let made = store.initialize(SO_PIN, "test").and_then(|()| {
            store.login(Role::So, SO_PIN)?;
            store.init_pin(PIN)
        });
        made.expect("a token is made");
        store.logout();
        Self::Real(directory)
    }

    /// One process's view.
    pub(crate) fn process(&self) -> Box<dyn Store> {
        match self {
            Self::InMemory(shared) => {
                Box::new(SharedStore { disk: Arc::clone(shared), keys: AtomicU64::new(0) })
            }
            Self::Real(directory) => Box::new(directory.store()),
        }
    }
}

/// A directory that goes with its history. It is in memory where the system has such a place.
#[derive(Debug)]
pub(crate) struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let memory = Path::new("/dev/shm");
        let base = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let directory = base.join(format!("metaslot-histories-{process}-{number}"));
        std::fs::remove_dir_all(&directory).unwrap_or_default();
        Self(directory)
    }

    fn store(&self) -> SqliteStore {
        let kdf = Kdf::Argon2id { memory_kib: 64, passes: 1, lanes: 1 };
        SqliteStore::new(Config { kdf: Cost::Fixed(kdf), ..Config::new(self.0.join("token.db")) })
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}

/// What all processes share.
#[derive(Debug)]
pub(crate) struct Shared {
    rows: Mutex<Rows>,
    writers: Mutex<()>,
    generation: AtomicU64,
    /// Whether processes see the generation, as they do where its page can be mapped.
    page: bool,
    /// The distance of row numbers: with that of the cache's shards all rows meet in one.
    stride: u64,
}

#[derive(Debug, Default)]
struct Rows {
    rows: BTreeMap<u64, (u64, Stored)>,
    last: u64,
    incarnation: u64,
}

#[derive(Debug)]
struct Stored {
    private: bool,
    verified: bool,
    attributes: Vec<u8>,
    secrets: Option<Vec<u8>>,
    terms: Vec<Term>,
}

/// One process's view.
#[derive(Debug)]
struct SharedStore {
    disk: Arc<Shared>,
    /// The incarnation whose keys are open, plus one; 0 when none are.
    keys: AtomicU64,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().expect("no panic")
    }

    /// One commit, with the generation around it.
    fn commit<T>(&self, work: impl FnOnce(&mut Rows) -> Result<T>) -> Result<T> {
        let _turn = self.writers.lock().expect("no panic");
        self.generation.fetch_or(1, Ordering::SeqCst);
        chance::pause();
        let done = work(&mut self.lock());
        chance::pause();
        self.generation.fetch_add(1, Ordering::SeqCst);
        done
    }
}

impl SharedStore {
    fn keys(&self) -> Option<u64> {
        self.keys.load(Ordering::SeqCst).checked_sub(1)
    }
}

impl Rows {
    fn insert(&mut self, record: Record, keys: Option<u64>, stride: u64) -> Result<u64> {
        let open = keys == Some(self.incarnation);
        if (record.private || record.secrets.is_some()) && !open {
            return Err(Error::USER_NOT_LOGGED_IN);
        }
        self.last += stride;
        let stored = Stored {
            private: record.private,
            verified: open,
            attributes: record.attributes,
            secrets: record.secrets.map(|secret| secret.expose().to_vec()),
            terms: record.terms,
        };
        self.rows.insert(self.last, (1, stored));
        Ok(self.last)
    }

    fn update(&mut self, id: u64, version: u64, record: Record, keys: Option<u64>) -> Result<()> {
        let open = keys == Some(self.incarnation);
        let row = self.rows.get_mut(&id).filter(|row| row.0 == version);
        let row = row.ok_or(Error::OBJECT_HANDLE_INVALID)?;
        if (row.1.private || row.1.secrets.is_some()) && !open {
            return Err(Error::USER_NOT_LOGGED_IN);
        }
        row.0 += 1;
        row.1.attributes = record.attributes;
        row.1.terms = record.terms;
        row.1.verified = open;
        Ok(())
    }

    fn delete(&mut self, id: u64, version: u64, keys: Option<u64>) -> Result<()> {
        let open = keys == Some(self.incarnation);
        let row = self.rows.get(&id).filter(|row| row.0 == version);
        let row = row.ok_or(Error::OBJECT_HANDLE_INVALID)?;
        if row.1.private && !open {
            return Err(Error::USER_NOT_LOGGED_IN);
        }
        self.rows.remove(&id);
        Ok(())
    }
}

impl Store for SharedStore {
    fn token(&self) -> Result<TokenRow> {
        chance::pause();
        Ok(TokenRow {
            initialized: true,
            label: "test".into(),
            serial: "0123456789abcdef".into(),
            user_pin_set: true,
            writable: true,
            ..TokenRow::default()
        })
    }

    fn initialize(&self, _: &[u8], _: &str) -> Result<()> {
        self.keys.store(0, Ordering::SeqCst);
        chance::pause();
        self.disk.commit(|rows| {
            rows.rows.clear();
            rows.incarnation += 1;
            Ok(())
        })
    }

    fn login(&self, role: Role, pin: &[u8]) -> Result<()> {
        chance::pause();
        self.check_pin(role, pin)?;
        let incarnation = self.disk.lock().incarnation;
        self.keys.store(incarnation + 1, Ordering::SeqCst);
        chance::pause();
        Ok(())
    }

    fn check_pin(&self, role: Role, pin: &[u8]) -> Result<()> {
        let right = if role == Role::So { SO_PIN } else { PIN };
        if pin == right { Ok(()) } else { Err(Error::PIN_INCORRECT) }
    }

    fn logout(&self) {
        chance::pause();
        self.keys.store(0, Ordering::SeqCst);
        chance::pause();
    }

    fn keeps_login(&self) -> bool {
        chance::pause();
        self.keys.load(Ordering::SeqCst) == self.disk.lock().incarnation + 1
    }

    fn init_pin(&self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn set_pin(&self, role: Role, old: &[u8], _: &[u8]) -> Result<()> {
        self.check_pin(role, old)
    }

    fn write(&self, changes: Vec<Change>) -> Result<Vec<u64>> {
        chance::pause();
        let (keys, stride) = (self.keys(), self.disk.stride);
        let mut ids = Vec::new();
        self.disk.commit(|rows| {
            // One change each is all that the engine asks for here, so that nothing is undone.
            for change in changes {
                match change {
                    Change::Insert(record) => ids.push(rows.insert(record, keys, stride)?),
                    Change::Update { id, version, record } => {
                        rows.update(id, version, record, keys)?;
                    }
                    Change::Delete { id, version, .. } => rows.delete(id, version, keys)?,
                }
            }
            Ok(())
        })?;
        chance::pause();
        Ok(ids)
    }

    fn read(&self, id: u64) -> Result<Option<ObjectRow>> {
        chance::pause();
        let keys = self.keys();
        let rows = self.disk.lock();
        let open = keys == Some(rows.incarnation);
        let row = rows.rows.get(&id).filter(|row| open || !row.1.private);
        let row = row.map(|(version, stored)| ObjectRow {
            version: *version,
            private: stored.private,
            verified: stored.verified && open,
            attributes: stored.attributes.clone(),
            has_secrets: stored.secrets.is_some(),
        });
        drop(rows);
        chance::pause();
        Ok(row)
    }

    fn secrets(&self, id: u64, version: u64) -> Result<Secret> {
        chance::pause();
        let keys = self.keys();
        let rows = self.disk.lock();
        if keys != Some(rows.incarnation) {
            return Err(Error::USER_NOT_LOGGED_IN);
        }
        let row = rows.rows.get(&id).filter(|row| row.0 == version);
        let secrets = row.and_then(|row| row.1.secrets.as_deref());
        secrets.map(Secret::copy_of).ok_or(Error::OBJECT_HANDLE_INVALID)
    }

    fn search(&self, query: &[Term], scope: Scope, after: u64, limit: usize) -> Result<Vec<Found>> {
        chance::pause();
        let keys = self.keys();
        let rows = self.disk.lock();
        let open = keys == Some(rows.incarnation);
        let hit = |stored: &Stored| {
            let seen = match scope {
                Scope::Public => !stored.private,
                Scope::Private => stored.private && open,
                Scope::Both => !stored.private || open,
            };
            seen && query.iter().all(|term| stored.terms.contains(term))
        };
        let found = rows.rows.range(after + 1..).filter(|(_, row)| hit(&row.1));
        let found = found.map(|(id, row)| Found { id: *id, private: row.1.private }).take(limit);
        let found = found.collect();
        drop(rows);
        chance::pause();
        Ok(found)
    }

    fn examine(
        &self,
        _: Role,
        _: &[u8],
        _: Examination<'_>,
        _: &mut dyn FnMut(Remark<'_>) -> bool,
    ) -> Result<Examined> {
        Err(Error::FUNCTION_NOT_SUPPORTED)
    }

    fn restored(&self) -> Result<u64> {
        Ok(0)
    }

    fn generation(&self) -> Option<u64> {
        self.disk.page.then(|| self.disk.generation.load(Ordering::SeqCst))
    }
}
