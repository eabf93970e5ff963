// SPDX-License-Identifier: Apache-2.0
//! The configuration: which tokens there are. `docs/configuration.md` describes the files.
//!
//! It is read at the first call that needs it, and in part again when it changes. Without one there is one slot, for the user's own
//! token, which does not exist yet; nothing is created before `C_InitToken`.
//!
//! Each section has a table of its settings, one row for each; the book is compared with these.

mod change;
mod costs;
mod daemon;
mod foreign;
pub mod metaslot;
mod pool;
mod problem;
mod provider;
mod reach;
mod service;
mod setting;
pub mod source;
mod token;

pub use daemon::{ClientConfig, DaemonConfig, ListenConfig, OwnLogin, PinSource};
use metaslot::MetaslotConfig;
use metaslot_engine::{MAX_SLOTS, Policy, Refusal};
use metaslot_foreign::Config as Foreign;
use metaslot_keystore::Cost;
use metaslot_lanes::cpu::Cpu;
use metaslot_router::Settings;
use metaslot_spi::store::Name;
pub use problem::Problem;
use problem::Text;
use provider::ProviderConfig;
pub use provider::WANTED;
pub use reach::Reach;
pub use service::{Handle, Peer, Process};
use setting::{Complaint, Setting, apply, at, set, table, text, wrong};
use std::path::PathBuf;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What is configured.
#[derive(Clone, Debug)]
pub struct Config {
    /// Our own.
    pub tokens: Vec<TokenConfig>,
    /// Other modules, whose tokens come after ours.
    pub(crate) foreign: Vec<ForeignConfig>,
    /// Tokens of several of them that are one of ours.
    pub(crate) pools: Vec<PoolConfig>,
    pub(crate) metaslot: MetaslotConfig,
    /// What `metaslotd` is told; the library leaves it alone.
    pub daemon: DaemonConfig,
    pub(crate) counters: Counters,
    pub(crate) audit: Option<AuditConfig>,
    /// Whether requests may be computed side by side.
    pub(crate) lanes: bool,
    /// Instructions that kernels do without although the processor has them.
    pub(crate) lanes_without: Cpu,
    /// Whether what is done with key pairs is tested at its first use, whatever the policies are.
    pub(crate) self_tests: bool,
    /// Which providers are there, too, of those that have to be wanted.
    pub(crate) wanted: Vec<&'static str>,
    /// What providers of ours may not do, and what operations cost here, as `metaslot tune` measured it.
    pub(crate) routes: Settings,
}

/// One `[[pool]]`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PoolConfig {
    pub(crate) name: String,
    /// Their labels.
    pub(crate) tokens: Vec<String>,
    pub(crate) policy: Policy,
    /// As that of [`ForeignConfig`].
    pub(crate) shown: Option<bool>,
}

/// One `[[foreign]]`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ForeignConfig {
    pub(crate) module: Foreign,
    pub(crate) policy: Policy,
    /// Whether its objects are shown in slot 0, too: as `metaslot` says, otherwise where the policies are the same.
    pub(crate) shown: Option<bool>,
    pub(crate) enabled: bool,
}

/// One `[[token]]`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TokenConfig {
    /// The store's file; of one in a database its URL.
    pub(crate) path: PathBuf,
    pub(crate) remote: Option<RemoteConfig>,
    pub(crate) description: String,
    pub(crate) policy: Policy,
    pub(crate) group: Option<String>,
    pub(crate) fast_login: Option<Duration>,
    pub(crate) kdf: Cost,
    pub(crate) pin_min: usize,
    pub(crate) pepper: Option<PathBuf>,
    pub(crate) anchor: Option<PathBuf>,
    /// Where `metaslotd` finds the PIN that it opens the token with.
    pub(crate) pin_source: Option<PinSource>,
    /// Whose PIN that is; `None` for the user's.
    pub(crate) identity: Option<Name>,
}

/// The database of a token that several machines share.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RemoteConfig {
    /// It has no password.
    pub(crate) url: String,
    pub(crate) password: Option<PinSource>,
    pub(crate) away: Option<Duration>,
}

/// The audit log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AuditConfig {
    /// `None`: systemd's journal.
    pub(crate) file: Option<PathBuf>,
    /// Nothing happens that cannot be logged.
    pub(crate) required: bool,
}

/// Where this process counts.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Counters {
    /// In the runtime directories, where one is there.
    Usual,
    /// In this directory, where it is there.
    Directory(PathBuf),
    /// Nowhere that others see.
    Private,
}

/// The settings of the whole: sections first, of which some name others.
const SETTINGS: &[Setting<Draft>] = &[
    ("token", |draft, value| {
        let mut all = sections(value, "tokens are written as [[token]] sections")?;
        if let Some(surplus) = all.clone().nth(MAX_SLOTS - draft.config.tokens.len()) {
            return Err(at(surplus, &format!("there are at most {MAX_SLOTS} tokens")));
        }
        all.try_for_each(|section| draft.config.add_token(section))
    }),
    ("foreign", |draft, value| {
        let mut all = sections(value, "modules are written as [[foreign]] sections")?;
        all.try_for_each(|section| draft.config.add_foreign(section))
    }),
    ("pool", |draft, value| {
        let mut all = sections(value, "pools are written as [[pool]] sections")?;
        all.try_for_each(|section| draft.config.add_pool(section))
    }),
    ("metaslot", |draft, value| draft.config.metaslot.read(value)),
    ("daemon", |draft, value| draft.config.daemon.read(value)),
    ("client", |draft, value| {
        let mut all = sections(value, "clients are written as [[client]] sections")?;
        all.try_for_each(|section| draft.config.daemon.add_client(section))
    }),
    // Read when it is known which there are.
    ("provider", |_, value| {
        table(value, "providers are written as [provider.NAME] sections").map(drop)
    }),
    ("counters", |draft, value| set(&mut draft.config.counters, counters(value)?)),
    ("audit", |draft, value| {
        set(
            &mut draft.config.audit,
            Some(AuditConfig { file: audit_file(value)?, required: false }),
        )
    }),
    ("audit_required", |draft, value| match value.get_ref() {
        DeValue::Boolean(truth) => set(&mut draft.audit_required, Some(*truth)),
        _ => Err(wrong(value, "audit_required is true or false")),
    }),
    ("lanes", |draft, value| match value.get_ref() {
        DeValue::Boolean(lanes) => set(&mut draft.config.lanes, *lanes),
        _ => Err(wrong(value, "lanes is true or false")),
    }),
    ("lanes_without", |draft, value| set(&mut draft.config.lanes_without, extensions(value)?)),
    ("self_tests", |draft, value| match value.get_ref() {
        DeValue::Boolean(all) => set(&mut draft.config.self_tests, *all),
        _ => Err(wrong(value, "self_tests is true or false")),
    }),
];

/// What was read so far.
struct Draft {
    config: Config,
    audit_required: Option<bool>,
    providers: Vec<ProviderConfig>,
}

impl Config {
    const EMPTY: Self = Self {
        tokens: Vec::new(),
        foreign: Vec::new(),
        pools: Vec::new(),
        metaslot: MetaslotConfig::USUAL,
        daemon: DaemonConfig::USUAL,
        counters: Counters::Usual,
        audit: None,
        lanes: true,
        lanes_without: Cpu::NONE,
        self_tests: false,
        wanted: Vec::new(),
        routes: Settings {
            disabled: Vec::new(),
            left_out: Vec::new(),
            costs: Vec::new(),
            pairs_tested: false,
        },
    };

    /// As a program has it that serves others: by a PIN that it knows, or by what one client has opened, no other client gets at
    /// another module's token, so slot 0 shows none, and each is opened by the PIN that is shown to it.
    #[must_use]
    pub fn for_clients(mut self) -> Self {
        self.metaslot.enabled = false;
        self.foreign.iter_mut().for_each(|one| one.module.pin_source = None);
        self
    }

    /// Whether key pairs have self tests: also where a policy refuses what is not approved.
    pub fn tests_pairs(&self) -> bool {
        let ours = self.tokens.iter().map(|token| token.policy);
        let others = self.foreign.iter().map(|one| one.policy);
        let mut all = ours.chain(others).chain(self.pools.iter().map(|pool| pool.policy));
        self.self_tests || all.any(|policy| policy.refuses(Refusal::NotApproved))
    }

    /// What files say together: lists of sections grow, and of single settings the last counts.
    fn of(texts: &[Text]) -> Result<Self, Problem> {
        let (config, providers) = (Self::EMPTY, Vec::new());
        let mut draft = Draft { config, audit_required: None, providers };
        let mut tables = Vec::new();
        for text in texts {
            let parsed = DeTable::parse(&text.text);
            let parsed = parsed.map_err(|error| (error.span(), String::from(error.message())));
            tables.push((text, parsed.map_err(|complaint| text.problem(complaint))?));
        }
        for (text, table) in &tables {
            apply(table.get_ref(), "there is no setting", SETTINGS, &mut draft)
                .map_err(|complaint| text.problem(complaint))?;
        }
        for (text, table) in &tables {
            draft.depending(table.get_ref()).map_err(|complaint| text.problem(complaint))?;
        }
        Ok(draft.finish())
    }

    /// One `[[token]]`.
    fn add_token(&mut self, section: &Spanned<DeValue<'_>>) -> Result<(), Complaint> {
        let token = TokenConfig::parse(section)?;
        if self.tokens.iter().any(|other| other.path == token.path) {
            return Err(at(section, "this token is named twice"));
        }
        self.tokens.push(token);
        Ok(())
    }

    /// What counters and explanations call a module or a pool; our own providers have names too.
    fn new_name(
        &self,
        name: Option<String>,
        settings: &DeTable<'_>,
        section: &Spanned<DeValue<'_>>,
        needed: &str,
    ) -> Result<String, Complaint> {
        let (Some(name), Some(place)) = (name, settings.get("name")) else {
            return Err(at(section, needed));
        };
        let pools = self.pools.iter().any(|pool| pool.name == name);
        let taken = pools || self.foreign.iter().any(|other| other.module.name == name);
        match taken || provider::OURS.contains(&name.as_str()) {
            true => Err(at(place, "is the name of another provider")),
            false => Ok(name),
        }
    }

    fn limit(&mut self, provider: ProviderConfig) {
        let enabled = provider.is_enabled();
        let ProviderConfig { name, disabled, .. } = provider;
        if let Some(foreign) = self.foreign.iter_mut().find(|one| one.module.name == name) {
            foreign.enabled = enabled;
            foreign.module.without = disabled;
            return;
        }
        self.lanes &= enabled || name != "lanes";
        self.wanted.extend(WANTED.into_iter().filter(|wanted| enabled && *wanted == name));
        let named = |mechanism| (name.clone(), mechanism);
        self.routes.disabled.extend(disabled.into_iter().map(named));
    }
}

impl Draft {
    /// What can be judged when all files are read.
    fn depending(&mut self, table: &DeTable<'_>) -> Result<(), Complaint> {
        if let Some(required) = table.get("audit_required")
            && self.config.audit.is_none()
        {
            return Err(at(required, "audit_required needs audit"));
        }
        if let Some(DeValue::Table(sections)) = table.get("provider").map(Spanned::get_ref) {
            let foreign = self.config.foreign.iter().map(|one| one.module.name.as_str());
            provider::read(sections, &Vec::from_iter(foreign), &mut self.providers)?;
        }
        Ok(())
    }

    fn finish(self) -> Config {
        let mut config = self.config;
        if let (Some(audit), Some(required)) = (&mut config.audit, self.audit_required) {
            audit.required = required;
        }
        for provider in self.providers {
            config.limit(provider);
        }
        config
    }
}

/// The sections of a list.
fn sections<'a, 'b>(
    value: &'a Spanned<DeValue<'b>>,
    takes: &str,
) -> Result<impl Iterator<Item = &'a Spanned<DeValue<'b>>> + Clone, Complaint> {
    match value.get_ref() {
        DeValue::Array(sections) => Ok(sections.iter()),
        _ => Err(wrong(value, takes)),
    }
}

/// A name that counters have room for.
fn simple_name(value: &Spanned<DeValue<'_>>) -> Result<String, Complaint> {
    let name = text(value)?;
    let is_simple = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match (1..=16).contains(&name.len()) && name.bytes().all(is_simple) {
        true => Ok(name.to_owned()),
        false => Err(wrong(value, "must be 1 to 16 small letters, digits and hyphens")),
    }
}

fn counters(value: &Spanned<DeValue<'_>>) -> Result<Counters, Complaint> {
    match value.get_ref() {
        DeValue::Boolean(false) => Ok(Counters::Private),
        DeValue::String(path) => Ok(Counters::Directory(PathBuf::from(path.as_ref()))),
        _ => Err(wrong(value, "counters is a directory, or false")),
    }
}

/// Where the audit log goes; `None` for the journal.
fn audit_file(value: &Spanned<DeValue<'_>>) -> Result<Option<PathBuf>, Complaint> {
    match value.get_ref() {
        DeValue::String(name) if name == "journald" => Ok(None),
        DeValue::String(path) if path.starts_with('/') => Ok(Some(PathBuf::from(path.as_ref()))),
        _ => Err(wrong(value, "audit is \"journald\" or the absolute path of a file")),
    }
}

fn extensions(value: &Spanned<DeValue<'_>>) -> Result<Cpu, Complaint> {
    let DeValue::Array(names) = value.get_ref() else {
        return Err(wrong(value, "lanes_without is a list of instruction sets"));
    };
    names.iter().try_fold(Cpu::NONE, |all, name| {
        Cpu::named(text(name)?).map(|one| all.and(one)).ok_or_else(|| {
            let known: Vec<_> = Cpu::ALL.names().collect();
            wrong(name, &format!("instruction sets here are {}", known.join(", ")))
        })
    })
}

#[cfg(test)]
mod tests;
