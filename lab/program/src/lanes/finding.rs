// SPDX-License-Identifier: Apache-2.0
//! What a run comes to, in one sentence: in how many operations lanes are surely worth it, and how much.

use super::report::{Arm, Door, Report, RowResult, Window};
use crate::table::digits;
use crate::verdict::{Comparison, Family, Margin, Pairs, Verdict};

/// The sentence; nothing where nothing was measured.
pub(super) fn sentence(report: &Report, margin: Margin) -> Option<String> {
    let doors = [Door::Blocking, Door::Asynchronous];
    let through = doors.into_iter().filter_map(|door| {
        let (name, pairs) = most(report, door)?;
        part(&name, "operations", "without lanes", pairs, margin)
    });
    let kernels = report.rows.iter().filter_map(|row| {
        let kernel = row.kernel.as_ref()?;
        Some((row.name.clone(), Pairs::of_costs(kernel.full(), &kernel.raw_ns)))
    });
    let kernels =
        part("Full lanes alone", "kernels", "the plain library", kernels.collect(), margin);
    let parts: Vec<String> = kernels.into_iter().chain(through).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Costs with lanes and without, by operation.
type Costs = Vec<(String, Pairs)>;

/// The most threads, or operations in flight, that were measured at a door, and each operation there.
fn most(report: &Report, door: Door) -> Option<(String, Costs)> {
    let at_door = |row: &RowResult| -> Option<Arm> {
        let arms = row.arms().filter(|arm| arm.door == door && !arm.without.is_empty());
        arms.max_by_key(|arm| (arm.threads, arm.depth, std::cmp::Reverse(arm.keys))).cloned()
    };
    let arms: Vec<(String, Arm)> =
        report.rows.iter().filter_map(|row| Some((row.name.clone(), at_door(row)?))).collect();
    let threads = arms.iter().map(|(_, arm)| arm.threads).max()?;
    let name = match door {
        Door::Blocking => format!("{threads} threads that wait"),
        Door::Asynchronous => "asynchronous sessions".to_owned(),
    };
    let pairs = |(name, arm): (String, Arm)| {
        let cost = |windows: &[Window]| windows.iter().map(Window::cpu_ns).collect::<Vec<_>>();
        (name, Pairs::of_costs(&cost(&arm.with), &cost(&arm.without)))
    };
    Some((format!("with {name}"), arms.into_iter().map(pairs).collect()))
}

fn part(name: &str, what: &str, than: &str, costs: Costs, margin: Margin) -> Option<String> {
    let compared =
        costs.into_iter().filter_map(|(name, pairs)| Some((name, Comparison::of(&pairs)?)));
    let family = Family::new(compared.collect(), margin);
    let (verdicts, headline) = (family.verdicts(), family.headline());
    if headline.cells == 0 {
        return None;
    }
    let speeds = family.cells().zip(&verdicts).filter(|(_, verdict)| **verdict == Verdict::Faster);
    let mut speeds: Vec<f64> = speeds.map(|((_, cell, _), _)| 1.0 / cell.ratio().value).collect();
    speeds.sort_by(f64::total_cmp);
    let range = match speeds.as_slice() {
        [] => String::new(),
        [one] => format!(", {} times as fast", digits(*one)),
        [least, .., best] => format!(", {} to {} times as fast", digits(*least), digits(*best)),
    };
    let open = headline.cells - headline.faster - headline.slower - headline.same;
    let same = format!("the same within {:.1} %", margin.percent());
    let rest = [("slower", headline.slower), (&same, headline.same), ("unresolved", open)];
    let rest = rest.into_iter().filter(|(_, count)| *count > 0);
    let rest: String = rest.map(|(word, count)| format!(", {count} {word}")).collect();
    Some(format!(
        "{name}: {} of {} {what} cost less than {than}{range}{rest}",
        headline.faster, headline.cells
    ))
}

#[cfg(test)]
mod tests {
    use super::super::example::{arm, kernel};
    use super::super::report::ModuleResult;
    use super::super::rows::Goal;
    use super::*;

    fn row(name: &str, with: f64) -> RowResult {
        let windows = vec![arm(1, 0.4e-3, 0.4e-3), arm(16, with, 0.4e-3)];
        let many = |mut arm: Arm| {
            (arm.with, arm.without) = (vec![arm.with[0]; 9], vec![arm.without[0]; 9]);
            arm
        };
        let arms = windows.into_iter().map(many).collect();
        let module =
            ModuleResult { not_served: None, not_served_without: None, arms, foreign_cpu: None };
        RowResult {
            name: name.to_owned(),
            mechanism: String::new(),
            kernel_goal: None,
            blocking_goal: Goal::OverPlain(1.0),
            asynchronous_goal: Goal::OverPlain(1.0),
            note: String::new(),
            kernel: Some(kernel()),
            module: Some(module),
        }
    }

    #[test]
    fn one_sentence_says_where_lanes_are_worth_it_and_what_is_open() {
        let report = Report { rows: vec![row("a", 0.1e-3), row("b", 0.2e-3), row("c", 0.4e-3)] };
        let said = sentence(&report, Margin::new(None)).unwrap();
        // Three rounds of a kernel decide nothing.
        assert_eq!(
            said,
            "Full lanes alone: 0 of 3 kernels cost less than the plain library, 3 unresolved; with 16 \
             threads that wait: 2 of 3 operations cost less than without lanes, 2.00 to 4.00 times as fast, \
             1 the same within 2.0 %"
        );
        assert_eq!(sentence(&Report { rows: Vec::new() }, Margin::new(None)), None);
    }
}
