// SPDX-License-Identifier: Apache-2.0
//! The experiment: fill the stores, ask them in turns, start them cold, write into them.

use super::cold;
use super::holder::{Answer, Holder, Request};
use super::options::Options;
use super::report::{Level, Report};
use super::sqlite::Raw;
use super::{print, syncs};
use crate::machine::{Machine, command_line, commit_around, now};
use crate::place::{Place, Store};
use crate::progress::Progress;
use crate::random::Random;
use crate::{Failure, Result};
use std::path::Path;
use std::time::{Duration, Instant};

/// Objects of one order while a store is being filled.
const PORTION: u64 = 10_000;
/// How long the disk is measured.
const DISK: Duration = Duration::from_millis(500);

/// A store while it is being measured.
struct Bench {
    store: Store,
    level: Level,
}

pub(super) fn run(options: &Options, module: &Path, place: &Place) -> Result<()> {
    let started = Instant::now();
    let progress = Progress::new();
    let seed = options.seed.unwrap_or_else(Random::seed_from_clock);
    let mut random = Random::new(seed);
    let (machine, began) = (Machine::this(), now());
    let mut benches = Vec::new();
    for objects in &options.objects {
        benches.push(fill(options, module, place, *objects, &progress)?);
    }
    ask(options, module, &mut benches, &mut random, &progress)?;
    for bench in &mut benches {
        for number in 0..options.starts {
            progress.say(format_args!("{} objects, cold start {number}", bench.level.objects));
            bench.level.starts.push(cold::start(&bench.store, module)?);
        }
    }
    let mut disk_syncs = vec![disk(place)?];
    write(options, module, &mut benches, &mut random, &progress)?;
    disk_syncs.push(disk(place)?);
    for bench in &mut benches {
        progress.say(format_args!("{} objects, counting syncs", bench.level.objects));
        bench.level.syncs_per_create = syncs::per_create(&bench.store, module, random.next())?;
    }
    drop(progress);
    let report = Report {
        schema: "metaslot-lab-store/1".to_owned(),
        command: command_line(),
        started: began,
        seconds: started.elapsed().as_secs_f64(),
        machine,
        module: module.display().to_string(),
        commit: commit_around(&std::path::absolute(module)?),
        seed,
        threads: options.threads,
        disk_syncs,
        stores: benches.into_iter().map(|bench| bench.level).collect(),
    };
    options.output.publish(&report, print::table)
}

/// Makes one store with its keys and its objects, by a process that ends afterwards.
fn fill(
    options: &Options,
    module: &Path,
    place: &Place,
    objects: u64,
    progress: &Progress,
) -> Result<Bench> {
    let store = place.store(&format!("objects-{objects}"))?;
    let mut holder = Holder::start(&store, module, true)?;
    let started = Instant::now();
    let mut first = 0;
    while first < objects {
        progress.say(format_args!("{objects} objects: {first} made"));
        let portion = PORTION.min(objects - first);
        let threads = options.threads;
        holder.ask(&Request::Populate { first, objects: portion, threads })?;
        first += portion;
    }
    let populated_per_second = objects as f64 / started.elapsed().as_secs_f64();
    holder.end()?;
    let database_bytes = std::fs::metadata(store.database()).map_or(0, |data| data.len());
    let level = Level {
        objects,
        populated_per_second,
        database_bytes,
        find_cpu_ns: Vec::new(),
        find_wall_ns: Vec::new(),
        sign_cpu_ns: Vec::new(),
        starts: Vec::new(),
        create: Vec::new(),
        create_threads: Vec::new(),
        raw: Vec::new(),
        raw_threads: Vec::new(),
        syncs_per_create: None,
    };
    Ok(Bench { store, level })
}

/// Finds and signatures, all stores in turns.
fn ask(
    options: &Options,
    module: &Path,
    benches: &mut [Bench],
    random: &mut Random,
    progress: &Progress,
) -> Result<()> {
    let start = |bench: &Bench| Holder::start(&bench.store, module, false);
    let mut holders = benches.iter().map(start).collect::<Result<Vec<_>>>()?;
    let mut order: Vec<usize> = (0..benches.len()).collect();
    let millis = options.sample;
    for round in 0..options.rounds {
        progress.say(format_args!("finds and signatures, round {}", round + 1));
        random.shuffle(&mut order);
        for &at in &order {
            let (holder, level) = (&mut holders[at], &mut benches[at].level);
            let seed = random.next();
            let found = holder.ask(&Request::Find { objects: level.objects, millis, seed })?;
            level.find_cpu_ns.push(found.cpu_each());
            level.find_wall_ns.push(found.wall_each());
        }
        random.shuffle(&mut order);
        for &at in &order {
            let signed = holders[at].ask(&Request::Sign { millis })?;
            benches[at].level.sign_cpu_ns.push(signed.cpu_each());
        }
    }
    holders.into_iter().try_for_each(Holder::end)
}

/// Syncs per second of the disk below the stores.
fn disk(place: &Place) -> Result<f64> {
    let path = place.file("syncs");
    let mut file = std::fs::File::create(&path).map_err(|error| Failure::file(&path, &error))?;
    let (started, mut syncs) = (Instant::now(), 0_u32);
    while started.elapsed() < DISK {
        std::io::Write::write_all(&mut file, &[0; 4096])?;
        file.sync_data()?;
        syncs += 1;
    }
    Ok(f64::from(syncs) / started.elapsed().as_secs_f64())
}

/// Who creates, on how many threads.
#[derive(Clone, Copy)]
enum Writer {
    Module,
    ModuleThreads,
    Raw,
    RawThreads,
}

/// Creates: this module and raw SQLite in turns, one store after the other.
fn write(
    options: &Options,
    module: &Path,
    benches: &mut [Bench],
    random: &mut Random,
    progress: &Progress,
) -> Result<()> {
    for bench in benches {
        let database = bench.store.database();
        let raw = if database.exists() {
            Some(Raw::copy(&database, &bench.store.file("raw.db"))?)
        } else {
            None
        };
        let mut order = vec![Writer::Module, Writer::ModuleThreads];
        if raw.is_some() {
            order.extend([Writer::Raw, Writer::RawThreads]);
        }
        let mut holder = Holder::start(&bench.store, module, false)?;
        for round in 0..options.rounds {
            progress.say(format_args!("{} objects, creates, {round}", bench.level.objects));
            random.shuffle(&mut order);
            for writer in &order {
                let seed = random.next();
                one_sample(*writer, options, &mut holder, raw.as_ref(), seed, &mut bench.level)?;
            }
        }
        holder.end()?;
    }
    Ok(())
}

fn one_sample(
    writer: Writer,
    options: &Options,
    holder: &mut Holder,
    raw: Option<&Raw>,
    seed: u64,
    level: &mut Level,
) -> Result<()> {
    let (millis, threads) = (options.creates, options.threads);
    let mut by_module =
        |threads| holder.ask(&Request::Create { millis, threads, seed }).map(per_second);
    let by_raw = |threads| {
        let raw = raw.ok_or_else(|| Failure::new("there is no raw database"))?;
        raw.create(millis, threads).map(per_second)
    };
    match writer {
        Writer::Module => level.create.push(by_module(1)?),
        Writer::ModuleThreads => level.create_threads.push(by_module(threads)?),
        Writer::Raw => level.raw.push(by_raw(1)?),
        Writer::RawThreads => level.raw_threads.push(by_raw(threads)?),
    }
    Ok(())
}

fn per_second(answer: Answer) -> f64 {
    1e9 / answer.wall_each()
}
