// SPDX-License-Identifier: Apache-2.0
//! Everything between one `C_Initialize` and its `C_Finalize`.

use crate::audit::Log;
use crate::cancel::{Uncancelled, UncancelledStore};
use crate::config::{self, Config, Counters, ForeignConfig, PoolConfig, TokenConfig};
use crate::environment::directory;
use crate::pipe::Unbroken;
use metaslot_awslc::AWSLC;
use metaslot_awslc_wrapper as awslc;
use metaslot_ck::{Error, Result};
use metaslot_counters as counters;
use metaslot_engine::{Config as EngineConfig, Engine, MAX_SLOTS, Policy, SlotConfig};
use metaslot_foreign::{ForeignStore, PoolStore};
use metaslot_keystore::{Config as StoreConfig, SqliteStore};
use metaslot_lanes::cpu;
use metaslot_lanes::provider::{Lanes, Off};
use metaslot_memory::PerProcess;
use metaslot_spi::detail;
use metaslot_spi::provider::Provider;
use std::cell::Cell;
use std::path::PathBuf;
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};

/// In the order in which the metaslot asks them. OpenSSL is the last, so that without it the others keep their places, which
/// are their numbers in the counters.
static PROVIDERS: &[&dyn Provider] = &[
    #[cfg(feature = "panicking-provider")]
    &crate::panicking::Panicking,
    &LANES,
    &AWSLC,
    #[cfg(feature = "openssl")]
    &metaslot_openssl::OPENSSL,
];
/// The same without the lanes.
static WITHOUT_LANES: &[&dyn Provider] = &[
    &Off,
    &AWSLC,
    #[cfg(feature = "openssl")]
    &metaslot_openssl::OPENSSL,
];

static LANES: Lanes = Lanes::beside(&AWSLC);

/// The engine, made at the first call that needs it.
#[derive(Debug)]
pub(crate) struct Library {
    engine: OnceLock<std::result::Result<Engine, String>>,
    log: OnceLock<Log>,
    epoch: u32,
}

impl Library {
    pub(crate) const fn new(epoch: u32) -> Self {
        Self { engine: OnceLock::new(), log: OnceLock::new(), epoch }
    }

    /// The engine.
    ///
    /// # Errors
    /// `CKR_DEVICE_ERROR` when the configuration is unusable; the detail says why.
    #[inline]
    pub(crate) fn engine(&self) -> Result<&Engine> {
        match self.engine.get() {
            Some(Ok(engine)) => Ok(engine),
            _ => self.first_engine(),
        }
    }

    /// The audit log, where one is configured; known once there is an engine.
    #[inline]
    pub(crate) fn log(&self) -> Option<&Log> {
        self.log.get()
    }

    #[cold]
    fn first_engine(&self) -> Result<&Engine> {
        if is_outside() {
            // The engine is being made by this thread, and waits for the module that calls.
            return Err(Error::FUNCTION_FAILED);
        }
        let _uncancelled = Uncancelled::begin();
        let engine = self.engine.get_or_init(|| match config::read() {
            Ok(mut config) => {
                if let Some(audit) = config.audit.take() {
                    self.log.get_or_init(|| Log::new(audit));
                }
                Ok(engine(config))
            }
            Err(problem) => Err(problem.to_string()),
        });
        engine.as_ref().map_err(|problem| {
            detail::set(format_args!("{problem}"));
            Error::DEVICE_ERROR
        })
    }

    /// What changes when this library is finalised.
    pub(crate) const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Whether or not there is a library, the calling thread forks.
    pub(crate) fn before_fork() {
        awslc::fork::before();
        #[cfg(feature = "openssl")]
        metaslot_openssl::fork::before();
    }

    /// Whether or not there is a library, the calling thread has forked, and is in the parent or in the child.
    pub(crate) fn after_fork() {
        #[cfg(feature = "openssl")]
        metaslot_openssl::fork::after();
    }

    /// In a forked child that begins anew.
    pub(crate) fn forked() {
        awslc::fork::in_child();
        counters::forked();
    }
}

fn engine(config: Config) -> Engine {
    let directories = match config.counters {
        Counters::Usual => runtime_directories().collect(),
        Counters::Directory(directory) => vec![directory],
        Counters::Private => Vec::new(),
    };
    // A page that cannot be made is not worth a failure: the process counts privately.
    drop(counters::open(directories.into_iter(), uncancelled));
    counters::set(counters::Event::MemoryNotLocked, u64::from(memory_is_degraded()));
    let mut slots: Vec<_> = config.tokens.into_iter().map(slot).collect();
    let (mut absent, mut others, mut keyless) = (Vec::new(), Vec::new(), Vec::new());
    let mut pooled: Vec<(String, String)> = Vec::new();
    for ForeignConfig { module, policy, enabled } in config.foreign {
        if !enabled {
            absent.push((module.name, String::from("is disabled in the configuration")));
            continue;
        }
        let (tokens, missing) = metaslot_foreign::open(&module, apart);
        keyless.extend(tokens.iter().find_map(ForeignStore::provider));
        others.extend(tokens.into_iter().map(|token| (token, policy)));
        absent.extend(missing.map(|reason| (module.name, reason)));
    }
    let mut pools = Vec::new();
    for config in config.pools {
        let name = config.name.clone();
        match pool_slot(config, &mut others, &mut pooled) {
            Ok(pool) => pools.push(pool),
            Err(reason) => absent.push((name, reason)),
        }
    }
    pooled.sort_unstable();
    pooled.dedup_by(|one, other| one.0 == other.0);
    pooled.retain(|(module, _)| others.iter().all(|(token, _)| token.name() != module));
    absent.extend(
        pooled.into_iter().map(|(module, pool)| (module, format!("serves the pool {pool}"))),
    );
    slots.extend(others.into_iter().map(|(token, policy)| foreign_slot(token, policy)));
    slots.extend(pools);
    slots.truncate(MAX_SLOTS);
    cpu::mask(config.lanes_without);
    let all = if config.lanes { PROVIDERS } else { WITHOUT_LANES };
    let left_out = usize::from(cfg!(feature = "openssl") && !config.openssl);
    let providers = with_others(&all[..all.len() - left_out], &keyless);
    Engine::new(EngineConfig { slots, providers })
        .with_costs(&config.costs)
        .without(absent)
        .disabling(config.disabled)
}

/// Lists of providers that were ever used in this process.
static LISTS: PerProcess<Mutex<Vec<Providers>>> = PerProcess::new(|_| Mutex::default());

type Providers = &'static [&'static dyn Provider];

/// Our own providers, then those of other modules. A list is never freed, and made once.
fn with_others(ours: Providers, others: &[&'static dyn Provider]) -> Providers {
    if others.is_empty() {
        return ours;
    }
    let all: Vec<_> = ours.iter().chain(others).copied().collect();
    let mut lists = LISTS.get().lock().unwrap_or_else(PoisonError::into_inner);
    // Where one has no size another may have its place: it has another name.
    let each = |list: &[&'static dyn Provider]| -> Vec<_> {
        list.iter().map(|one| (one.name(), ptr::from_ref(*one).cast::<()>())).collect()
    };
    let same = |list: &&Providers| each(list) == each(&all);
    if let Some(list) = lists.iter().find(same) {
        return list;
    }
    let list: Providers = Vec::leak(all);
    lists.push(list);
    list
}

/// Calls another module: no thread is cancelled meanwhile, no such module calls this one, and none ends the process by a
/// pipe that it finds closed.
fn apart(work: &mut dyn FnMut()) {
    let _uncancelled = Uncancelled::begin();
    let _unbroken = Unbroken::begin();
    let _outside = Outside(OUTSIDE.replace(true));
    work();
}

fn uncancelled(work: &mut dyn FnMut()) {
    let _uncancelled = Uncancelled::begin();
    work();
}

/// What was before a call of another module.
struct Outside(bool);

impl Drop for Outside {
    fn drop(&mut self) {
        OUTSIDE.set(self.0);
    }
}

/// Whether the thread is in another module's code: a call that comes now is that module's.
pub(crate) fn is_outside() -> bool {
    OUTSIDE.get()
}

thread_local! {
    static OUTSIDE: Cell<bool> = const { Cell::new(false) };
}

/// A pool over those of the other tokens that are its own, or why there is none; `pooled`: modules, and whose their tokens are.
fn pool_slot(
    config: PoolConfig,
    others: &mut Vec<(ForeignStore, Policy)>,
    pooled: &mut Vec<(String, String)>,
) -> std::result::Result<SlotConfig, String> {
    let PoolConfig { name, tokens, policy } = config;
    let mut labels = Vec::new();
    let of_pool = |other: &mut (ForeignStore, Policy)| {
        let label = other.0.label().filter(|label| tokens.contains(label));
        let is_one = label.is_some();
        labels.extend(label);
        is_one
    };
    let members: Vec<_> = others.extract_if(.., of_pool).map(|(token, _)| token).collect();
    labels.sort_unstable();
    // Which of two is meant is not known, and the PIN would go to both.
    if let Some(two) = labels.windows(2).find(|two| two[0] == two[1]) {
        return Err(format!("finds two tokens with the label {:?}", two[0]));
    }
    let description = format!("{name}: one key in {} tokens", tokens.len());
    let missing: Vec<_> = tokens.into_iter().filter(|label| !labels.contains(label)).collect();
    let tokens = others.iter().map(|other| &other.0).filter(|_| !missing.is_empty());
    let late: Vec<_> = tokens.filter(|token| token.label().is_none()).collect();
    if members.is_empty() && late.is_empty() {
        return Err(String::from("finds none of its tokens"));
    }
    pooled.extend(members.iter().map(|one| (one.name().to_owned(), name.clone())));
    let store = PoolStore::new(&name, members, &missing, &late);
    Ok(SlotConfig { description, store: Box::new(UncancelledStore(store)), policy })
}

fn foreign_slot(token: ForeignStore, policy: Policy) -> SlotConfig {
    SlotConfig {
        description: token.description(),
        store: Box::new(UncancelledStore(token)),
        policy,
    }
}

/// Whether secrets cannot be kept as they should be. The arena is made here if it was not yet, so
/// that the answer is known from the beginning.
fn memory_is_degraded() -> bool {
    drop(metaslot_memory::Secret::zeroed(1));
    metaslot_memory::stats().degraded
}

/// Where things live that do not survive a reboot. They are used where they are, never made.
fn runtime_directories() -> impl Iterator<Item = PathBuf> {
    let own = directory(c"XDG_RUNTIME_DIR").map(|own| own.join("metaslot"));
    own.into_iter().chain([PathBuf::from("/run/metaslot")])
}

fn slot(token: TokenConfig) -> SlotConfig {
    let store = SqliteStore::new(StoreConfig {
        path: token.path,
        group: token.group,
        fast_login: token.fast_login,
        runtime: runtime_directories().find(|directory| directory.is_dir()),
        kdf: token.kdf,
        shortest_pin: token.pin_min,
        pepper: token.pepper,
        anchor: token.anchor,
    });
    SlotConfig {
        description: token.description,
        store: Box::new(UncancelledStore(store)),
        policy: token.policy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_spi::provider::Algorithm;

    /// It makes random numbers, say.
    #[derive(Debug)]
    struct WithoutTable(#[expect(dead_code, reason = "it has a place of its own")] u8);

    impl Provider for WithoutTable {
        fn name(&self) -> &'static str {
            "other"
        }

        fn algorithms(&'static self) -> &'static [Algorithm] {
            &[]
        }
    }

    #[test]
    fn another_provider_of_the_same_name_is_another() {
        static OTHERS: [WithoutTable; 2] = [WithoutTable(0), WithoutTable(1)];
        let [one, two] = [&OTHERS[0], &OTHERS[1]].map(|other| with_others(PROVIDERS, &[other]));
        assert!(!ptr::eq(one, two), "the second is not asked");
        assert!(ptr::eq(one, with_others(PROVIDERS, &[&OTHERS[0]])), "a list for each start");
        assert!(ptr::eq(PROVIDERS, with_others(PROVIDERS, &[])));
    }
}
