// SPDX-License-Identifier: Apache-2.0
//! The long search for attacks on the interface (`models/tests/search`), with the release build.

use anyhow::{Context, Result, bail, ensure};

use crate::cargo::cargo;

/// `[--policy default|legacy] [--allow NAME] [--minutes N] [--seed N]`
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let (mut policy, mut minutes, mut seed, mut allow) = ("default", "1", None, None);
    for pair in arguments.chunks(2) {
        let [option, value] = pair else { bail!("{} wants a value", pair[0]) };
        match option.as_str() {
            "--policy" => policy = value,
            "--minutes" => minutes = value,
            "--seed" => seed = Some(value),
            "--allow" => allow = Some(value),
            _ => bail!("search takes --policy, --allow, --minutes and --seed, and no {option}"),
        }
    }
    let test = match policy {
        "default" => "nothing_is_found_under_the_default_policy",
        "legacy" => "attacks_are_found_under_legacy",
        other => bail!("no policy is called {other}"),
    };
    let mut search =
        cargo(&["test", "--release", "--locked", "--package=metaslot-models", "--test=search"]);
    search.args(["--", "--exact", test, "--nocapture"]);
    for (name, number) in [("MINUTES", Some(minutes)), ("SEED", seed.map(String::as_str))] {
        let Some(number) = number else { continue };
        ensure!(number.parse::<u64>().is_ok(), "{number} is no number");
        search.env(format!("METASLOT_SEARCH_{name}"), number);
    }
    allow.map(|name| search.env("METASLOT_SEARCH_ALLOW", name));
    let status = search.status().context("run cargo")?;
    ensure!(status.success(), "the search failed: {status}");
    Ok(())
}
