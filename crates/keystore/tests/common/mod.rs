// SPDX-License-Identifier: Apache-2.0
//! A directory for one test, and short words for what every test does.
#![allow(dead_code, reason = "each test file uses its own part")]

use metaslot_ck::{CK_ATTRIBUTE_TYPE, CKA_CLASS, CKA_ID, CKA_LABEL};
use metaslot_keystore::{Config, Cost, Kdf, SqliteStore};
use metaslot_memory::Secret;
use metaslot_spi::store::{
    Change, Examination, Examined, Record, Remark, Role, Scope, Store, Term,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) const SO: &[u8] = b"so-pin-1";
pub(crate) const USER: &[u8] = b"user-pin-1";

/// Cheap enough for a test that logs in often.
pub(crate) const CHEAP: Cost = Cost::Fixed(Kdf::Argon2id { memory_kib: 64, passes: 1, lanes: 1 });

/// A directory that goes away with its test.
#[derive(Debug)]
pub(crate) struct Sandbox(PathBuf);

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self::under(&std::env::temp_dir())
    }

    /// In memory where the system has such a place: for tests that sync often and to no end.
    pub(crate) fn in_memory() -> Self {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() { Self::under(memory) } else { Self::new() }
    }

    fn under(directory: &Path) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("metaslot-keystore-{}-{number}", std::process::id());
        let path = directory.join(name);
        fs::remove_dir_all(&path).unwrap_or_default();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.0.join("token.db")
    }

    pub(crate) fn config(&self) -> Config {
        Config { kdf: CHEAP, ..Config::new(self.database()) }
    }

    pub(crate) fn store(&self) -> SqliteStore {
        SqliteStore::new(self.config())
    }

    /// Initialised, with a user PIN; not logged in.
    pub(crate) fn token(&self) -> SqliteStore {
        let store = self.store();
        initialize(&store);
        store
    }

    /// Initialised, and the user is logged in.
    pub(crate) fn user(&self) -> SqliteStore {
        let store = self.token();
        store.login(Role::User, USER).unwrap();
        store
    }

    /// The database, for an attacker's hand.
    pub(crate) fn raw(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.database()).unwrap()
    }

    /// Every byte of the store's files.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        fs::read_dir(&self.0)
            .unwrap()
            .flat_map(|entry| fs::read(entry.unwrap().path()).unwrap())
            .collect()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap_or_default();
    }
}

pub(crate) fn initialize(store: &SqliteStore) {
    store.initialize(SO, "test token").unwrap();
    store.login(Role::So, SO).unwrap();
    store.init_pin(USER).unwrap();
    store.logout();
}

/// A private key object called `label`, with a secret.
pub(crate) fn private(label: &str) -> Record {
    Record {
        private: true,
        attributes: format!("attributes of {label}").into_bytes(),
        secrets: Some(Secret::copy_of(format!("secret of {label}").as_bytes())),
        terms: vec![(CKA_CLASS, vec![3]), (CKA_LABEL, label.into()), (CKA_ID, label.into())],
    }
}

/// A public object without secrets.
pub(crate) fn public(label: &str) -> Record {
    Record { private: false, secrets: None, ..private(label) }
}

pub(crate) fn insert(store: &SqliteStore, record: Record) -> u64 {
    store.write(vec![Change::Insert(record)]).unwrap()[0]
}

pub(crate) fn find(store: &SqliteStore, label: &str) -> Vec<u64> {
    let query = [(CKA_LABEL, label.as_bytes().to_vec())];
    ids(store, &query, Scope::Both, 0, 100)
}

/// The numbers of the rows that a search finds.
pub(crate) fn ids(
    store: &SqliteStore,
    query: &[Term],
    scope: Scope,
    after: u64,
    limit: usize,
) -> Vec<u64> {
    let found = store.search(query, scope, after, limit).unwrap();
    found.iter().map(|row| row.id).collect()
}

/// What is wrong, with which row.
pub(crate) type Findings = Vec<(Option<u64>, String)>;

/// The whole of a check, with what is wrong as text; `repair` takes it out.
pub(crate) fn examine(
    store: &SqliteStore,
    pin: &[u8],
    repair: bool,
) -> metaslot_ck::Result<(Examined, Findings)> {
    let role = if pin == SO { Role::So } else { Role::User };
    let mut findings = Vec::new();
    let what = if repair { Examination::Repair } else { Examination::Look };
    let examined = store.examine(role, pin, what, &mut |remark| {
        if let Remark::Finding { id, what } = remark {
            findings.push((id, what.to_owned()));
        }
        true
    })?;
    assert_eq!(examined.findings, findings.len() as u64);
    Ok((examined, findings))
}

pub(crate) fn term(attribute: CK_ATTRIBUTE_TYPE, value: &str) -> (CK_ATTRIBUTE_TYPE, Vec<u8>) {
    (attribute, value.into())
}
