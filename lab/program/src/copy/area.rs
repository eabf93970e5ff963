// SPDX-License-Identifier: Apache-2.0
//! Areas of memory in a known state.

use super::words::PageSize;
use crate::probe::large_kib;
use crate::{Failure, Result};
use metaslot_system::memory::{Mapping, Pages};
use std::ops::Range;

/// Large pages begin at multiples of this.
const LARGE: usize = 2 << 20;

/// Memory of one kind of pages, beginning where a large page does.
#[derive(Debug)]
pub(super) struct Area {
    mapping: Mapping,
    range: Range<usize>,
}

impl Area {
    /// Maps so many bytes, and touches none.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn new(length: usize, pages: PageSize) -> Result<Self> {
        let length = length.next_multiple_of(LARGE);
        let refused = |why: String| {
            Failure::new(format!("{} MiB for copies: {why}", length >> 20))
                .hint("one size of pages needs half as much: --pages 4K")
        };
        let failed = |error: std::io::Error| refused(error.to_string());
        if let Some(free) = available().filter(|free| length > free / 2) {
            return Err(refused(format!("only {} MiB are free", free >> 20)));
        }
        let mut mapping = Mapping::new(length + LARGE, Pages::Ordinary).map_err(failed)?;
        match pages {
            // Where there are no large pages, there is nothing to refuse.
            PageSize::Small => mapping.ask_for_small_pages().unwrap_or(()),
            PageSize::Large => mapping.ask_for_large_pages().map_err(failed)?,
        }
        let start = mapping.address().next_multiple_of(LARGE) - mapping.address();
        Ok(Self { mapping, range: start..start + length })
    }

    /// The same with a page behind every byte, and no zero page among them.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn populated(length: usize, pages: PageSize) -> Result<Self> {
        let mut area = Self::new(length, pages)?;
        if area.mapping.populate().is_err() {
            area.mapping.touch();
        }
        // Bytes that are not zero: nothing can be gained by knowing them.
        let mut random = crate::random::Random::new(1);
        let bytes = area.bytes_mut();
        let (first, rest) = bytes.split_at_mut(LARGE);
        random.fill(first);
        rest.chunks_mut(LARGE).for_each(|chunk| chunk.copy_from_slice(&first[..chunk.len()]));
        Ok(area)
    }

    /// Gives every page back.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn give_back(&mut self) -> Result<()> {
        Ok(self.mapping.give_back()?)
    }

    /// Whether nine tenths of it are in large pages.
    pub(super) fn is_mostly_large(&self) -> bool {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        let start = self.bytes().as_ptr().addr();
        let kib = large_kib(&smaps, start).and_then(|kib| usize::try_from(kib).ok()).unwrap_or(0);
        (kib << 10) >= self.length() / 10 * 9
    }

    pub(super) fn length(&self) -> usize {
        self.range.len()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.mapping.bytes()[self.range.clone()]
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.mapping.bytes_mut()[self.range.clone()]
    }
}

/// Bytes that can be had without taking anything away from others.
fn available() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_begin_where_a_large_page_does_and_are_zero_when_given_back() {
        for pages in [PageSize::Small, PageSize::Large] {
            let mut area = Area::populated(3 << 20, pages).unwrap();
            assert_eq!(area.bytes().as_ptr().addr() % LARGE, 0);
            assert_eq!(area.length(), 4 << 20);
            assert!(area.bytes().iter().any(|byte| *byte != 0));
            area.give_back().unwrap();
            assert!(area.bytes().iter().all(|byte| *byte == 0));
        }
    }

    #[test]
    fn more_than_there_is_is_refused() {
        let failure = Area::new(usize::MAX / 4, PageSize::Small).unwrap_err();
        assert!(failure.message.contains("MiB are free"), "{failure}");
    }
}
