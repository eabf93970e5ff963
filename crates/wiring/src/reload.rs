// SPDX-License-Identifier: Apache-2.0
//! A configuration that changes under a running process: policies, what providers may do, and what operations cost are
//! taken over. What makes slots is not; that needs another `C_Initialize`.

use crate::audit::Log;
use crate::cancel::Uncancelled;
use crate::config::Config;
use crate::config::source::{Found, Source};
use crate::providers::settings;
use crate::slots::Named;
use metaslot_ck::SlotId;
use metaslot_counters::{Event, event};
use metaslot_engine::{Engine, Policy};
use metaslot_foreign::Curtain;
use metaslot_spi::detail;
use rustix::time::{ClockId, clock_gettime};
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// How often files are looked at, in milliseconds.
const PERIOD: i64 = 250;
/// A file that was changed a moment ago may be changed again without a trace: clocks of file systems are coarse.
const FRESH: Duration = Duration::from_secs(1);

/// Looks for another configuration.
#[derive(Debug)]
pub struct Watch {
    source: Source,
    watched: Watched,
    /// When the next look is due.
    due: AtomicI64,
    seen: Mutex<Seen>,
}

/// What configurations say something about.
#[derive(Debug)]
pub struct Watched {
    /// In the order of their numbers.
    pub(crate) slots: Vec<Named>,
    /// Names of modules and pools whose objects slot 0 shows, too, and what hides them.
    pub(crate) shown: Vec<(String, Arc<Curtain>)>,
}

/// What was read last.
#[derive(Debug)]
struct Seen {
    stamps: Stamps,
    /// The files that counted.
    found: Found,
    /// What is wrong with what is there since.
    problem: Option<String>,
}

impl Watch {
    /// `stamps` are from before the files were read.
    pub fn new(source: Source, stamps: Stamps, found: Found, watched: Watched) -> Self {
        let seen = Mutex::new(Seen { stamps, found, problem: None });
        Self { source, watched, due: AtomicI64::new(0), seen }
    }

    /// How long a fast login to a slot's token lasts, where one is configured.
    pub fn fast_login(&self, slot: SlotId) -> Option<Duration> {
        match self.watched.slots.get(usize::try_from(slot.0).ok()?)? {
            Named::Token(_, fast_login) => *fast_login,
            Named::Foreign(_) | Named::Pool(_) => None,
        }
    }

    /// Whether it is time to look.
    pub fn is_due(&self) -> bool {
        now() >= self.due.load(Ordering::Relaxed)
    }

    /// Takes another configuration over, where there is one.
    pub fn look(&self, engine: &Engine, log: Option<&Log>) {
        self.due.store(now() + PERIOD, Ordering::Relaxed);
        // Another thread is at it.
        let Ok(mut seen) = self.seen.try_lock() else { return };
        let _uncancelled = Uncancelled::begin();
        // What goes wrong here does not explain the call.
        let _said = detail::aside();
        let stamps = Stamps::of(&self.source);
        if !stamps.same(&seen.stamps) && self.take_over(engine, log, &mut seen) {
            seen.stamps = stamps;
        }
    }

    /// What is there now counts; says whether it is dealt with.
    fn take_over(&self, engine: &Engine, log: Option<&Log>, seen: &mut Seen) -> bool {
        let (config, found) = match self.source.read() {
            Ok((_, found)) if seen.found.main.is_some() && found.main.is_none() => {
                seen.keep(log, "it is gone");
                return true;
            }
            Ok(read) => read,
            Err(problem) => {
                seen.keep(log, &problem.to_string());
                return true;
            }
        };
        let settings = settings(&config);
        let policies: Vec<_> = self.policies(&config).collect();
        let is_other = |(slot, policy): &(SlotId, Policy)| {
            engine.token_policy(*slot).is_ok_and(|old| old != *policy)
        };
        seen.found = found;
        if *engine.routes().settings() != settings || policies.iter().any(is_other) {
            if log.is_some_and(|log| log.configured(seen.file(), None).is_err()) {
                seen.keep(None, "the audit log cannot be written");
                return false;
            }
            let apart = self.apart(engine, &policies);
            // First what must not be used under another policy than its own, and last what can be again.
            apart.iter().filter(|(_, hide)| *hide).for_each(|(curtain, _)| curtain.hide(true));
            for (slot, policy) in policies {
                // The slots are as many as they were.
                let _unfailing = engine.set_policy(slot, policy);
            }
            apart.iter().filter(|(_, hide)| !hide).for_each(|(curtain, _)| curtain.hide(false));
            engine.change_routes(settings);
            event(Event::Reconfigured);
        }
        seen.problem = None;
        true
    }

    /// What a configuration refuses in the slots that there are.
    fn policies(&self, config: &Config) -> impl Iterator<Item = (SlotId, Policy)> {
        let policy = |named: &Named| match named {
            Named::Token(path, _) => {
                config.tokens.iter().find(|token| token.path == *path).map(|token| token.policy)
            }
            Named::Foreign(name) => {
                config.foreign.iter().find(|one| one.module.name == *name).map(|one| one.policy)
            }
            Named::Pool(name) => {
                config.pools.iter().find(|pool| pool.name == *name).map(|pool| pool.policy)
            }
        };
        let slots = (0..).map(SlotId).zip(&self.watched.slots);
        slots.filter_map(move |(slot, named)| Some((slot, policy(named)?)))
    }

    /// Of what slot 0 shows, whether its policy is another than that of slot 0, by which it must be hidden. A slot that the
    /// configuration does not name any more keeps the policy that it has.
    fn apart(&self, engine: &Engine, policies: &[(SlotId, Policy)]) -> Vec<(&Curtain, bool)> {
        let policy = |slot: SlotId| {
            let new = policies.iter().find(|(named, _)| *named == slot).map(|(_, policy)| *policy);
            new.or_else(|| engine.token_policy(slot).ok())
        };
        let slots = || (0..).map(SlotId).zip(&self.watched.slots);
        let is_other = |name: &str| {
            let own = slots().find(|(_, named)| named.is_of(name)).map(|(slot, _)| policy(slot));
            own != Some(policy(SlotId(0)))
        };
        self.watched.shown.iter().map(|(name, curtain)| (&**curtain, is_other(name))).collect()
    }
}

/// In milliseconds: a clock that costs next to nothing, for it is asked at one call in sixteen.
fn now() -> i64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    now.tv_sec * 1000 + now.tv_nsec / 1_000_000
}

impl Seen {
    /// Everything stays as it was, because of a problem, which is told once.
    fn keep(&mut self, log: Option<&Log>, problem: &str) {
        if self.problem.as_deref() == Some(problem) {
            return;
        }
        event(Event::NotReconfigured);
        if let Some(log) = log {
            // Nothing happens. A line that is lost is counted.
            let _counted = log.configured(self.file(), Some(problem));
        }
        self.problem = Some(problem.to_owned());
    }

    fn file(&self) -> &Path {
        self.found.first().unwrap_or_else(|| Path::new(""))
    }
}

/// What files look like from outside.
#[derive(Debug)]
pub struct Stamps {
    files: Vec<Option<Stamp>>,
    /// Another change would show.
    settled: bool,
    /// A configuration is a pipe or the like, which gives what it has once, and may keep us waiting.
    odd: bool,
}

/// Changes with a file: device, number, size, and when content and name changed last.
type Stamp = (u64, u64, u64, SystemTime, (i64, i64));

impl Stamps {
    /// Of everything that a source may read.
    #[must_use]
    pub fn of(source: &Source) -> Self {
        let is_odd = |file: &Path| fs::metadata(file).is_ok_and(|file| !file.is_file());
        let odd = source.configurations().any(is_odd);
        let stamp = |file| stamp(&fs::metadata(file).ok()?);
        let files: Vec<_> = source.files().map(stamp).collect();
        let now = SystemTime::now();
        let is_old = |stamp: &Stamp| {
            let age = now.duration_since(stamp.3).unwrap_or_else(|future| future.duration());
            age > FRESH
        };
        let settled = files.iter().flatten().all(is_old);
        Self { files, settled, odd }
    }

    /// Whether there is nothing to read since those.
    fn same(&self, before: &Self) -> bool {
        self.odd || before.settled && self.files == before.files
    }
}

fn stamp(file: &Metadata) -> Option<Stamp> {
    let changed = (file.ctime(), file.ctime_nsec());
    Some((file.dev(), file.ino(), file.len(), file.modified().ok()?, changed))
}
