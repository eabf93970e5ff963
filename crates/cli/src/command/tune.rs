// SPDX-License-Identifier: Apache-2.0
//! `metaslot tune`

use super::mechanisms::names;
use super::stat::number::duration;
use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::{Report, Table};
use crate::uri::Uri;
use crate::{draft, places};
use metaslot_ck::mechanism::MechanismRow;
use metaslot_ck::*;
use metaslot_client::{Estimate, Job, Module};
use metaslot_router::CROWD;
use metaslot_router::cost::{self, Cost, Line};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Arguments of `tune`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Only mechanisms whose name has this in it; the others keep what was measured before
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Where the costs go [default: costs.tsv beside the configuration]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Milliseconds for each provider, operation and size
    #[arg(long, value_name = "N", default_value_t = 20,
        value_parser = clap::value_parser!(u64).range(1..=10_000))]
    milliseconds: u64,
    /// Measure and show, and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// Operations that are measured.
pub(super) const OPERATIONS: [CK_FLAGS; 5] =
    [CKF_DIGEST, CKF_ENCRYPT, CKF_DECRYPT, CKF_SIGN, CKF_VERIFY];
/// Sizes of data between which costs are lines, in bytes; in a batch of the larger one, waking who waits counts for little.
const SIZES: [u64; 2] = [64, 64 << 10];
/// What is signed or encrypted with a key pair, in bytes: as long as a digest.
const ONCE: u64 = 32;
/// A crowd that uses less than this part of the processors waits for something else.
const ELSEWHERE: f64 = 5.0;
/// Times as long as one thread alone a crowd is measured.
const TURNS: u64 = 6;
/// A cost that changed by less is the same, as a ratio.
const SAME: f32 = 1.5;
/// So many changes are shown.
const SHOWN: usize = 12;

/// One operation with one kind of key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    pub(super) mechanism: CK_MECHANISM_TYPE,
    pub(super) operation: CK_FLAGS,
    pub(super) key_bits: u32,
}

impl Work {
    pub(super) fn job(self, bytes: u64, length: Duration) -> Job {
        let microseconds = u64::try_from(length.as_micros()).unwrap_or(u64::MAX);
        let Self { mechanism, operation, key_bits } = self;
        Job { mechanism, operation, key_bits: key_bits.into(), bytes, microseconds }
    }

    /// What it is measured with: a key pair takes as long for any data.
    pub(super) const fn sizes(self) -> [u64; 2] {
        if self.key_bits == 0 { SIZES } else { [ONCE, ONCE] }
    }

    fn is(self, cost: &Cost) -> bool {
        let Line { operation, key_bits, .. } = cost.line;
        (cost.mechanism, operation, key_bits) == (self.mechanism, self.operation, self.key_bits)
    }

    fn name(self) -> String {
        mechanism_name(self.mechanism).unwrap_or("?").to_owned()
    }
}

pub(crate) fn run(app: &App, args: &Args) -> Result<()> {
    let file = match &args.output {
        Some(file) => file.clone(),
        None => costs_file()?,
    };
    draft::check(&file)?;
    let module = app.host(&Uri::default())?.module();
    let works = works(app, module, args.name.as_deref())?;
    let (began, length) = (Instant::now(), Duration::from_millis(args.milliseconds));
    let mut costs = Vec::new();
    for (done, work) in works.iter().enumerate() {
        app.output.progress(done as u64, works.len() as u64, &work.name());
        costs.extend(measured(module, *work, length));
    }
    app.output.progress(1, 1, "");
    if costs.is_empty() {
        return Err(Failure::failed("nothing could be measured")
            .hint("only Metaslot measures its providers, and not every mechanism"));
    }
    let earlier = earlier(app, &file);
    let changes = changes(&earlier, &costs);
    if args.name.is_some() {
        let kept = earlier.into_iter().filter(|cost| !works.iter().any(|work| work.is(cost)));
        costs.extend(kept);
    }
    if !args.dry_run {
        let is_new = args.output.is_none();
        draft::replace(&file, is_new, &cost::format(&remarks(module), &costs))?;
    }
    let (choices, seconds) = (choices(&works, &costs), began.elapsed().as_secs_f64());
    app.output.print(&report(args, &file, &works, &costs, (&choices, &changes), seconds))
}

/// Beside the configuration that is in force, or where the user's own would be.
pub(in crate::command) fn costs_file() -> Result<PathBuf> {
    let configuration = places::in_force().map(|(file, _)| file).or_else(places::own_file);
    let configuration = configuration.ok_or_else(|| {
        Failure::failed("there is no configuration, and no home directory for one")
            .hint("name a file by --output")
    })?;
    Ok(configuration.with_file_name("costs.tsv"))
}

/// What there is to measure.
pub(super) fn works(app: &App, module: &Module, name: Option<&str>) -> Result<Vec<Work>> {
    let wanted = name.map(|name| name.to_ascii_uppercase().replace('-', "_"));
    let mut works = Vec::new();
    for token in app.host(&Uri::default())?.matching(&Uri::default())?.iter().take(1) {
        for mechanism in module.mechanisms(token.slot)? {
            let Some(row) = MechanismRow::find(mechanism) else { continue };
            let name = mechanism_name(mechanism).unwrap_or_default();
            if wanted.as_ref().is_some_and(|wanted| !name.contains(wanted)) {
                continue;
            }
            let flags = module.mechanism_info(token.slot, mechanism)?.flags;
            for operation in OPERATIONS.into_iter().filter(|operation| flags & operation != 0) {
                let works_of = |key_bits: &u32| Work { mechanism, operation, key_bits: *key_bits };
                works.extend(key_sizes(row).iter().map(works_of));
            }
        }
    }
    match (works.is_empty(), name) {
        (false, _) => Ok(works),
        (true, Some(name)) => Err(Failure::not_found(format!("no mechanism matches {name}"))
            .hint("'metaslot mechanisms' lists them")),
        (true, None) => Err(Failure::not_found("the module has no mechanism")),
    }
}

/// Bits of the keys that a mechanism is measured with; 0 where all of its keys cost about the same.
fn key_sizes(row: &MechanismRow) -> &'static [u32] {
    match row.keys.first() {
        Some(&CKK_RSA) => &[2048, 3072, 4096],
        Some(&CKK_EC) => &[256, 384, 521],
        Some(&CKK_EC_EDWARDS) => &[256],
        // Of the public keys of ML-DSA-44, 65 and 87.
        Some(&CKK_ML_DSA) => &[10_496, 15_616, 20_736],
        _ => &[0],
    }
}

/// A line for each provider that can.
fn measured(module: &Module, work: Work, length: Duration) -> Vec<Cost> {
    let [small, large] = work.sizes().map(|bytes| work.job(bytes, length));
    let long = (work.key_bits == 0).then_some(large);
    let by = |estimates: &dyn Fn(Job) -> Vec<Estimate>| {
        (estimates(small), long.map(estimates).unwrap_or_default())
    };
    let alone = by(&|job| module.estimates(job).unwrap_or_default());
    let crowded = by(&|job| crowd(module, job));
    let line = |one: &Estimate| {
        // What is wrong is not worth its time ('metaslot provider test').
        let first = one.nanoseconds.filter(|_| !one.differs)?;
        let ends = |(few, many): &(Vec<Estimate>, Vec<Estimate>)| {
            let few = time_of(few, &one.provider)?;
            let many = long.map_or(Some(few), |_| time_of(many, &one.provider))?;
            let per_byte = (many - few).max(0.0) / (SIZES[1] - SIZES[0]) as f64;
            let before = if long.is_some() { per_byte * SIZES[0] as f64 } else { 0.0 };
            Some((single((few - before).max(1.0)), single(per_byte)))
        };
        let (fixed, per_byte) = ends(&alone).unwrap_or_else(|| (single(first), 0.0));
        // To most, company is all the same.
        let (crowded, crowded_per_byte) = ends(&crowded).unwrap_or((fixed, per_byte));
        let Work { mechanism, operation, key_bits } = work;
        let line = Line { operation, key_bits, fixed, per_byte, crowded, crowded_per_byte };
        Some(Cost { provider: one.provider.clone(), mechanism, line })
    };
    alone.0.iter().filter_map(line).collect()
}

fn time_of(all: &[Estimate], provider: &str) -> Option<f64> {
    all.iter().find(|one| one.provider == provider)?.nanoseconds
}

/// What it takes while as many threads do it as make a crowd: their CPU time, or the time that passes on all processors, where most
/// of it is spent elsewhere. Not the longer one: other processes make the time that passes longer.
fn crowd(module: &Module, job: Job) -> Vec<Estimate> {
    // So many threads take turns on few processors: each has to come to work several times.
    let microseconds = job.microseconds * TURNS;
    let job = Job { operation: job.operation | CROWD, microseconds, ..job };
    let passes = microseconds as f64 * 1e3 * f64::from(cost::processors());
    let all: Vec<_> = thread::scope(|scope| {
        let one = |_| scope.spawn(|| module.estimates(job));
        let all: Vec<_> = (0..cost::crowd()).map(one).collect();
        all.into_iter().filter_map(|one| one.join().ok().flatten()).collect()
    });
    let mut whole = all.first().cloned().unwrap_or_default();
    for one in &mut whole {
        let of_it = all.iter().flatten().filter(|other| other.provider == one.provider);
        let (used, times) = of_it
            .filter_map(|one| Some((one.nanoseconds?, one.failures as f64)))
            .fold((0.0, 0.0), |sum, one| (sum.0 + one.0 * one.1, sum.1 + one.1));
        let time = if used < passes / ELSEWHERE { passes } else { used };
        one.nanoseconds = (times > 0.0).then(|| time / times);
    }
    whole
}

#[expect(clippy::cast_possible_truncation, reason = "a measurement has no more digits")]
const fn single(number: f64) -> f32 {
    number as f32
}

/// What a file has from before; a file that cannot be used counts as none.
fn earlier(app: &App, file: &Path) -> Vec<Cost> {
    // A pipe would be waited for.
    let text = fs::metadata(file).is_ok_and(|it| it.is_file()).then(|| fs::read_to_string(file));
    let Some(Ok(text)) = text else { return Vec::new() };
    cost::parse(&text).unwrap_or_else(|(line, what)| {
        app.output.note(&format!("{}: line {line}: {what}: it is replaced", file.display()));
        Vec::new()
    })
}

/// What stands at the beginning of the file.
fn remarks(module: &Module) -> Vec<String> {
    let version = module.info().map_or_else(
        |_| String::from("a module that says nothing of itself"),
        |info| {
            let (major, minor) = info.library_version;
            format!("{} {major}.{minor}", info.description)
        },
    );
    vec![machine(), version]
}

/// The processor and how many there are.
pub(in crate::command) fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("a processor without a name", |(_, model)| model);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    format!("{model}, {threads} threads")
}

/// Who is taken for little data and for much, where that is not always the first.
struct Choice {
    work: Work,
    first: String,
    little: String,
    much: String,
    /// For much data, while a crowd asks.
    crowded: String,
}

fn choices(works: &[Work], costs: &[Cost]) -> Vec<Choice> {
    let choice = |work: &Work| {
        let all: Vec<&Cost> = costs.iter().filter(|cost| work.is(cost)).collect();
        let cheapest = |(bytes, load)| {
            let mut best = *all.first()?;
            for cost in &all {
                let time = |cost: &Cost| cost.line.expected(bytes, load);
                if cost::is_clearly_less(time(cost), time(best)) {
                    best = cost;
                }
            }
            Some(best.provider.clone())
        };
        let [little, much] = [cheapest((16, 0.0))?, cheapest((1 << 20, 0.0))?];
        let (first, crowded) = (all.first()?.provider.clone(), cheapest((1 << 20, 1.0))?);
        let differs = [&little, &much, &crowded].iter().any(|one| **one != first);
        differs.then_some(Choice { work: *work, first, little, much, crowded })
    };
    works.iter().filter_map(choice).collect()
}

/// Lines that were there before and cost clearly more or less now: what, before, now.
fn changes(earlier: &[Cost], now: &[Cost]) -> Vec<(String, f32, f32)> {
    let time = |cost: &Cost| cost.line.expected(1024, 0.0);
    let same = |a: &Cost, b: &Cost| {
        let key = |cost: &Cost| (cost.mechanism, cost.line.operation, cost.line.key_bits);
        a.provider == b.provider && key(a) == key(b)
    };
    let mut all = Vec::new();
    for cost in now {
        let Some(before) = earlier.iter().find(|before| same(before, cost)) else { continue };
        let (before, after) = (time(before), time(cost));
        if before > after * SAME || after > before * SAME {
            let operation = names(cost.line.operation).join(" ");
            let name = mechanism_name(cost.mechanism).unwrap_or_default();
            let key = match cost.line.key_bits {
                0 => String::new(),
                bits => format!(" {bits}"),
            };
            all.push((format!("{} {name} {operation}{key}", cost.provider), before, after));
        }
    }
    all
}

fn report(
    args: &Args,
    file: &Path,
    works: &[Work],
    costs: &[Cost],
    (choices, changes): (&[Choice], &[(String, f32, f32)]),
    seconds: f64,
) -> Report {
    let mut text = format!(
        "{} operations measured in {seconds:.0} s: {} costs{}\n",
        works.len(),
        costs.len(),
        if args.dry_run {
            String::from(", written nowhere")
        } else {
            format!(" in {}", file.display())
        },
    );
    if choices.is_empty() {
        text.push_str("for each operation the first provider is as fast as any other, or faster\n");
    } else {
        let titles =
            ["MECHANISM", "OPERATION", "KEY", "FIRST", "16 BYTES", "1 MIB", "1 MIB, CROWDED"];
        let mut table = Table::new(&titles, &[2]);
        for Choice { work, first, little, much, crowded } in choices {
            let key = if work.key_bits == 0 { String::new() } else { work.key_bits.to_string() };
            let operation = names(work.operation).join(" ");
            let mut row = vec![work.name(), operation, key];
            row.extend([first, little, much, crowded].map(String::clone));
            table.push(row);
        }
        text.push_str("\nwhere another provider than the first is the cheaper one:\n\n");
        text.push_str(&table.text());
    }
    if !changes.is_empty() {
        text.push_str(&format!(
            "\n{} costs changed since they were measured before:\n",
            changes.len()
        ));
        for (what, before, after) in changes.iter().take(SHOWN) {
            let [before, after] = [*before, *after].map(|time| shown(time.into()));
            text.push_str(&format!("  {what}: {before}, now {after}\n"));
        }
    }
    let costs: Vec<Value> = costs.iter().map(cost_json).collect();
    let changed: Vec<Value> = changes
        .iter()
        .map(|(what, before, after)| json!({"what": what, "before_ns": before, "now_ns": after}))
        .collect();
    let file = (!args.dry_run).then(|| file.display().to_string());
    Report {
        text,
        json: json!({"file": file, "seconds": seconds, "costs": costs, "changed": changed}),
        uris: file.into_iter().collect(),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times are positive")]
pub(super) fn shown(nanoseconds: f64) -> String {
    if nanoseconds < 10_000.0 {
        return format!("{nanoseconds:.0} ns");
    }
    duration(nanoseconds as u64)
}

fn cost_json(Cost { provider, mechanism, line }: &Cost) -> Value {
    json!({
        "provider": provider,
        "mechanism": mechanism_name(*mechanism),
        "operation": names(line.operation).join(" "),
        "key_bits": line.key_bits,
        "fixed_ns": line.fixed,
        "ns_per_byte": line.per_byte,
        "crowded_ns": line.crowded,
        "crowded_ns_per_byte": line.crowded_per_byte,
    })
}
