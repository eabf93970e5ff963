// SPDX-License-Identifier: Apache-2.0
//! `lab local --eagain`: how soon a path refuses writes when its peer does not read.
//!
//! Every path is filled by non-blocking writes, with several patterns and buffers, each time in a
//! pair of ends of its own. Afterwards the peer reads everything and compares it: a byte that was
//! accepted and lost would be an error.

mod fill;
mod print;
mod report;
mod stream;
mod words;

use super::Options;
use super::path::LocalPath;
use crate::machine::{Machine, command_line, now};
use crate::output::Output;
use crate::progress::Progress;
use crate::{Failure, Result};
use fill::{Pattern, fill};
use report::{BUFFERS, Cell, Report};
use std::time::{Duration, Instant};
use stream::Stream;

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
    let output = Output { json: options.run.json, output: options.run.output.clone() };
    output.publish(&report, print::text)
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
        let writes = |path, pattern| report::find(&cells, path, None, pattern).unwrap().writes;
        let present =
            |pattern| writes(LocalPath::Tcp, pattern) >= 2 * writes(LocalPath::Unix, pattern);
        let said = words::sentences(&cells);
        assert_eq!(said[0].contains("and got EAGAIN"), present(Pattern::TwoWrites), "{said:?}");
        assert!(present(Pattern::Byte) || !said[2].contains("times as many"), "{said:?}");
    }
}
