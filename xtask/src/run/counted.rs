// SPDX-License-Identifier: Apache-2.0
//! Who computed, as the counters of a process say: nothing here is assumed.

use anyhow::{Context, Result};
use serde_json::Value;

use super::sandbox::Sandbox;

/// What the module did in one process.
pub(crate) struct Counted {
    /// The providers that served operations; a dash when there were none.
    pub(crate) providers: String,
    /// How many operations of which mechanism, by whom, in what time each.
    pub(crate) operations: String,
}

impl Sandbox {
    /// Reads the page of a process that runs or has just ended.
    pub(crate) fn counted(&self, pid: u32) -> Result<Counted> {
        let page = self.metaslot().args(["stat", "--json", "--pid", &pid.to_string()]).run()?;
        let page: Value = serde_json::from_str(&page.text).context("read the counters")?;
        let processes = page["processes"].as_array().into_iter().flatten();
        let operations =
            processes.flat_map(|process| process["operations"].as_array().into_iter().flatten());
        let (mut providers, mut details) = (Vec::new(), Vec::new());
        for operation in operations {
            let provider =
                operation["provider"].as_str().context("an operation without a provider")?;
            if !providers.contains(&provider) {
                providers.push(provider);
            }
            details.push(shown(operation, provider));
        }
        let providers = if providers.is_empty() { "–".into() } else { providers.join(", ") };
        Ok(Counted { providers, operations: details.join("; ") })
    }
}

fn shown(operation: &Value, provider: &str) -> String {
    let mechanism = operation["mechanism"].as_str().unwrap_or("?");
    let count = operation["operations"].as_u64().unwrap_or_default();
    let mean = operation["mean_nanoseconds"].as_f64();
    let mean = mean.map_or_else(String::new, |mean| format!(", {:.0} µs each", mean / 1e3));
    format!("{count} × {mechanism} by {provider}{mean}")
}
