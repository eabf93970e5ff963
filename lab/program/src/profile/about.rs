// SPDX-License-Identifier: Apache-2.0
//! What to know about the samples of a profile.

use super::details::Details;
use super::fold::nameless;
use super::functions::{Costed, largest};
use crate::table::digits;

/// What a timer does, for people who read a table of its samples.
pub(super) const TIMER: &str = "\
cpu-clock is a timer: what the kernel does with interrupts off shows where it allows them again. In the
exclusive columns that is charged to the caller; \"as sampled\" is before, where it differs.
";

/// So many programs are named.
const PROGRAMS: usize = 5;

/// What to know about the samples: where they come from, what is missing, what they cost.
pub(super) fn about(costed: Costed<'_>) -> String {
    let details = &costed.profile.details;
    let total = details.samples.max(1) as f64;
    let percent = |samples: u64| format!("{} %", digits(100.0 * samples as f64 / total));
    let (files, nowhere) = nameless(&costed.profile.folded);
    let mut text = format!(
        "{} samples by {}, {} in a second{}\n\
         ends without a function's name: {} in known files, {} unknown\n",
        details.samples,
        details.sampler,
        details.hz,
        accounted(details),
        percent(files),
        percent(nowhere)
    );
    if details.broken > 0 {
        let broken = percent(details.broken);
        text.push_str(&format!("stacks cut short, for want of frame pointers: {broken}\n"));
    }
    if details.user_only {
        text.push_str("the kernel's part could not be seen by this user\n");
    }
    if details.lost + details.throttled > 0 {
        let (lost, throttled) = (details.lost, details.throttled);
        text.push_str(&format!("lost: {lost} samples; the kernel held back {throttled} times\n"));
    }
    if details.programs.len() > 1 {
        let programs: Vec<String> = largest(&details.programs)
            .iter()
            .take(PROGRAMS)
            .map(|(name, samples)| format!("{name} {}", percent(*samples)))
            .collect();
        let others = details.programs.len().saturating_sub(PROGRAMS);
        let others = if others > 0 { format!(", {others} others") } else { String::new() };
        text.push_str(&format!("programs: {}{others}\n", programs.join(", ")));
    }
    text + &cost_of_sampling(costed) + unlike(costed)
}

/// A warning about sampled runs that were not like the others: two threads that met on one CPU before and
/// on two of them now, for instance.
fn unlike(costed: Costed<'_>) -> &'static str {
    match costed.slower {
        Some(slower) if !(0.75..=1.25).contains(&slower) => {
            "the sampled runs were not like the others: take these shares with care, or sample again\n"
        }
        _ => "",
    }
}

/// How much of the CPU time the timer has seen: virtual machines lose some of its interrupts.
fn accounted(details: &Details) -> String {
    if details.sampler != "cpu-clock" || details.cpu_ns <= 0.0 {
        return String::new();
    }
    let seen = details.samples as f64 * details.period as f64 / details.cpu_ns;
    let rest = if seen < 0.8 { "; the timer missed the rest" } else { "" };
    format!(": {} % of the CPU time{rest}", digits(100.0 * seen))
}

fn cost_of_sampling(costed: Costed<'_>) -> String {
    let details = &costed.profile.details;
    let reader = 100.0 * details.reader_ns / details.cpu_ns.max(1.0);
    let reader = format!("the lab's own thread took {} % of the CPU time", digits(reader));
    match costed.slower {
        Some(slower) => format!(
            "cost of sampling: {:+.1} % CPU time (sampled runs: {}, others: {}; Sun, 2008–2009: DTrace \
             cost 3 to 5 %)\n{reader}\n",
            100.0 * (slower - 1.0),
            details.runs,
            costed.without
        ),
        None => format!("cost of sampling: {reader}; --runs says the whole\n"),
    }
}
