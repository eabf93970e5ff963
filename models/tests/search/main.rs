// SPDX-License-Identifier: Apache-2.0
//! Searches for unknown attacks. An owner makes keys, an attacker with the user's session
//! makes calls, by chance and (short sequences) in every combination; what he knows is closed under what
//! he can compute. A sequence after which he holds a protected key's value, or a use that a key's birth
//! forbade, is a finding.
//!
//! Left to other tests: padding oracles, weak keys, logins and logouts, several threads.
//!
//! The usual run takes some seconds. `cargo xtask search` runs longer, under a policy by its name.

mod alphabet;
mod chooser;
mod compose;
mod game;
mod knowledge;
mod replay;
mod search;
mod stage;
mod step;
mod theme;
mod truth;
mod verdict;

use metaslot_engine::Policy;
use search::Search;
use stage::Stock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The policy of this name; of the default one, without what `METASLOT_SEARCH_ALLOW` re-opens, which
/// shows whether the search would miss it.
fn policy(name: &str) -> Policy {
    let mut policy = if name == "legacy" { Policy::legacy() } else { Policy::DEFAULT };
    if let Ok(allowed) = std::env::var("METASLOT_SEARCH_ALLOW") {
        assert!(policy.allow(&allowed), "{allowed} cannot be allowed");
    }
    policy
}

fn named(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

fn by_the_clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_secs())
}

fn show(search: &Search) {
    let seconds = search.begun.elapsed().as_secs_f64();
    let (sequences, kinds) = (search.sequences, search.found.len());
    #[expect(clippy::cast_precision_loss, reason = "shown with no digit after the point")]
    let (rate, useful) =
        (sequences as f64 / seconds, 100.0 * search.successes as f64 / search.calls.max(1) as f64);
    println!(
        "{seconds:.0} s: {sequences} sequences, {rate:.0} per second, {useful:.0} % of calls succeed, \
         {:.1} % of all short ones, {kinds} kinds, {} of them named",
        100.0 * search.of_every(),
        search.named()
    );
}

fn print(search: &Search) {
    for (kind, attack) in &search.found {
        println!("\n# {kind}\n# {} times, first in sequence {}", attack.count, attack.first);
        step::numbered(&attack.steps).iter().for_each(|step| println!("{step}"));
    }
}

/// As long as `METASLOT_SEARCH_MINUTES` says, otherwise as long as the usual run is `wanted`.
fn run(name: &str, wanted: impl Fn(&Search) -> bool) -> Search {
    let seed = named("METASLOT_SEARCH_SEED").unwrap_or_else(by_the_clock);
    println!("policy {name}, seed {seed}");
    let minutes = named("METASLOT_SEARCH_MINUTES").map(|minutes| Duration::from_secs(60 * minutes));
    let mut search = Search::new(Stock::new(policy(name)), seed);
    let wanted = |search: &Search| match minutes {
        Some(minutes) => search.begun.elapsed() < minutes,
        None => wanted(search),
    };
    search.run(wanted, show);
    print(&search);
    show(&search);
    search
}

#[test]
fn nothing_is_found_under_the_default_policy() {
    let search = run("default", |search| search.sequences < 1_000);
    assert!(search.found.is_empty(), "found: {:?}", search.found.keys());
}

#[test]
fn attacks_are_found_under_legacy() {
    let search = run("legacy", |search| search.named() < 8 && search.sequences < 20_000);
    assert!(search.named() >= 8, "found only: {:?}", search.found.keys());
}
