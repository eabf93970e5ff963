// SPDX-License-Identifier: Apache-2.0
//! Every sample of a cell as a stroke beside its median: whether a median stands for its samples is seen, not
//! believed. All strips of a page reach as far to both sides.

use crate::experiment::{Experiment, Sample};
use crate::statistics::{median, quantile};
use std::collections::BTreeMap;
use std::fmt::Write;

const WIDTH: f64 = 100.0;
const HEIGHT: f64 = 9.0;

/// How far strips reach, on the scale of logarithms: nine of ten samples of the experiment are in it; a wild
/// one stands at the edge.
pub(super) fn reach(experiment: &Experiment) -> f64 {
    let mut cells: BTreeMap<(&str, &str), Vec<f64>> = BTreeMap::new();
    for sample in &experiment.samples {
        let cell = cells.entry((&sample.run.cell, &sample.run.arm)).or_default();
        cell.push(sample.cpu_each());
    }
    let distances = cells.into_values().flat_map(|costs| {
        let middle = median(&costs);
        costs.into_iter().map(move |cost| (cost / middle).ln().abs())
    });
    let distances: Vec<f64> = distances.filter(|distance| distance.is_finite()).collect();
    quantile(&distances, 0.9).clamp(0.05, 1.0)
}

/// How far that is, for people.
pub(super) fn words(experiment: &Experiment) -> Option<String> {
    let reach = reach(experiment);
    let (less, more) = (-(-reach).exp_m1() * 100.0, reach.exp_m1() * 100.0);
    reach.is_finite().then(|| format!("from {less:.0} % less to {more:.0} % more"))
}

/// The strip of some samples; the doubtful ones are drawn otherwise. The empty text of nothing.
pub(super) fn draw(samples: &[&Sample], reach: f64) -> String {
    let costs: Vec<f64> = samples.iter().map(|sample| sample.cpu_each()).collect();
    let middle = median(&costs);
    if samples.len() < 2 || middle.is_nan() || middle <= 0.0 {
        return String::new();
    }
    let (mut sure, mut doubtful) = (String::new(), String::new());
    for (sample, cost) in samples.iter().zip(&costs) {
        let share = ((cost / middle).ln() / reach).clamp(-1.0, 1.0);
        let x = WIDTH / 2.0 * (1.0 + share * 0.98);
        let path = if sample.measured.flags.is_empty() { &mut sure } else { &mut doubtful };
        write!(path, "M{x:.1} 1v{:.0}", HEIGHT - 2.0).ok();
    }
    let mut svg = format!(
        "<svg class=\"rug\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\
         <path class=\"base\" d=\"M0 {:.1}H{WIDTH}M{:.0} 0v{HEIGHT}\"/>",
        HEIGHT / 2.0,
        WIDTH / 2.0
    );
    for (class, path) in [("doubt", doubtful), ("sure", sure)] {
        if !path.is_empty() {
            write!(svg, "<path class=\"{class}\" d=\"{path}\"/>").ok();
        }
    }
    svg + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{Measured, Run};

    fn sample(cost: f64, flag: bool) -> Sample {
        let run = Run { cell: "x".to_owned(), repetition: 0, arm: "a".to_owned() };
        let flags = if flag { vec!["contaminated".to_owned()] } else { Vec::new() };
        let measured = Measured {
            window_ns: [0, 1],
            work: 1.0,
            cpu_ns: cost,
            wall_ns: cost,
            foreign_cpu: None,
            counters: BTreeMap::new(),
            flags,
        };
        Sample { order: 0, run, measured }
    }

    #[test]
    fn every_sample_is_a_stroke_and_the_median_is_in_the_middle() {
        let samples = [sample(90.0, false), sample(100.0, true), sample(1e9, false)];
        let svg = draw(&samples.iter().collect::<Vec<_>>(), 0.2);
        let strokes = |class: &str| {
            let path = svg.split(&format!("class=\"{class}\" d=\"")).nth(1).unwrap();
            path.split('"').next().unwrap().matches('M').count()
        };
        assert_eq!((strokes("sure"), strokes("doubt")), (2, 1));
        assert!(svg.contains("M50.0 1v7") && svg.contains("M99.0 1v7"), "{svg}");
        assert_eq!(draw(&[&samples[0]], 0.2), "");
    }
}
