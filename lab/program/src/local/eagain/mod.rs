// SPDX-License-Identifier: Apache-2.0
//! `lab local --eagain`: how soon a path refuses writes when its peer does not read.
//!
//! Every path is filled by non-blocking writes, with several patterns and buffers, each time in a
//! pair of ends of its own. Afterwards the peer reads everything and compares it: a byte that was
//! accepted and lost would be an error.

mod fill;
mod print;
mod stream;
mod words;

use super::path::LocalPath;
use super::{Options, publish};
use crate::machine::{Machine, command_line, now};
use crate::progress::Progress;
use crate::{Failure, Result};
use fill::{Pattern, fill};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};
use stream::Stream;

/// What is asked for by SO_SNDBUF: nothing, less than usual systems give, and more.
const BUFFERS: [Option<usize>; 3] = [None, Some(49_152), Some(262_144)];

/// One run.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Report {
    schema: String,
    command: Vec<String>,
    started: u64,
    seconds: f64,
    machine: Machine,
    /// Milliseconds after which a path that still accepts is left alone.
    patience_ms: u64,
    cells: Vec<Cell>,
}

/// One path, filled once.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Cell {
    path: LocalPath,
    pattern: Pattern,
    /// By SO_SNDBUF; null leaves the buffer as the system gives it.
    asked: Option<usize>,
    /// Bytes, when it was full.
    buffer: usize,
    writes: u64,
    /// Bytes accepted, and read back.
    payload: u64,
    /// It ended with EAGAIN; if not, it accepts more than this.
    full: bool,
}

impl Cell {
    /// Payload over buffer.
    fn share(&self) -> f64 {
        self.payload as f64 / self.buffer as f64
    }

    /// Bytes of the buffer that one write took.
    fn charge(&self) -> f64 {
        self.buffer as f64 / self.writes as f64
    }

    /// Messages that are in whole.
    const fn messages(&self) -> u64 {
        self.payload / fill::MESSAGE as u64
    }
}

/// Fills every path.
pub(super) fn run(options: &Options) -> Result<()> {
    let (started, began, machine) = (Instant::now(), now(), Machine::this());
    let cells = cells(&options.paths, Duration::from_millis(options.patience))?;
    let report = Report {
        schema: "metaslot-lab-eagain/1".to_owned(),
        command: command_line(),
        started: began,
        seconds: started.elapsed().as_secs_f64(),
        machine,
        patience_ms: options.patience,
        cells,
    };
    publish(options, &report, print::text)
}

fn cells(paths: &[LocalPath], patience: Duration) -> Result<Vec<Cell>> {
    if !paths.iter().any(|path| LocalPath::REFUSING.contains(path)) {
        return Err(Failure::new("none of these paths refuses writes").hint(
            "a redirected connection takes what memory there is; name another path as well",
        ));
    }
    let (progress, stream) = (Progress::new(), Stream::new());
    let mut cells = Vec::new();
    for path in LocalPath::REFUSING.into_iter().filter(|path| paths.contains(path)) {
        progress.say(path.name());
        for asked in BUFFERS {
            for pattern in Pattern::ALL {
                cells.push(cell(path, asked, pattern, &stream, patience)?);
            }
        }
    }
    Ok(cells)
}

fn cell(
    path: LocalPath,
    asked: Option<usize>,
    pattern: Pattern,
    stream: &Stream,
    patience: Duration,
) -> Result<Cell> {
    let ends = path.ends()?;
    if let Some(bytes) = asked {
        path.ask_buffer(&ends.writer, bytes)?;
    }
    let named = |failure: Failure| failure.context(path.name());
    let filled = fill(&ends.writer, pattern, stream, patience).map_err(named)?;
    let buffer = path.buffer(&ends.writer)?;
    // The reader finds the end there.
    drop(ends.writer);
    let read = stream.read_to_end(&ends.reader).map_err(named)?;
    if read != filled.payload {
        let message = format!("{} bytes were accepted, {read} arrived", filled.payload);
        return Err(named(Failure::new(message)));
    }
    let (writes, payload, full) = (filled.writes, filled.payload, filled.full);
    Ok(Cell { path, pattern, asked, buffer, writes, payload, full })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_say_what_the_run_found() {
        let paths = [LocalPath::Tcp, LocalPath::Unix];
        let cells = cells(&paths, Duration::from_millis(50)).unwrap();
        let writes = |path, pattern| print::find(&cells, path, None, pattern).unwrap().writes;
        let present =
            |pattern| writes(LocalPath::Tcp, pattern) >= 2 * writes(LocalPath::Unix, pattern);
        let said = words::sentences(&cells);
        assert_eq!(said[0].contains("and got EAGAIN"), present(Pattern::TwoWrites), "{said:?}");
        assert!(present(Pattern::Byte) || !said[2].contains("times as many"), "{said:?}");
    }
}
