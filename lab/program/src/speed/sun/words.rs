// SPDX-License-Identifier: Apache-2.0
//! What follows from the figures of this run, in sentences.

use super::operations::SunRow;
use super::view::{Rates, View};
use crate::speed::part::{LANES, MODULE, RAW, RIVAL};
use crate::statistics::median;
use crate::table::digits;
use crate::verdict::Verdict;

/// A thread that had less than this of a CPU was held back.
const HELD_BACK: f64 = 0.95;

/// Others that use less than this share of a CPU are not worth a word.
const IDLE: f64 = 0.05;

/// What the CPU time of a unit says of the threads.
pub(super) const fn disturbed(growth: Verdict) -> &'static str {
    match growth {
        Verdict::Same => "undisturbed",
        Verdict::Slower => "they disturb each other",
        Verdict::Faster => "one alone was held back",
        Verdict::Unresolved { .. } => "unresolved",
    }
}

/// What the gain of several threads consists of, here and then.
pub(super) fn gain(view: &View<'_>) -> Vec<String> {
    let all = all(view);
    let mut lines = Vec::new();
    if view.threads() > 1 && !all.is_empty() {
        lines.push(parts(view, &all));
        lines.push(verdicts(view));
        lines.push(highest(view, &all));
    }
    lines.extend(others(view));
    lines.push(then(view));
    lines.push(siblings(view));
    lines
}

/// Everything that was measured.
fn all(view: &View<'_>) -> Vec<(&'static SunRow, &'static str, Rates)> {
    let mut all = Vec::new();
    for row in view.rows() {
        all.extend(view.doers().into_iter().filter_map(|by| Some((row, by, view.rates(row, by)?))));
    }
    all
}

/// Lowest and highest of a figure.
fn range(all: &[(&SunRow, &str, Rates)], figure: impl Fn(&Rates) -> f64) -> String {
    let values = all.iter().map(|(_, _, rates)| figure(rates));
    let (low, high) =
        values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
    format!("{} to {}", digits(low), digits(high))
}

fn parts(view: &View<'_>, all: &[(&SunRow, &str, Rates)]) -> String {
    format!(
        "The ratio by the wall clock is {}: the CPUs that were used, {} with one thread and {} with {}, make \
         it × {}; what a unit costs in CPU time divides it by {}.",
        range(all, Rates::gain),
        range(all, |rates| rates.cpus[0]),
        range(all, |rates| rates.cpus[1]),
        view.threads(),
        range(all, Rates::more_cpus),
        range(all, Rates::dearer),
    )
}

/// How many of each verdict.
fn verdicts(view: &View<'_>) -> String {
    let mut counts = [0; 4];
    for row in view.rows() {
        for (_, verdict) in view.doers().into_iter().filter_map(|by| view.growth(row, by)) {
            let at = match verdict {
                Verdict::Same => 0,
                Verdict::Slower => 1,
                Verdict::Faster => 2,
                Verdict::Unresolved { .. } => 3,
            };
            counts[at] += 1;
        }
    }
    let [same, slower, faster, open] = counts;
    format!(
        "CPU time of a unit, several threads over one: the same in {same} of {} cells (the ratio comes from \
         the number of CPUs alone), more in {slower} (the threads disturb each other), less in {faster} (one \
         thread alone was held back), unresolved in {open}.",
        counts.iter().sum::<i32>()
    )
}

/// What others took away, where the system says.
fn others(view: &View<'_>) -> Option<String> {
    let foreign: Vec<f64> =
        view.experiment.samples.iter().filter_map(|sample| sample.measured.foreign_cpu).collect();
    if foreign.is_empty() || median(&foreign) < IDLE {
        return None;
    }
    Some(format!(
        "Others used {} CPUs meanwhile (median): what a thread did not get of a CPU, they had. The rates by \
         CPU time do not know of it, the rates by the wall clock do, and so does their ratio.",
        digits(median(&foreign))
    ))
}

/// Whether anything here gains more than it has threads, and why.
fn highest(view: &View<'_>, all: &[(&SunRow, &str, Rates)]) -> String {
    let threads = view.threads();
    let most = all.iter().max_by(|a, b| a.2.gain().total_cmp(&b.2.gain()));
    let Some((row, by, rates)) = most else { return String::new() };
    let gain = rates.gain();
    let what = format!("{} by {by} gains most, {}", row.name, digits(gain));
    if gain <= threads as f64 * (1.0 + view.margin.percent() / 100.0) {
        return format!(
            "{what}: nothing here gains more than {threads} threads can, so this run shows no effect like \
             Sun's MD5."
        );
    }
    let why = if rates.cpus[0] < HELD_BACK {
        format!(
            "its one thread had {} of a CPU, so the figure that it is compared with was held back",
            digits(rates.cpus[0])
        )
    } else {
        format!("a unit costs {} of the CPU time that it costs alone", digits(rates.dearer()))
    };
    format!("{what}, more than {threads} threads can: {why}.")
}

/// What Sun's ratios say by themselves.
fn then(view: &View<'_>) -> String {
    let over = |row: &&&SunRow| row.sun[1] / row.sun[0] > SUNS_CORES * 1.01;
    let rows = view.rows();
    let above: Vec<String> = rows.iter().filter(over).map(|row| shown(row)).collect();
    let below: Vec<String> = rows.iter().filter(|row| !over(row)).map(|row| shown(row)).collect();
    if above.is_empty() {
        return format!("Sun's ratios are within its 8 cores: {}.", below.join(", "));
    }
    let below =
        if below.is_empty() { String::new() } else { format!("; not {}", below.join(", ")) };
    format!(
        "Sun's 16 threads on 8 cores gained more than 8 cores can give in {}{below}: with the CPU cost of a \
         unit unchanged, that takes two hardware threads on each core, or a single-thread figure that was \
         held back.",
        above.join(", ")
    )
}

fn shown(row: &SunRow) -> String {
    format!("{} ({})", row.name, digits(row.sun[1] / row.sun[0]))
}

/// What this machine can show of hardware threads.
fn siblings(view: &View<'_>) -> String {
    match view.setting("hardware threads per core") {
        "1" => "This machine shows one hardware thread per core: what a second one adds cannot be measured \
                here; whether two of its CPUs share a core outside, it does not tell."
            .to_owned(),
        "unknown" => "This machine does not tell how many hardware threads a core has.".to_owned(),
        count => format!(
            "This machine shows {count} hardware threads per core: as soon as there are more threads than \
             cores, CPU time of a unit counts a shared core twice, and grows."
        ),
    }
}

/// The trap of the two clocks, with this run's figures.
pub(super) fn clocks(view: &View<'_>) -> Vec<String> {
    let threads = view.threads();
    let rows = view.rows();
    let read: Vec<_> = rows.into_iter().filter_map(|row| Some((row, view.openssl(row)?))).collect();
    let Some((row, [default, elapsed, multi])) =
        read.iter().max_by(|a, b| trap(a).total_cmp(&trap(b)))
    else {
        let why = match view.setting("openssl") {
            version if version.starts_with("OpenSSL") => "what it printed has no rates",
            other => other,
        };
        return vec![format!("openssl speed: {why}, so there are no figures of it")];
    };
    let unit = if row.bulk() { "MB/s" } else { "thousand a second" };
    let shown = |rate_of: f64| format!("{} {unit}", rate(row, rate_of));
    let mut lines = vec![format!(
        "By default it divides by its user CPU time, with -elapsed by the wall clock: for {}, one thread \
         on this machine is {} by default and {} with -elapsed.",
        row.name,
        shown(*default),
        shown(*elapsed),
    )];
    if threads > 1 {
        lines.push(format!(
            "-multi {threads} -elapsed says {}: over the -elapsed figure that is × {}, over the default one × \
             {}. Only the first compares like with like; a table made of the default for one thread and of \
             -multi for several is wrong by a factor of {} here.",
            shown(*multi),
            digits(multi / elapsed),
            digits(multi / default),
            digits(default / elapsed),
        ));
    }
    lines.push(
        "-multi starts processes, not threads: they share neither memory nor locks, so its ratio says nothing of a \
         library's own."
            .to_owned(),
    );
    lines
}

/// How far the two clocks are apart.
fn trap((_, [default, elapsed, _]): &(&SunRow, [f64; 3])) -> f64 {
    (default / elapsed).ln().abs()
}

/// Who is behind the names, and who is missing.
pub(super) fn who(view: &View<'_>) -> Vec<String> {
    let doers = view.doers();
    let mut lines = Vec::new();
    for by in [RAW, MODULE, LANES, RIVAL] {
        let text = view.setting(by);
        let how = match by {
            MODULE => " (lanes = false)",
            LANES => " (lanes = true)",
            _ => "",
        };
        lines.push(if doers.contains(&by) {
            format!("{by}: {text}{how}")
        } else {
            format!("{by}: left out, {text}")
        });
    }
    let openssl = view.setting("openssl");
    let found = openssl.starts_with("OpenSSL");
    let readings =
        "speed, 1 s for each figure, between the repetitions; no samples, so no intervals";
    lines.push(if found {
        format!("openssl: {openssl}: {readings}")
    } else {
        format!("openssl: left out, {openssl}")
    });
    lines
}

/// Sun's machine had so many cores, and ran so many threads on them.
pub(super) const SUNS_CORES: f64 = 8.0;

/// A rate as it is printed.
pub(super) fn rate(row: &SunRow, operations: f64) -> String {
    let thousands = if row.bulk() { 1.0 } else { 1e3 };
    digits(row.shown(operations) / thousands)
}
