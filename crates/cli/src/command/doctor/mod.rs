// SPDX-License-Identifier: Apache-2.0
//! `metaslot doctor`: one table of checks, each with what helps.

mod checks;
mod files;
mod finding;

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::{Report, Table};
use checks::Setup;
use finding::{Finding, Level};
use serde_json::{Value, json};

const EXAMPLES: &str = "\
Examples:
  metaslot doctor
  metaslot doctor --json";

/// Arguments of `doctor`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {}

/// Looks at one thing; nothing to say of what is not there.
type Check = fn(&Setup<'_>) -> Vec<Finding>;

/// The checks, in the order in which a call needs what they look at.
const CHECKS: &[(&str, Check)] = &[
    ("configuration", checks::configuration),
    ("module", checks::module),
    ("p11-kit", files::p11_kit),
    ("slots", checks::slots),
    ("PINs", checks::pins),
    ("policy", checks::policy),
    ("files", files::tokens),
    ("pepper", files::peppers),
    ("anchor", files::anchors),
    ("memory", checks::memory),
    ("keyring", checks::keyring),
    ("counters", files::counters),
    ("costs", checks::costs),
];

pub(crate) fn run(app: &App, _: &Args) -> Result<()> {
    let setup = Setup::of(app);
    let findings: Vec<(&str, Finding)> = CHECKS
        .iter()
        .flat_map(|(name, check)| check(&setup).into_iter().map(|finding| (*name, finding)))
        .collect();
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
