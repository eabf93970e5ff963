// SPDX-License-Identifier: Apache-2.0
//! What a run comes to, in one sentence: in how many operations a call of the module costs surely more than
//! the bare library, and where most; and how the rival stands.

use super::report::{CellResult, MODULE, RAW, RIVAL, Report};
use crate::table::{digits, nanoseconds};
use crate::verdict::{Comparison, Family, Margin, Pairs, Verdict};

/// The sentence; nothing where nothing was compared.
pub(super) fn sentence(report: &Report, margin: Margin) -> Option<String> {
    let over_raw = family(report, [MODULE, RAW], margin)?;
    let (verdicts, headline) = (over_raw.verdicts(), over_raw.headline());
    let dearer =
        over_raw.cells().zip(&verdicts).filter(|(_, verdict)| **verdict == Verdict::Slower);
    let most =
        dearer.max_by(|left, right| added(report, left.0.0).total_cmp(&added(report, right.0.0)));
    let most = most.map_or_else(String::new, |((name, comparison, _), _)| {
        let ratio = comparison.ratio();
        let (value, low, high) = (digits(ratio.value), digits(ratio.low), digits(ratio.high));
        let added = nanoseconds(added(report, name));
        format!(" (most in {name}: {added} more, {value} times as much, {low} to {high})")
    });
    let open = headline.cells - headline.faster - headline.slower - headline.same;
    let counts = [
        (format!("the same within {:.1} % in {}", margin.percent(), headline.same), headline.same),
        (format!("less in {}", headline.faster), headline.faster),
        (format!("unresolved in {open}"), open),
    ];
    let rest = counts.into_iter().filter(|(_, count)| *count > 0);
    let rest: String = rest.map(|(words, _)| format!(", {words}")).collect();
    let rival = family(report, [MODULE, RIVAL], margin).map(|family| {
        let headline = family.headline();
        format!("; less than the rival in {} of {}", headline.faster, headline.cells)
    });
    Some(format!(
        "Through the module an operation on one thread costs more than in the bare library in {} of {} \
         cells{most}{rest}{}",
        headline.slower,
        headline.cells,
        rival.unwrap_or_default()
    ))
}

/// CPU time added, in nanoseconds.
fn added(report: &Report, name: &str) -> f64 {
    let cell = report.cells.iter().find(|cell| cell.name == name);
    cell.and_then(|cell| cell.added(MODULE)).map_or(0.0, |added| added.value)
}

/// One provider over another, in every cell that both can do.
fn family(report: &Report, [judged, with]: [&str; 2], margin: Margin) -> Option<Family> {
    let compared = |cell: &CellResult| {
        let (a, b) = (cell.arm(judged, 1)?, cell.arm(with, 1)?);
        Some((cell.name.clone(), Comparison::of(&Pairs::of_costs(&a.cpu_ns, &b.cpu_ns))?))
    };
    let cells: Vec<_> = report.cells.iter().filter_map(compared).collect();
    (!cells.is_empty()).then(|| Family::new(cells, margin))
}

#[cfg(test)]
mod tests {
    use super::super::report::Arm;
    use super::*;

    fn cell(name: &str, costs: [f64; 3]) -> CellResult {
        let arm = |(provider, ns): (&str, f64)| {
            let cpu_ns: Vec<f64> = (0..12).map(|at| ns * (1.0 + f64::from(at) * 1e-4)).collect();
            Arm { provider: provider.to_owned(), threads: 1, wall_ns: cpu_ns.clone(), cpu_ns }
        };
        CellResult {
            name: name.to_owned(),
            mechanism: String::new(),
            size: 16,
            goal: None,
            scaling_goal: None,
            arms: [RAW, MODULE, RIVAL].into_iter().zip(costs).map(arm).collect(),
            unsupported: Vec::new(),
            foreign_cpu: None,
        }
    }

    #[test]
    fn one_sentence_says_what_a_call_adds_where() {
        let cells = vec![
            cell("small", [100.0, 180.0, 900.0]),
            cell("smaller", [50.0, 100.0, 900.0]),
            cell("large", [10_000.0, 10_010.0, 9_000.0]),
        ];
        let report = Report { threads: vec![1], cells, openssl: Vec::new() };
        assert_eq!(
            sentence(&report, Margin::new(None)).unwrap(),
            "Through the module an operation on one thread costs more than in the bare library in 2 of 3 \
             cells (most in small: 80.0 ns more, 1.80 times as much, 1.80 to 1.80), the same within 2.0 % in \
             1; less than the rival in 2 of 3"
        );
    }
}
