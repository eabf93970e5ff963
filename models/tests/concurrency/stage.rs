// SPDX-License-Identifier: Apache-2.0
//! Where one history is played: two engines over one token, and what the threads tell each other.

use crate::history::{Answer, Call, Change, Event, Kind};
use crate::store::{Disk, PIN, SO_PIN};
use metaslot_ck::*;
use metaslot_engine::{Answer as Shown, CACHED, Config, Engine, Output, Policy, SlotConfig};
use metaslot_lanes::provider::Lanes;
use metaslot_models::chance::{self, Chance};
use metaslot_models::{Raw, row};
use metaslot_router::{Routes, Settings};
use metaslot_spi::provider::Direction::Forward;
use metaslot_spi::provider::Provider;
use metaslot_spi::{Params, Template, Value};
use std::sync::atomic::{AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

/// What varies from history to history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// Objects in the cache of each process; 0 for the usual number.
    pub(crate) cached: usize,
    /// Objects of the token that are read before the history begins.
    pub(crate) filling: usize,
    /// Rows that are so far apart meet in one shard of the cache.
    pub(crate) stride: u64,
    /// Whether processes see each other's commits by a generation.
    pub(crate) page: bool,
    /// Whether the token is on a real disk.
    pub(crate) real: bool,
    /// What things there are at the start.
    pub(crate) kinds: &'static [Kind],
}

/// Two processes.
pub(crate) struct Stage {
    /// They go before the disk.
    processes: [Engine; 2],
    _disk: Disk,
    pub(crate) sessions: [Pool; 2],
    pub(crate) objects: [Pool; 2],
    /// A search is three calls, so one thread at a time makes it in a session.
    searching: [Mutex<()>; REMEMBERED],
    /// What is pending in a session is asked for by the thread that began it.
    encrypting: [Mutex<()>; REMEMBERED],
    tags: AtomicUsize,
    kinds: [AtomicU8; TAGS],
}

/// Most things of one history.
const TAGS: usize = 128;

/// Handles that threads tell each other of. Taking one out orders nothing, so that the pool hides no
/// order that is missing between the calls themselves.
#[derive(Default)]
pub(crate) struct Pool {
    handles: [(AtomicU64, AtomicU8); REMEMBERED],
    count: AtomicUsize,
}

const REMEMBERED: usize = 16;

impl Pool {
    fn add(&self, handle: u64, kind: Kind) {
        let place = &self.handles[self.count.fetch_add(1, Ordering::Relaxed) % REMEMBERED];
        place.0.store(handle, Ordering::Relaxed);
        place.1.store(kind as u8, Ordering::Relaxed);
    }

    pub(crate) fn one(&self, chance: &mut Chance) -> (u64, Kind) {
        let count = self.count.load(Ordering::Relaxed).clamp(1, REMEMBERED);
        let place = &self.handles[chance.index(count)];
        (place.0.load(Ordering::Relaxed), kind(&place.1))
    }

    fn has(&self, handle: u64) -> bool {
        self.handles.iter().any(|place| place.0.load(Ordering::Relaxed) == handle)
    }
}

fn kind(number: &AtomicU8) -> Kind {
    Kind::ALL[usize::from(number.load(Ordering::Relaxed))]
}

impl Stage {
    /// A new token, with what was done to it before the threads come in `events`.
    pub(crate) fn new(chance: &mut Chance, setting: Setting, events: &mut Vec<Event>) -> Self {
        let disk = match setting.real {
            true => Disk::real(),
            false => Disk::in_memory(setting.page, setting.stride),
        };
        let stage = Self {
            processes: [process(&disk, setting.cached), process(&disk, setting.cached)],
            sessions: Default::default(),
            objects: Default::default(),
            _disk: disk,
            searching: Default::default(),
            encrypting: Default::default(),
            tags: AtomicUsize::new(0),
            kinds: [const { AtomicU8::new(0) }; TAGS],
        };
        let second = u8::from(chance.is(1, 3));
        for process in 0..=second {
            stage.prepare(process, chance, setting, events);
        }
        stage
    }

    fn prepare(&self, process: u8, chance: &mut Chance, setting: Setting, events: &mut Vec<Event>) {
        let mut play = |call| events.push(self.play(0, call));
        for _ in 0..=chance.below(2) {
            let write = setting.filling > 0 || chance.is(7, 8);
            play(Call::Open { process, write, asynchronous: chance.is(1, 3) });
        }
        let session = self.sessions[usize::from(process)].one(chance).0;
        if chance.is(5, 6) {
            play(Call::Login { session, user: true });
        }
        let filling = if process == 0 { self.fill(session, setting.filling) } else { Vec::new() };
        for _ in 0..chance.below(4) {
            let kind = chance.one_of(setting.kinds);
            play(Call::Create { session, kind, tag: self.tag(kind) });
        }
        for _ in 0..chance.below(3) {
            let (object, kind) = self.objects[usize::from(process)].one(chance);
            if kind.is_key() {
                play(Call::Use { session, object });
                if chance.is(3, 4) {
                    play(Call::Encrypt { session });
                }
            }
        }
        for object in filling {
            self.processes[0].object(SessionHandle(session), object).expect("it is there");
        }
    }

    /// Things that no call means: they only take room in the cache when they are read.
    fn fill(&self, session: u64, count: usize) -> Vec<ObjectHandle> {
        let template = || template(Kind::TokenData, u8::MAX);
        let make = |_| self.processes[0].create_object(SessionHandle(session), template());
        (0..count).map(make).collect::<Result<_>>().expect("public objects are made")
    }

    /// A name for a new thing.
    pub(crate) fn tag(&self, kind: Kind) -> u8 {
        let tag = self.tags.fetch_add(1, Ordering::Relaxed) % TAGS;
        self.kinds[tag].store(kind as u8, Ordering::Relaxed);
        u8::try_from(tag).unwrap_or(0)
    }

    /// The name of a thing that a call made, or tries to.
    pub(crate) fn known_tag(&self, chance: &mut Chance) -> u8 {
        let known = self.tags.load(Ordering::Relaxed).clamp(1, TAGS);
        u8::try_from(chance.index(known)).unwrap_or(0)
    }

    /// Makes the call and writes down what came of it.
    pub(crate) fn play(&self, thread: usize, call: Call) -> Event {
        let begin = Instant::now();
        let answer = self.answer(call).unwrap_or_else(Answer::No);
        let event = Event { thread, call, answer, begin, end: Instant::now() };
        match (call, answer) {
            (Call::Open { process, .. }, Answer::Handle(handle)) => {
                self.sessions[usize::from(process)].add(handle, Kind::PublicKey);
            }
            (
                Call::Create { session, tag, .. } | Call::Copy { session, tag, .. },
                Answer::Handle(handle),
            )
            | (Call::Find { session, tag }, Answer::Found(Some(handle))) => {
                let kind = kind(&self.kinds[usize::from(tag)]);
                self.objects[usize::from(self.process_of(session))].add(handle, kind);
            }
            _ => {}
        }
        event
    }

    fn process_of(&self, session: u64) -> u8 {
        u8::from(self.sessions[1].has(session))
    }

    fn answer(&self, call: Call) -> Result<Answer> {
        let of = |session| {
            (&self.processes[usize::from(self.process_of(session))], SessionHandle(session))
        };
        let done = |()| Answer::Done;
        let made = |handle: ObjectHandle| Answer::Handle(handle.0);
        match call {
            Call::Open { process, write, asynchronous } => {
                let flags = CKF_SERIAL_SESSION
                    | if write { CKF_RW_SESSION } else { 0 }
                    | if asynchronous { CKF_ASYNC_SESSION } else { 0 };
                let opened = self.processes[usize::from(process)].open_session(SlotId(0), flags);
                opened.map(|handle| Answer::Handle(handle.0))
            }
            Call::Close { session } => {
                let (engine, session) = of(session);
                engine.close_session(session).map(done)
            }
            Call::Login { session, user } => {
                let (engine, session) = of(session);
                let (who, pin) = if user { (CKU_USER, PIN) } else { (CKU_SO, SO_PIN) };
                engine.login(session, who, pin).map(done)
            }
            Call::Logout { session } => {
                let (engine, session) = of(session);
                engine.logout(session).map(done)
            }
            Call::Create { session, kind, tag } => {
                let (engine, session) = of(session);
                engine.create_object(session, template(kind, tag)).map(made)
            }
            Call::Copy { session, object, token, tag } => {
                let (engine, session) = of(session);
                let changes = vec![row(CKA_TOKEN, token), row(CKA_ID, &[tag][..])];
                engine.copy_object(session, ObjectHandle(object), changes).map(made)
            }
            Call::Set { session, object, change } => {
                let (engine, session) = of(session);
                let change = match change {
                    Change::Label(label) => row(CKA_LABEL, &[label][..]),
                    Change::Sensitive => row(CKA_SENSITIVE, true),
                    Change::Single => row(CKA_COPYABLE, false),
                };
                engine.set_attributes(session, ObjectHandle(object), vec![change]).map(done)
            }
            Call::Get { session, object } => {
                let (engine, session) = of(session);
                attributes(engine, session, ObjectHandle(object))
            }
            Call::Find { session, tag } => {
                let _alone = alone(&self.searching, session);
                let (engine, session) = of(session);
                find(engine, session, tag, kind(&self.kinds[usize::from(tag)]))
            }
            Call::Use { session, object } => {
                let (engine, session) = of(session);
                engine
                    .cipher_init(Forward, session, CKM_AES_CBC, iv(), ObjectHandle(object))
                    .map(done)
            }
            Call::Encrypt { session } => {
                let _alone = alone(&self.encrypting, session);
                let (engine, session) = of(session);
                encrypted(engine, session).map(|block| Answer::Encrypted(whose(&block)))
            }
            Call::Destroy { session, object } => {
                let (engine, session) = of(session);
                engine.destroy_object(session, ObjectHandle(object)).map(done)
            }
            Call::InitToken { process } => {
                let engine = &self.processes[usize::from(process)];
                engine.init_token(SlotId(0), SO_PIN, "test").map(done)
            }
        }
    }
}

/// By the session's place in its table.
fn alone(mutexes: &[Mutex<()>; REMEMBERED], session: u64) -> MutexGuard<'_, ()> {
    let place = usize::try_from(session).unwrap_or(0) % REMEMBERED;
    mutexes[place].lock().unwrap_or_else(PoisonError::into_inner)
}

/// One block of zeros.
fn encrypted(engine: &Engine, session: SessionHandle) -> Result<[u8; 16]> {
    let mut block = [0; 16];
    let mut result = engine.cipher(Forward, session, &[0; 16], &mut Output::buffer(&mut block));
    while result == Err(Error::PENDING) {
        chance::pause();
        let complete = engine.async_complete(session, Function::Encrypt, |_| &mut block);
        result = complete.map(drop);
    }
    result.map(|()| block)
}

fn iv() -> Params {
    Params::Iv([0; 16][..].into())
}

fn process(disk: &Disk, cached: usize) -> Engine {
    static LANES: Lanes = Lanes::beside(&metaslot_awslc::AWSLC);
    static PROVIDERS: &[&dyn Provider] = &[&LANES, &metaslot_awslc::AWSLC];
    let (description, policy) = (String::from("test"), Policy::legacy());
    let store = disk.process();
    let slots = vec![SlotConfig { description, store, policy }];
    let config = Config { slots, providers: PROVIDERS };
    let cached = if cached == 0 { CACHED } else { cached };
    Engine::with(config, cached, Arc::new(Routes::new(PROVIDERS, Settings::default())))
}

fn template(kind: Kind, tag: u8) -> Template {
    let mut template = vec![
        row(CKA_TOKEN, kind.on_token()),
        row(CKA_PRIVATE, kind.private()),
        row(CKA_LABEL, &[0u8][..]),
    ];
    if kind.is_key() {
        template.extend([
            row(CKA_CLASS, CKO_SECRET_KEY),
            row(CKA_KEY_TYPE, CKK_AES),
            row(CKA_VALUE, &[tag; 16][..]),
            row(CKA_ID, &[tag][..]),
            row(CKA_SENSITIVE, false),
            row(CKA_EXTRACTABLE, true),
        ]);
    } else {
        template.extend([
            row(CKA_CLASS, CKO_DATA),
            row(CKA_VALUE, &[tag; 16][..]),
            row(CKA_OBJECT_ID, &[tag][..]),
        ]);
    }
    template
}

fn attributes(engine: &Engine, session: SessionHandle, object: ObjectHandle) -> Result<Answer> {
    let object = engine.object(session, object)?;
    let label = match object.answer(CKA_LABEL)? {
        Shown::Value(Value::Bytes(label)) => label.first().copied().unwrap_or(u8::MAX),
        _ => u8::MAX,
    };
    let sensitive = matches!(object.answer(CKA_SENSITIVE), Ok(Shown::Value(Value::Bool(true))));
    let value = match object.answer(CKA_VALUE) {
        Ok(Shown::Secret(value)) => value.first().copied(),
        Ok(Shown::Value(Value::Bytes(value))) => value.first().copied(),
        Err(Error::ATTRIBUTE_SENSITIVE) => None,
        _ => Some(u8::MAX),
    };
    Ok(Answer::Attributes(label, sensitive, value))
}

fn find(engine: &Engine, session: SessionHandle, tag: u8, kind: Kind) -> Result<Answer> {
    let attribute = if kind.is_key() { CKA_ID } else { CKA_OBJECT_ID };
    engine.find_init(session, vec![(attribute, [tag][..].raw())])?;
    let found = engine.find(session, 2)?;
    engine.find_final(session)?;
    Ok(Answer::Found(found.first().map(|handle| handle.0)))
}

/// The key that has encrypted a block of zeros.
fn whose(block: &[u8; 16]) -> u8 {
    static BLOCKS: OnceLock<Vec<[u8; 16]>> = OnceLock::new();
    let blocks = BLOCKS.get_or_init(|| (0..=u8::MAX).take(TAGS).map(encrypted_by).collect());
    let at = blocks.iter().position(|known| known == block);
    at.and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX)
}

fn encrypted_by(tag: u8) -> [u8; 16] {
    let engine = process(&Disk::in_memory(true, 1), 0);
    let session = metaslot_models::open(&engine);
    let key = engine.create_object(session, template(Kind::PublicKey, tag)).expect("it is made");
    engine.cipher_init(Forward, session, CKM_AES_CBC, iv(), key).expect("it begins");
    let mut block = [0; 16];
    let out = &mut Output::buffer(&mut block);
    engine.cipher(Forward, session, &[0; 16], out).expect("it encrypts");
    block
}
