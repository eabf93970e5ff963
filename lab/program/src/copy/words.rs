// SPDX-License-Identifier: Apache-2.0
//! What a copy can depend on, and how the tables and the plan call it.

use crate::experiment::{Experiment, level};
use crate::{Failure, Result};
use std::fmt;

/// What memory was before the copy.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum State {
    /// The source was never written: reading it maps the kernel's page of zeros
    Source,
    /// The destination was never written: the guest supplies pages that it owns
    Fresh,
    /// The destination was never written and the host must supply the pages; once for each page
    Host,
    /// All pages are there, nothing is in a cache: a stream through a large area
    Memory,
    /// The same buffers again, as far as the caches hold them
    Cached,
}

/// From which pages memory is made.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum PageSize {
    /// Ordinary pages, of 4 KiB
    #[value(name = "4K")]
    Small,
    /// Transparent large pages, of 2 MiB
    #[value(name = "2M")]
    Large,
}

/// Who reads the destination.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum Consumer {
    /// No thread, or much later
    Nobody,
    /// The same processor, right after each copy
    Same,
    /// A thread on another processor, a batch at a time
    Other,
}

/// What a plan's level is called.
pub(super) trait Word: clap::ValueEnum {
    /// As in the command line.
    fn word(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The value of a cell's level.
    fn of(cell: &str, factor: &str) -> Option<Self> {
        Self::from_str(level(cell, factor)?, false).ok()
    }
}

impl Word for State {}
impl Word for PageSize {}
impl Word for Consumer {}

impl State {
    /// As a heading says it.
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Source => "source untouched",
            Self::Fresh => "destination untouched",
            Self::Host => "destination untouched, pages from the host",
            Self::Memory => "in memory, not in a cache",
            Self::Cached => "in the caches",
        }
    }
}

impl Consumer {
    /// As a heading says it.
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Nobody => "nobody reads",
            Self::Same => "the same core reads at once",
            Self::Other => "another core reads",
        }
    }
}

/// A cell of the plan.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Cell {
    pub(super) state: State,
    pub(super) pages: PageSize,
    pub(super) consumer: Consumer,
    pub(super) size: usize,
}

impl Cell {
    /// The levels of a cell; `None` if it is not one of this scenario's.
    pub(super) fn parse(cell: &str) -> Option<Self> {
        Some(Self {
            state: State::of(cell, "state")?,
            pages: PageSize::of(cell, "pages")?,
            consumer: Consumer::of(cell, "consumer")?,
            size: size(level(cell, "size")?).ok()?,
        })
    }

    /// All but the size.
    pub(super) const fn group(&self) -> Group {
        Group { state: self.state, pages: self.pages, consumer: self.consumer }
    }
}

/// Cells that differ by the size only.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Group {
    pub(super) state: State,
    pub(super) pages: PageSize,
    pub(super) consumer: Consumer,
}

impl Group {
    /// The levels' names, for a narrow column.
    pub(super) fn words(&self) -> String {
        format!("{} {} {}", self.state.word(), self.pages.word(), self.consumer.word())
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { state, pages, consumer } = self;
        write!(f, "{}, {} pages, {}", state.text(), pages.word(), consumer.text())
    }
}

/// No copy is larger: two areas of it must fit into memory.
const LARGEST: usize = 256 << 20;

/// Bytes of `1024`, `1K` or `8M`.
///
/// # Errors
/// It is no size, or one that cannot be measured.
pub(super) fn size(text: &str) -> std::result::Result<usize, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 1 << 10),
        Some((at, 'M' | 'm')) => (&text[..at], 1 << 20),
        _ => (text, 1),
    };
    let size = digits.parse::<usize>().ok().and_then(|number| number.checked_mul(unit));
    let size = size.filter(|size| (64..=LARGEST).contains(size));
    size.ok_or_else(|| format!("{text:?} is not a size between 64 and 256M, such as 1K or 8M"))
}

/// A size in the largest unit that leaves no rest.
pub(super) fn shown(size: usize) -> String {
    match size {
        _ if size.is_multiple_of(1 << 20) => format!("{}M", size >> 20),
        _ if size.is_multiple_of(1 << 10) => format!("{}K", size >> 10),
        _ => size.to_string(),
    }
}

/// A size that was computed, with two digits.
pub(super) fn about(size: f64) -> String {
    let (value, unit) = match size {
        _ if size >= 999.5 * 1024.0 => (size / 1_048_576.0, "M"),
        _ if size >= 999.5 => (size / 1024.0, "K"),
        _ => (size, ""),
    };
    if value >= 9.95 { format!("{value:.0}{unit}") } else { format!("{value:.1}{unit}") }
}

/// What everything is compared with.
pub(super) const MEMORY: &str = "memory";

/// State and size of a cell.
pub(super) fn parse(cell: &str) -> Result<(State, usize)> {
    let state = State::of(cell, "state");
    let size = level(cell, "size").and_then(|text| size(text).ok());
    state.zip(size).ok_or_else(|| Failure::new("the plan has a cell that is none of copies"))
}

/// Whether it is one of copies into the kernel.
pub(super) fn is_into(experiment: &Experiment) -> bool {
    experiment.plan.arms.first().is_some_and(|arm| arm == MEMORY)
}

/// Where bytes go.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, clap::ValueEnum)]
pub enum Target {
    /// A file in memory, written at the same place again and again
    Memfd,
    /// A pipe of 1 MiB
    Pipe,
    /// A TCP socket over loopback
    Socket,
}

impl Word for Target {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_they_are_shown() {
        for bytes in [64, 1000, 1024, 4096, 131_072, 1 << 20, 64 << 20] {
            assert_eq!(size(&shown(bytes)), Ok(bytes));
        }
        assert_eq!(size("16k"), Ok(16_384));
        for wrong in ["", "K", "63", "257M", "1G", "-1", "99999999999999999999M"] {
            assert!(size(wrong).unwrap_err().contains("64 and 256M"), "{wrong}");
        }
        assert_eq!((about(2150.0), about(500_000.0)), ("2.1K".to_owned(), "488K".to_owned()));
        assert_eq!((about(1_048_500.0), about(300.0)), ("1.0M".to_owned(), "300".to_owned()));
    }

    #[test]
    fn a_cell_is_read_from_its_levels() {
        let cell = Cell::parse("state=cached pages=2M consumer=same size=16K").unwrap();
        assert_eq!((cell.state, cell.pages), (State::Cached, PageSize::Large));
        assert_eq!((cell.consumer, cell.size), (Consumer::Same, 16_384));
        assert_eq!(
            cell.group().to_string(),
            "in the caches, 2M pages, the same core reads at once"
        );
        assert_eq!(Cell::parse("state=cached pages=1G consumer=same size=16K"), None);
    }
}
