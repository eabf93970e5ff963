// SPDX-License-Identifier: Apache-2.0
//! The configuration: which tokens there are. `docs/configuration.md` describes the file.
//!
//! It is read at the first call that needs it, and in part again when it changes. Without one there is one slot, for the user's own
//! token, which does not exist yet; nothing is created before `C_InitToken`.

mod costs;
mod foreign;
pub(crate) mod metaslot;
mod provider;
mod service;
mod setting;

use crate::environment::{directory, variable};
use metaslot::MetaslotConfig;
use metaslot_engine::{Engine, MAX_SLOTS, Policy};
use metaslot_foreign::Config as Foreign;
use metaslot_keystore::{Cost, Kdf};
use metaslot_lanes::cpu::Cpu;
use metaslot_router::{Settings, shipped};
use provider::ProviderConfig;
pub(crate) use provider::WANTED;
use setting::{Complaint, at, boolean, text, wrong};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What is configured.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) tokens: Vec<TokenConfig>,
    /// Other modules, whose tokens come after ours.
    pub(crate) foreign: Vec<ForeignConfig>,
    /// Tokens of several of them that are one of ours.
    pub(crate) pools: Vec<PoolConfig>,
    pub(crate) metaslot: MetaslotConfig,
    pub(crate) counters: Counters,
    pub(crate) audit: Option<AuditConfig>,
    /// Whether requests may be computed side by side.
    pub(crate) lanes: bool,
    /// Instructions that kernels do without although the processor has them.
    pub(crate) lanes_without: Cpu,
    /// Which providers are there, too, of those that have to be wanted.
    pub(crate) wanted: Vec<&'static str>,
    /// What providers of ours may not do, and what operations cost here, as `metaslot tune` measured it.
    pub(crate) routes: Settings,
}

/// One `[[pool]]`.
#[derive(Debug)]
pub(crate) struct PoolConfig {
    pub(crate) name: String,
    /// Their labels.
    pub(crate) tokens: Vec<String>,
    pub(crate) policy: Policy,
    /// As that of [`ForeignConfig`].
    pub(crate) shown: Option<bool>,
}

/// One `[[foreign]]`.
#[derive(Debug)]
pub(crate) struct ForeignConfig {
    pub(crate) module: Foreign,
    pub(crate) policy: Policy,
    /// Whether its objects are shown in slot 0, too: as `metaslot` says, otherwise where the policies are the same.
    pub(crate) shown: Option<bool>,
    pub(crate) enabled: bool,
}

/// One `[[token]]`.
#[derive(Debug)]
pub(crate) struct TokenConfig {
    pub(crate) path: PathBuf,
    pub(crate) description: String,
    pub(crate) policy: Policy,
    pub(crate) group: Option<String>,
    pub(crate) fast_login: Option<Duration>,
    pub(crate) kdf: Cost,
    pub(crate) pin_min: usize,
    pub(crate) pepper: Option<PathBuf>,
    pub(crate) anchor: Option<PathBuf>,
}

/// The audit log.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct AuditConfig {
    /// `None`: systemd's journal.
    pub(crate) file: Option<PathBuf>,
    /// Nothing happens that cannot be logged.
    pub(crate) required: bool,
}

/// Where this process counts.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Counters {
    /// In the runtime directories, where one is there.
    Usual,
    /// In this directory, where it is there.
    Directory(PathBuf),
    /// Nowhere that others see.
    Private,
}

/// What is wrong with a file, and where.
#[derive(Debug)]
pub(crate) struct Problem {
    file: PathBuf,
    line: Option<usize>,
    reason: String,
}

impl Problem {
    /// Of a configuration as a whole.
    pub(crate) fn new(file: Option<PathBuf>, reason: String) -> Self {
        Self { file: file.unwrap_or_else(|| PathBuf::from("configuration")), line: None, reason }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file.display())?;
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&self.reason)
    }
}

/// Where configurations are looked for. The environment is asked once: a host may change it later.
#[derive(Debug)]
pub(crate) struct Source {
    /// Files, of which the first that is there counts.
    files: Vec<PathBuf>,
    /// Who names a file means it: it must be there.
    named: bool,
    /// Where the user's own token is without a configuration.
    data: Option<PathBuf>,
    variables: metaslot::Variables,
}

impl Source {
    pub(crate) fn of_environment() -> Self {
        let variables = metaslot::Variables::of_environment();
        if let Some(named) = variable(c"METASLOT_CONF").map(PathBuf::from) {
            return Self { files: vec![named], named: true, data: None, variables };
        }
        let home = directory(c"HOME");
        let own = directory(c"XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config")));
        let places = [own.map(|own| own.join("metaslot")), Some(PathBuf::from("/etc/metaslot"))];
        let files = places.iter().flatten().map(|place| place.join("metaslot.toml")).collect();
        let data = directory(c"XDG_DATA_HOME").or_else(|| Some(home?.join(".local/share")));
        Self { files, named: false, data, variables }
    }

    /// Files that may be the configuration.
    pub(crate) fn configurations(&self) -> &[PathBuf] {
        &self.files
    }

    /// Every file that says something, whether it is there or not: a configuration and, beside it, what operations cost.
    pub(crate) fn files(&self) -> impl Iterator<Item = PathBuf> {
        self.files.iter().flat_map(|file| [file.clone(), costs::file(file)])
    }

    /// Reads the first configuration that is there, and says which.
    ///
    /// # Errors
    /// The file, the line and the reason.
    pub(crate) fn read(&self) -> Result<(Config, Option<&Path>), Problem> {
        let (mut config, file) = self.first()?;
        let unfit =
            |(name, reason): (&str, String)| Problem::new(Some(PathBuf::from(name)), reason);
        self.variables.apply(&mut config.metaslot).map_err(unfit)?;
        Ok((config, file))
    }

    fn first(&self) -> Result<(Config, Option<&Path>), Problem> {
        for file in &self.files {
            match std::fs::read_to_string(file) {
                Err(error) if costs::is_absent(&error) && !self.named => {}
                text => return Ok((read_file(file, text)?, Some(file))),
            }
        }
        let costs = self.files.iter().find_map(|file| costs::beside(file));
        let mut config = Config::unconfigured(self.data.clone());
        config.routes.costs = costs.unwrap_or_default();
        Ok((config, None))
    }
}

fn read_file(file: &Path, text: io::Result<String>) -> Result<Config, Problem> {
    let text = text.map_err(|error| Problem {
        file: file.to_owned(),
        line: None,
        reason: format!("cannot be read: {error}"),
    })?;
    let mut config = Config::parse(&text).map_err(|(span, reason)| Problem {
        file: file.to_owned(),
        line: span.map(|span| line(&text, span.start)),
        reason,
    })?;
    // Ours are in the order of their costs; to read the table takes a third of a millisecond.
    let shipped = || if config.wanted.is_empty() { Vec::new() } else { shipped::costs() };
    config.routes.costs = costs::beside(file).unwrap_or_else(shipped);
    Ok(config)
}

fn line(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

impl Config {
    const EMPTY: Self = Self {
        tokens: Vec::new(),
        foreign: Vec::new(),
        pools: Vec::new(),
        metaslot: MetaslotConfig::USUAL,
        counters: Counters::Usual,
        audit: None,
        lanes: true,
        lanes_without: Cpu::NONE,
        wanted: Vec::new(),
        routes: Settings { disabled: Vec::new(), left_out: Vec::new(), costs: Vec::new() },
    };

    fn unconfigured(data: Option<PathBuf>) -> Self {
        let directory = data.unwrap_or_else(|| PathBuf::from("/var/lib"));
        let token = TokenConfig {
            path: directory.join("metaslot/token.db"),
            description: String::from("Metaslot"),
            policy: Policy::DEFAULT,
            group: None,
            fast_login: None,
            kdf: Cost::Argon2id,
            pin_min: 0,
            pepper: None,
            anchor: None,
        };
        Self { tokens: vec![token], ..Self::EMPTY }
    }

    fn parse(text: &str) -> Result<Self, Complaint> {
        let table =
            DeTable::parse(text).map_err(|error| (error.span(), String::from(error.message())))?;
        let mut config = Self::EMPTY;
        for (key, value) in table.get_ref() {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("token", DeValue::Array(tokens)) => {
                    if let Some(surplus) = tokens.get(MAX_SLOTS) {
                        return Err(at(surplus, &format!("there are at most {MAX_SLOTS} tokens")));
                    }
                    for section in tokens.iter() {
                        let token = TokenConfig::parse(section)?;
                        if config.tokens.iter().any(|other| other.path == token.path) {
                            return Err(at(section, "this token is named twice"));
                        }
                        config.tokens.push(token);
                    }
                }
                ("foreign", DeValue::Array(modules)) => {
                    for module in modules.iter() {
                        config.add_foreign(module)?;
                    }
                }
                ("pool", DeValue::Array(pools)) => {
                    for pool in pools.iter() {
                        config.add_pool(pool)?;
                    }
                }
                ("metaslot", _) => config.metaslot = MetaslotConfig::parse(value)?,
                // Read when it is known which there are.
                ("provider", DeValue::Table(_)) => {}
                ("counters", DeValue::Boolean(false)) => config.counters = Counters::Private,
                ("counters", DeValue::String(path)) => {
                    config.counters = Counters::Directory(PathBuf::from(path.as_ref()));
                }
                ("audit", _) => {
                    config.audit = Some(AuditConfig { file: audit_file(value)?, required: false })
                }
                // Read when it is known whether there is a log.
                ("audit_required", DeValue::Boolean(_)) => {}
                ("audit_required", _) => {
                    return Err(wrong(value, "audit_required is true or false"));
                }
                ("lanes", DeValue::Boolean(lanes)) => config.lanes = *lanes,
                ("lanes_without", DeValue::Array(names)) => {
                    config.lanes_without = extensions(names)?;
                }
                ("token", _) => {
                    return Err(wrong(value, "tokens are written as [[token]] sections"));
                }
                ("foreign", _) => {
                    return Err(wrong(value, "modules are written as [[foreign]] sections"));
                }
                ("pool", _) => {
                    return Err(wrong(value, "pools are written as [[pool]] sections"));
                }
                ("provider", _) => {
                    return Err(wrong(value, "providers are written as [provider.NAME] sections"));
                }
                ("counters", _) => return Err(wrong(value, "counters is a directory, or false")),
                ("lanes", _) => return Err(wrong(value, "lanes is true or false")),
                ("lanes_without", _) => {
                    return Err(wrong(value, "lanes_without is a list of instruction sets"));
                }
                (other, _) => return Err(at(key, &format!("there is no setting {other:?}"))),
            }
        }
        if let Some(required) =
            table.get_ref().iter().find(|row| row.0.get_ref() == "audit_required")
        {
            let log = config.audit.as_mut();
            let log = log.ok_or_else(|| at(required.0, "audit_required needs audit"))?;
            log.required = boolean(required.1)?;
        }
        let providers = table.get_ref().iter().find(|(key, _)| key.get_ref() == "provider");
        if let Some(DeValue::Table(sections)) = providers.map(|row| row.1.get_ref()) {
            config.limit(sections)?;
        }
        if config.tokens.is_empty() && config.foreign.is_empty() {
            return Err((None, String::from("has no [[token]] section, nor a [[foreign]] one")));
        }
        Ok(config)
    }
}

impl Config {
    /// The `[provider.NAME]` sections.
    fn limit(&mut self, sections: &DeTable<'_>) -> Result<(), Complaint> {
        let foreign: Vec<_> = self.foreign.iter().map(|one| one.module.name.as_str()).collect();
        for provider in provider::parse(sections, &foreign)? {
            let ProviderConfig { name, enabled, disabled } = provider;
            if let Some(foreign) = self.foreign.iter_mut().find(|one| one.module.name == name) {
                foreign.enabled = enabled;
                foreign.module.without = disabled;
                continue;
            }
            self.lanes &= enabled || name != "lanes";
            self.wanted.extend(WANTED.into_iter().filter(|wanted| enabled && *wanted == name));
            let named = |mechanism| (name.clone(), mechanism);
            self.routes.disabled.extend(disabled.into_iter().map(named));
        }
        Ok(())
    }

    /// One `[[pool]]`.
    fn add_pool(&mut self, section: &Spanned<DeValue<'_>>) -> Result<(), Complaint> {
        let DeValue::Table(table) = section.get_ref() else {
            return Err(wrong(section, "a pool is a section"));
        };
        let (mut name, mut tokens, mut policy) = (None, Vec::new(), Policy::DEFAULT);
        let mut shown = None;
        for (key, value) in table {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("name", _) => name = Some(self.new_name(value)?),
                ("tokens", DeValue::Array(labels)) => {
                    tokens = labels
                        .iter()
                        .map(|label| text(label).map(str::to_owned))
                        .collect::<Result<_, _>>()?;
                }
                ("tokens", _) => return Err(wrong(value, "tokens is a list of labels")),
                ("metaslot", _) => shown = Some(boolean(value)?),
                ("policy", _) => policy = preset(value)?.0,
                ("allow", _) => {}
                (other, _) => return Err(at(key, &format!("a pool has no setting {other:?}"))),
            }
        }
        if let Some(allowed) = table.iter().find(|(key, _)| key.get_ref() == "allow") {
            allow(&mut policy, allowed.1)?;
        }
        let name = name.ok_or_else(|| at(section, "a pool needs a name"))?;
        if tokens.is_empty() {
            return Err(at(section, "a pool needs tokens"));
        }
        self.pools.push(PoolConfig { name, tokens, policy, shown });
        Ok(())
    }

    /// What counters and explanations call a module; ours have names too.
    fn new_name(&self, value: &Spanned<DeValue<'_>>) -> Result<String, Complaint> {
        let name = text(value)?;
        let is_simple =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if !(1..=16).contains(&name.len()) || !name.bytes().all(is_simple) {
            return Err(wrong(value, "must be 1 to 16 small letters, digits and hyphens"));
        }
        let ours = provider::OURS.contains(&name);
        let pools = self.pools.iter().any(|pool| pool.name == name);
        if ours || pools || self.foreign.iter().any(|other| other.module.name == name) {
            return Err(at(value, "is the name of another provider"));
        }
        Ok(name.to_owned())
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

impl TokenConfig {
    fn parse(section: &Spanned<DeValue<'_>>) -> Result<Self, Complaint> {
        let DeValue::Table(table) = section.get_ref() else {
            return Err(wrong(section, "a token is a section"));
        };
        let (mut path, mut description, mut group) = (None, None, None);
        let (mut fast_login, mut pepper, mut anchor) = (None, None, None);
        let (mut policy, mut kdf) = (Policy::DEFAULT, Cost::Argon2id);
        let (mut pin_min, mut least) = (0, 0);
        // First the preset, then what is allowed beyond it, whatever their order.
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "path" => path = Some(absolute(value)?),
                "description" => description = Some(text(value)?.to_owned()),
                "group" => group = Some(text(value)?.to_owned()),
                "fast_login" => fast_login = Some(duration(value)?),
                "policy" => (policy, least) = preset(value)?,
                "allow" => {}
                "kdf" => kdf = named_kdf(value)?,
                "pin_min" => pin_min = pin_length(value)?,
                "pepper" => pepper = Some(absolute(value)?),
                "anchor" => anchor = Some(absolute(value)?),
                other => return Err(at(key, &format!("a token has no setting {other:?}"))),
            }
        }
        if let Some(allowed) = table.iter().find(|(key, _)| key.get_ref() == "allow") {
            allow(&mut policy, allowed.1)?;
        }
        let path: PathBuf = path.ok_or_else(|| at(section, "a token needs a path"))?;
        let description = description.unwrap_or_else(|| path.display().to_string());
        let pin_min = pin_min.max(least);
        Ok(Self { path, description, policy, group, fast_login, kdf, pin_min, pepper, anchor })
    }
}

fn absolute(value: &Spanned<DeValue<'_>>) -> Result<PathBuf, Complaint> {
    let path = PathBuf::from(text(value)?);
    if path.is_absolute() { Ok(path) } else { Err(wrong(value, "must be an absolute path")) }
}

/// `file:/path`, as a `pin-source` of a PKCS#11 URI has it. What stands there instead may be the PIN, and is not repeated.
fn file_uri(value: &Spanned<DeValue<'_>>) -> Result<PathBuf, Complaint> {
    let path = text(value).ok().and_then(|text| text.strip_prefix("file:")).map(PathBuf::from);
    let path = path.filter(|path| path.is_absolute());
    path.ok_or_else(|| at(value, "must be a file such as \"file:/run/keys/pin\""))
}

fn duration(value: &Spanned<DeValue<'_>>) -> Result<Duration, Complaint> {
    let text = text(value)?;
    let unit = text.chars().last().and_then(|unit| match unit {
        's' => Some(1),
        'm' => Some(60),
        'h' => Some(3600),
        _ => None,
    });
    let seconds =
        unit.and_then(|unit| text[..text.len() - 1].parse::<u64>().ok()?.checked_mul(unit));
    let seconds = seconds.filter(|seconds| (1..=u64::from(u32::MAX)).contains(seconds));
    seconds.map(Duration::from_secs).ok_or_else(|| wrong(value, "must be a time such as \"15m\""))
}

/// Below so many bytes a copied file is opened by guessing.
const STRICT_PIN: usize = 8;

/// The policy, and the shortest PIN that goes with it.
fn preset(value: &Spanned<DeValue<'_>>) -> Result<(Policy, usize), Complaint> {
    match text(value)? {
        "default" => Ok((Policy::DEFAULT, 0)),
        "strict" => Ok((Policy::DEFAULT, STRICT_PIN)),
        "fips" => Ok((Policy::FIPS, STRICT_PIN)),
        "legacy" => Ok((Policy::legacy(), 0)),
        _ => Err(wrong(value, "the policies are \"default\", \"strict\", \"fips\" and \"legacy\"")),
    }
}

fn pin_length(value: &Spanned<DeValue<'_>>) -> Result<usize, Complaint> {
    let length = match value.get_ref() {
        DeValue::Integer(number) => usize::from_str_radix(number.as_str(), number.radix()).ok(),
        _ => None,
    };
    let possible = length.filter(|length| Engine::PIN_LENGTHS.contains(length));
    possible.ok_or_else(|| {
        let (shortest, longest) = (Engine::PIN_LENGTHS.start(), Engine::PIN_LENGTHS.end());
        wrong(value, &format!("must be a number from {shortest} to {longest}"))
    })
}

/// Nothing protects what was sealed under it.
const WEAK: Cost = Cost::Fixed(Kdf::Argon2id { memory_kib: 64, passes: 1, lanes: 1 });

fn named_kdf(value: &Spanned<DeValue<'_>>) -> Result<Cost, Complaint> {
    match text(value)? {
        "argon2id" => Ok(Cost::Argon2id),
        "pbkdf2" => Ok(Cost::Pbkdf2),
        // No default leads here, and the name says what it is.
        "weak-for-tests" => Ok(WEAK),
        _ => Err(wrong(value, "the ways from a PIN to a key are \"argon2id\" and \"pbkdf2\"")),
    }
}

fn allow(policy: &mut Policy, value: &Spanned<DeValue<'_>>) -> Result<(), Complaint> {
    let DeValue::Array(names) = value.get_ref() else {
        return Err(wrong(value, "allow is a list of names"));
    };
    for name in names.iter() {
        if !policy.allow(text(name)?) {
            let known: Vec<_> = Policy::names().collect();
            let reason = format!("an entry of allow is one of {}", known.join(", "));
            return Err(wrong(name, &reason));
        }
    }
    Ok(())
}

fn extensions(names: &[Spanned<DeValue<'_>>]) -> Result<Cpu, Complaint> {
    names.iter().try_fold(Cpu::NONE, |all, name| {
        Cpu::named(text(name)?).map(|one| all.and(one)).ok_or_else(|| {
            let known: Vec<_> = Cpu::ALL.names().collect();
            wrong(name, &format!("instruction sets here are {}", known.join(", ")))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_ck::{CKM_AES_GMAC, CKM_MD5, CKM_RSA_PKCS};

    fn complaint(text: &str) -> String {
        let file = Path::new("metaslot.toml");
        read_file(file, Ok(text.to_owned())).expect_err("it is wrong").to_string()
    }

    #[test]
    fn a_configuration_is_read_in_its_order() {
        let config = Config::parse(
            "counters = false\n[[token]]\npath = \"/a/one.db\"\npolicy = \"legacy\"\n\
             [[token]]\npath = \"/b/two.db\"\ndescription = \"the other\"\ngroup = \"www-data\"\n\
             fast_login = \"15m\"\npin_min = 8\nallow = [\"weak-rsa\"]\n",
        )
        .expect("it is right");
        let [one, two] = &config.tokens[..] else { panic!("two tokens") };
        assert_eq!((one.path.to_str(), one.policy), (Some("/a/one.db"), Policy::legacy()));
        assert_eq!(one.description, "/a/one.db");
        assert_eq!(two.description, "the other");
        assert_eq!((one.pin_min, two.pin_min), (0, 8));
        assert_eq!((one.kdf, two.kdf), (Cost::Argon2id, Cost::Argon2id));
        assert_eq!(two.fast_login, Some(Duration::from_secs(900)));
        let mut policy = Policy::DEFAULT;
        assert!(policy.allow("weak-rsa"));
        assert_eq!(two.policy, policy);
        assert_eq!(config.counters, Counters::Private);
    }

    #[test]
    fn an_audit_log_is_the_journal_or_a_file() {
        let token = "[[token]]\npath = \"/a\"\n";
        let audit = |settings: &str| {
            let config = Config::parse(&format!("{settings}{token}")).expect("it is right");
            config.audit.map(|audit| (audit.file, audit.required))
        };
        assert_eq!(audit(""), None);
        assert_eq!(audit("audit = \"journald\"\n"), Some((None, false)));
        let file = Some(PathBuf::from("/log"));
        assert_eq!(audit("audit_required = true\naudit = \"/log\"\n"), Some((file, true)));
        for (settings, reason) in [
            ("audit = true\n", "line 1: audit is \"journald\" or the absolute path of a file"),
            ("audit = \"log\"\n", "line 1: audit is \"journald\" or the absolute path of a file"),
            ("audit_required = true\n", "line 1: audit_required needs audit"),
            ("audit_required = 1\n", "line 1: audit_required is true or false"),
        ] {
            let said = complaint(&format!("{settings}{token}"));
            assert!(said.contains(reason), "{said}");
        }
    }

    #[test]
    fn the_strict_policy_takes_no_pin_below_eight_bytes() {
        for (settings, shortest) in [("", 8), ("pin_min = 5\n", 8), ("pin_min = 12\n", 12)] {
            let text = format!("[[token]]\npath = \"/a\"\npolicy = \"strict\"\n{settings}");
            let config = Config::parse(&text).expect("it is right");
            assert_eq!(
                (config.tokens[0].policy, config.tokens[0].pin_min),
                (Policy::DEFAULT, shortest)
            );
        }
    }

    #[test]
    fn a_wrong_configuration_names_file_line_and_reason() {
        assert_eq!(
            complaint("[[token]]\npath = \"/a\"\ncolour = 3\n"),
            "metaslot.toml: line 3: a token has no setting \"colour\""
        );
        assert_eq!(
            complaint("[[token]]\n\npath = \"a.db\"\n"),
            "metaslot.toml: line 3: must be an absolute path, not \"a.db\""
        );
        assert_eq!(
            complaint("[[token]]\npath=\"/a\"\npin_min = 3\n"),
            "metaslot.toml: line 3: must be a number from 4 to 255, not 3"
        );
        assert!(complaint("[[token]]\npath=\"/a\"\npin_min = \"8\"").contains("a number from"));
        assert!(complaint("[[token]\n").starts_with("metaslot.toml: line 1: "));
        assert_eq!(
            complaint("# nothing\n"),
            "metaslot.toml: has no [[token]] section, nor a [[foreign]] one"
        );
        for (setting, end) in [
            ("allow = [\"all\"]", "not-approved, not \"all\""),
            ("allow = \"all\"", "allow is a list of names, not \"all\""),
            (
                "policy = \"none\"",
                "the policies are \"default\", \"strict\", \"fips\" and \"legacy\", not \"none\"",
            ),
            ("kdf = true", "must be a string, not true"),
            ("fast_login = \"15\"", "must be a time such as \"15m\", not \"15\""),
            ("[[token]]\npath = \"/a\"", "line 3: this token is named twice"),
        ] {
            let text = complaint(&format!("[[token]]\npath = \"/a\"\n{setting}\n"));
            assert!(text.ends_with(end), "{text}");
        }
    }

    #[test]
    fn foreign_modules_are_read_and_have_names_of_their_own() {
        let config = Config::parse(
            "[[token]]\npath = \"/a\"\n[[foreign]]\nname = \"softhsm\"\nmodule = \"/m.so\"\n\
             pin-source = \"file:/pin\"\n[[foreign]]\nname = \"nss\"\nmodule = \"/n.so\"\n\
             parameters = \"configdir=''\"\npolicy = \"legacy\"\nserves = [\"digest\"]\n",
        )
        .expect("it is right");
        let [soft, nss] = &config.foreign[..] else { panic!("two modules") };
        assert_eq!((soft.policy, nss.policy), (Policy::DEFAULT, Policy::legacy()));
        let (soft, nss) = (&soft.module, &nss.module);
        assert_eq!((soft.name.as_str(), soft.module.to_str()), ("softhsm", Some("/m.so")));
        assert_eq!(soft.pin_source.as_deref(), Some(Path::new("/pin")));
        assert_eq!(nss.parameters.as_deref(), Some("configdir=''"));
        assert_eq!((soft.serves, nss.serves.digest), (metaslot_foreign::Serves::default(), true));
        let wrong = |text: &str| complaint(&format!("[[foreign]]\n{text}\n"));
        assert!(wrong("serves = [\"sign\"]").contains("a list of \"digest\" and \"random\""));
        let doubted = "name = \"a\"\nmodule = \"/m\"\ntrusted = false\nserves = [\"random\"]";
        assert!(wrong(doubted).contains("serves no other token"));
        let start = "metaslot.toml: line 2: ";
        assert_eq!(wrong("name = \"awslc\""), format!("{start}is the name of another provider"));
        assert!(wrong("name = \"A\"").contains("small letters"));
        assert!(wrong("module = \"m.so\"").contains("absolute"));
        for pin in ["\"/pin\"", "\"98765432\"", "98765432", "\"file:98765432\""] {
            let said = wrong(&format!("pin-source = {pin}"));
            assert!(said.contains("file:/run") && !said.contains("98765432"), "{said}");
        }
        assert!(wrong("name = \"a\"").contains("needs a module"));
        let twice = "name = \"a\"\nmodule=\"/m\"\n[[foreign]]\nname = \"b\"\nmodule=\"/m\"";
        assert!(wrong(twice).contains("named twice"));
    }

    #[test]
    fn pools_are_read_and_have_names_of_their_own() {
        let foreign = "[[token]]\npath = \"/a\"\n[[foreign]]\nname = \"a\"\nmodule = \"/m.so\"\n";
        let read = |pool: &str| Config::parse(&format!("{foreign}[[pool]]\n{pool}\n"));
        let config = read("name = \"web\"\ntokens = [\"one\", \"two\"]").expect("it is right");
        let [pool] = &config.pools[..] else { panic!("one pool") };
        assert_eq!(
            (pool.name.as_str(), &pool.tokens[..]),
            ("web", &["one".into(), "two".into()][..])
        );
        for (wrong, why) in [
            ("name = \"a\"\ntokens = [\"x\"]", "the name of another provider"),
            ("name = \"web\"", "needs tokens"),
            ("tokens = [\"x\"]", "needs a name"),
            ("name = \"web\"\ntokens = \"x\"", "list of labels"),
            ("name = \"web\"\nshares = 1", "no setting"),
        ] {
            let told = read(wrong).expect_err(wrong).1;
            assert!(told.contains(why), "{told}");
        }
    }

    #[test]
    fn lanes_can_be_left_out_wholly_or_by_instruction_set() {
        let lanes = |text: &str| {
            let text = format!("{text}\n[[token]]\npath = \"/a\"\n");
            Config::parse(&text).map(|config| (config.lanes, config.lanes_without))
        };
        let both = Cpu::IFMA.and(Cpu::VAES);
        assert_eq!(lanes(""), Ok((true, Cpu::NONE)));
        assert_eq!(lanes("lanes = false"), Ok((false, Cpu::NONE)));
        assert_eq!(lanes("lanes_without = [\"ifma\", \"vaes\"]"), Ok((true, both)));
        assert_eq!(lanes("lanes_without = []\nlanes = false"), Ok((false, Cpu::NONE)));
        assert_eq!(
            complaint("lanes_without = [\"mmx\"]"),
            "metaslot.toml: line 1: instruction sets here are avx512, ifma, vaes, vpclmul, avx2, aes, \
             not \"mmx\""
        );
        assert!(complaint("lanes = 3").ends_with("lanes is true or false, not 3"));
    }

    #[test]
    fn providers_are_limited_by_their_names() {
        let config = Config::parse(
            "[[token]]\npath = \"/a\"\n[provider.lanes]\nenabled = false\n[provider.awslc]\n\
             disable = [\"CKM_MD5\", \"CKM_AES_GM*\"]\n[provider.hsm]\ndisable = [\"CKM_RSA_PKCS\"]\n\
             [[foreign]]\nname = \"hsm\"\nmodule = \"/m.so\"\n[provider.nss]\nenabled = false\n\
             [[foreign]]\nname = \"nss\"\nmodule = \"/n.so\"\n",
        )
        .expect("it is right");
        assert!(!config.lanes);
        let disabled = [CKM_MD5, CKM_AES_GMAC].map(|one| (String::from("awslc"), one));
        assert_eq!(config.routes.disabled, disabled);
        let [hsm, nss] = &config.foreign[..] else { panic!("two modules") };
        assert_eq!((hsm.enabled, &hsm.module.without[..]), (true, &[CKM_RSA_PKCS][..]));
        assert!(!nss.enabled);
        for (text, end) in [
            (
                "[provider.hsm]",
                "there is no such provider: there are awslc, kernel, lanes, openssl",
            ),
            #[cfg(not(feature = "openssl"))]
            ("[provider.openssl]", "this library was built without OpenSSL"),
            ("[provider.lanes]\nweight = 3", "a provider has no setting \"weight\""),
            ("[provider.lanes]\nenabled = 1", "enabled is true or false, not 1"),
            ("[provider.awslc]\nenabled = false", "disable some of its mechanisms instead"),
            (
                "[provider.awslc]\ndisable = [\"CKM_ENIGMA\"]",
                "or \"CKM_AES_*\", not \"CKM_ENIGMA\"",
            ),
            ("provider = 3", "written as [provider.NAME] sections, not 3"),
        ] {
            let text = complaint(&format!("{text}\n"));
            assert!(text.ends_with(end), "{text}");
        }
    }

    #[test]
    fn some_are_providers_where_they_are_configured() {
        let wanted = |section| {
            let text = format!("[[token]]\npath = \"/a\"\n{section}");
            Config::parse(&text).expect("it is right").wanted
        };
        assert!(wanted("").is_empty());
        assert_eq!(wanted("[provider.kernel]"), ["kernel"]);
        assert!(wanted("[provider.kernel]\nenabled = false").is_empty());
        #[cfg(feature = "openssl")]
        assert_eq!(wanted("[provider.openssl]\n[provider.kernel]\nenabled = false"), ["openssl"]);
    }

    #[test]
    fn the_book_names_everything_that_can_be_allowed() {
        let book = include_str!("../../../../docs/configuration.md");
        for name in Policy::names() {
            assert!(book.contains(&format!("`{name}`")), "{name}");
        }
    }
}
