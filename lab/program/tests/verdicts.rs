// SPDX-License-Identifier: Apache-2.0
//! The statistics against others': `testdata/lab/verdicts.json` was made by scipy and brute force.

use metaslot_lab::verdict::{Comparison, Margin, Pairs, Verdict, holm};
use serde::Deserialize;

#[derive(Deserialize)]
struct Oracle {
    samples: Vec<Sample>,
    holm: Vec<Family>,
}

/// The last four are p-values of one-sided tests.
#[derive(Deserialize)]
struct Sample {
    logs: Vec<f64>,
    value: f64,
    low: f64,
    high: f64,
    above_margin: f64,
    below_margin: f64,
    not_faster: f64,
    not_slower: f64,
}

#[derive(Deserialize)]
struct Family {
    values: Vec<f64>,
    adjusted: Vec<f64>,
}

fn oracle() -> Oracle {
    let text = include_str!("../../../testdata/lab/verdicts.json");
    serde_json::from_str(text).expect("the file is what the script makes")
}

fn compared(sample: &Sample) -> Comparison {
    Comparison::of(&Pairs::of_logs(sample.logs.clone())).expect("there are pairs")
}

#[track_caller]
fn near(ours: f64, theirs: f64) {
    assert!((ours - theirs).abs() < 1e-9, "{ours} is not {theirs}");
}

#[test]
fn estimates_intervals_and_p_values_are_those_of_others() {
    let samples = oracle().samples;
    assert_eq!(samples.len(), 60);
    for sample in &samples {
        let (comparison, margin) = (compared(sample), Margin::new(None));
        let log = comparison.log();
        near(log.value, sample.value);
        near(log.low, sample.low);
        near(log.high, sample.high);
        let different = 2.0 * sample.above_margin.min(sample.below_margin);
        near(comparison.p_different(margin), different.min(1.0));
        let same = 2.0 * sample.not_faster.max(sample.not_slower);
        near(comparison.p_same(margin), same.min(1.0));
    }
}

#[test]
fn verdicts_are_those_of_others_p_values() {
    for sample in &oracle().samples {
        let verdict = compared(sample).verdict(Margin::new(None));
        assert_eq!(verdict == Verdict::Slower, sample.above_margin <= 0.025);
        assert_eq!(verdict == Verdict::Faster, sample.below_margin <= 0.025);
        let inside = sample.not_faster.max(sample.not_slower) <= 0.025;
        assert_eq!(verdict == Verdict::Same, inside);
    }
}

#[test]
fn holms_values_are_those_of_others() {
    for family in oracle().holm {
        let ours = holm(&family.values);
        assert_eq!(ours.len(), family.adjusted.len());
        for (ours, theirs) in ours.into_iter().zip(family.adjusted) {
            near(ours, theirs);
        }
    }
}
