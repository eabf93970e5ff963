// SPDX-License-Identifier: Apache-2.0
//! `lab annotate`: where in a function the samples are, by line of source or by instruction.

use super::details::Address;
use super::frame::plain;
use super::functions::unknown;
use super::print::{Chosen, choose};
use super::{Profile, disassembly, profiles};
use crate::output::say;
use crate::table::{Table, digits};
use crate::{Failure, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// Which function of which experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The experiment, a directory
    #[arg(value_name = "NAME.labx")]
    pub experiment: PathBuf,
    /// The function, as 'lab print --functions' names it
    #[arg(long, value_name = "NAME")]
    pub function: String,
    /// Instructions, even if lines of source are known
    #[arg(long)]
    pub instructions: bool,
    /// So many places, those with most samples
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub top: usize,
    /// Print the result as JSON instead of text
    #[arg(long)]
    pub json: bool,
    /// Which profile
    #[command(flatten)]
    pub chosen: Chosen,
}

/// A place in the function, and its samples.
#[derive(Debug)]
struct Spot {
    place: String,
    says: String,
    samples: u64,
}

/// Prints.
pub(crate) fn run(options: &Options) -> Result<()> {
    // The experiment itself is read first: it says what is wrong with it.
    let experiment = crate::experiment::Experiment::read(&options.experiment)?;
    let all = profiles(&options.experiment, &experiment.plan)?;
    let profile = choose(&all, &options.chosen)?;
    let addresses = addresses(profile, &options.function)?;
    let spots = if lined(&addresses) && !options.instructions {
        by_line(&addresses)
    } else {
        by_instruction(&addresses)
    };
    if options.json {
        let value = as_json(profile, &options.function, &spots);
        return say(&(serde_json::to_string_pretty(&value)? + "\n"));
    }
    say(&text(profile, &options.function, &largest(spots, options.top)))
}

/// Where the function was met, itself at the end of the stack.
fn addresses(profile: &Profile, function: &str) -> Result<Vec<Address>> {
    let met = profile.details.functions.iter();
    let met = met.filter(|(name, _)| *name == function || plain(name).0 == function);
    let addresses: Vec<Address> = met.flat_map(|(_, addresses)| addresses.clone()).collect();
    match (addresses.is_empty(), profile.folded.inclusive(function)) {
        (false, _) => Ok(addresses),
        (true, 0) => Err(unknown(&profile.folded, function)),
        (true, samples) => Err(Failure::new(format!(
            "{function} was never met itself: all of its {samples} samples are in what it calls"
        ))
        .hint(format!("metaslot lab print … --callers-callees '{function}' says what that is"))),
    }
}

/// Whether most samples have a line.
fn lined(addresses: &[Address]) -> bool {
    let with: u64 =
        addresses.iter().filter(|address| address.line.is_some()).map(|at| at.samples).sum();
    2 * with > addresses.iter().map(|address| address.samples).sum()
}

fn by_line(addresses: &[Address]) -> Vec<Spot> {
    let mut lines: BTreeMap<Option<(String, u32)>, u64> = BTreeMap::new();
    for address in addresses {
        *lines.entry(address.line.clone()).or_default() += address.samples;
    }
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let spot = |(line, samples): (Option<(String, u32)>, u64)| {
        let Some((file, number)) = line else {
            return Spot { place: "(no line)".to_owned(), says: String::new(), samples };
        };
        let text = texts.entry(file.clone()).or_insert_with(|| {
            let text = fs::read_to_string(&file).unwrap_or_default();
            text.lines().map(str::to_owned).collect()
        });
        let says = usize::try_from(number).ok().and_then(|number| text.get(number.checked_sub(1)?));
        let says = says.map(|line| line.trim_end().to_owned()).unwrap_or_default();
        let name = file.rsplit('/').next().unwrap_or(&file);
        Spot { place: format!("{name}:{number}"), says, samples }
    };
    lines.into_iter().map(spot).collect()
}

fn by_instruction(addresses: &[Address]) -> Vec<Spot> {
    let mut at: BTreeMap<(&str, u64), (u64, u64)> = BTreeMap::new();
    for address in addresses {
        let spot = at.entry((&address.file, address.address)).or_insert((address.start, 0));
        spot.1 += address.samples;
    }
    let file = addresses.first().map_or("", |address| address.file.as_str());
    let code = code(file, addresses);
    let near = |address: &u64| {
        let near = code.range(..address).next_back().into_iter();
        let near = near.chain(code.range(address + 1..).next());
        near.map(|(address, _)| *address).collect::<Vec<_>>()
    };
    // Beside what was met, what is before and after: the timer comes an instruction late, or some more.
    let neighbours: Vec<u64> = at.keys().flat_map(|(_, address)| near(address)).collect();
    for neighbour in neighbours {
        let start = addresses.first().map_or(0, |address| address.start);
        at.entry((file, neighbour)).or_insert((start, 0));
    }
    let spot = |((_, address), (start, samples)): (&(&str, u64), &(u64, u64))| Spot {
        place: match start {
            0 => format!("{address:#x}"),
            start => format!("+{:#x}", address.saturating_sub(*start)),
        },
        says: code.get(address).cloned().unwrap_or_default(),
        samples: *samples,
    };
    at.iter().map(spot).collect()
}

/// The instructions of one file around the addresses, by address.
fn code(file: &str, addresses: &[Address]) -> BTreeMap<u64, String> {
    if addresses.iter().any(|address| address.file != file) {
        return BTreeMap::new();
    }
    let last = addresses.iter().map(|address| address.address).max().unwrap_or(0);
    let start = addresses.iter().map(|address| address.start).min().unwrap_or(0);
    if start > 0 {
        return disassembly::of(file, start, last);
    }
    // Without names it is unknown where functions begin: around the place that is met most.
    let hottest = addresses.iter().max_by_key(|address| address.samples);
    hottest.map_or_else(BTreeMap::new, |hottest| disassembly::around(file, hottest.address))
}

/// So many places with most samples in their order, what is around them, and a row for the others.
fn largest(spots: Vec<Spot>, count: usize) -> Vec<Spot> {
    let mut met: Vec<usize> = (0..spots.len()).filter(|at| spots[*at].samples > 0).collect();
    met.sort_by_key(|at| std::cmp::Reverse(spots[*at].samples));
    if met.len() <= count {
        return spots;
    }
    let kept: Vec<bool> = (0..spots.len()).map(|at| met[..count].contains(&at)).collect();
    let near = |at: usize| {
        let beside = [at.checked_sub(1), Some(at + 1)].into_iter().flatten();
        beside.filter_map(|at| kept.get(at)).any(|kept| *kept)
    };
    let (mut shown, mut others, mut rest) = (Vec::new(), 0, 0);
    for (at, spot) in spots.into_iter().enumerate() {
        if kept[at] || (spot.samples == 0 && near(at)) {
            shown.push(spot);
        } else if spot.samples > 0 {
            (others, rest) = (others + 1, rest + spot.samples);
        }
    }
    shown.push(Spot { place: format!("({others} others)"), says: String::new(), samples: rest });
    shown
}

fn text(profile: &Profile, function: &str, spots: &[Spot]) -> String {
    const BAR: f64 = 24.0;
    let all: u64 = spots.iter().map(|spot| spot.samples).sum();
    // The others together are no place.
    let places = spots.iter().filter(|spot| !spot.place.ends_with(" others)"));
    let most = places.map(|spot| spot.samples).max().unwrap_or(1).max(1) as f64;
    let mut table = Table::new(&["place", "%", "samples"]);
    let mut ends = vec!["  source or instruction".to_owned(), String::new()];
    for spot in spots {
        let share = 100.0 * spot.samples as f64 / all.max(1) as f64;
        let shown = if spot.samples > 0 { digits(share) } else { String::new() };
        let samples = if spot.samples > 0 { spot.samples.to_string() } else { String::new() };
        table.row(vec![spot.place.clone(), shown, samples]);
        let bar = "#".repeat(length((BAR * spot.samples as f64 / most).min(BAR)));
        ends.push(format!("  {bar:<24}  {}", spot.says));
    }
    let widest = table.render().lines().map(|line| line.chars().count()).max().unwrap_or(0);
    let lines: Vec<String> = table
        .render()
        .lines()
        .zip(&ends)
        .map(|(line, end)| format!("{line:<widest$}{end}").trim_end().to_owned())
        .collect();
    let details = &profile.details;
    format!(
        "{function}: {all} of {} samples, {} %, in {} {}; by {}, which may come late by some \
         instructions\n\n{}\n",
        details.samples,
        digits(100.0 * all as f64 / details.samples.max(1) as f64),
        details.cell,
        details.arm,
        details.sampler,
        lines.join("\n")
    )
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some letters")]
const fn length(letters: f64) -> usize {
    letters.clamp(0.0, 100.0).round() as usize
}

fn as_json(profile: &Profile, function: &str, spots: &[Spot]) -> Value {
    let spots: Vec<Value> = spots
        .iter()
        .map(|spot| json!({"place": spot.place, "text": spot.says, "samples": spot.samples}))
        .collect();
    let details = &profile.details;
    json!({
        "function": function, "cell": details.cell, "arm": details.arm,
        "sampler": details.sampler, "all_samples": details.samples, "places": spots,
    })
}

#[cfg(test)]
mod tests {
    use super::super::details::tests::profile;
    use super::*;

    fn met(address: u64, samples: u64, line: Option<(&str, u32)>) -> Address {
        let line = line.map(|(file, number)| (file.to_owned(), number));
        Address { file: "/no/file".to_owned(), address, start: 0x100, samples, line }
    }

    #[test]
    fn samples_of_a_line_are_added() {
        let addresses = [
            met(0x101, 5, Some(("/a.rs", 7))),
            met(0x105, 6, Some(("/a.rs", 7))),
            met(0x109, 1, None),
        ];
        assert!(lined(&addresses));
        let spots = by_line(&addresses);
        assert_eq!((spots[1].place.as_str(), spots[1].samples), ("a.rs:7", 11));
        assert_eq!(spots[0].place, "(no line)");
    }

    #[test]
    fn without_lines_places_count_from_the_functions_begin() {
        let addresses = [met(0x101, 5, None), met(0x105, 6, None)];
        assert!(!lined(&addresses));
        let spots = by_instruction(&addresses);
        assert_eq!((spots[0].place.as_str(), spots[1].place.as_str()), ("+0x1", "+0x5"));
        let text = text(&profile("size=1K", "a", "main 22\n"), "main", &spots);
        assert!(text.contains("11 of 22 samples, 50.0 %"), "{text}");
        assert!(text.lines().any(|line| line.ends_with("########################")), "{text}");
    }

    #[test]
    fn places_that_are_left_out_are_summed() {
        let spot =
            |place: u64, samples| Spot { place: place.to_string(), says: String::new(), samples };
        let spots = || (0..10).map(|place| spot(place, place % 5)).collect::<Vec<_>>();
        let shown = largest(spots(), 4);
        let places: Vec<&str> = shown.iter().map(|spot| spot.place.as_str()).collect();
        assert_eq!(places, ["3", "4", "5", "8", "9", "(4 others)"]);
        assert_eq!(shown.iter().map(|spot| spot.samples).sum::<u64>(), 20);
        assert_eq!(largest(spots(), 8).len(), 10);
    }

    #[test]
    fn a_function_that_only_calls_others_is_named_so() {
        let mut profile = profile("size=1K", "a", "main;work 10\n");
        profile.details.functions.insert("work".to_owned(), vec![met(0x101, 10, None)]);
        assert_eq!(addresses(&profile, "work").unwrap().len(), 1);
        let failure = addresses(&profile, "main").unwrap_err();
        assert!(failure.message.contains("never met itself"), "{failure}");
        assert!(addresses(&profile, "word").unwrap_err().hint.is_some());
    }
}
