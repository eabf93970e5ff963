// SPDX-License-Identifier: Apache-2.0
//! KASUMI: an inner function by small tables, by large ones, and by equations.

use super::bench::{Job, Subject, head, thread_counts};
use super::findings::Findings;
use super::page::{scaling, versions};
use super::view::{Clock, THREADS, View};
use crate::experiment::{Factor, level};
use crate::random::Random;
use crate::scenario::Head;
use crate::table::digits;
use crate::{Failure, Result};
use metaslot_studies::kasumi::{Key, Version};
use std::hint::black_box;

const FEED: &str = "feed";
const BLOCKS: usize = 1024;
const CHAIN: usize = 64;
/// Calls of FI in a block: three in each of eight rounds.
const CALLS: f64 = 24.0;
const BLOCK: usize = 8;

/// The versions by name.
const ARMS: [(&str, Version); 3] = [
    ("small tables", Version::Small),
    ("large tables", Version::Large),
    ("equations", Version::Sliced),
];

/// The study; its versions agree.
pub(super) struct Kasumi;

impl Kasumi {
    /// Checks all versions against the first.
    ///
    /// # Errors
    /// They do not agree.
    pub(super) fn new() -> Result<Self> {
        let mut random = Random::new(Random::seed_from_clock());
        let mut key = [0; 16];
        random.fill(&mut key);
        let key = Key::new(&key);
        let plain: Vec<u64> = (0..193).map(|_| random.next()).collect();
        let mut expected = plain.clone();
        key.blocks(Version::Small, &mut expected);
        for (name, version) in ARMS {
            let mut blocks = plain.clone();
            key.blocks(version, &mut blocks);
            let chained = key.chain(version, plain[0], 3) == key.chain(Version::Small, plain[0], 3);
            if blocks != expected || !chained {
                return Err(Failure::new(format!("KASUMI by {name} gives other blocks")));
            }
        }
        Ok(Self)
    }
}

impl Subject for Kasumi {
    fn head(&self) -> Head {
        let mut head = head("study-kasumi", "byte");
        let file = "/sys/devices/system/cpu/cpu0/cache/index0/size";
        if let Ok(size) = std::fs::read_to_string(file) {
            head.settings.insert(CACHE.to_owned(), size.trim().to_owned());
        }
        head
    }

    fn factors(&self) -> Vec<Factor> {
        vec![Factor::new(FEED, ["blocks", "chain"]), Factor::new(THREADS, thread_counts())]
    }

    fn arms(&self) -> Vec<String> {
        ARMS.map(|(name, _)| name.to_owned()).to_vec()
    }

    fn job(&self, cell: &str, arm: &str) -> Result<Job> {
        let version = ARMS.iter().find(|(name, _)| *name == arm);
        let (_, version) = *version.ok_or_else(|| Failure::new(format!("no KASUMI by {arm}")))?;
        let key = Key::new(b"sixteen byte key");
        if level(cell, FEED) == Some("chain") {
            let mut block = 1;
            return Ok(Job::new((CHAIN * BLOCK) as f64, move || {
                block = black_box(key.chain(version, block, CHAIN));
            }));
        }
        let mut blocks = vec![1; BLOCKS];
        Ok(Job::new((BLOCKS * BLOCK) as f64, move || key.blocks(version, &mut blocks)))
    }
}

/// The setting with the size of the first-level cache.
const CACHE: &str = "first-level cache";

/// What the experiment says.
pub(super) fn findings(view: &View<'_>) -> Findings {
    let cell = |feed: &str, threads: &str| {
        view.cell(&[(FEED, feed), (THREADS, threads)]).unwrap_or_default()
    };
    let most = view.most_threads();
    let cells = Cells { blocks: cell("blocks", "1"), chain: cell("chain", "1") };
    let all = cell("blocks", &most);
    let shown = [("blocks", cells.blocks.clone()), ("chain", cells.chain.clone())];
    let mut tables = versions(
        view,
        "One thread: ticks of the time stamp for a byte, in blocks that do not depend on each other and \
         in a chain; CPU cost over the first version in blocks",
        &shown,
    );
    if all != cells.blocks {
        tables.push_str(&scaling(view, "Blocks on all threads", &cells.blocks, &all));
    }
    let effect =
        |what: &str, cell: &str, arm| view.effect(what, cell, [arm, "small tables"], Clock::Cpu);
    Findings {
        tables,
        sun: vec![
            "an FI by two small tables took 22 instructions, by two tables of 65,536 entries 5; a block \
             has 24 FI"
                .to_owned(),
            "with large tables: a core 8 times a strand, a chip 64 times, 1.3 times a Xeon core".to_owned(),
        ],
        effects: vec![
            effect("large tables, in blocks", &cells.blocks, "large tables"),
            effect("large tables, in a chain", &cells.chain, "large tables"),
            effect("no tables, in blocks", &cells.blocks, "equations"),
            effect("no tables, in a chain", &cells.chain, "equations"),
        ],
        reason: [tables_reason(view, &cells), equations_reason(view, &cells, &all, &most)],
    }
}

/// The cells of one thread.
struct Cells {
    blocks: String,
    chain: String,
}

/// Ticks of one FI.
fn call(view: &View<'_>, cell: &str, arm: &str) -> f64 {
    view.ticks(cell, arm) * BLOCK as f64 / CALLS
}

fn tables_reason(view: &View<'_>, cells: &Cells) -> String {
    let call = |cell: &str, arm: &str| digits(call(view, cell, arm));
    let settings = &view.experiment.manifest.provenance.settings;
    let cache = settings.get(CACHE).map_or_else(String::new, |size| format!(" (it has {size})"));
    let [small, large] = [Version::Small, Version::Large].map(Version::table_bytes);
    let gain = view.ratio(&cells.chain, "large tables", "small tables");
    let why = if gain < 1.0 {
        "two reads in place of four save more than they wait longer for tables that the first-level \
         cache cannot hold"
    } else {
        "two reads of tables that the first-level cache cannot hold take longer than four that it holds"
    };
    format!(
        "An FI takes {} ticks by small tables ({small} bytes) and {} by large ones ({} KiB) in a chain, {} \
         and {} in blocks: where an FI waits for the one before, {why}{cache}.",
        call(&cells.chain, "small tables"),
        call(&cells.chain, "large tables"),
        large / 1024,
        call(&cells.blocks, "small tables"),
        call(&cells.blocks, "large tables"),
    )
}

fn equations_reason(view: &View<'_>, cells: &Cells, all: &str, threads: &str) -> String {
    let scale = |arm: &str| digits(view.wall_rate(all, arm) / view.wall_rate(&cells.blocks, arm));
    let dearer = |arm: &str| digits(view.ticks(all, arm) / view.ticks(&cells.blocks, arm));
    let constant = format!(
        "By equations an FI costs {} ticks when 64 blocks share it and {} when one block has it alone",
        digits(call(view, &cells.blocks, "equations")),
        digits(call(view, &cells.chain, "equations")),
    );
    if *all == *cells.blocks {
        return format!("{constant}.");
    }
    format!(
        "{constant}; {threads} threads do {} times the work of one by large tables and {} by small ones, \
         where a byte costs {} and {} times the CPU time.",
        scale("large tables"),
        scale("small tables"),
        dearer("large tables"),
        dearer("small tables"),
    )
}
