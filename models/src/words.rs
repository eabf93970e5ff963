// SPDX-License-Identifier: Apache-2.0
//! A token in memory, and short words for what tests do.

use metaslot_ck::*;
use metaslot_engine::{Config, Engine, Output, Policy, SlotConfig};
use metaslot_memory::Secret;
use metaslot_spi::provider::Provider;
use metaslot_spi::store::{
    Change, Examination, Examined, Found, ObjectRow, PinState, Record, Remark, Role, Scope, Store,
    Term, TokenRow,
};
use metaslot_spi::{Attributes, Params, RawValue, Secrets, Template};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A store without a disk: PINs are `so-pin` and `user-pin`; ten other user PINs in a row lock it, and
/// `too-soon` finds it in a pause. A clone is the same store.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    rows: Arc<Mutex<Rows>>,
    next: Arc<AtomicU64>,
    generation: Arc<AtomicU64>,
    open: Arc<AtomicBool>,
    failures: Arc<AtomicU32>,
}

/// By their numbers: the version, the row, and whether a user was logged in.
type Rows = BTreeMap<u64, (u64, Record, bool)>;

impl MemoryStore {
    /// Attributes and secrets of the rows above `id`, in ascending order: what no caller may see.
    pub fn rows_above(&self, id: u64) -> Vec<(u64, Attributes, Secrets)> {
        let rows = self.rows.lock().expect("no panic");
        let shown = |(id, (_, record, _)): (&u64, &(u64, Record, bool))| {
            let secrets = record.secrets.as_ref().map(Secrets::decode);
            let secrets = secrets.transpose().expect("the engine encoded it").unwrap_or_default();
            (*id, Attributes::decode(&record.attributes).expect("as above"), secrets)
        };
        rows.range(id + 1..).map(shown).collect()
    }
}

impl Store for MemoryStore {
    fn token(&self) -> Result<TokenRow> {
        Ok(TokenRow {
            initialized: true,
            label: "test".into(),
            serial: "0123456789abcdef".into(),
            user_pin_set: true,
            user: PinState {
                left: 10_u32.saturating_sub(self.failures.load(Ordering::SeqCst)),
                ..PinState::default()
            },
            writable: true,
            ..TokenRow::default()
        })
    }

    fn initialize(&self, _: &[u8], _: &str) -> Result<()> {
        self.rows.lock().expect("no panic").clear();
        self.open.store(false, Ordering::SeqCst);
        Ok(())
    }

    fn keeps_login(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }

    fn login(&self, role: Role, pin: &[u8]) -> Result<()> {
        self.check_pin(role, pin)?;
        self.open.store(true, Ordering::SeqCst);
        Ok(())
    }

    fn check_pin(&self, role: Role, pin: &[u8]) -> Result<()> {
        if role == Role::So {
            return if pin == b"so-pin" { Ok(()) } else { Err(Error::PIN_INCORRECT) };
        }
        match (pin, self.failures.load(Ordering::SeqCst)) {
            (b"too-soon", _) | (_, 10..) => Err(Error::PIN_LOCKED),
            (b"user-pin", _) => {
                self.failures.store(0, Ordering::SeqCst);
                Ok(())
            }
            _ => {
                self.failures.fetch_add(1, Ordering::SeqCst);
                Err(Error::PIN_INCORRECT)
            }
        }
    }

    fn logout(&self) {
        self.open.store(false, Ordering::SeqCst);
    }

    fn init_pin(&self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn set_pin(&self, role: Role, old: &[u8], _: &[u8]) -> Result<()> {
        self.check_pin(role, old)
    }

    fn write(&self, changes: Vec<Change>) -> Result<Vec<u64>> {
        let mut rows = self.rows.lock().expect("no panic");
        let mut ids = Vec::new();
        let verified = self.open.load(Ordering::SeqCst);
        for change in changes {
            match change {
                Change::Insert(record) if record.terms.contains(&no_room()) => {
                    return Err(Error::DEVICE_MEMORY);
                }
                Change::Insert(record) => {
                    let id = self.next.fetch_add(1, Ordering::SeqCst) + 1;
                    rows.insert(id, (1, record, verified));
                    ids.push(id);
                }
                Change::Update { id, version, mut record } => {
                    let row = rows.get_mut(&id).filter(|row| row.0 == version);
                    let row = row.ok_or(Error::OBJECT_HANDLE_INVALID)?;
                    record.secrets = record.secrets.or_else(|| row.1.secrets.take());
                    *row = (version + 1, record, verified);
                }
                Change::Delete { id, version, .. } => {
                    rows.get(&id)
                        .filter(|row| row.0 == version)
                        .ok_or(Error::OBJECT_HANDLE_INVALID)?;
                    rows.remove(&id);
                }
            }
        }
        self.generation.fetch_add(2, Ordering::SeqCst);
        Ok(ids)
    }

    fn read(&self, id: u64) -> Result<Option<ObjectRow>> {
        let rows = self.rows.lock().expect("no panic");
        let open = self.open.load(Ordering::SeqCst);
        Ok(rows.get(&id).filter(|row| open || !row.1.private).map(|(version, record, verified)| {
            ObjectRow {
                version: *version,
                private: record.private,
                verified: *verified,
                attributes: record.attributes.clone(),
                has_secrets: record.secrets.is_some(),
            }
        }))
    }

    fn secrets(&self, id: u64, version: u64) -> Result<Secret> {
        let rows = self.rows.lock().expect("no panic");
        let row = rows.get(&id).filter(|row| row.0 == version);
        let secrets = row.and_then(|row| row.1.secrets.as_ref());
        secrets.map(|s| Secret::copy_of(s.expose())).ok_or(Error::OBJECT_HANDLE_INVALID)
    }

    fn search(&self, query: &[Term], scope: Scope, after: u64, limit: usize) -> Result<Vec<Found>> {
        let rows = self.rows.lock().expect("no panic");
        let open = self.open.load(Ordering::SeqCst);
        let hit = |record: &Record| {
            let seen = match scope {
                Scope::Public => !record.private,
                Scope::Private => record.private && open,
                Scope::Both => !record.private || open,
            };
            seen && query.iter().all(|term| record.terms.contains(term))
        };
        let found = rows.range(after + 1..).filter(|(_, row)| hit(&row.1));
        Ok(found.map(|(id, row)| Found { id: *id, private: row.1.private }).take(limit).collect())
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
        Some(self.generation.load(Ordering::SeqCst))
    }
}

/// What the store has no room for.
pub fn no_room() -> Term {
    (CKA_LABEL, b"no room".to_vec())
}

/// An engine with one token under `policy`.
pub fn engine(policy: Policy) -> Engine {
    engine_over(MemoryStore::default(), policy)
}

/// An engine with the token in `store`.
pub fn engine_over(store: MemoryStore, policy: Policy) -> Engine {
    static PROVIDERS: &[&dyn Provider] = &[&metaslot_awslc::AWSLC, &metaslot_classics::CLASSICS];
    engine_by(PROVIDERS, store, policy)
}

/// The same, over these providers.
pub fn engine_by(
    providers: &'static [&'static dyn Provider],
    store: MemoryStore,
    policy: Policy,
) -> Engine {
    let store = Box::new(store);
    let slot = SlotConfig { description: "test".into(), store, policy };
    Engine::new(Config { slots: vec![slot], providers })
}

/// An engine under the default policy with a read-write session of the user's.
pub fn logged_in() -> (Engine, SessionHandle) {
    logged_in_under(Policy::DEFAULT)
}

/// The same under another policy.
pub fn logged_in_under(policy: Policy) -> (Engine, SessionHandle) {
    let engine = engine(policy);
    let session = open(&engine);
    engine.login(session, CKU_USER, b"user-pin").expect("the PIN is right");
    (engine, session)
}

/// A read-write session.
pub fn open(engine: &Engine) -> SessionHandle {
    engine.open_session(SlotId(0), CKF_SERIAL_SESSION | CKF_RW_SESSION).expect("it opens")
}

/// One row of a template.
pub trait Raw {
    /// As the edge would decode it.
    fn raw(self) -> RawValue;
}

impl Raw for bool {
    fn raw(self) -> RawValue {
        RawValue::Bytes(vec![u8::from(self)])
    }
}

impl Raw for u64 {
    fn raw(self) -> RawValue {
        RawValue::Bytes(self.to_ne_bytes().to_vec())
    }
}

impl Raw for &[u8] {
    fn raw(self) -> RawValue {
        RawValue::Bytes(self.to_vec())
    }
}

impl Raw for &str {
    fn raw(self) -> RawValue {
        RawValue::Bytes(self.as_bytes().to_vec())
    }
}

/// A row.
pub fn row(attribute: CK_ATTRIBUTE_TYPE, value: impl Raw) -> (CK_ATTRIBUTE_TYPE, RawValue) {
    (attribute, value.raw())
}

/// An AES-256 key with the given attributes besides.
pub fn aes(engine: &Engine, session: SessionHandle, more: Template) -> Result<ObjectHandle> {
    let mut template = vec![row(CKA_VALUE_LEN, 32)];
    template.extend(more);
    engine.generate_key(session, CKM_AES_KEY_GEN, Params::None, template)
}

/// A call that fills a buffer of any size.
pub fn collect(mut call: impl FnMut(&mut Output<'_>) -> Result<()>) -> Result<Vec<u8>> {
    let mut ask = Output::ask();
    call(&mut ask)?;
    let mut buffer = vec![0; ask.length()];
    let mut out = Output::buffer(&mut buffer);
    call(&mut out)?;
    let length = out.length();
    buffer.truncate(length);
    Ok(buffer)
}
