// SPDX-License-Identifier: Apache-2.0
//! Samples become folded stacks: every address gets the name of its function, or of its file.

use super::Folded;
use super::details::Address;
use super::frame::KERNEL;
use metaslot_perf::{Named, Placed, Symbols};
use std::collections::BTreeMap;
use std::path::Path;

/// The folded stacks, and the addresses at their ends by function.
pub(super) fn fold(placed: &Placed) -> (Folded, BTreeMap<String, Vec<Address>>) {
    let symbols = Symbols::default();
    let named = symbols.names(placed);
    let names: Vec<String> = named.iter().map(frame).collect();
    let mut folded = Folded::default();
    let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
    for stack in &placed.stacks {
        let mut frames: Vec<String> =
            stack.places.iter().rev().map(|place| names[*place as usize].clone()).collect();
        // How many functions without names there are is unknown.
        frames.dedup_by(|one, other| one == other && one.starts_with('['));
        folded.add(frames, stack.count);
        if let Some(end) = stack.places.first() {
            *ends.entry(*end).or_default() += stack.count;
        }
    }
    let places: Vec<u32> = ends.keys().copied().collect();
    let lines = symbols.lines(placed, &places);
    let mut functions: BTreeMap<String, Vec<Address>> = BTreeMap::new();
    for (place, samples) in ends {
        let Named { file, address, start, .. } = named[place as usize].clone();
        let line = lines.get(&place).map(|line| (line.file.clone(), line.line));
        let address = Address { file, address, start, samples, line };
        functions.entry(names[place as usize].clone()).or_default().push(address);
    }
    (folded, functions)
}

/// A function's name in a folded stack; the file's in brackets where there is none.
fn frame(named: &Named) -> String {
    let Some(function) = &named.function else { return unnamed(named) };
    // What separates frames cannot be in a name.
    let name = function.replace(';', ":").replace(['\n', '\r'], " ");
    if named.kernel { name + KERNEL } else { name }
}

fn unnamed(named: &Named) -> String {
    match named.file.as_str() {
        "" if named.kernel => "[kernel]".to_owned(),
        "" => "[unknown]".to_owned(),
        // Code that was made at run time.
        anonymous if anonymous.starts_with("//anon") => "[anonymous]".to_owned(),
        name if name.starts_with('[') => name.to_owned(),
        path => {
            let path = path.strip_suffix(" (deleted)").unwrap_or(path);
            let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
            format!("[{}]", name.replace(';', ":"))
        }
    }
}

/// What frames are called whose file is not known either.
pub(super) const NOWHERE: [&str; 3] = ["[anonymous]", "[kernel]", "[unknown]"];

/// Shares of the samples that end where no function has a name: in a file that is known, and nowhere.
pub(super) fn nameless(folded: &Folded) -> (u64, u64) {
    folded.stacks().fold((0, 0), |(files, nowhere), (stack, count)| match stack.last() {
        Some(end) if NOWHERE.contains(&end.as_str()) => (files, nowhere + count),
        Some(end) if end.starts_with('[') => (files + count, nowhere),
        _ => (files, nowhere),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_perf::{CodePlace, Stack};

    #[test]
    fn code_without_names_is_kept_by_file() {
        let placed = Placed {
            places: vec![
                CodePlace::File(0, 0x1234),
                CodePlace::File(0, 0x2345),
                CodePlace::Nowhere,
            ],
            files: vec!["/lib/libcrypto.so.3 (deleted)".to_owned()],
            stacks: vec![
                Stack { places: vec![0, 1], count: 5 },
                Stack { places: vec![1], count: 2 },
                Stack { places: vec![2], count: 1 },
            ],
            ..Placed::default()
        };
        let (folded, functions) = fold(&placed);
        assert_eq!(folded.render(), "[libcrypto.so.3] 7\n[unknown] 1\n");
        assert_eq!(nameless(&folded), (7, 1));
        let addresses = &functions["[libcrypto.so.3]"];
        assert_eq!(addresses.iter().map(|address| address.samples).sum::<u64>(), 7);
        assert_eq!((addresses[0].address, addresses[0].samples), (0x1234, 5));
    }

    #[test]
    fn names_hold_nothing_that_separates_frames() {
        let named = |function: &str, kernel| Named {
            function: Some(function.to_owned()),
            kernel,
            ..Named::default()
        };
        assert_eq!(frame(&named("a;b\nc", false)), "a:b c");
        assert_eq!(frame(&named("schedule", true)), "schedule_[k]");
        let anonymous = Named { file: "//anon".to_owned(), ..Named::default() };
        assert_eq!(frame(&anonymous), "[anonymous]");
        assert_eq!(frame(&Named { kernel: true, ..Named::default() }), "[kernel]");
    }
}
