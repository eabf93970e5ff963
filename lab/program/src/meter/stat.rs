// SPDX-License-Identifier: Apache-2.0
//! The whole machine's time, as Sun's tables had it: usr, sys, intr, idle. It is not the experiment's:
//! on a shared machine most of it can be other processes'.

/// Time of all CPUs so far, or of a window, in nanoseconds. The kernel counts in ticks of 10 ms, and on
/// many machines by looking once a tick: short interrupts are missed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Stat {
    usr: f64,
    sys: f64,
    intr: f64,
    idle: f64,
    steal: f64,
}

const TICK: f64 = 1e7;

impl Stat {
    /// `None` where there is no `/proc/stat`.
    pub(crate) fn read() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let fields = text.lines().next()?.split_ascii_whitespace().skip(1);
        let ticks: Vec<f64> = fields.map_while(|field| field.parse().ok()).collect();
        let [user, nice, system, idle, waiting, irq, softirq, steal] = *ticks.first_chunk()?;
        Some(Self {
            usr: (user + nice) * TICK,
            sys: system * TICK,
            intr: (irq + softirq) * TICK,
            idle: (idle + waiting) * TICK,
            steal: steal * TICK,
        })
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            usr: self.usr - earlier.usr,
            sys: self.sys - earlier.sys,
            intr: self.intr - earlier.intr,
            idle: self.idle - earlier.idle,
            steal: self.steal - earlier.steal,
        }
    }

    /// What a process computed.
    pub(crate) fn busy(&self) -> f64 {
        self.usr + self.sys + self.intr
    }

    /// Each kind's share of all CPUs.
    pub(crate) fn shares(self) -> impl Iterator<Item = (&'static str, f64)> {
        let Self { usr, sys, intr, idle, steal } = self;
        let all = (usr + sys + intr + idle + steal).max(1.0);
        [("usr", usr), ("sys", sys), ("intr", intr), ("idle", idle), ("steal", steal)]
            .into_iter()
            .map(move |(name, time)| (name, time / all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_all_cpus() {
        let early = Stat::parse("cpu  10 1 5 100 4 1 2 3 0 0\ncpu0 1 1 1 1 1 1 1 1").unwrap();
        let late = Stat::parse("cpu  30 1 15 130 14 1 12 13 0 0\n").unwrap();
        let window = late.since(early);
        assert_eq!((window.busy(), window.idle), (40.0 * TICK, 40.0 * TICK));
        let shares: Vec<f64> = window.shares().map(|(_, share)| share).collect();
        assert_eq!(shares, [20.0 / 90.0, 10.0 / 90.0, 10.0 / 90.0, 40.0 / 90.0, 10.0 / 90.0]);
        assert_eq!(Stat::parse("cpu 1 2"), None);
    }
}
