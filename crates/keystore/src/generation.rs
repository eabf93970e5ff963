// SPDX-License-Identifier: Apache-2.0
//! The page beside the store that counts commits, mapped by every process.

use crate::error::{Error, Result};
use crate::files::Files;
use metaslot_memory::SharedWords;
use std::sync::atomic::{AtomicU64, Ordering};

/// The mapped page. Its first word is the generation: odd while a commit is under way.
#[derive(Debug)]
pub(crate) struct Generation(SharedWords);

impl Generation {
    pub(crate) fn open(files: &Files) -> Result<Self> {
        let file = files.open_generation()?;
        let page = SharedWords::map(&file, 1)
            .map_err(|error| Error::file(&files.generation, "map", error))?;
        Ok(Self(page))
    }

    pub(crate) fn now(&self) -> u64 {
        self.word().load(Ordering::Acquire)
    }

    /// Says that a commit begins. The caller holds the writers' queue; a page left odd by a writer
    /// that died stays odd until [`Self::end`].
    pub(crate) fn begin(&self) {
        self.word().fetch_or(1, Ordering::AcqRel);
    }

    /// Says that the commit is over, done or not. The caller holds the writers' queue.
    pub(crate) fn end(&self) {
        let now = self.word().load(Ordering::Relaxed) | 1;
        self.word().store(now.wrapping_add(1), Ordering::Release);
    }

    fn word(&self) -> &AtomicU64 {
        &self.0.words()[0]
    }
}
