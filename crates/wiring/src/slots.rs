// SPDX-License-Identifier: Apache-2.0
//! The slots of a configuration: our tokens, those of other modules, and pools of these, in this order. Slot 0 is the metaslot.

use crate::cancel::UncancelledStore;
use crate::config::metaslot::Keystore;
use crate::config::{Config, ForeignConfig, PoolConfig, TokenConfig};
use crate::environment::{runtime_directories, volatile_directories};
use crate::outside::{apart, asked};
use crate::remote::{Open, Remote};
use crate::signal::unbroken;
use metaslot_engine::{MAX_SLOTS, Policy, SlotConfig};
use metaslot_foreign::{Curtain, ForeignStore, Guest, PoolStore, View};
use metaslot_keystore::{Config as StoreConfig, SqliteStore};
use metaslot_spi::provider::Provider;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What a slot is called in the configuration.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Named {
    /// `path` and `fast_login` of a `[[token]]`
    Token(PathBuf, Option<Duration>),
    /// `name` of a `[[foreign]]`; each of its tokens has it.
    Foreign(String),
    /// `name` of a `[[pool]]`
    Pool(String),
}

impl Named {
    /// Whether it is the token of this store.
    pub(crate) fn is_token(&self, store: &Path) -> bool {
        matches!(self, Self::Token(path, _) if path == store)
    }

    /// Whether it is a module or a pool of this name.
    pub(crate) fn is_of(&self, name: &str) -> bool {
        matches!(self, Self::Foreign(own) | Self::Pool(own) if own == name)
    }
}

/// What a configuration comes to.
#[derive(Debug)]
pub(crate) struct Slots {
    /// In the order of their numbers.
    pub(crate) all: Vec<(Named, SlotConfig)>,
    /// Names of what has no slot, each with the reason.
    pub(crate) absent: Vec<(String, String)>,
    /// Modules that serve every caller.
    pub(crate) keyless: Vec<&'static dyn Provider>,
    /// Names of modules and pools whose objects slot 0 shows, too, and what hides them.
    pub(crate) shown: Vec<(String, Arc<Curtain>)>,
}

/// A token of another module, and what the configuration says of it.
struct Other {
    token: ForeignStore,
    policy: Policy,
    shown: Option<bool>,
}

/// What slot 0 may show.
struct Shown {
    guest: Guest,
    policy: Policy,
    /// What the configuration says of it.
    wanted: Option<bool>,
}

impl Other {
    fn shown(&self) -> Shown {
        Shown { guest: Guest::token(&self.token), policy: self.policy, wanted: self.shown }
    }
}

/// A pool of them.
struct Pool {
    named: Named,
    slot: SlotConfig,
    shown: Shown,
}

impl Slots {
    /// # Errors
    /// What cannot be as the configuration has it.
    pub(crate) fn of(config: Config, remote: Option<Open>) -> Result<Self, String> {
        let mut slots =
            Self { all: Vec::new(), absent: Vec::new(), keyless: Vec::new(), shown: Vec::new() };
        for token in config.tokens {
            slots.all.push(own(token, remote)?);
        }
        let mut others = slots.open(config.foreign);
        let pools = slots.pools(config.pools, &mut others);
        let first_guest = slots.all.len();
        let mut guests: Vec<_> = others.iter().map(Other::shown).collect();
        slots.all.extend(others.into_iter().map(foreign));
        for Pool { named, slot, shown } in pools {
            guests.push(shown);
            slots.all.push((named, slot));
        }
        if let Some(first) = keystore(&config.metaslot.keystore, &slots.all)? {
            let has_slot = |at: usize| at != first && at + usize::from(at < first) < MAX_SLOTS;
            let guests = (first_guest..).zip(guests).filter(|(at, _)| has_slot(*at));
            let guests = guests.filter(|_| config.metaslot.enabled).map(|(_, guest)| guest);
            let (named, metaslot) = slots.all.remove(first);
            let metaslot = slots.show(metaslot, guests)?;
            slots.all.insert(0, (named, metaslot));
        }
        slots.all.truncate(MAX_SLOTS);
        Ok(slots)
    }

    /// The slot that shows the objects of these, too, as far as they have its policy.
    fn show(
        &mut self,
        metaslot: SlotConfig,
        others: impl Iterator<Item = Shown>,
    ) -> Result<SlotConfig, String> {
        let mut guests = Vec::new();
        for Shown { guest, policy, wanted } in others {
            let same = policy == metaslot.policy;
            if wanted == Some(true) && !same {
                let name = guest.name();
                return Err(format!("slot 0 shows tokens with its own policy: {name} has another"));
            }
            if wanted.unwrap_or(same) {
                self.shown.push((guest.name().to_owned(), guest.curtain()));
                guests.push(guest);
            }
        }
        if guests.is_empty() {
            return Ok(metaslot);
        }
        let store = Box::new(UncancelledStore(View::new(metaslot.store, guests)));
        Ok(SlotConfig { store, ..metaslot })
    }

    /// The tokens of modules that are there.
    fn open(&mut self, modules: Vec<ForeignConfig>) -> Vec<Other> {
        let mut others = Vec::new();
        for ForeignConfig { module, policy, shown, enabled } in modules {
            if !enabled {
                self.absent.push((module.name, String::from("is disabled in the configuration")));
                continue;
            }
            let is_server = module.isolation.as_ref().is_some_and(|how| how.program.is_none());
            let around = if is_server { asked } else { apart };
            let (tokens, missing) = metaslot_foreign::open(&module, around);
            self.keyless.extend(tokens.iter().find_map(ForeignStore::provider));
            // A module that is not trusted is not trusted with names among ours either.
            let shown = shown.or_else(|| (!module.trusted).then_some(false));
            others.extend(tokens.into_iter().map(|token| Other { token, policy, shown }));
            self.absent.extend(missing.map(|reason| (module.name, reason)));
        }
        others
    }

    /// Makes pools of some of the other tokens.
    fn pools(&mut self, pools: Vec<PoolConfig>, others: &mut Vec<Other>) -> Vec<Pool> {
        let (mut made, mut pooled) = (Vec::new(), Vec::new());
        for config in pools {
            let name = config.name.clone();
            match pool(config, others, &mut pooled) {
                Ok(pool) => made.push(pool),
                Err(reason) => self.absent.push((name, reason)),
            }
        }
        pooled.sort_unstable();
        pooled.dedup_by(|one, other| one.0 == other.0);
        pooled.retain(|(module, _)| others.iter().all(|other| other.token.name() != module));
        let reason = |(module, pool)| (module, format!("serves the pool {pool}"));
        self.absent.extend(pooled.into_iter().map(reason));
        made
    }
}

/// Which slot is to be the first, if there are any.
fn keystore(wanted: &Keystore, slots: &[(Named, SlotConfig)]) -> Result<Option<usize>, String> {
    if *wanted == Keystore::default() {
        return Ok((!slots.is_empty()).then_some(0));
    }
    let is_it = |(_, slot): &(Named, SlotConfig)| {
        slot.store.token().is_ok_and(|token| wanted.is(&token.label, &slot.description))
    };
    slots.iter().position(is_it).map(Some).ok_or_else(|| format!("there is no {wanted}"))
}

/// A pool over those of the other tokens that are its own, or why there is none; `pooled`: modules, and whose their tokens are.
fn pool(
    config: PoolConfig,
    others: &mut Vec<Other>,
    pooled: &mut Vec<(String, String)>,
) -> Result<Pool, String> {
    let PoolConfig { name, tokens, policy, shown } = config;
    let mut labels = Vec::new();
    let of_pool = |other: &mut Other| {
        let label = other.token.label().filter(|label| tokens.contains(label));
        let is_one = label.is_some();
        labels.extend(label);
        is_one
    };
    let members: Vec<_> = others.extract_if(.., of_pool).collect();
    // Any of those whose token is not there yet may be a member later.
    let absent = others.iter().filter(|_| members.len() < tokens.len());
    let absent = absent.filter(|other| other.token.label().is_none());
    let hidden = members.iter().chain(absent).any(|other| other.shown == Some(false));
    let shown = shown.or_else(|| hidden.then_some(false));
    let members: Vec<_> = members.into_iter().map(|member| member.token).collect();
    labels.sort_unstable();
    // Which of two is meant is not known, and the PIN would go to both.
    if let Some(two) = labels.windows(2).find(|two| two[0] == two[1]) {
        return Err(format!("finds two tokens with the label {:?}", two[0]));
    }
    let description = format!("{name}: one key in {} tokens", tokens.len());
    let missing: Vec<_> = tokens.into_iter().filter(|label| !labels.contains(label)).collect();
    let tokens = others.iter().map(|other| &other.token).filter(|_| !missing.is_empty());
    let late: Vec<_> = tokens.filter(|token| token.label().is_none()).collect();
    if members.is_empty() && late.is_empty() {
        return Err(String::from("finds none of its tokens"));
    }
    pooled.extend(members.iter().map(|one| (one.name().to_owned(), name.clone())));
    let store = PoolStore::new(&name, members, &missing, &late);
    let shown = Shown { guest: Guest::pool(&store), policy, wanted: shown };
    let slot = SlotConfig { description, store: Box::new(UncancelledStore(store)), policy };
    Ok(Pool { named: Named::Pool(name), slot, shown })
}

fn foreign(Other { token, policy, .. }: Other) -> (Named, SlotConfig) {
    let (named, description) = (Named::Foreign(token.name().to_owned()), token.description());
    (named, SlotConfig { description, store: Box::new(UncancelledStore(token)), policy })
}

fn own(token: TokenConfig, remote: Option<Open>) -> Result<(Named, SlotConfig), String> {
    if let Some(place) = token.remote {
        let place = Remote {
            url: place.url,
            password: place.password,
            away: place.away,
            kdf: token.kdf,
            shortest_pin: token.pin_min,
            pepper: token.pepper,
            anchor: token.anchor,
        };
        let slot = SlotConfig {
            store: place.open(remote)?,
            description: token.description,
            policy: token.policy,
        };
        return Ok((Named::Token(token.path, None), slot));
    }
    let store = SqliteStore::new(StoreConfig {
        path: token.path.clone(),
        group: token.group,
        fast_login: token.fast_login,
        volatile: volatile_directories().collect(),
        runtime: runtime_directories().find(|directory| directory.is_dir()),
        kdf: token.kdf,
        shortest_pin: token.pin_min,
        pepper: token.pepper,
        anchor: token.anchor,
        around: unbroken,
    });
    let slot = SlotConfig {
        description: token.description,
        store: Box::new(UncancelledStore(store)),
        policy: token.policy,
    };
    Ok((Named::Token(token.path, token.fast_login), slot))
}
