// SPDX-License-Identifier: Apache-2.0
//! The long search for attacks on the interface (`models/tests/search`), with the release build.

use anyhow::{Context, Result, bail, ensure};

use crate::cargo::cargo;

/// `[--policy default|legacy] [--minutes N] [--seed N]`
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let test =
        ["test", "--release", "--locked", "--package", "metaslot-models", "--test", "search"];
    let mut search = cargo(&test);
    search.args(["--", "--ignored", "--exact", "long", "--nocapture"]);
    for pair in arguments.chunks(2) {
        let [option, value] = pair else { bail!("{} wants a value", pair[0]) };
        let right = match option.as_str() {
            "--policy" => matches!(value.as_str(), "default" | "legacy"),
            "--minutes" | "--seed" => value.parse::<u64>().is_ok(),
            _ => bail!("search takes --policy, --minutes and --seed, and no {option}"),
        };
        ensure!(right, "{option} cannot be {value}");
        search.env(format!("METASLOT_SEARCH_{}", option[2..].to_uppercase()), value);
    }
    let status = search.status().context("run cargo")?;
    ensure!(status.success(), "the search failed, or found something: {status}");
    Ok(())
}
