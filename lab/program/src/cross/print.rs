// SPDX-License-Identifier: Apache-2.0
//! Crossovers and cliffs for people.

use super::{Crossing, Report};
use crate::crossover::{SizePoint, Way};
use crate::table::Table;
use std::fmt::Write;

const NOWHERE: &str = "nowhere";
const UNCLEAR: &str = "unclear";

pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    if !report.crossovers.is_empty() {
        let heading = ["curve", "arms", "change places at", "interval", "above it costs less"];
        let table = table(&heading, report.crossover_rows());
        write!(text, "crossovers along {}\n\n{table}\n", report.x).ok();
    }
    if report.cliffs.is_empty() {
        writeln!(text, "no cliffs along {} in {} curves", report.x, report.curves).ok();
        return text;
    }
    let heading = ["curve", "arm", "step", "costs beyond the curve", "interval"];
    write!(text, "cliffs along {}\n\n{}", report.x, table(&heading, report.cliff_rows())).ok();
    text
}

fn table(heading: &[&str; 5], rows: Vec<[String; 5]>) -> String {
    let mut table = Table::new(heading);
    rows.into_iter().for_each(|row| table.row(row.into()));
    table.render()
}

impl Report {
    /// Curve, arms, place, interval, and what costs less above it.
    pub(crate) fn crossover_rows(&self) -> Vec<[String; 5]> {
        let row = |crossing: &Crossing| {
            let [at, interval, above] = words(self, crossing);
            let arms = format!("{} / {}", crossing.arm, crossing.against);
            [named(&crossing.series), arms, at, interval, above]
        };
        self.crossovers.iter().map(row).collect()
    }

    /// The same of pairs of arms that cross within the range.
    pub(crate) fn crossed_rows(&self) -> Vec<[String; 5]> {
        let mut rows = self.crossover_rows();
        rows.retain(|[_, _, at, ..]| at != NOWHERE && at != UNCLEAR);
        rows
    }

    /// How many pairs do not cross, or cannot be told.
    pub(crate) fn uncrossed(&self) -> usize {
        self.crossovers.len() - self.crossed_rows().len()
    }

    /// Curve, arm, step, jump, interval.
    pub(crate) fn cliff_rows(&self) -> Vec<[String; 5]> {
        let row = |fall: &super::Fall| {
            let (cliff, jump) = (&fall.cliff, fall.cliff.jump);
            let step = format!("{} to {}", self.axis.show(cliff.from), self.axis.show(cliff.to));
            [
                named(&fall.series),
                fall.arm.clone(),
                step,
                format!("× {:.2}", jump.value),
                format!("{:.2} to {:.2}", jump.low, jump.high),
            ]
        };
        self.cliffs.iter().map(row).collect()
    }
}

fn named(series: &str) -> String {
    if series.is_empty() { "all".to_owned() } else { series.to_owned() }
}

/// Where, how sure, and which arm is above it.
fn words(report: &Report, crossing: &Crossing) -> [String; 3] {
    let crossover = &crossing.crossover;
    let name = |way: Way| match way {
        Way::First => crossing.arm.clone(),
        Way::Second => crossing.against.clone(),
    };
    if let Some(way) = crossover.always() {
        return [NOWHERE.to_owned(), String::new(), format!("{}, everywhere", name(way))];
    }
    if crossover.is_unclear() {
        return [UNCLEAR.to_owned(), String::new(), String::new()];
    }
    let levels = &report.axis.levels;
    let place = |place: SizePoint| match place {
        SizePoint::Below => format!("below {}", levels.first().map_or("", |level| &level.1)),
        SizePoint::Above => format!("above {}", levels.last().map_or("", |level| &level.1)),
        SizePoint::At(value) => super::short(value),
    };
    // Beyond what was measured nothing is known.
    match (crossover.low, crossover.high) {
        (low, SizePoint::Above) if crossover.at == SizePoint::Above => {
            return [UNCLEAR.to_owned(), format!("not up to {}", place(low)), String::new()];
        }
        (SizePoint::Below, high) if crossover.at == SizePoint::Below => {
            return [UNCLEAR.to_owned(), format!("not from {} on", place(high)), String::new()];
        }
        _ => {}
    }
    let interval = format!("{} to {}", place(crossover.low), place(crossover.high));
    [place(crossover.at), interval, name(crossover.above)]
}

#[cfg(test)]
mod tests {
    use super::super::Axis;
    use super::*;
    use crate::crossover::Crossover;

    fn report(at: SizePoint, low: SizePoint, high: SizePoint) -> Report {
        let crossover = Crossover { above: Way::First, at, low, high, against: Vec::new() };
        let (arm, against) = ("new".to_owned(), "old".to_owned());
        let crossing = Crossing { series: String::new(), arm, against, crossover };
        let levels = vec![(1024.0, "1K".to_owned()), (1_048_576.0, "1M".to_owned())];
        Report {
            schema: "",
            x: "size".to_owned(),
            crossovers: vec![crossing],
            cliffs: Vec::new(),
            curves: 1,
            axis: Axis { name: "size".to_owned(), levels },
        }
    }

    #[test]
    fn nothing_is_said_of_what_lies_beyond_the_sizes_that_were_measured() {
        let at = SizePoint::At(4096.0);
        for (place, low, high, said) in [
            (SizePoint::Above, at, SizePoint::Above, "not up to 4K"),
            (SizePoint::Below, SizePoint::Below, at, "not from 4K on"),
        ] {
            let report = report(place, low, high);
            let [row] = &report.crossover_rows()[..] else { panic!("one row") };
            assert_eq!(row[2..], [UNCLEAR, said, ""]);
            assert_eq!((report.crossed_rows().len(), report.uncrossed()), (0, 1));
        }
        let crossed = report(at, at, SizePoint::Above).crossed_rows();
        assert_eq!(crossed[0][2..], ["4K", "4K to above 1M", "new"]);
    }
}
