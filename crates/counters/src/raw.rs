// SPDX-License-Identifier: Apache-2.0
//! A page as it is written, and sums of pages.

use crate::Event;
use crate::layout::{
    self, CELL, CODE_COUNT, CODES, ENDED_PROCESSES, ENDED_SINCE, EVENTS, FUNCTIONS, HEADER, OTHERS,
    PROVIDER_NAMES, PROVIDERS, ROW_KEYS, ROWS, ROWS_USED, SHARD, SHARDS, SIZES,
};
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// A page as it is written, its shards added up.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) header: Vec<u64>,
    /// But for the codes, whose places differ.
    pub(crate) sums: Vec<u64>,
    pub(crate) codes: BTreeMap<u64, u64>,
    /// Since when threads are in another module's code.
    pub(crate) outside: Vec<u64>,
}

impl Default for Raw {
    fn default() -> Self {
        let (codes, outside) = (BTreeMap::new(), Vec::new());
        Self { header: vec![0; HEADER], sums: vec![0; SHARD], codes, outside }
    }
}

impl Raw {
    /// A page.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let header = words(file, 0, HEADER)?;
        let expected = [(0, layout::MAGIC), (1, layout::VERSION)];
        let lengths = [(layout::SHARD_COUNT, SHARDS as u64), (layout::SHARD_LENGTH, SHARD as u64)];
        if expected.iter().chain(&lengths).any(|(at, value)| header[*at] != *value) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a page of another version"));
        }
        let mut raw = Self { header, ..Self::default() };
        for index in 0..SHARDS {
            let at = HEADER + index * SHARD;
            if is_hole(file, at, SHARD) {
                continue;
            }
            // Read, not mapped: reading a page that was never written does not allocate it.
            raw.add(&words(file, at, SHARD)?);
        }
        Ok(raw)
    }

    /// One more shard.
    pub(crate) fn add(&mut self, shard: &[u64]) {
        for (sum, word) in self.sums.iter_mut().zip(shard) {
            *sum = sum.saturating_add(*word);
        }
        if let since @ 1.. = shard[layout::OUTSIDE] {
            self.outside.push(since);
        }
        for pair in shard[CODES..CODES + 2 * CODE_COUNT].chunks_exact(2) {
            let count: &mut u64 = self.codes.entry(pair[0]).or_default();
            *count = count.saturating_add(pair[1]);
        }
    }
}

impl Raw {
    /// Adds what another one counted, with rows and providers of its own. Levels are of processes that live.
    pub(crate) fn join(&mut self, other: &Self) {
        let processes = &mut self.header[ENDED_PROCESSES];
        *processes = processes.saturating_add(other.header[ENDED_PROCESSES]);
        let since = [self.header[ENDED_SINCE], other.header[ENDED_SINCE]];
        let since = since.into_iter().filter(|since| *since > 0).min();
        self.header[ENDED_SINCE] = since.unwrap_or(0);
        self.add_counts(other);
    }

    pub(crate) fn add_counts(&mut self, other: &Self) {
        let level = EVENTS + Event::MemoryNotLocked as usize;
        let events = EVENTS..EVENTS + layout::EVENT_COUNT;
        for at in (layout::CALLS..2 * FUNCTIONS).chain(events).filter(|at| *at != level) {
            self.sums[at] = self.sums[at].saturating_add(other.sums[at]);
        }
        for (key, count) in &other.codes {
            let sum = self.codes.entry(*key).or_default();
            *sum = sum.saturating_add(*count);
        }
        for row in 0..ROWS {
            let from = layout::cell(row, 0);
            let cells = &other.sums[from..from + SIZES * CELL];
            if cells.iter().any(|word| *word > 0) {
                let into = layout::cell(self.row_for(other, row), 0);
                for (sum, word) in self.sums[into..][..SIZES * CELL].iter_mut().zip(cells) {
                    *sum = sum.saturating_add(*word);
                }
            }
        }
    }

    /// The row for what another one has in this row.
    fn row_for(&mut self, other: &Self, row: usize) -> usize {
        self.header[ROW_KEYS + ROWS - 1] = OTHERS;
        let key = other.header[ROW_KEYS + row];
        let used =
            |header: &[u64]| usize::try_from(header[ROWS_USED]).unwrap_or(ROWS).min(ROWS - 1);
        if key == OTHERS || row >= used(&other.header) {
            return ROWS - 1;
        }
        let provider = usize::try_from(key >> 56).unwrap_or(0) % PROVIDERS;
        let name = &other.header[PROVIDER_NAMES + 2 * provider..][..2];
        let Some(provider) = self.provider_for([name[0], name[1]]) else { return ROWS - 1 };
        let key = (provider as u64) << 56 | (key & 0x00ff_ffff_ffff_ffff);
        let rows = used(&self.header);
        let known = &self.header[ROW_KEYS..][..rows];
        match known.iter().position(|known| *known == key) {
            Some(row) => row,
            None if rows == ROWS - 1 => ROWS - 1,
            None => {
                self.header[ROW_KEYS + rows] = key;
                self.header[ROWS_USED] = rows as u64 + 1;
                rows
            }
        }
    }

    /// The place of a provider of this name, a new one where it is not known yet.
    fn provider_for(&mut self, name: [u64; 2]) -> Option<usize> {
        if name == [0; 2] {
            return None;
        }
        let names = &mut self.header[PROVIDER_NAMES..][..2 * PROVIDERS];
        let (places, _) = names.as_chunks_mut::<2>();
        let place = places.iter().position(|place| *place == name || *place == [0; 2])?;
        places[place] = name;
        Some(place)
    }
}

/// Whether these words were never written, as far as the file system tells.
fn is_hole(file: &File, at: usize, count: usize) -> bool {
    let (start, end) = ((at * 8) as u64, ((at + count) * 8) as u64);
    match rustix::fs::seek(file, SeekFrom::Data(start)) {
        Ok(data) => data >= end,
        Err(errno) => errno == Errno::NXIO,
    }
}

pub(crate) fn words(file: &File, at: usize, count: usize) -> io::Result<Vec<u64>> {
    let mut bytes = vec![0; count * 8];
    file.read_exact_at(&mut bytes, (at * 8) as u64)?;
    Ok(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
}
