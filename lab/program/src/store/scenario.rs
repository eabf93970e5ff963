// SPDX-License-Identifier: Apache-2.0
//! The stores as a scenario: filled first; then finds, signatures, cold starts and creates, all stores in turns.
//!
//! Each store is there twice: what is asked must not grow by what is created.

use super::cold;
use super::holder::{self, Request};
use super::options::Options;
use super::report::{
    CREATE, CREATE_THREADS, DISK, FILLED, FIND, Filled, MODULE, OBJECTS, RAW, RAW_THREADS, SIGN,
    START, THREADS, WHAT,
};
use super::sqlite::Raw;
use super::syncs;
use crate::child::Child;
use crate::experiment::{Factor, Measured, Run, level};
use crate::machine::library;
use crate::meter::{Account, Done, Meter};
use crate::progress::Progress;
use crate::random::Random;
use crate::sandbox::{Sandbox, Store};
use crate::scenario::{Head, Scenario};
use crate::{Failure, Result};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Objects of one order while a store is being filled.
const PORTION: u64 = 10_000;
/// How long one sample of the disk is.
const SYNCING: Duration = Duration::from_millis(50);
/// What is measured, in the order of the table.
const ALL: [&str; 8] = [FIND, SIGN, START, CREATE, CREATE_THREADS, RAW, RAW_THREADS, DISK];

/// All stores.
pub(super) struct Stores {
    options: Options,
    module: PathBuf,
    /// The module, as people know it.
    described: String,
    random: Random,
    benches: Vec<Bench>,
    /// Goes away after those who work in it.
    place: Sandbox,
}

/// One of them.
struct Bench {
    objects: u64,
    filled: Filled,
    asked: Child,
    store: Store,
    /// The one that grows, and a copy of its file for raw SQLite.
    written: Store,
    writer: Child,
    raw: Option<Raw>,
}

impl Stores {
    /// Fills the stores.
    ///
    /// # Errors
    /// The module makes no token, or the disk is full.
    pub(super) fn new(options: &Options, module: PathBuf, seed: u64) -> Result<Self> {
        let place = Sandbox::guarded(options.token.dir.as_deref(), options.token.keep)?;
        let progress = Progress::new();
        let fill = |objects| Bench::fill(options, &module, &place, objects, &progress);
        let benches =
            options.objects.iter().map(|objects| fill(*objects)).collect::<Result<_>>()?;
        Ok(Self {
            options: options.clone(),
            described: library(&module)?,
            module,
            random: Random::new(seed),
            benches,
            place,
        })
    }

    /// As many starts as the rounds have to do each.
    fn started(&self, bench: &Bench, meter: &Meter) -> Result<Measured> {
        let times = self.options.starts.div_ceil(self.options.rounds);
        let window = meter.open(Account::Children)?;
        let starts = (0..times).map(|_| cold::start(&bench.store, &self.module));
        let starts = starts.collect::<Result<Vec<_>>>()?;
        let mut measured = window.close(times as f64)?;
        for (name, value) in starts.into_iter().flatten() {
            *measured.counters.entry(name).or_default() += value;
        }
        // Without the start of the process itself.
        measured.wall_ns = measured.counters["total_ms"] * 1e6;
        Ok(measured)
    }

    /// `write` and `fdatasync` of 4 KiB at the end of a file: what this disk allows to a writer that
    /// commits alone.
    fn synced(&self, meter: &Meter) -> Result<Measured> {
        let path = self.place.file("syncs");
        let made = std::fs::File::create(&path);
        let mut file = made.map_err(|error| Failure::file(&path, &error))?;
        meter.process(|| {
            let (started, mut syncs) = (Instant::now(), 0.0);
            while started.elapsed() < SYNCING {
                file.write_all(&[0; 4096])?;
                file.sync_data()?;
                syncs += 1.0;
            }
            Ok(syncs)
        })
    }
}

impl Bench {
    /// Makes one store with its keys and its objects, by a process that ends afterwards.
    fn fill(
        options: &Options,
        module: &Path,
        place: &Sandbox,
        objects: u64,
        progress: &Progress,
    ) -> Result<Self> {
        let store = place.store(&format!("objects-{objects}"))?;
        let mut maker = holder::start(&store, module, true)?;
        // The token and its keys are no objects of the store: nothing is timed before they are there.
        holder::ask(&mut maker, &Request::Populate { first: 0, objects: 0, threads: 1 })?;
        let (started, threads) = (Instant::now(), options.threads);
        let mut first = 0;
        while first < objects {
            progress.say(format_args!("{objects} objects: {first} made"));
            let portion = PORTION.min(objects - first);
            holder::ask(&mut maker, &Request::Populate { first, objects: portion, threads })?;
            first += portion;
        }
        let populated_per_second = objects as f64 / started.elapsed().as_secs_f64();
        maker.end()?;
        let database = store.database();
        let database_bytes = std::fs::metadata(&database).map_or(0, |data| data.len());
        let written = place.copy(&store, &format!("objects-{objects}-written"))?;
        let mut writer = holder::start(&written, module, false)?;
        // The first create prepares; it is not what a busy program pays.
        holder::ask(&mut writer, &Request::CreateCount { count: 1, seed: 0 })?;
        let raw = database.exists().then(|| Raw::copy(&database, &written.file("raw.db")));
        Ok(Self {
            objects,
            filled: Filled { populated_per_second, database_bytes, syncs_per_create: None },
            asked: holder::start(&store, module, false)?,
            store,
            writer,
            written,
            raw: raw.transpose()?,
        })
    }

    /// Lets both processes end, and counts what a create asks of the disk.
    fn end(mut self, module: &Path, seed: u64) -> Result<Filled> {
        self.asked.end()?;
        self.writer.end()?;
        self.filled.syncs_per_create = syncs::per_create(&self.written, module, seed)?;
        Ok(self.filled)
    }
}

impl Scenario for Stores {
    fn head(&self) -> Head {
        let settings =
            [(MODULE, self.described.clone()), (THREADS, self.options.threads.to_string())];
        Head {
            name: "store",
            unit: "operation",
            cpu: "of the process that holds the store, by its own clocks".to_owned(),
            settings: settings.map(|(name, value)| (name.to_owned(), value)).into(),
        }
    }

    fn factors(&self) -> Vec<Factor> {
        vec![
            Factor::new(OBJECTS, self.benches.iter().map(|bench| bench.objects)),
            Factor::new(WHAT, ALL),
        ]
    }

    fn arms(&self) -> Vec<String> {
        vec!["measured".to_owned()]
    }

    fn skip(&self, cell: &str) -> Option<String> {
        let at = self.at(cell)?;
        match level(cell, WHAT)? {
            RAW | RAW_THREADS if self.benches[at].raw.is_none() => {
                Some("raw SQLite follows this module's store only".to_owned())
            }
            START if self.options.starts == 0 => Some("not asked for".to_owned()),
            DISK if at > 0 => Some("there is one disk".to_owned()),
            _ => None,
        }
    }

    fn sample(&mut self, run: &Run, meter: &Meter) -> Result<Measured> {
        let at = self.at(&run.cell).ok_or_else(|| Failure::new("no such store"))?;
        let (seed, what) = (self.random.next(), run.level(WHAT).unwrap_or_default());
        let Options { sample, creates, threads, .. } = self.options;
        let threads = if matches!(what, CREATE_THREADS | RAW_THREADS) { threads } else { 1 };
        match what {
            START => return self.started(&self.benches[at], meter),
            DISK => return self.synced(meter),
            _ => {}
        }
        let bench = &mut self.benches[at];
        if let (RAW | RAW_THREADS, Some(raw)) = (what, &bench.raw) {
            return meter.process(|| raw.create(creates, threads));
        }
        let (holder, request) = match what {
            FIND => {
                (&mut bench.asked, Request::Find { objects: bench.objects, millis: sample, seed })
            }
            SIGN => (&mut bench.asked, Request::Sign { millis: sample }),
            _ => (&mut bench.writer, Request::Create { millis: creates, threads, seed }),
        };
        let window = meter.open(Account::Process)?;
        let done: Done = holder::ask(holder, &request)?;
        Ok(done.sample(window.close(done.operations)?))
    }

    fn files(&mut self) -> Result<Vec<(String, Vec<u8>)>> {
        let mut all = Vec::new();
        for bench in std::mem::take(&mut self.benches) {
            all.push((bench.objects, bench.end(&self.module, self.random.next())?));
        }
        Ok(vec![(FILLED.to_owned(), serde_json::to_vec_pretty(&all)?)])
    }
}

impl Stores {
    /// Which store a cell asks.
    fn at(&self, cell: &str) -> Option<usize> {
        let objects: u64 = level(cell, OBJECTS)?.parse().ok()?;
        self.benches.iter().position(|bench| bench.objects == objects)
    }
}
