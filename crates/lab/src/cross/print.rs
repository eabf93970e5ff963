// SPDX-License-Identifier: Apache-2.0
//! Crossovers and cliffs for people.

use super::{Crossing, Report};
use crate::crossover::{Place, Way};
use crate::table::Table;
use std::fmt::Write;

pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    if !report.crossovers.is_empty() {
        let mut table =
            Table::new(&["curve", "arms", "change places at", "interval", "above it costs less"]);
        for crossing in &report.crossovers {
            let [at, interval, above] = words(report, crossing);
            let arms = format!("{} / {}", crossing.arm, crossing.against);
            table.row(vec![named(&crossing.series), arms, at, interval, above]);
        }
        write!(text, "crossovers along {}\n\n{}\n", report.x, table.render()).ok();
    }
    if report.cliffs.is_empty() {
        writeln!(text, "no cliffs along {} in {} curves", report.x, report.curves).ok();
        return text;
    }
    let mut table =
        Table::new(&["curve", "arm", "from", "to", "costs beyond the curve", "interval"]);
    for fall in &report.cliffs {
        let jump = fall.cliff.jump;
        table.row(vec![
            named(&fall.series),
            fall.arm.clone(),
            report.axis.show(fall.cliff.from),
            report.axis.show(fall.cliff.to),
            format!("× {:.2}", jump.value),
            format!("{:.2} to {:.2}", jump.low, jump.high),
        ]);
    }
    write!(text, "cliffs along {}\n\n{}", report.x, table.render()).ok();
    text
}

fn named(series: &str) -> String {
    if series.is_empty() { "all".to_owned() } else { series.to_owned() }
}

/// Where, how sure, and which arm is above it.
pub(super) fn words(report: &Report, crossing: &Crossing) -> [String; 3] {
    let crossover = &crossing.crossover;
    let name = |way: Way| match way {
        Way::First => crossing.arm.clone(),
        Way::Second => crossing.against.clone(),
    };
    if let Some(way) = crossover.always() {
        return ["nowhere".to_owned(), String::new(), format!("{}, everywhere", name(way))];
    }
    if crossover.is_unclear() {
        return ["unclear".to_owned(), String::new(), String::new()];
    }
    let place = |place: Place| match place {
        Place::Below => {
            format!("below {}", report.axis.levels.first().map_or("", |level| &level.1))
        }
        Place::Above => format!("above {}", report.axis.levels.last().map_or("", |level| &level.1)),
        Place::At(value) => super::short(value),
    };
    let interval = format!("{} to {}", place(crossover.low), place(crossover.high));
    [place(crossover.at), interval, name(crossover.above)]
}
