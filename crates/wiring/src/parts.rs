// SPDX-License-Identifier: Apache-2.0
//! What an engine is made of.

use crate::cancel::Uncancelled;
use crate::config::{Config, Counters, DaemonConfig, OwnLogin};
use crate::environment::runtime_directories;
use crate::providers::{providers, settings};
use crate::reload::Watched;
use crate::remote::Open;
use crate::slots::Slots;
use metaslot_counters as counters;
use metaslot_engine::{Config as EngineConfig, Engine, SlotConfig};
use metaslot_lanes::cpu;
use metaslot_router::Settings;
use metaslot_spi::provider::Provider;

/// What a configuration comes to.
#[derive(Debug)]
pub struct Parts {
    /// In the order of their numbers.
    pub slots: Vec<SlotConfig>,
    /// Names of what has no slot, each with the reason.
    pub absent: Vec<(String, String)>,
    /// In the order in which they are asked.
    pub providers: &'static [&'static dyn Provider],
    /// What they may do, and what operations cost.
    pub settings: Settings,
    /// What may change under an engine.
    pub watched: Watched,
    /// What `metaslotd` is told.
    pub daemon: DaemonConfig,
    /// Of each slot, by which a daemon opens its token, if that is said.
    pub logins: Vec<Option<OwnLogin>>,
}

impl Parts {
    /// Opens the tokens of other modules, and decides for the process where it counts and what kernels do without.
    ///
    /// # Errors
    /// What cannot be as the configuration has it.
    pub fn of(config: Config) -> Result<Self, String> {
        Self::with(config, None)
    }

    /// The same in a program that opens tokens in databases, by this.
    ///
    /// # Errors
    /// What cannot be as the configuration has it.
    pub fn with(config: Config, remote: Option<Open>) -> Result<Self, String> {
        let directories = match &config.counters {
            Counters::Usual => runtime_directories().collect(),
            Counters::Directory(directory) => vec![directory.clone()],
            Counters::Private => Vec::new(),
        };
        // A page that cannot be made is not worth a failure: the process counts privately.
        drop(counters::open(directories.into_iter(), uncancelled));
        counters::set(counters::Event::MemoryNotLocked, u64::from(memory_is_degraded()));
        cpu::mask(config.lanes_without);
        let (settings, wanted) = (settings(&config), config.wanted.clone());
        let daemon = config.daemon.clone();
        let own = config.tokens.iter().map(|token| (token.path.clone(), token.own_login()));
        let own = Vec::from_iter(own);
        let Slots { all, absent, keyless, shown } = Slots::of(config, remote)?;
        let (named, slots): (Vec<_>, _) = all.into_iter().unzip();
        let logins = named.iter().map(|named| {
            let login = own.iter().find(|(path, _)| named.is_token(path));
            login.and_then(|(_, login)| login.clone())
        });
        let (providers, logins) = (providers(&wanted, &keyless), logins.collect());
        let watched = Watched { slots: named, shown };
        Ok(Self { slots, absent, providers, settings, watched, daemon, logins })
    }

    /// The engine, and what may change under it.
    #[must_use]
    pub fn engine(self) -> (Engine, Watched) {
        let config = EngineConfig { slots: self.slots, providers: self.providers };
        let engine = Engine::new(config).without(self.absent);
        engine.change_routes(self.settings);
        (engine, self.watched)
    }
}

fn uncancelled(work: &mut dyn FnMut()) {
    let _uncancelled = Uncancelled::begin();
    work();
}

/// Whether secrets cannot be kept as they should be. The arena is made here if it was not yet, so
/// that the answer is known from the beginning.
fn memory_is_degraded() -> bool {
    drop(metaslot_memory::Secret::zeroed(1));
    metaslot_memory::stats().degraded
}
