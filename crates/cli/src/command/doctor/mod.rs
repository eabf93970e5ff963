// SPDX-License-Identifier: Apache-2.0
//! `metaslot doctor`: one table of checks, each with what helps.

mod checks;
mod files;
mod finding;
mod programs;
mod rights;
mod service;
mod user;

use crate::app::App;
use crate::configured::TokenSection;
use crate::failure::{Failure, Result};
use crate::output::{Report, Table};
use checks::Setup;
use finding::{Finding, Level};
pub(super) use programs::agent_pattern;
use serde_json::{Value, json};
use service::{Service, look};
use std::path::Path;
use user::User;

const EXAMPLES: &str = "\
Examples:
  metaslot doctor
  metaslot doctor --user www-data
  metaslot doctor --pid $(pgrep -o nginx)";

/// Why a user may not read a file, and what helps; of a user that is not there nothing is known.
pub(super) fn unreadable(user: &str, path: &Path, what: &str) -> Option<(String, String)> {
    let user = User::named(user)?;
    let Finding { level, found, fix } = rights::secret(&user, path, what);
    (level == Level::Error).then(|| (found, fix.unwrap_or_default()))
}

/// Why a user may not use a token, and what helps; of a user that is not there nothing is known.
pub(super) fn closed(user: &str, token: &TokenSection) -> Option<(String, String)> {
    let user = User::named(user)?;
    let Finding { level, found, fix } = rights::usable(&user, token);
    let is_closed = level == Level::Error && !rights::is_opened_by_lists(&user, &token.path);
    is_closed.then(|| (found, fix.unwrap_or_default()))
}

/// The name of the user who asks.
pub(super) fn own_user() -> Option<String> {
    User::asking().map(|user| user.name)
}

/// Whether a service's user is there.
pub(super) fn is_user(name: &str) -> bool {
    User::named(name).is_some()
}

/// Arguments of `doctor`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A service's user: may it read and write what it needs?
    #[arg(long, value_name = "NAME", conflicts_with = "pid")]
    user: Option<String>,
    /// A process: has it the module and the configuration, and may it use the tokens?
    #[arg(long, value_name = "PROCESS")]
    pid: Option<u32>,
}

/// Looks at one thing; nothing to say of what is not there.
type Check = fn(&Setup<'_>) -> Vec<Finding>;

/// The checks, in the order in which a call needs what they look at.
const CHECKS: &[(&str, Check)] = &[
    ("configuration", checks::configuration),
    ("module", checks::module),
    ("others", checks::others),
    ("p11-kit", files::p11_kit),
    ("ssh-agent", programs::agent),
    ("OpenSSL", programs::openssl),
    ("slots", checks::slots),
    ("PINs", checks::pins),
    ("policy", checks::policy),
    ("keys", programs::keys),
    ("files", files::tokens),
    ("pepper", files::peppers),
    ("anchor", files::anchors),
    ("memory", checks::memory),
    ("keyring", checks::keyring),
    ("counters", files::counters),
    ("costs", checks::costs),
];

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let service = match (&args.user, args.pid) {
        (Some(user), _) => Some(Service::named(user)?),
        (None, Some(pid)) => Some(Service::running(pid)?),
        (None, None) => None,
    };
    let setup = Setup::of(app);
    let mut findings: Vec<(&str, Finding)> = CHECKS
        .iter()
        .flat_map(|(name, check)| check(&setup).into_iter().map(|finding| (*name, finding)))
        .collect();
    findings.extend(service.iter().flat_map(|service| look(&setup, service)));
    app.output.print(&report(&findings))?;
    match findings.iter().filter(|(_, finding)| finding.level == Level::Error).count() {
        0 => Ok(()),
        errors => Err(Failure::failed(format!("errors found: {errors}")).hint(
            "what fails in another program is said by its own run with METASLOT_LOG=stderr (docs/configuration.md)",
        )),
    }
}

fn report(findings: &[(&str, Finding)]) -> Report {
    let mut table = Table::new(&["CHECK", "RESULT", "FOUND"], &[]);
    let mut list: Vec<Value> = Vec::new();
    for (name, Finding { level, found, fix }) in findings {
        table.push(vec![(*name).to_owned(), level.name().to_owned(), found.clone()]);
        if let Some(fix) = fix {
            table.push(vec![String::new(), String::new(), format!("fix: {fix}")]);
        }
        list.push(json!({"check": name, "level": level.name(), "message": found, "fix": fix}));
    }
    let sound = findings.iter().all(|(_, finding)| finding.level != Level::Error);
    Report { text: table.text(), json: json!({"checks": list, "sound": sound}), uris: Vec::new() }
}
