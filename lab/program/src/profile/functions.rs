// SPDX-License-Identifier: Apache-2.0
//! Functions as tables: inclusive and exclusive, in percent and in what a unit of work costs.

use super::fold::NOWHERE;
use super::folded::Function;
use super::frame::plain;
use super::{Folded, Profile};
use crate::Failure;
use crate::table::{Table, digits};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// By which column the table is sorted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, clap::ValueEnum)]
pub enum Sort {
    /// With everything that the function calls
    Incl,
    /// The function itself
    #[default]
    Excl,
}

/// What the columns are in.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum Metric {
    /// What a unit of work costs: ticks of the time stamp for a KB, or for an operation
    #[value(name = "ticks_per_kb", aliases = ["ticks", "cycles_per_kb", "cycles"])]
    Ticks,
    /// Shares of all samples
    Percent,
}

/// A profile, and what its cell costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costed<'a> {
    pub(super) profile: &'a Profile,
    /// What a unit of work costs, by the runs that were not sampled.
    pub(super) cost: f64,
    /// The name of that.
    pub(super) unit: &'a str,
    /// CPU time while samples were taken over that of the runs without.
    pub(super) slower: Option<f64>,
    /// How many runs without there were.
    pub(super) without: usize,
}

/// How the table is wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) sort: Sort,
    pub(super) metric: Option<Metric>,
    pub(super) rows: usize,
}

/// One function, in samples.
struct Line {
    name: String,
    inclusive: u64,
    exclusive: u64,
    /// Before what a timer gets wrong was mended.
    as_sampled: u64,
}

/// The functions, with what the timer charges to the wrong one mended in the exclusive column. A function
/// whose samples all went to its callers stays for the inclusive column.
fn lines(folded: &Folded, sort: Sort) -> Vec<Line> {
    let charged: BTreeMap<String, u64> = folded
        .charged_to_callers()
        .functions()
        .into_iter()
        .map(|function| (function.name, function.exclusive))
        .collect();
    let line = |Function { name, inclusive, exclusive }: Function| Line {
        exclusive: charged.get(&name).copied().unwrap_or(0),
        as_sampled: exclusive,
        name,
        inclusive,
    };
    let mut lines: Vec<Line> = folded.functions().into_iter().map(line).collect();
    let key = |line: &Line| match sort {
        Sort::Incl => (line.inclusive, line.exclusive),
        Sort::Excl => (line.exclusive, line.inclusive),
    };
    lines.sort_by(|one, other| key(other).cmp(&key(one)).then_with(|| one.name.cmp(&other.name)));
    lines
}

/// The table: the exclusive column adds up to the whole.
pub(super) fn table(costed: Costed<'_>, wanted: Wanted) -> String {
    let Costed { profile, cost: whole, unit, .. } = costed;
    let total = profile.folded.total();
    let share = |samples: u64| samples as f64 / total.max(1) as f64;
    let (percent, ticks) =
        (wanted.metric != Some(Metric::Ticks), wanted.metric != Some(Metric::Percent));
    let mut heading = vec!["function".to_owned(), "in".to_owned()];
    if percent {
        heading.extend(["incl. %", "excl. %", "as sampled"].map(str::to_owned));
    }
    if ticks {
        heading.extend([format!("incl. {unit}"), format!("excl. {unit}")]);
    }
    let mut table = Table::new(&heading.iter().map(String::as_str).collect::<Vec<_>>());
    let mut row = |name: &str, place: &str, [incl, excl, raw]: [Option<u64>; 3]| {
        let part = |samples: Option<u64>, text: &dyn Fn(f64) -> String| {
            samples.map_or_else(String::new, |samples| text(share(samples)))
        };
        let percents = |share: f64| digits(share * 100.0);
        let ticks_of = |share: f64| cost(share * whole);
        let mut cells = vec![name.to_owned(), place.to_owned()];
        if percent {
            cells.extend([incl, excl, raw].map(|samples| part(samples, &percents)));
        }
        if ticks {
            cells.extend([incl, excl].map(|samples| part(samples, &ticks_of)));
        }
        table.row(cells);
    };
    let all = lines(&profile.folded, wanted.sort);
    let (unknown, all): (Vec<Line>, Vec<Line>) =
        all.into_iter().partition(|line| NOWHERE.contains(&line.name.as_str()));
    let (shown, others) = all.split_at(wanted.rows.min(all.len()));
    for line in shown {
        let (name, place) = place(&line.name);
        let raw = (line.as_sampled != line.exclusive).then_some(line.as_sampled);
        row(&shortened(name), place, [Some(line.inclusive), Some(line.exclusive), raw]);
    }
    if !others.is_empty() {
        let rest = others.iter().map(|line| line.exclusive).sum();
        row(&format!("({} others)", others.len()), "", [None, Some(rest), None]);
    }
    let unknown = unknown.iter().map(|line| line.exclusive).sum();
    row("(unknown)", "", [None, Some(unknown), None]);
    row("(all)", "", [Some(total), Some(total), None]);
    table.render()
}

/// Where a function is.
pub(super) fn place(name: &str) -> (&str, &'static str) {
    let (name, kernel) = plain(name);
    let place = match (kernel, name.starts_with('[')) {
        (true, _) => "kernel",
        (false, true) => "no name",
        (false, false) => "program",
    };
    (name, place)
}

/// Names of generic functions can be longer than any line.
pub(super) fn shortened(name: &str) -> String {
    const MAX_NAME: usize = 60;
    if name.chars().count() <= MAX_NAME {
        return name.to_owned();
    }
    let end: String = name.chars().rev().take(MAX_NAME - 1).collect();
    format!("…{}", end.chars().rev().collect::<String>())
}

/// Ticks: three digits, and of many a unit.
pub(super) fn cost(ticks: f64) -> String {
    match ticks.abs() {
        many if many >= 1e9 => format!("{} G", digits(ticks / 1e9)),
        many if many >= 1e6 => format!("{} M", digits(ticks / 1e6)),
        _ => digits(ticks),
    }
}

pub(super) fn largest(functions: &BTreeMap<String, u64>) -> Vec<(&str, u64)> {
    let mut functions: Vec<(&str, u64)> =
        functions.iter().map(|(name, samples)| (name.as_str(), *samples)).collect();
    functions.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
    functions
}

/// No such function; perhaps one of these is meant.
pub(super) fn unknown(folded: &Folded, function: &str) -> Failure {
    let low = function.to_lowercase();
    let mut alike: Vec<Function> = folded.functions();
    alike.sort_by_key(|function| std::cmp::Reverse(function.inclusive));
    let close = alike.iter().filter(|known| known.name.to_lowercase().contains(&low));
    let mut names: Vec<&str> = close.map(|known| plain(&known.name).0).take(5).collect();
    let failure = Failure::new(format!("no sample is of a function {function}"));
    if names.is_empty() {
        names = alike.iter().map(|known| plain(&known.name).0).take(5).collect();
        return failure.hint(format!("the largest are {}", names.join(", ")));
    }
    failure.hint(format!("perhaps {}", names.join(", ")))
}

/// The same as JSON.
pub(super) fn json(costed: Costed<'_>, sort: Sort) -> Value {
    let Costed { profile, cost, unit, slower, .. } = costed;
    let details = &profile.details;
    let each = cost / profile.folded.total().max(1) as f64;
    let function = |line: &Line| {
        let (name, place) = place(&line.name);
        json!({
            "function": name, "in": place,
            "inclusive_samples": line.inclusive, "exclusive_samples": line.exclusive,
            "exclusive_as_sampled": line.as_sampled,
            "inclusive_cost": line.inclusive as f64 * each,
            "exclusive_cost": line.exclusive as f64 * each,
        })
    };
    let functions: Vec<Value> = lines(&profile.folded, sort).iter().map(function).collect();
    json!({
        "cell": details.cell, "arm": details.arm, "sampler": details.sampler, "hz": details.hz,
        "samples": details.samples, "lost": details.lost, "broken": details.broken,
        "throttled": details.throttled, "programs": details.programs,
        "cost": cost, "unit": unit, "sampled_over_unsampled": slower,
        "reader_ns": details.reader_ns, "cpu_ns": details.cpu_ns, "functions": functions,
    })
}

#[cfg(test)]
mod tests {
    use super::super::about::about;
    use super::super::details::tests::profile;
    use super::super::neighbours::neighbours;
    use super::*;

    const TEXT: &str = "main;write;copy_[k] 50\nmain;write;_raw_spin_unlock_irqrestore_[k] 30\n\
                        main;[libx.so] 15\nmain 3\n[unknown] 2\n";

    fn costed(profile: &Profile) -> Costed<'_> {
        Costed { profile, cost: 1000.0, unit: "ticks/KB", slower: Some(1.02), without: 3 }
    }

    #[test]
    fn the_exclusive_column_adds_up_to_the_whole() {
        let profile = profile("size=1K", "a", TEXT);
        for sort in [Sort::Incl, Sort::Excl] {
            let lines = lines(&profile.folded, sort);
            assert_eq!(lines.iter().map(|line| line.exclusive).sum::<u64>(), 100);
            assert_eq!(lines.iter().map(|line| line.as_sampled).sum::<u64>(), 100);
        }
        let value = json(costed(&profile), Sort::Excl);
        let costs = value["functions"].as_array().unwrap().iter();
        let sum: f64 = costs.map(|row| row["exclusive_cost"].as_f64().unwrap()).sum();
        assert!((sum - 1000.0).abs() < 1e-6, "{sum}");
    }

    #[test]
    fn what_the_timer_charged_wrongly_shows_in_both_views() {
        let profile = profile("size=1K", "a", TEXT);
        let all = Wanted { sort: Sort::Excl, metric: None, rows: 100 };
        let text = table(costed(&profile), all);
        let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
        // 30 samples of the lock are its caller's, and were not before.
        let cells: Vec<&str> = row("write").split_whitespace().collect();
        assert_eq!(cells, ["write", "program", "80.0", "30.0", "0.00", "800", "300"]);
        let lock = row("_raw_spin_unlock_irqrestore");
        let cells: Vec<&str> = lock.split_whitespace().collect();
        assert_eq!(cells[1..5], ["kernel", "30.0", "0.00", "30.0"]);
        let cells: Vec<&str> = row("(all)").split_whitespace().collect();
        assert_eq!(cells, ["(all)", "100", "100", "1000", "1000"]);
        assert!(about(costed(&profile)).contains("15.0 % in known files, 2.00 % unknown"));
    }

    #[test]
    fn sampled_runs_that_were_not_like_the_others_are_named() {
        let profile = profile("size=1K", "a", TEXT);
        let with = |slower| about(Costed { slower: Some(slower), ..costed(&profile) });
        assert!(with(5.0).contains("not like the others") && with(0.5).contains("not like"));
        assert!(!with(1.05).contains("not like the others"));
    }

    #[test]
    fn rows_that_are_left_out_are_summed() {
        let profile = profile("size=1K", "a", TEXT);
        let wanted = Wanted { sort: Sort::Excl, metric: Some(Metric::Percent), rows: 2 };
        let text = table(costed(&profile), wanted);
        let others = text.lines().find(|line| line.starts_with("(3 others)")).unwrap();
        assert!(others.ends_with("18.0") && !text.contains("ticks"), "{text}");
    }

    #[test]
    fn a_function_that_is_not_there_has_a_hint() {
        let profile = profile("size=1K", "a", TEXT);
        let failure = neighbours(costed(&profile), "COP").unwrap_err();
        assert!(failure.hint.unwrap().contains("copy"));
        let failure = neighbours(costed(&profile), "nothing").unwrap_err();
        assert!(failure.hint.unwrap().contains("the largest are main"));
        let text = neighbours(costed(&profile), "write").unwrap();
        assert!(text.contains("from main") && text.contains("  to copy"), "{text}");
    }
}
