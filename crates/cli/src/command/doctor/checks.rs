// SPDX-License-Identifier: Apache-2.0
//! Checks of the module, of its tokens, and of what the system grants.

use super::finding::{Finding, Level};
use super::rights::{unread, usable};
use super::user::User;
use crate::app::App;
use crate::command::provider::{Provider, providers};
use crate::command::token::{ADDED, states};
use crate::command::tune::{costs_file, machine as machine_here};
use crate::configured::{Configuration, TokenSection, is_of_environment};
use crate::encoding::word;
use crate::failure::{Failure, Result};
use crate::host::{Host, Token};
use crate::pin::cost::LONG_ENOUGH;
use crate::places;
use crate::uri::Uri;
use metaslot_ck::{CKF_TOKEN_INITIALIZED, CKF_WRITE_PROTECTED};
use metaslot_memory::keyring as kernel;
use metaslot_router::cost;
use rustix::fs::{Access, AtFlags, CWD, StatVfsMountFlags, accessat, statvfs};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::fs;
use std::path::Path;

/// What most systems let a process lock; the module locks half of what it may.
const LOCKED: u64 = 8 << 20;

/// What the module says of a provider that is switched off.
const DISABLED: &str = "disabled in the configuration";

/// What the checks look at.
pub(super) struct Setup<'a> {
    pub(super) host: Result<&'a Host>,
    pub(super) tokens: Result<Vec<Token>>,
    /// Empty for a module of others, which has one of its own.
    pub(super) configuration: Configuration,
    /// What of each other module that the configuration names is used, and its own words.
    pub(super) providers: Vec<Provider>,
    pub(super) ours: bool,
}

impl<'a> Setup<'a> {
    pub(super) fn of(app: &'a App) -> Self {
        let host = app.host(&Uri::default());
        let info = host.as_ref().ok().and_then(|host| host.module().info().ok());
        let ours = info.is_none_or(|info| info.manufacturer == "Metaslot");
        let mut tokens = match &host {
            Ok(host) => host.tokens(),
            Err(_) => Ok(Vec::new()),
        };
        let mut configuration = if ours { Configuration::read() } else { Configuration::default() };
        // What the module says of its configuration is said there, and once.
        if let (Err(failure), None) = (&tokens, &configuration.problem)
            && let Some(problem) = configuration.complaint(failure.message())
        {
            configuration.refused(problem);
        }
        if configuration.problem.is_some() {
            tokens = Ok(Vec::new());
        }
        let has_others = !configuration.foreign.is_empty();
        let providers = has_others.then(|| providers(app).ok()).flatten().unwrap_or_default();
        Self { host, tokens, configuration, providers, ours }
    }

    /// The files of the configuration, one of which has what is meant.
    fn files(&self) -> String {
        let files: Vec<_> =
            self.configuration.files.iter().map(|file| file.to_string_lossy()).collect();
        files.join(" or ")
    }

    /// Tokens that are made.
    pub(super) fn made(&self) -> impl Iterator<Item = &Token> {
        self.tokens.iter().flatten().filter(|token| token.has(CKF_TOKEN_INITIALIZED))
    }
}

pub(super) fn configuration(setup: &Setup<'_>) -> Vec<Finding> {
    let Configuration { files, problem, tokens, .. } = &setup.configuration;
    vec![match (files.split_first(), problem) {
        _ if !setup.ours => Finding::ok("the module is not Metaslot's: not checked"),
        (_, Some(problem)) if is_of_environment(problem) => Finding::error(
            problem,
            "correct it in the environment, or unset it: no call works with it (docs/configuration.md)",
        ),
        (_, Some(problem)) => Finding::error(problem, unread(files)),
        (Some((file, [])), None) => Finding::ok(file.display()),
        (Some((file, more)), None) => {
            let more: Vec<_> = more.iter().map(|file| file.display().to_string()).collect();
            Finding::ok(format!("{}, then {}", file.display(), more.join(", ")))
        }
        (None, None) => {
            let path = tokens.first().map(|token| token.path.display().to_string());
            Finding::ok(format!("no file: one token, {}", path.unwrap_or_default()))
        }
    }]
}

pub(super) fn module(setup: &Setup<'_>) -> Vec<Finding> {
    vec![match &setup.host {
        Err(failure) => problem(failure),
        Ok(host) => {
            let module = host.module();
            let ((major, minor), path) = (module.version(), module.path().display());
            Finding::ok(format!("{path}: loaded and initialised, PKCS#11 {major}.{minor}"))
        }
    }]
}

/// Whether a socket is not this user's to connect to.
fn is_closed(socket: &Path) -> bool {
    accessat(CWD, socket, Access::WRITE_OK, AtFlags::EACCESS) == Err(Errno::ACCESS)
}

/// The modules of others that the configuration names.
pub(super) fn others(setup: &Setup<'_>) -> Vec<Finding> {
    let one = |section: &TokenSection| {
        let (path, name) = (section.path.display(), section.name.as_deref().unwrap_or_default());
        let provider = setup.providers.iter().find(|provider| provider.name == name);
        let idle = provider.filter(|provider| provider.served() == 0);
        let mut remarks = idle.into_iter().flat_map(Provider::remarks).map(|(why, _)| why);
        match remarks.find(|why| *why != DISABLED) {
            None => Finding::ok(format!("{name}: {path}")),
            Some(why) if section.is_server && is_closed(&section.path) => Finding::error(
                format!("{name}: {why}"),
                "make the user a member of the 'group' in the server's [daemon] section, and begin a new login",
            ),
            Some(why) if section.is_server => Finding::error(
                format!("{name}: {why}"),
                format!(
                    "start the server, see what it says, or correct 'socket' in its [[foreign]] section: {}",
                    setup.files()
                ),
            ),
            Some(why) if !section.path.exists() => Finding::error(
                format!("{name}: {why}"),
                format!(
                    "install it, or correct 'module' in its [[foreign]] section, or take that out: {}",
                    setup.files()
                ),
            ),
            Some(why) => Finding::error(
                format!("{name}, {path}: {why}"),
                format!(
                    "see whether it works by itself: pkcs11-tool --module {path} --list-slots; or take its [[foreign]] section out: {}",
                    setup.files()
                ),
            ),
        }
    };
    setup.configuration.foreign.iter().map(one).collect()
}

/// A failure with its hint.
fn problem(failure: &Failure) -> Finding {
    Finding { fix: failure.advice().map(str::to_owned), ..Finding::error(failure.message(), "") }
}

pub(super) fn slots(setup: &Setup<'_>) -> Vec<Finding> {
    let tokens = match &setup.tokens {
        Err(failure) => return vec![problem(failure)],
        Ok(_) if setup.host.is_err() || setup.configuration.problem.is_some() => return Vec::new(),
        Ok(tokens) => tokens,
    };
    let made = |token: &&Token| token.has(CKF_TOKEN_INITIALIZED) || token.problem.is_some();
    let one = |token| slot(token, &setup.configuration.tokens);
    let sections = &setup.configuration.tokens;
    let findings: Vec<Finding> = tokens.iter().filter(made).map(one).collect();
    let free = tokens.iter().filter(|token| !made(token));
    let free = free.filter_map(|token| section_of(token, sections).map(|section| (token, section)));
    match findings.is_empty() {
        false => {
            findings.into_iter().chain(free.map(|(token, section)| empty(token, section))).collect()
        }
        true => vec![Finding::warning(
            format!("slots: {}, none with a token", tokens.len()),
            "make one: metaslot token init --label NAME",
        )],
    }
}

/// A slot of ours beside others, without a token: `token init --new` was killed, perhaps.
fn empty(token: &Token, section: &TokenSection) -> Finding {
    let made = format!("path = '{}'", section.path.display());
    let mut drop_ins = places::drop_ins().into_iter();
    let file = drop_ins.find(|(_, text)| {
        text.as_ref()
            .is_ok_and(|text| text.starts_with(ADDED) && text.lines().any(|line| line == made))
    });
    let slot = token.slot;
    let or = match file {
        Some((file, _)) => format!("for none: rm {}", word(file.display())),
        None => String::from("for none take its [[token]] out of the configuration"),
    };
    Finding::warning(
        format!("slot {slot}: no token in {} yet", section.path.display()),
        format!("metaslot token init --slot {slot} --label NAME makes it; {or}"),
    )
}

fn slot(token: &Token, sections: &[TokenSection]) -> Finding {
    let (slot, name) = (token.slot, token.name());
    if let Some(problem) = &token.problem {
        let rights = section_of(token, sections).zip(User::asking());
        let rights = rights.map(|(section, user)| usable(&user, section));
        if let Some(Finding { found, fix, .. }) = rights.filter(|found| found.level != Level::Ok) {
            return Finding { fix, ..Finding::error(format!("slot {slot}: {found}"), "") };
        }
        return Finding::error(
            format!("slot {slot}: {problem}"),
            "the message says what is wrong; a damaged store comes back from a copy",
        );
    }
    let states = states(token).join(", ");
    let found = format!("slot {slot}: {name}, {states}");
    match states.as_str() {
        "ready" => Finding::ok(found),
        "read-only" if nobody_writes(token, sections) => {
            Finding::ok(format!("{found}: on a read-only file system its keys can be used"))
        }
        _ if token.has(CKF_WRITE_PROTECTED) => Finding::warning(
            format!(
                "{found}: who may only read it cannot log in, for wrong PINs could not be counted"
            ),
            "let this user write the file, or share it: group in the configuration",
        ),
        _ if states.contains("locked") || states.contains("no user PIN") => {
            Finding::warning(found, "metaslot token pin sets a PIN, and with --reset unlocks one")
        }
        _ => Finding::warning(found, "a right PIN takes the count back"),
    }
}

/// The section of a token of ours.
fn section_of<'a>(token: &Token, sections: &'a [TokenSection]) -> Option<&'a TokenSection> {
    usize::try_from(token.slot.0).ok().and_then(|slot| sections.get(slot))
}

/// Whether the store's file system is read-only: then attempts are counted elsewhere.
fn nobody_writes(token: &Token, sections: &[TokenSection]) -> bool {
    let system =
        section_of(token, sections).and_then(|section| statvfs(section.path.parent()?).ok());
    system.is_some_and(|system| system.f_flag.contains(StatVfsMountFlags::RDONLY))
}

pub(super) fn pins(setup: &Setup<'_>) -> Vec<Finding> {
    let weak = setup
        .configuration
        .tokens
        .iter()
        .filter(|token| token.kdf.as_deref() == Some("weak-for-tests"));
    let weak = weak.map(|token| {
        let found = format!("{}: kdf = \"weak-for-tests\" protects nothing", token.path.display());
        Finding::error(found, "take kdf out of the configuration, then set both PINs again")
    });
    // Other modules have no setting for it.
    let of_ours = 0..setup.configuration.tokens.len() as u64;
    let ours = setup.made().filter(|token| of_ours.contains(&token.slot.0));
    let short = ours.map(|token| match token.info.pin_lengths.0 {
        LONG_ENOUGH.. => Finding::ok(format!("{}: {LONG_ENOUGH} bytes or more", token.name())),
        least => Finding::warning(
            format!(
                "{} takes PINs of {least} bytes, which a copy of its file soon gives away",
                token.name()
            ),
            format!("pin_min = {LONG_ENOUGH} in its section (docs/configuration.md); then metaslot token pin"),
        ),
    });
    weak.chain(short).collect()
}

pub(super) fn policy(setup: &Setup<'_>) -> Vec<Finding> {
    let one = |token: &TokenSection| {
        let path = token.path.display();
        let fix = "docs/policy.md says what each entry re-opens; a token of its own for old keys keeps the others safe";
        match (token.policy.as_deref(), &token.allow[..]) {
            (Some("legacy"), _) => Finding::warning(
                format!(
                    "{path}: legacy: sensitive keys have ways out, broken cryptography is allowed"
                ),
                fix,
            ),
            (policy, []) => Finding::ok(format!("{path}: {}", policy.unwrap_or("default"))),
            (_, allowed) => {
                Finding::warning(format!("{path}: re-opened: {}", allowed.join(", ")), fix)
            }
        }
    };
    let Configuration { tokens, foreign, .. } = &setup.configuration;
    tokens.iter().chain(foreign).map(one).collect()
}

pub(super) fn memory(_: &Setup<'_>) -> Vec<Finding> {
    vec![match getrlimit(Resource::Memlock).current {
        None => Finding::ok("a process may lock all of it"),
        Some(bytes) if bytes >= LOCKED => {
            Finding::ok(format!("a process may lock {} KiB", bytes >> 10))
        }
        Some(bytes) => Finding::warning(
            format!(
                "a process may lock {} KiB: keys beyond half of that can be swapped out",
                bytes >> 10
            ),
            "raise RLIMIT_MEMLOCK to 8 MiB: ulimit -l 8192, LimitMEMLOCK=8M of a unit, limits.conf",
        ),
    }]
}

pub(super) fn keyring(setup: &Setup<'_>) -> Vec<Finding> {
    let fast = setup.tokens.iter().flatten().find_map(|token| token.fast_login.as_ref());
    vec![match (kernel::find(c"metaslot:doctor", 1), fast) {
        (Ok(_), _) => Finding::ok("the kernel keeps secrets for this user"),
        (Err(_), None) => Finding::ok("denied by the kernel; only fast_login needs it"),
        (Err(_), Some(fast)) if fast.possible => Finding::ok(format!(
            "denied by the kernel; fast_login keeps its secret in {}",
            fast.text
        )),
        (Err(_), Some(fast)) => Finding::warning(
            format!("fast_login has no effect, each login takes the long way: {}", fast.text),
            "allow add_key and keyctl in the container's profile, or give it a directory in memory: XDG_RUNTIME_DIR, /run/metaslot, /dev/shm",
        ),
    }]
}

pub(super) fn costs(_: &Setup<'_>) -> Vec<Finding> {
    let Some(file) = costs_file().ok().filter(|file| file.exists()) else {
        return vec![Finding::ok("none measured here ('metaslot tune' does it)")];
    };
    let unusable = |why: String| {
        let found = format!("{}: {why}: not used", file.display());
        Finding::warning(found, "measure again: metaslot tune")
    };
    if !file.is_file() {
        return vec![unusable(String::from("it is no plain file"))];
    }
    let text = match fs::read_to_string(&file) {
        Ok(text) if text.len() > cost::MOST_BYTES => {
            return vec![unusable(format!("it has more than {} KiB", cost::MOST_BYTES >> 10))];
        }
        Ok(text) => text,
        Err(error) => return vec![unusable(error.to_string())],
    };
    let machine = text.lines().nth(1).and_then(|line| line.strip_prefix("# "));
    let another = machine.filter(|name| name.ends_with(" threads") && **name != *machine_here());
    vec![match cost::parse(&text) {
        Ok(_) if let Some(another) = another => Finding::warning(
            format!("{}: measured on {another}, and this is {}", file.display(), machine_here()),
            "measure here: metaslot tune",
        ),
        Ok(costs) => Finding::ok(format!("{} in {}", costs.len(), file.display())),
        Err((line, what)) => unusable(format!("line {line}: {what}")),
    }]
}
