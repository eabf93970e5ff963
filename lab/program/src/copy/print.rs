// SPDX-License-Identifier: Apache-2.0
//! The result as text: the advice first, then what it follows from.

use super::findings::{Findings, LIBC, OURS, Sizes};
use super::words::{Consumer, MEMORY, PageSize, State, about, parse, shown};
use crate::crossover::{Crossover, SizePoint, Way};
use crate::experiment::Experiment;
use crate::judged::Judged;
use crate::table::{Table, digits};
use crate::verdict::{Comparison, Family, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// Everything that was found of copies in memory.
pub(super) fn text(experiment: &Experiment) -> String {
    let findings = Findings::of(experiment);
    let first = experiment.manifest.provenance.settings.get("first touch");
    let first = first.map_or_else(String::new, |text| format!("first touch: {text}\n"));
    let parts = [
        first,
        advice(&findings),
        rates(&findings, |_| true),
        large_pages(&findings),
        ours(&findings),
        left_out(experiment),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// What there is to see after the first repetition: no intervals, and the plainest groups only.
pub(super) fn tables(experiment: &Experiment) -> String {
    rates(&Findings::of(experiment), |sizes| {
        sizes.group.consumer == Consumer::Nobody && sizes.group.pages == PageSize::Large
    })
}

/// Past the cache or into it, for every state, reader and size; and the crossovers.
fn advice(findings: &Findings<'_>) -> String {
    let cells = findings.groups.iter().flat_map(|sizes| &sizes.cells);
    let all: BTreeSet<usize> = cells.map(|(size, _)| *size).collect();
    let names: Vec<String> = all.iter().map(|size| shown(*size)).collect();
    let mut heading = vec!["how to write"];
    heading.extend(names.iter().map(String::as_str));
    heading.extend(["past wins, in a stream", "by latency alone"]);
    let mut table = Table::new(&heading);
    let mut compared = false;
    for sizes in &findings.groups {
        let mut row = vec![sizes.words()];
        for size in &all {
            let cell = sizes.cells.iter().find(|(other, _)| other == size);
            let past = cell.and_then(|(_, cell)| findings.past(sizes, cell));
            compared |= past.is_some();
            let word = past.map(|past| word(past.verdict));
            row.push(word.unwrap_or("-").to_owned());
        }
        let place = |crossover: Option<Crossover>| {
            crossover.map_or_else(|| "-".to_owned(), |crossover| place(&crossover))
        };
        row.push(place(findings.crossover(sizes)));
        row.push(place(findings.crossover_alone(sizes)));
        table.row(row);
    }
    if !compared {
        return String::new();
    }
    let apart = findings.groups.iter().any(|sizes| sizes.distance().is_some());
    let apart = if apart {
        "ns: a cache line's way to the other core and back. The host moves processors, so samples are \
         told apart by it.\n"
    } else {
        ""
    };
    format!(
        "{}\n{apart}past: the best non-temporal kernel costs less than the best allocating one; cache: it costs \
         more;\nsame: within {:.1} %; ?: unresolved. By CPU time of many copies in a row, with the reader's; \
         by latency: wall time\nof a copy alone. In brackets: the interval of the crossover.\n{}Sun, \
         2008–2009: non-temporal won 2× at 128K, the allocating copy a little below 1K.{}\n",
        table.render(),
        findings.margin.percent(),
        misled(findings),
        at_128k(findings)
    )
}

/// From which size on it pays to write past the cache, in one sentence; nothing where that was not compared.
pub(super) fn finding(experiment: &Experiment) -> Option<String> {
    let findings = Findings::of(experiment);
    let (mut from, mut never, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for sizes in &findings.groups {
        let Some(crossover) = findings.crossover(sizes) else { continue };
        match (crossover.always(), crossover.at) {
            (Some(Way::Second), _) => never.push(sizes.title()),
            // Of one that may lie beyond what was measured, nothing is known.
            (None, SizePoint::Below | SizePoint::Above) => open.push(sizes.title()),
            _ if crossover.is_unclear() => open.push(sizes.title()),
            _ => from.push(format!("{} ({})", place(&crossover), sizes.title())),
        }
    }
    let all = from.len() + never.len() + open.len();
    let mut told = from;
    told.extend(never.into_iter().map(|group| format!("at no size ({group})")));
    if told.is_empty() {
        return (all > 0).then(|| {
            format!(
                "Whether a stream costs less when it is written past the cache is not resolved in any of {all} \
                 states of the memory"
            )
        });
    }
    told.extend(match open.as_slice() {
        [] => None,
        [only] => Some(format!("not resolved ({only})")),
        open => Some(format!("not resolved in {} of {all} states of the memory", open.len())),
    });
    Some(format!("A stream costs less when it is written past the cache: {}", told.join("; ")))
}

/// The same figure as the quoted one, if it was measured.
fn at_128k(findings: &Findings<'_>) -> String {
    let like = |sizes: &&Sizes| {
        let group = sizes.group;
        (group.state, group.consumer) == (State::Memory, Consumer::Nobody)
    };
    let past = findings.groups.iter().filter(like).find_map(|sizes| {
        let (_, cell) = sizes.cells.iter().find(|(size, _)| *size == 128 << 10)?;
        findings.past(sizes, cell)
    });
    past.map_or_else(String::new, |past| {
        let ratio = past.comparison.ratio();
        format!(
            " Here, at 128K: {:.2}× ({:.2} to {:.2}).",
            1.0 / ratio.value,
            1.0 / ratio.high,
            1.0 / ratio.low
        )
    })
}

const fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "past",
        Verdict::Slower => "cache",
        Verdict::Same => "same",
        Verdict::Unresolved { .. } => "?",
    }
}

/// Where the kernels past the cache, the first ones, cost less.
fn place(crossover: &Crossover) -> String {
    let Crossover { above, at, low, high, against } = crossover;
    let past_above = *above == Way::First;
    let end = |place: &SizePoint| match place {
        SizePoint::Below => "less".to_owned(),
        SizePoint::At(size) => about(*size),
        SizePoint::Above => "more".to_owned(),
    };
    let sure = crossover.always().is_some();
    let mut text = match at {
        _ if crossover.is_unclear() => "not resolved".to_owned(),
        SizePoint::At(size) => {
            let word = if past_above { "from" } else { "up to" };
            format!("{word} {} ({} to {})", about(*size), end(low), end(high))
        }
        SizePoint::Below if past_above && sure => "every size".to_owned(),
        SizePoint::Below if past_above => format!("every size, or from {}", end(high)),
        SizePoint::Below if sure => "none".to_owned(),
        SizePoint::Below => format!("none, or up to {}", end(high)),
        SizePoint::Above if past_above && sure => "none".to_owned(),
        SizePoint::Above if past_above => format!("none, or from {}", end(low)),
        SizePoint::Above if sure => "every size".to_owned(),
        SizePoint::Above => format!("every size, or up to {}", end(low)),
    };
    if let Some(size) = against.first() {
        text.push_str(&format!(", but {}", about(*size)));
    }
    text
}

/// How often a copy alone says the opposite of a stream.
fn misled(findings: &Findings<'_>) -> String {
    let (mut both, mut opposite) = (0, Vec::new());
    for (cell, stream, alone) in findings.stream_and_alone() {
        both += 1;
        if stream.exchanged() == alone {
            opposite.push(cell);
        }
    }
    match (both, opposite.first()) {
        (0, _) => String::new(),
        (_, None) => {
            format!("Of {both} cells where both are resolved, a copy alone never misleads.\n")
        }
        (_, Some(cell)) => format!(
            "Latency misleads: in {} of {both} cells where both are resolved, a copy alone says the \
             opposite of a stream\n(one is {cell}).\n",
            opposite.len()
        ),
    }
}

/// GB/s of some groups, kernel by kernel.
fn rates(findings: &Findings<'_>, which: impl Fn(&Sizes) -> bool) -> String {
    let arms = &findings.experiment.plan.arms;
    let mut text = String::new();
    for sizes in findings.groups.iter().filter(|sizes| which(sizes)) {
        let mut heading = vec!["GB/s"];
        heading.extend(arms.iter().map(String::as_str));
        let mut table = Table::new(&heading);
        for (size, cell) in &sizes.cells {
            let cheapest = findings.cheapest(sizes, cell);
            let rate = |arm: &String| match findings.rate(sizes, cell, arm) {
                None => "-".to_owned(),
                Some(rate) => {
                    let mark = if cheapest.contains(&arm.as_str()) { "*" } else { "" };
                    format!("{mark}{}", digits(rate))
                }
            };
            table.row([shown(*size)].into_iter().chain(arms.iter().map(rate)).collect());
        }
        text.push_str(&format!("{}\n{}\n", sizes.title(), table.render()));
    }
    text.push_str("by CPU time, medians; *: surely not slower than any other of its row\n");
    text
}

/// What large pages change, by state.
fn large_pages(findings: &Findings<'_>) -> String {
    let rows = findings.large_over_small();
    let all: BTreeSet<usize> = rows.iter().flat_map(|(_, sizes)| sizes.keys().copied()).collect();
    let names: Vec<String> = all.iter().map(|size| shown(*size)).collect();
    if names.is_empty() {
        return String::new();
    }
    let mut heading = vec!["cost in 2M pages over 4K"];
    heading.extend(names.iter().map(String::as_str));
    let mut table = Table::new(&heading);
    for (state, sizes) in &rows {
        let ratio = |size: &usize| {
            sizes.get(size).map_or_else(|| "-".to_owned(), |(c, verdict)| seen(c, *verdict))
        };
        table.row([state.text().to_owned()].into_iter().chain(all.iter().map(ratio)).collect());
    }
    let arm = findings.experiment.plan.arms.first().map_or("", String::as_str);
    format!(
        "{}\nof {arm}, where nobody reads; ~: the same within {:.1} %; ?: unresolved\nSun, 2008–2009: \
         large pages helped untouched memory by 20 %; zeroing pages into the cache helped memory\nthat was \
         faulted in by 50 % (Linux zeroes so always: there is nothing to compare).\n",
        table.render(),
        findings.margin.percent()
    )
}

/// A ratio with a mark that says what it is worth.
fn seen(comparison: &Comparison, verdict: Verdict) -> String {
    let mark = match verdict {
        Verdict::Faster | Verdict::Slower => "",
        Verdict::Same => "~",
        Verdict::Unresolved { .. } => "?",
    };
    format!("{mark}{:.2}", comparison.ratio().value)
}

/// How our kernels stand beside the C library's.
fn ours(findings: &Findings<'_>) -> String {
    let arms = &findings.experiment.plan.arms;
    if !arms.iter().any(|arm| arm == LIBC) || arms.len() < 2 {
        return String::new();
    }
    let mut text = "against libc's memcpy, by CPU time:\n".to_owned();
    let best = findings.best_over_libc();
    text.push_str(&standing("the best of our kernels, chosen by the same samples", &best));
    if let Some(family) = findings.ours_over_libc() {
        text.push_str(&standing(&format!("`{OURS}`, which knows the size only"), &family));
    }
    text
}

fn standing(who: &str, family: &Family) -> String {
    let slower = family.cells().zip(family.verdicts());
    let slower = slower.filter(|(_, verdict)| *verdict == Verdict::Slower).map(|(cell, _)| cell);
    let slower: Vec<String> = slower
        .map(|(cell, comparison, _)| format!("    {cell}: {:.2}", 1.0 / comparison.ratio().value))
        .collect();
    let list = if slower.is_empty() {
        String::new()
    } else {
        format!("    slower, as a share of memcpy's rate:\n{}\n", slower.join("\n"))
    };
    format!("  {who}:\n    {}\n{list}", family.headline())
}

/// Why cells were not run: each reason once.
fn left_out(experiment: &Experiment) -> String {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for skipped in &experiment.plan.skipped {
        *reasons.entry(&skipped.why).or_default() += 1;
    }
    let lines = reasons.iter().map(|(why, count)| format!("not run: {count} cells: {why}\n"));
    lines.collect()
}

/// Copies into the kernel: what they cost, and over a copy in memory.
pub(super) fn into(experiment: &Experiment) -> String {
    let judged = Judged::of(experiment);
    let arms = &experiment.plan.arms;
    let unit = experiment.manifest.provenance.cost();
    let mut heading = vec![unit];
    heading.extend(arms.iter().cloned());
    heading.extend(arms.iter().skip(1).map(|arm| format!("{arm}/{MEMORY}")));
    let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
    let mut table = Table::new(&heading);
    for cell in experiment.plan.cells() {
        let Ok((state, size)) = parse(&cell) else { continue };
        let mut row = vec![format!("{}, {}", state.text(), shown(size))];
        row.extend(arms.iter().map(|arm| {
            let cost = experiment.typical(&cell, arm, |sample| Some(experiment.ticks(sample)));
            cost.map_or_else(|| "-".to_owned(), digits)
        }));
        row.extend(arms.iter().skip(1).map(|arm| {
            let one = judged.over_first(&cell, arm);
            one.map_or_else(|| "-".to_owned(), |one| seen(one.comparison, one.verdict))
        }));
        table.row(row);
    }
    format!(
        "{}\nmemory: memcpy of the C library, always to the same buffer. memfd: pwrite at the same place. \
         pipe, socket:\nwritten, and thrown away without a second copy. ~: the same within {:.1} %; ?: \
         unresolved.\n{}",
        table.render(),
        judged.margin.percent(),
        left_out(experiment)
    )
}
