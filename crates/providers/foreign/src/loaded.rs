// SPDX-License-Identifier: Apache-2.0
//! Modules as this process has them: loaded once and for ever, initialised by us or by the host.

use crate::config::Config;
use crate::error::fails_itself;
use crate::isolated::{Isolated, Isolation};
use metaslot_ck::{CKF_OS_LOCKING_OK, CKF_RNG, CKF_TOKEN_INITIALIZED, Error, Function, SlotId};
use metaslot_client::{Access, Error as Failure, Initialize, Module, TokenInfo};
use metaslot_memory::PerProcess;
use rustix::fs::{Access as Wanted, AtFlags, CWD, accessat};
use rustix::io::Errno;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

/// Most modules.
pub(crate) const MAX: usize = 6;
/// How long one who starts a module again waits for those who are in it.
const PATIENCE: Duration = Duration::from_millis(200);

/// A library that is never unloaded: others' destructors and threads do not survive it.
#[derive(Debug)]
pub(crate) struct Loaded {
    at: usize,
    path: PathBuf,
    isolation: Option<Isolation>,
    isolated: Option<Arc<Isolated>>,
    pub(crate) library: Module,
    /// Whether this process, or one that it was forked from, initialised it.
    ours: AtomicBool,
    parameters: Option<CString>,
    /// Goes up when its sessions may have got new numbers: then one token's may be another's by now.
    life: AtomicU64,
    /// How often it has failed: what its sessions were before they may not be any more.
    failures: AtomicU64,
}

static MODULES: [OnceLock<Loaded>; MAX] = [const { OnceLock::new() }; MAX];

/// How many tokens of each are in use.
static USED: PerProcess<[AtomicUsize; MAX]> = PerProcess::new(|_| Default::default());

/// Held over `C_Initialize` and `C_Finalize`; whether this process has initialised it.
static BEGUN: PerProcess<[Mutex<bool>; MAX]> = PerProcess::new(|_| Default::default());

/// Held by those who are in a call of a module; alone by one who starts it again.
static INSIDE: PerProcess<[RwLock<()>; MAX]> = PerProcess::new(|_| Default::default());

/// The module of this file, loaded if it was not yet.
pub(crate) fn find(config: &Config) -> Result<&'static Loaded, String> {
    let path = &config.module;
    if is_proxy(path) {
        return Err(String::from("hands out this module in turn; name the modules behind it"));
    }
    let same = |known: &&Loaded| known.path == *path && known.isolation == config.isolation;
    if let Some(known) = MODULES.iter().filter_map(OnceLock::get).find(same) {
        // In a forked child the loader's lock may be held for ever.
        return Ok(known);
    }
    // One library initialised twice would be one login with two names.
    let real = |path: &Path| path.canonicalize().ok();
    let here = |loaded: &&Loaded| config.isolation.is_none() && loaded.isolation.is_none();
    let mut others = MODULES.iter().filter_map(OnceLock::get).filter(here);
    if others.any(|other| real(path).is_some_and(|path| real(&other.path) == Some(path))) {
        return Err(String::from("is the module of another section, by another path"));
    }
    let parameters = config.parameters.clone().map(CString::new).transpose();
    let parameters = parameters.map_err(|_| String::from("has parameters with a zero in them"))?;
    let isolated = config.isolation.as_ref().map(|how| Isolated::new(how, path.clone()));
    let isolated = isolated.transpose()?.map(Arc::new);
    let library = match &isolated {
        Some(isolated) => Module::remote(path, Arc::clone(isolated) as _),
        None => Module::load(path).map_err(|failure| failure.to_string())?,
    };
    if library.is_metaslot() {
        return Err(String::from("is this module itself"));
    }
    for (at, place) in MODULES.iter().enumerate() {
        let ours = AtomicBool::new(false);
        let (path, parameters) = (path.clone(), parameters.clone());
        let (life, failures) = (AtomicU64::new(0), AtomicU64::new(0));
        let (isolation, library) = (config.isolation.clone(), library.clone());
        let isolated = isolated.clone();
        let new =
            Loaded { at, path, isolation, isolated, library, ours, parameters, life, failures };
        let known = place.get_or_init(|| new);
        if same(&known) {
            return Ok(known);
        }
    }
    Err(format!("is one too many: {MAX} modules are used in one process at most"))
}

/// Whether a file is p11-kit's collection of all modules, of which this is one.
fn is_proxy(path: &Path) -> bool {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let named = |path: &Path, name: &str| {
        path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name))
    };
    named(path, "p11-kit-proxy") || named(&real, "libp11-kit.so")
}

/// What a beginning adds to a module's life; each doubt about its sessions' numbers adds 1.
const BEGINNING: u64 = 1 << 32;

impl Loaded {
    /// `C_Initialize`. A module that is initialised by now is the host's, and stays so, or another thread of ours has been faster;
    /// but what a forked child has of its parent begins anew, as the standard wants it.
    pub(crate) fn initialize(&self) -> metaslot_client::Result<()> {
        let mut here = self.begun();
        let begin = || {
            let parameters = self.parameters.as_deref();
            self.library.initialize_with(Initialize::Flags(CKF_OS_LOCKING_OK, parameters))
        };
        let mut begun = begin();
        self.suspect();
        let there = |begun: metaslot_client::Result<()>| {
            begun.is_err_and(|failure| failure.code == Error::CRYPTOKI_ALREADY_INITIALIZED)
        };
        if there(begun) && self.is_ours() && !*here {
            self.library.finalize().ok();
            begun = begin();
        }
        if !there(begun) {
            begun?;
            *here = true;
            self.ours.store(true, Ordering::SeqCst);
            self.begins_anew();
        } else if !*here {
            self.ours.store(false, Ordering::SeqCst);
            self.begins_anew();
        }
        Ok(())
    }

    fn begun(&self) -> MutexGuard<'static, bool> {
        BEGUN.get()[self.at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// While it lives, the module is not started again.
    pub(crate) fn inside(&self) -> RwLockReadGuard<'static, ()> {
        INSIDE.get()[self.at].read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends and begins a module of ours of which nothing works any more, as when a process behind it has gone. Not while
    /// a thread is in it: of a module that does not work they come out. Says whether a call that failed in this life
    /// may be tried again.
    pub(crate) fn restart(&self, life: u64) -> bool {
        let works = {
            let _inside = self.inside();
            self.works()
        };
        if works || !self.is_ours() {
            return works && life != self.life();
        }
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            if let Ok(_alone) = INSIDE.get()[self.at].try_write() {
                if !self.works() {
                    self.finalize();
                    // Whether it works says enough.
                    self.initialize().ok();
                }
                return self.works();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    }

    /// Whether it has a slot at all, and a device behind one. p11-kit's client has no slot without its server, which it looks for
    /// at its start only; a TPM's module has its slots in a file, and opens its connection at its start only.
    fn works(&self) -> bool {
        let Ok(slots) = self.library.slots(false) else { return false };
        let mut answers = slots.iter().filter_map(|slot| self.answers(*slot)).peekable();
        !slots.is_empty() && (answers.peek().is_none() || answers.any(|works| works))
    }

    /// Whether a token tells what it cannot know without its device, or has a session where it makes no random numbers; none of one
    /// that is not initialised.
    fn answers(&self, slot: SlotId) -> Option<bool> {
        let ask = |token: TokenInfo| {
            let session = self.library.open_session(slot, Access::ReadOnly)?;
            match token.has(CKF_RNG) {
                true => session.random(&mut [0; 8]),
                false => session.info().map(drop),
            }
        };
        let answer = match self.library.token_info(slot) {
            Ok(token) if !token.has(CKF_TOKEN_INITIALIZED) => return None,
            token => token.and_then(ask),
        };
        Some(!answer.is_err_and(|failure| fails_itself(failure.code)))
    }

    /// The connection to one in another process.
    pub(crate) fn link(&self) -> Option<u64> {
        self.isolated.as_ref()?.link()
    }

    /// Whether it is in another process, by p11-kit's protocol: what goes there and back is less than there is.
    pub(crate) fn is_apart(&self) -> bool {
        !self.library.carries_key_management()
    }

    /// The socket of a server that was not started for us.
    pub(crate) fn server(&self) -> Option<&Path> {
        let isolation = self.isolation.as_ref()?;
        isolation.program.is_none().then_some(&*self.path)
    }

    /// Whether a failure is that a server has gone, which is looked for with the next call, and not that it was waited for in vain.
    pub(crate) fn may_return(&self, failure: Failure) -> bool {
        let lost =
            matches!(failure.code, Error::CRYPTOKI_NOT_INITIALIZED | Error::SESSION_HANDLE_INVALID);
        self.server().is_some() && lost
    }

    /// Why it has no slot.
    pub(crate) fn does_not_start(&self, failure: Failure) -> String {
        match self.server().filter(|_| self.is_away(failure)) {
            Some(socket) => format!("is a server that {} at {}", absence(socket), socket.display()),
            None => format!("does not start: {failure}"),
        }
    }

    /// Whether a failure is that a server does not answer.
    pub(crate) fn is_away(&self, failure: Failure) -> bool {
        let start = failure.function == Function::Initialize;
        self.server().is_some() && start && failure.code == Error::DEVICE_REMOVED
    }

    /// The numbers of sessions may have changed.
    pub(crate) fn suspect(&self) {
        self.life.fetch_add(1, Ordering::SeqCst);
    }

    /// It has failed, and may have begun anew behind its sessions: without the logins.
    pub(crate) fn has_failed(&self) {
        self.failures.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::SeqCst)
    }

    /// Sessions from before are no longer valid, even where their numbers are in use again.
    fn begins_anew(&self) {
        self.life.fetch_add(BEGINNING, Ordering::SeqCst);
    }

    pub(crate) fn life(&self) -> u64 {
        self.life.load(Ordering::SeqCst)
    }

    /// Whether the module has begun anew since it had this life.
    pub(crate) fn began_since(&self, life: u64) -> bool {
        life / BEGINNING != self.life() / BEGINNING
    }

    fn is_ours(&self) -> bool {
        self.ours.load(Ordering::SeqCst)
    }

    /// One token less; after the last `C_Finalize`, unless the host uses the module too.
    pub(crate) fn leave(&self) {
        if self.users().fetch_sub(1, Ordering::SeqCst) == 1 {
            self.finalize();
        }
    }

    /// One token more.
    pub(crate) fn enter(&self) {
        self.users().fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn is_used(&self) -> bool {
        self.users().load(Ordering::SeqCst) > 0
    }

    fn users(&self) -> &'static AtomicUsize {
        &USED.get()[self.at]
    }

    /// `C_Finalize`, of what was initialised here.
    pub(crate) fn finalize(&self) {
        let mut here = self.begun();
        *here = false;
        if self.ours.swap(false, Ordering::SeqCst) {
            // A module that refuses to end goes on; there is no caller to tell.
            self.library.finalize().ok();
        }
    }
}

/// Why a server is not reached, as far as its socket says it: what helps the one helps the other not.
pub(crate) fn absence(socket: &Path) -> &'static str {
    // As `connect` asks: for the user that the process acts as.
    match accessat(CWD, socket, Wanted::WRITE_OK, AtFlags::EACCESS) {
        Err(Errno::ACCESS) => "does not let this user connect",
        _ => "does not answer",
    }
}
