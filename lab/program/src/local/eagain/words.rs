// SPDX-License-Identifier: Apache-2.0
//! What follows from the numbers of one run, in sentences. What a kernel does not do is said to be
//! absent: nothing here is known beforehand.

use super::fill::{BATCH, MESSAGE, Pattern};
use super::report::{Cell, find};
use crate::local::path::LocalPath;
use crate::table::digits;

/// From this ratio on, one path accepts more than another one, and not only about as much.
const MORE: f64 = 2.0;
/// From this ratio on, a remedy is one.
const HELPS: f64 = 1.05;
/// How far numbers of writes may be from the buffers' proportion to follow it.
const PROPORTIONAL: f64 = 1.25;

/// The explanation. A sentence whose paths were not measured is left out.
pub(super) fn sentences(cells: &[Cell]) -> Vec<String> {
    let said = [surprise, charge, merging, scaling, one_write, remedies];
    said.iter().filter_map(|sentence| sentence(cells)).collect()
}

fn default(cells: &[Cell], path: LocalPath, pattern: Pattern) -> Option<&Cell> {
    find(cells, path, None, pattern)
}

/// Whether the local path refuses sooner than TCP.
fn surprise(cells: &[Cell]) -> Option<String> {
    let unix = default(cells, LocalPath::Unix, Pattern::TwoWrites)?;
    let tcp = default(cells, LocalPath::Tcp, Pattern::TwoWrites)?;
    let ratio = tcp.writes as f64 / unix.writes as f64;
    if ratio < MORE || !unix.full {
        return Some(format!(
            "Absent on this kernel: AF_UNIX stream accepted {} writes and {} bytes, TCP {} writes; \
             the local path does not refuse sooner.",
            unix.writes, unix.payload, tcp.writes
        ));
    }
    Some(format!(
        "AF_UNIX stream said EAGAIN after {} writes and {} bytes, {} % of its buffer; TCP took {} \
         {} times as many writes. Sun, 2008–2009: a customer's application moved from TCP to a \
         local path and got EAGAIN.",
        unix.writes,
        unix.payload,
        digits(100.0 * unix.share()),
        if tcp.full { "" } else { "more than" },
        digits(ratio)
    ))
}

/// What AF_UNIX charges for a write: single bytes show it.
fn charge(cells: &[Cell]) -> Option<String> {
    let byte = default(cells, LocalPath::Unix, Pattern::Byte)?;
    if !byte.full || byte.charge() < MORE {
        return Some(format!(
            "Absent on this kernel: AF_UNIX stream took {} writes of 1 byte into {} bytes, so it \
             does not charge by the write.",
            byte.writes, byte.buffer
        ));
    }
    Some(format!(
        "AF_UNIX charges its buffer with memory for each write, and does not merge writes: {} \
         writes of 1 byte filled {} bytes, {:.0} bytes for each.",
        byte.writes,
        byte.buffer,
        byte.charge()
    ))
}

/// Whether TCP merges writes: single bytes show this too.
fn merging(cells: &[Cell]) -> Option<String> {
    let byte = default(cells, LocalPath::Tcp, Pattern::Byte)?;
    if byte.full && byte.charge() >= MORE {
        return Some(format!(
            "Absent on this kernel: TCP does not merge writes; {} writes of 1 byte filled {} \
             bytes, {:.0} bytes for each.",
            byte.writes,
            byte.buffer,
            byte.charge()
        ));
    }
    let end = if byte.full {
        format!("filled its {} bytes, {} for each", byte.buffer, digits(byte.charge()))
    } else {
        "went in and it was not full when the time was over".to_owned()
    };
    let ratio =
        default(cells, LocalPath::Unix, Pattern::Byte).filter(|unix| unix.full).map(|unix| {
            let least = if byte.full { "" } else { " more than" };
            format!(
                ",{least} {} times as many as with AF_UNIX",
                digits(byte.writes as f64 / unix.writes as f64)
            )
        });
    Some(format!(
        "TCP merges writes: {} of 1 byte {end}{}.",
        byte.writes,
        ratio.unwrap_or_default()
    ))
}

/// What a larger buffer does for AF_UNIX.
fn scaling(cells: &[Cell]) -> Option<String> {
    let mut rows: Vec<&Cell> = cells
        .iter()
        .filter(|cell| cell.path == LocalPath::Unix && cell.pattern == Pattern::TwoWrites)
        .collect();
    rows.sort_by_key(|cell| cell.buffer);
    let (least, most) = (rows.first()?, rows.last()?);
    if most.buffer == least.buffer {
        return None;
    }
    let growth = most.buffer as f64 / least.buffer as f64;
    let error = most.writes as f64 / least.writes as f64 / growth;
    let follows = (1.0 / PROPORTIONAL..=PROPORTIONAL).contains(&error);
    let list = |number: fn(&Cell) -> String| {
        rows.iter().map(|cell| number(cell)).collect::<Vec<_>>().join(", ")
    };
    Some(format!(
        "SO_SNDBUF {}: buffers of {} bytes took {} writes of this pattern.",
        if follows { "helps in proportion" } else { "does not help in proportion" },
        list(|cell| cell.buffer.to_string()),
        list(|cell| cell.writes.to_string())
    ))
}

/// What one write for each message does. It need not help: memory comes in sizes, and a message
/// just above one of them takes more than its parts do.
fn one_write(cells: &[Cell]) -> Option<String> {
    let cell = |pattern| default(cells, LocalPath::Unix, pattern);
    let two = cell(Pattern::TwoWrites)?;
    let (one, gathered) = (cell(Pattern::OneWrite)?, cell(Pattern::Gathered)?);
    let gain = gain(one, two);
    let verdict = if gain >= HELPS { "helps" } else { "is no remedy here" };
    Some(format!(
        "One write for each message {verdict}: {MESSAGE} bytes at once are charged {:.0} bytes, in \
         two parts {:.0}, and {} messages fit instead of {} ({} times; by writev {}).",
        one.charge(),
        2.0 * two.charge(),
        one.messages(),
        two.messages(),
        digits(gain),
        gathered.messages()
    ))
}

/// What to do about it, as far as it was measured to help.
fn remedies(cells: &[Cell]) -> Option<String> {
    let two = default(cells, LocalPath::Unix, Pattern::TwoWrites)?;
    let unix = cells.iter().filter(|cell| cell.path == LocalPath::Unix);
    let mut advice = Vec::new();
    for cell in unix.filter(|cell| gain(cell, two) >= HELPS) {
        let fit = format!("{} fit, {} times", cell.messages(), digits(gain(cell, two)));
        match (cell.pattern, cell.asked) {
            (Pattern::OneWrite, None) => advice.push(format!("one write for each message ({fit})")),
            (Pattern::Batch, None) => advice.push(format!("{BATCH} messages by one write ({fit})")),
            (Pattern::TwoWrites, Some(asked)) => {
                advice.push(format!("SO_SNDBUF {asked}, the same writes ({fit})"));
            }
            _ => {}
        }
    }
    advice.push("in any case: after EAGAIN wait for POLLOUT, then go on".to_owned());
    Some(format!("What to do, from {} messages: {}.", two.messages(), advice.join("; ")))
}

fn gain(cell: &Cell, two: &Cell) -> f64 {
    cell.messages() as f64 / two.messages().max(1) as f64
}

/// A cell with a default buffer, for tests.
#[cfg(test)]
pub(super) fn cell_of(
    path: LocalPath,
    pattern: Pattern,
    buffer: usize,
    writes: u64,
    payload: u64,
) -> Cell {
    Cell { path, pattern, asked: None, buffer, writes, payload, full: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unix() -> Vec<Cell> {
        let cell =
            |pattern, writes, payload| cell_of(LocalPath::Unix, pattern, 212_992, writes, payload);
        vec![
            cell(Pattern::TwoWrites, 208, 73_632),
            cell(Pattern::OneWrite, 93, 65_844),
            cell(Pattern::Gathered, 93, 65_844),
            cell(Pattern::Byte, 278, 278),
        ]
    }

    fn tcp() -> Vec<Cell> {
        let cell =
            |pattern, writes, payload| cell_of(LocalPath::Tcp, pattern, 4_194_304, writes, payload);
        vec![cell(Pattern::TwoWrites, 11_774, 4_167_428), cell(Pattern::Byte, 4_261_184, 4_261_184)]
    }

    #[test]
    fn the_surprise_is_told_with_its_figures() {
        let said = surprise(&[unix(), tcp()].concat()).unwrap();
        assert!(said.contains("after 208 writes and 73632 bytes, 34.6 % of its buffer"), "{said}");
        assert!(said.contains("56.6 times as many"), "{said}");
        assert!(said.contains("Sun, 2008–2009"), "{said}");
    }

    #[test]
    fn a_kernel_without_the_surprise_is_told_so() {
        let mut cells = [unix(), tcp()].concat();
        cells[0].writes = 11_000;
        let said = surprise(&cells).unwrap();
        assert!(said.starts_with("Absent on this kernel"), "{said}");
        cells[3].writes = 212_000;
        assert!(charge(&cells).unwrap().starts_with("Absent on this kernel"));
        cells[5].writes = 5_000;
        assert!(merging(&cells).unwrap().starts_with("Absent on this kernel"));
    }

    #[test]
    fn the_charge_is_the_buffer_over_the_writes() {
        let said = charge(&unix()).unwrap();
        assert!(said.ends_with("278 writes of 1 byte filled 212992 bytes, 766 bytes for each."));
    }

    #[test]
    fn a_tcp_that_was_not_filled_is_a_lower_bound() {
        let mut cells = [unix(), tcp()].concat();
        let said = merging(&cells).unwrap();
        assert!(
            said.contains("4261184 of 1 byte filled its 4194304 bytes, 0.98 for each"),
            "{said}"
        );
        cells[5].full = false;
        let said = merging(&cells).unwrap();
        assert!(said.contains("not full when the time was over, more than 15328 times"), "{said}");
    }

    #[test]
    fn buffers_are_compared_in_their_order() {
        let mut cells = unix();
        cells.extend(unix().into_iter().map(|cell| Cell { buffer: 98_304, writes: 96, ..cell }));
        let said = scaling(&cells).unwrap();
        assert!(
            said.starts_with("SO_SNDBUF helps in proportion: buffers of 98304, 212992"),
            "{said}"
        );
        cells[4].writes = 208;
        assert!(scaling(&cells).unwrap().starts_with("SO_SNDBUF does not help"));
        assert_eq!(scaling(&unix()), None);
    }

    #[test]
    fn one_write_for_a_message_is_advised_where_it_helps() {
        let mut cells = unix();
        let said = one_write(&cells).unwrap();
        assert!(said.starts_with("One write for each message is no remedy here"), "{said}");
        assert!(said.contains("at once are charged 2290 bytes, in two parts 2048"), "{said}");
        assert!(
            said.contains("93 messages fit instead of 104 (0.89 times; by writev 93)"),
            "{said}"
        );
        (cells[1].writes, cells[1].payload) = (167, 118_236);
        let said = one_write(&cells).unwrap();
        assert!(said.starts_with("One write for each message helps"), "{said}");
        assert!(remedies(&cells).unwrap().contains("one write for each message (167 fit"));
    }

    #[test]
    fn only_what_was_measured_to_help_is_advised() {
        let mut cells = unix();
        let bare = "What to do, from 104 messages: in any case: after EAGAIN wait for POLLOUT";
        assert!(remedies(&cells).unwrap().starts_with(bare));
        cells.push(cell_of(LocalPath::Unix, Pattern::Batch, 212_992, 25, 141_600));
        let larger = cell_of(LocalPath::Unix, Pattern::TwoWrites, 524_288, 512, 181_248);
        cells.push(Cell { asked: Some(262_144), ..larger });
        assert_eq!(
            remedies(&cells).unwrap(),
            "What to do, from 104 messages: 8 messages by one write (200 fit, 1.92 times); \
             SO_SNDBUF 262144, the same writes (256 fit, 2.46 times); in any case: after EAGAIN \
             wait for POLLOUT, then go on."
        );
    }

    #[test]
    fn what_was_not_measured_is_not_mentioned() {
        assert!(sentences(&[]).is_empty());
        assert_eq!(sentences(&unix()).len(), 3);
    }
}
