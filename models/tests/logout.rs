// SPDX-License-Identifier: Apache-2.0
//! A logout in the middle of another thread's call, and sessions of many threads.

use metaslot_awslc::AWSLC;
use metaslot_ck::*;
use metaslot_engine::{Config, Engine, Policy, SlotConfig};
use metaslot_memory::Secret;
use metaslot_models::{MemoryStore, aes, logged_in, open, row};
use metaslot_spi::Params;
use metaslot_spi::provider::Direction::Forward;
use metaslot_spi::provider::Provider;
use metaslot_spi::store::*;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// A store that does not know its generation, and in which one look at a row takes as long as a logout.
#[derive(Clone, Debug, Default)]
struct Slow {
    store: MemoryStore,
    /// Told that a row is looked at,
    reads: Arc<Mutex<Option<Sender<()>>>>,
    /// and tells that the store is closed.
    closed: Arc<Mutex<Option<Receiver<()>>>>,
    closes: Arc<Mutex<Option<Sender<()>>>>,
}

impl Store for Slow {
    fn token(&self) -> Result<TokenRow> {
        self.store.token()
    }

    fn initialize(&self, so_pin: &[u8], label: &str) -> Result<()> {
        self.store.initialize(so_pin, label)
    }

    fn login(&self, role: Role, pin: &[u8]) -> Result<()> {
        self.store.login(role, pin)
    }

    fn check_pin(&self, role: Role, pin: &[u8]) -> Result<()> {
        self.store.check_pin(role, pin)
    }

    fn logout(&self) {
        self.store.logout();
        if let Some(closes) = self.closes.lock().expect("no panic").take() {
            closes.send(()).expect("somebody waits");
        }
    }

    fn keeps_login(&self) -> bool {
        self.store.keeps_login()
    }

    fn init_pin(&self, pin: &[u8]) -> Result<()> {
        self.store.init_pin(pin)
    }

    fn set_pin(&self, role: Role, old: &[u8], new: &[u8]) -> Result<()> {
        self.store.set_pin(role, old, new)
    }

    fn write(&self, changes: Vec<Change>) -> Result<Vec<u64>> {
        self.store.write(changes)
    }

    fn read(&self, id: u64) -> Result<Option<ObjectRow>> {
        if let Some(reads) = self.reads.lock().expect("no panic").take() {
            reads.send(()).expect("somebody waits");
            self.closed
                .lock()
                .expect("no panic")
                .take()
                .expect("it is set")
                .recv()
                .expect("somebody tells");
        }
        self.store.read(id)
    }

    fn secrets(&self, id: u64, version: u64) -> Result<Secret> {
        self.store.secrets(id, version)
    }

    fn search(&self, query: &[Term], scope: Scope, after: u64, limit: usize) -> Result<Vec<Found>> {
        self.store.search(query, scope, after, limit)
    }

    fn examine(
        &self,
        role: Role,
        pin: &[u8],
        what: Examination<'_>,
        remark: &mut dyn FnMut(Remark<'_>) -> bool,
    ) -> Result<Examined> {
        self.store.examine(role, pin, what, remark)
    }

    fn restored(&self) -> Result<u64> {
        self.store.restored()
    }

    fn generation(&self) -> Option<u64> {
        None
    }
}

/// What ends one operation of a session ends the keys with which another could begin.
#[test]
fn a_call_sees_all_of_a_logout_or_nothing() {
    let slow = Slow::default();
    let slot = SlotConfig {
        description: "test".into(),
        store: Box::new(slow.clone()),
        policy: Policy::DEFAULT,
    };
    static PROVIDERS: &[&dyn Provider] = &[&AWSLC];
    let engine = Engine::new(Config { slots: vec![slot], providers: PROVIDERS });
    let (session, other) = (open(&engine), open(&engine));
    engine.login(session, CKU_USER, b"user-pin").unwrap();
    let key = |token| {
        let template = vec![row(CKA_TOKEN, token), row(CKA_PRIVATE, true), row(CKA_ENCRYPT, true)];
        aes(&engine, session, template).unwrap()
    };
    let (token_key, session_key) = (key(true), key(false));
    let begin = |key| {
        let params = Params::Iv([0; 16][..].into());
        engine.cipher_init(Forward, session, CKM_AES_CBC, params, key)
    };
    // The session remembers the key.
    begin(session_key).unwrap();
    engine.session_cancel(session, CKF_ENCRYPT).unwrap();
    begin(token_key).unwrap();

    let (reads, is_read) = channel();
    let (closes, closed) = channel();
    *slow.closed.lock().unwrap() = Some(closed);
    *slow.closes.lock().unwrap() = Some(closes);
    *slow.reads.lock().unwrap() = Some(reads);
    std::thread::scope(|scope| {
        let engine = &engine;
        scope.spawn(move || {
            is_read.recv().unwrap();
            engine.logout(other).unwrap();
        });
        assert_eq!(begin(session_key), Err(Error::KEY_HANDLE_INVALID));
    });
}

#[test]
fn sessions_open_and_close_from_many_threads() {
    let (engine, _kept) = logged_in();
    let work = &|| {
        for _ in 0..2_000 {
            let session = open(&engine);
            assert!(engine.session_info(session).is_ok());
            engine.close_session(session).expect("it closes");
            assert_eq!(engine.close_session(session), Err(Error::SESSION_HANDLE_INVALID));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(work);
        }
    });
    assert_eq!(engine.token_info(SlotId(0)).map(|info| info.sessions.1), Ok(1));
}
