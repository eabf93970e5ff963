// SPDX-License-Identifier: Apache-2.0
//! An interval beside a margin, small enough for the line of a table.

use crate::verdict::Estimate;
use std::fmt::Write;

const WIDTH: f64 = 160.0;
const HEIGHT: f64 = 18.0;

/// The range that all lines of one table share: logarithms to both sides of "alike".
pub(super) fn reach(ratios: impl Iterator<Item = Estimate>, margin: f64) -> f64 {
    let far = ratios.map(|ratio| ratio.low.ln().abs().max(ratio.high.ln().abs()));
    // What is four times as dear needs no close look; a wild interval is cut off.
    far.fold(margin * 3.0, f64::max).clamp(0.05, 1.6)
}

/// Draws a ratio and its interval.
pub(super) fn draw(ratio: Estimate, margin: f64, reach: f64) -> String {
    let x = |log: f64| WIDTH / 2.0 + (log / reach).clamp(-1.0, 1.0) * (WIDTH / 2.0 - 4.0);
    let (low, high, value) = (x(ratio.low.ln()), x(ratio.high.ln()), x(ratio.value.ln()));
    let middle = HEIGHT / 2.0;
    let mut svg =
        format!("<svg class=\"forest\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" aria-hidden=\"true\">");
    write!(
        svg,
        "<rect class=\"margin\" x=\"{:.1}\" y=\"1\" width=\"{:.1}\" height=\"{}\"/>\
         <path class=\"alike\" d=\"M{:.1} 1V{}\"/>\
         <path class=\"interval\" d=\"M{low:.1} {middle}H{high:.1}\"/>\
         <circle cx=\"{value:.1}\" cy=\"{middle}\" r=\"3.2\"/></svg>",
        x(-margin),
        x(margin) - x(-margin),
        HEIGHT - 2.0,
        WIDTH / 2.0,
        HEIGHT - 1.0
    )
    .ok();
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cheaper_stands_to_the_left() {
        let of = |value: f64| Estimate {
            value,
            low: value * 0.98,
            high: value * 1.02,
            confidence: 0.95,
        };
        let at = |value: f64| {
            let svg = draw(of(value), 0.02, reach([of(0.5)].into_iter(), 0.02));
            let text = svg.split("cx=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
            text.parse::<f64>().unwrap()
        };
        assert!(at(0.6) < at(1.0) && at(1.0) < at(1.5));
        assert!((at(1.0) - WIDTH / 2.0).abs() < 0.1);
        assert!(at(100.0) <= WIDTH);
    }
}
