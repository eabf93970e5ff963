// SPDX-License-Identifier: Apache-2.0
//! Whether to look for what another process will say again and again, or to sleep until it is there.

use std::time::{Duration, Instant};

/// What comes in this time is not slept for: to sleep and be woken takes about as long.
const SOON: Duration = Duration::from_micros(50);
/// What comes later was not kept waiting: the other process had nothing to say, and looking took a twentieth of the time.
const IDLE: Duration = SOON.saturating_mul(20);
/// After looking in vain once it is slept for so often, and each further time twice as often.
const FIRST: u32 = 16;
/// But no more often than that.
const MOST: u32 = 1 << 12;

/// What was learned from the last waits for one process. It looks where that has just answered soon, until it has looked in vain
/// for what then came within a millisecond: the other process has no core, as on a machine that is busy, and this one only keeps it
/// waiting.
#[derive(Debug, Default)]
pub struct Patience {
    /// Waits that are still to be slept through.
    sleeps: u32,
    /// How many there are after the next one in vain.
    next: u32,
    /// Whether the last one was short.
    soon: bool,
}

impl Patience {
    /// Waits for something: looks for a moment with `look` where that pays, if there `may` be a core for the other process, and with
    /// `sleep` otherwise.
    pub fn wait<T>(
        &mut self,
        may: bool,
        mut look: impl FnMut() -> Option<T>,
        sleep: impl FnOnce() -> T,
    ) -> T {
        let began = Instant::now();
        let looks = may && self.soon && self.sleeps == 0;
        if looks {
            while began.elapsed() < SOON {
                if let Some(found) = look() {
                    self.next = 0;
                    return found;
                }
                std::hint::spin_loop();
            }
        }
        let found = sleep();
        let took = began.elapsed();
        self.soon = took < SOON;
        self.sleeps = self.sleeps.saturating_sub(1);
        if looks && took < IDLE {
            self.next = (2 * self.next).clamp(FIRST, MOST);
            self.sleeps = self.next;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    /// How often it looked, of so many waits for what comes when it is slept for.
    fn looked_in_vain(patience: &mut Patience, waits: u32) -> u32 {
        let mut looked = 0;
        for _ in 0..waits {
            let mut once = true;
            let look = || {
                looked += u32::from(std::mem::take(&mut once));
                None
            };
            patience.wait(true, look, || ());
        }
        looked
    }

    #[test]
    fn what_is_looked_for_in_vain_is_slept_for_more_and_more_often() {
        let mut patience = Patience::default();
        assert!(looked_in_vain(&mut patience, 1000) <= 7);
        // Until it is found.
        while !patience.wait(true, || Some(true), || false) {}
        assert!((1..=2).contains(&looked_in_vain(&mut patience, 20)));
    }

    #[test]
    fn who_had_nothing_to_say_is_looked_for_when_it_speaks_again() {
        let mut patience = Patience::default();
        let soon = |patience: &mut Patience| patience.wait(true, || Some(true), || false);
        while !soon(&mut patience) {}
        for _ in 0..3 {
            patience.wait(true, || None, || thread::sleep(2 * IDLE));
            // What comes first is slept for, and says that it is back.
            assert!(!soon(&mut patience) && soon(&mut patience));
        }
    }

    #[test]
    fn what_comes_late_or_has_no_core_is_not_looked_for() {
        let mut patience = Patience::default();
        for _ in 0..10 {
            patience.wait(true, || panic!("it comes late"), || thread::sleep(2 * SOON));
        }
        let mut patience = Patience::default();
        (0..10).for_each(|_| patience.wait(false, || panic!("there is no core"), || ()));
    }
}
