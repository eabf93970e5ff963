// SPDX-License-Identifier: Apache-2.0
//! What follows from the figures of one run: where a path costs less than TCP, where it costs more,
//! and whether a write just above a loopback segment costs more than one just below.

use super::Cell;
use crate::local::path::LocalPath;
use crate::statistics::{CONFIDENCE, Estimate, paired_ratio};
use std::cmp::Ordering;

/// The largest write that one segment of the loopback interface holds.
const SEGMENT: usize = 65_483;
/// One that clearly fits, and one that takes a second segment.
const WITHIN: usize = 61_440;
const ABOVE: usize = 65_536;

/// The sentences. What was not measured is left out, what could not be told is said to be open.
pub(super) fn sentences(cells: &[Cell]) -> Vec<String> {
    let paths = LocalPath::ALL.into_iter().filter(|path| *path != LocalPath::Tcp);
    let mut said: Vec<String> = paths.filter_map(|path| against_tcp(cells, path)).collect();
    said.extend(cliff(cells));
    for cell in cells.iter().filter(|cell| !cell.carried) {
        let (name, size) = (cell.path.name(), cell.size);
        said.push(format!("{name} does not carry writes of {size} bytes: they are too long."));
    }
    said
}

/// The sizes, upwards.
pub(super) fn sizes(cells: &[Cell]) -> Vec<usize> {
    let mut sizes: Vec<usize> = cells.iter().map(|cell| cell.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// One cell.
pub(super) fn find(cells: &[Cell], path: LocalPath, size: usize) -> Option<&Cell> {
    cells.iter().find(|cell| cell.path == path && cell.size == size)
}

/// Which is known of a ratio: greater or less than one, or neither.
fn side(ratio: Estimate) -> Ordering {
    if ratio.confidence < CONFIDENCE {
        Ordering::Equal
    } else if ratio.low > 1.0 {
        Ordering::Greater
    } else if ratio.high < 1.0 {
        Ordering::Less
    } else {
        Ordering::Equal
    }
}

fn against_tcp(cells: &[Cell], path: LocalPath) -> Option<String> {
    let mut sides: Vec<(usize, Ordering)> = Vec::new();
    for size in sizes(cells) {
        let (own, tcp) = (find(cells, path, size)?, find(cells, LocalPath::Tcp, size)?);
        if let Some(ratio) = paired_ratio(&own.cost(), &tcp.cost()) {
            sides.push((size, side(ratio)));
        }
    }
    let part = |wanted: Ordering, words: &str| {
        let ranges = ranges(&sides, wanted);
        (!ranges.is_empty()).then(|| format!("{words} at {ranges}"))
    };
    let parts = [
        part(Ordering::Less, "costs less CPU for each KB"),
        part(Ordering::Greater, "costs more"),
        part(Ordering::Equal, "cannot be told from it"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("{} against TCP: {} bytes.", path.name(), parts.join("; ")))
}

/// Neighbouring sizes on the same side, as ranges.
fn ranges(sides: &[(usize, Ordering)], wanted: Ordering) -> String {
    let runs = sides.chunk_by(|left, right| left.1 == right.1).filter(|run| run[0].1 == wanted);
    let range = |run: &[(usize, Ordering)]| match run {
        [(only, _)] => only.to_string(),
        [(first, _), .., (last, _)] => format!("{first} to {last}"),
        [] => String::new(),
    };
    runs.map(range).collect::<Vec<_>>().join(", ")
}

fn cliff(cells: &[Cell]) -> Option<String> {
    let cost = |size| find(cells, LocalPath::Tcp, size).map(Cell::cost);
    let above = cost(ABOVE)?;
    let over = |size| paired_ratio(&above, &cost(size)?);
    let figures = |ratio: Estimate, size| {
        format!("{:.2} times [{:.2}, {:.2}] that of {size}", ratio.value, ratio.low, ratio.high)
    };
    let ratio = over(SEGMENT)?;
    let verdict = match side(ratio) {
        Ordering::Greater => "TCP has a cliff",
        Ordering::Less | Ordering::Equal => "TCP's cliff is absent here, or too small for this run",
    };
    let within = over(WITHIN).map(|ratio| format!(", and {}", figures(ratio, WITHIN)));
    Some(format!(
        "{verdict}: one loopback segment holds {SEGMENT} bytes, and each KB of writes of {ABOVE} \
         costs {}{}.",
        figures(ratio, SEGMENT),
        within.unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cell that costs about so much in each of nine rounds.
    fn cell(path: LocalPath, size: usize, cost: f64) -> Cell {
        let mut cell = Cell::new(path, size, true);
        cell.writer_ns = (0..9).map(|round| cost * (0.5 + f64::from(round) / 100.0)).collect();
        cell.reader_ns = (0..9).map(|round| cost * (0.5 - f64::from(round) / 110.0)).collect();
        cell
    }

    #[test]
    fn sizes_on_the_same_side_of_tcp_are_ranges() {
        let mut cells = Vec::new();
        for (size, cost) in [(64, 300.0), (128, 200.0), (256, 100.0), (512, 40.0), (1024, 30.0)] {
            cells.push(cell(LocalPath::Tcp, size, 100.0));
            cells.push(cell(LocalPath::Unix, size, cost));
        }
        assert_eq!(
            sentences(&cells),
            [
                "AF_UNIX stream against TCP: costs less CPU for each KB at 512 to 1024; costs more at \
              64 to 128; cannot be told from it at 256 bytes."
            ]
        );
    }

    #[test]
    fn a_cliff_is_told_or_said_to_be_absent() {
        let at = |size, cost| cell(LocalPath::Tcp, size, cost);
        let said = cliff(&[at(61_440, 98.0), at(65_483, 100.0), at(65_536, 147.0)]).unwrap();
        assert!(said.starts_with("TCP has a cliff"), "{said}");
        assert!(said.contains("65536 costs 1.47 times [1.47, 1.47] that of 65483"), "{said}");
        assert!(said.ends_with(", and 1.50 times [1.50, 1.50] that of 61440."), "{said}");
        let said = cliff(&[at(65_483, 100.0), at(65_536, 100.0)]).unwrap();
        assert!(said.starts_with("TCP's cliff is absent here, or too small"), "{said}");
        assert_eq!(cliff(&[at(65_483, 100.0)]), None);
    }

    #[test]
    fn too_few_rounds_tell_nothing() {
        let mut cells = [cell(LocalPath::Tcp, 64, 100.0), cell(LocalPath::Pipe, 64, 500.0)];
        for cell in &mut cells {
            cell.writer_ns.truncate(2);
        }
        assert_eq!(sentences(&cells), ["pipe against TCP: cannot be told from it at 64 bytes."]);
    }

    #[test]
    fn a_size_that_is_not_carried_is_named() {
        let said = sentences(&[Cell::new(LocalPath::Seqpacket, 1 << 20, false)]);
        assert_eq!(
            said,
            ["AF_UNIX seqpacket does not carry writes of 1048576 bytes: they are too long."]
        );
    }
}
