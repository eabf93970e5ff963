// SPDX-License-Identifier: Apache-2.0
//! Makes the stored example of the current format, which every later release must open.
//!
//! `cargo run --release -p metaslot-keystore --example sample -- testdata/keystores/v3.db`
//!
//! Once a format is released, its example is never made again.

use metaslot_ck::{
    CKA_CLASS, CKA_ID, CKA_KEY_TYPE, CKA_LABEL, CKA_PRIVATE, CKA_TOKEN, CKA_VALUE, CKK_AES,
    CKO_CERTIFICATE, CKO_DATA, CKO_SECRET_KEY,
};
use metaslot_keystore::{Config, SqliteStore};
use metaslot_memory::Secret;
use metaslot_spi::store::{
    Change, Examination, Identities, Name, NewPin, Record, Role, Store, Term,
};
use metaslot_spi::{Attributes, Secrets, Value};
use std::path::Path;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let target = std::env::args().nth(1).ok_or("where to?")?;
    if Path::new(&target).exists() {
        return Err(format!("{target}: it is there already").into());
    }
    let directory = std::env::temp_dir().join(format!("metaslot-sample-{}", std::process::id()));
    let path = directory.join("token.db");
    let store = SqliteStore::new(Config::new(&path));
    store.initialize(b"example-so-pin", "example of version 3")?;
    store.write(vec![Change::Insert(open("before login", CKO_DATA))])?;
    store.login(Role::So, b"example-so-pin")?;
    store.init_pin(b"example-user-pin")?;
    store.logout();
    store.login(Role::User, b"example-user-pin")?;
    store.write(vec![
        Change::Insert(open("certificate", CKO_CERTIFICATE)),
        Change::Insert(key("secret key one")),
        Change::Insert(key("secret key two")),
        Change::Insert(key("deleted")),
    ])?;
    store.write(vec![Change::Delete { id: 5, version: 1, unique_id: None }])?;
    store.write(vec![Change::Update { id: 4, version: 1, record: key("changed key") }])?;
    store.logout();
    let name = Name::new(b"example").ok_or("that is a name")?;
    let added = Examination::Identities(Identities::Add(name, NewPin(b"example-pin")));
    store.examine(Role::So, b"example-so-pin", added, &mut |_| true)?;
    drop(store);
    let connection = rusqlite::Connection::open(&path)?;
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")?;
    drop(connection);
    std::fs::copy(&path, &target)?;
    std::fs::remove_dir_all(&directory)?;
    Ok(())
}

/// A public object.
fn open(label: &str, class: u64) -> Record {
    record(label, class, false, None)
}

/// A private AES-128 key whose value is sixteen times the length of its label.
fn key(label: &str) -> Record {
    let mut secrets = Secrets::new();
    secrets.set(CKA_VALUE, Secret::copy_of(&[label.len().to_le_bytes()[0]; 16]));
    record(label, CKO_SECRET_KEY, true, Some(secrets.encode().expect("there is memory")))
}

fn record(label: &str, class: u64, private: bool, secrets: Option<Secret>) -> Record {
    let mut attributes: Attributes = [
        (CKA_CLASS, Value::Ulong(class)),
        (CKA_TOKEN, Value::Bool(true)),
        (CKA_PRIVATE, Value::Bool(private)),
        (CKA_LABEL, Value::Bytes(label.into())),
        (CKA_ID, Value::Bytes(vec![1, 2, 3])),
    ]
    .into_iter()
    .collect();
    if private {
        attributes.set(CKA_KEY_TYPE, Value::Ulong(CKK_AES));
    }
    let terms: Vec<Term> = vec![
        (CKA_CLASS, class.to_le_bytes().to_vec()),
        (CKA_LABEL, label.into()),
        (CKA_ID, vec![1, 2, 3]),
    ];
    Record { private, attributes: attributes.encode(), secrets, terms }
}
