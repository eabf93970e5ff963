// SPDX-License-Identifier: Apache-2.0
//! What an engine is made of.

use crate::cancel::Uncancelled;
use crate::config::{Config, Counters};
use crate::environment::runtime_directories;
use crate::providers::{Providers, providers, settings};
use crate::reload::Watched;
use crate::slots::Slots;
use metaslot_counters as counters;
use metaslot_engine::{Config as EngineConfig, Engine, SlotConfig};
use metaslot_lanes::cpu;
use metaslot_router::Settings;

/// What a configuration comes to.
#[derive(Debug)]
pub struct Parts {
    slots: Vec<SlotConfig>,
    /// Names of what has no slot, each with the reason.
    absent: Vec<(String, String)>,
    providers: Providers,
    settings: Settings,
    watched: Watched,
}

impl Parts {
    /// Opens the tokens of other modules, and decides for the process where it counts and what kernels do without.
    ///
    /// # Errors
    /// What cannot be as the configuration has it.
    pub fn of(config: Config) -> Result<Self, String> {
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
        let Slots { all, absent, keyless, shown } = Slots::of(config)?;
        let (named, slots) = all.into_iter().unzip();
        let providers = providers(&wanted, &keyless);
        let watched = Watched { slots: named, shown };
        Ok(Self { slots, absent, providers, settings, watched })
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
