// SPDX-License-Identifier: Apache-2.0
//! The word that says how busy a combiner is: four numbers that change together.

use std::fmt;

/// Threads that lead, threads that were woken with a result and are not running yet, threads inside
/// (led, waiting, woken or computing alone), and queued jobs.
#[derive(Clone, Copy)]
pub(super) struct State(pub(super) u64);

/// One thread more that leads.
pub(super) const LEADER: u64 = 1;
/// One thread more that has its result and is not running yet.
pub(super) const WOKEN: u64 = 1 << 10;
/// One thread more that is inside.
pub(super) const INSIDE: u64 = 1 << 28;
/// One job more in the queue.
pub(super) const QUEUED: u64 = 1 << 46;

/// How many threads may lead at most, even where the configured number is larger.
pub(super) const MAX_LEADERS: usize = 512;
/// Queue length from which tickets are no longer taken: far below what the field can count.
pub(super) const MAX_QUEUED: usize = 1 << 16;

impl State {
    pub(super) const fn leaders(self) -> usize {
        (self.0 & (WOKEN - 1)) as usize
    }

    pub(super) const fn woken(self) -> usize {
        (self.0 / WOKEN % (INSIDE / WOKEN)) as usize
    }

    pub(super) const fn inside(self) -> usize {
        (self.0 / INSIDE % (QUEUED / INSIDE)) as usize
    }

    pub(super) const fn queued(self) -> usize {
        (self.0 / QUEUED) as usize
    }

    /// Whether `unit` can be taken away: in a forked child the numbers of the parent are gone.
    pub(super) const fn has(self, unit: u64) -> bool {
        match unit {
            LEADER => self.leaders() > 0,
            WOKEN => self.woken() > 0,
            INSIDE => self.inside() > 0,
            _ => self.queued() > 0,
        }
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("leaders", &self.leaders())
            .field("woken", &self.woken())
            .field("inside", &self.inside())
            .field("queued", &self.queued())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_numbers_do_not_touch_each_other() {
        let state = State(3 * LEADER + 70_000 * WOKEN + 200_000 * INSIDE + 100_000 * QUEUED);
        let all = (state.leaders(), state.woken(), state.inside(), state.queued());
        assert_eq!(all, (3, 70_000, 200_000, 100_000));
        assert!(!State(INSIDE).has(WOKEN) && State(INSIDE).has(INSIDE));
    }
}
