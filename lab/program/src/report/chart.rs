// SPDX-License-Identifier: Apache-2.0
//! Curves: cost along a factor, as inline SVG. Each curve has a colour, a dash and its name at its end,
//! so none of them alone carries the meaning; the band is where half of the samples lie.

use super::scale::Scale;
use crate::cross::Axis;
use crate::table::digits;
use serde::Serialize;
use std::fmt::Write;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 158.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 34.0;
/// Names at the ends of curves keep this distance.
const LINE: f64 = 13.0;
/// More curves than colours cannot be told apart.
pub(super) const MAX_SERIES: usize = 8;

/// One point: the median, and the quartiles.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) low: f64,
    pub(super) middle: f64,
    pub(super) high: f64,
}

/// One curve.
#[derive(Clone, Debug)]
pub(super) struct Curve {
    pub(super) name: String,
    pub(super) points: Vec<Point>,
}

/// A place where two curves change places, with its interval.
#[derive(Clone, Debug)]
pub(super) struct Band {
    pub(super) at: f64,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) words: String,
}

/// A chart for the page.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Chart {
    pub(super) title: String,
    pub(super) svg: String,
}

/// Draws. `costs` is the range of all charts that stand beside each other; `None` if nothing can be
/// drawn.
pub(super) fn draw(
    title: &str,
    axis: &Axis,
    unit: &str,
    curves: &[Curve],
    bands: &[Band],
    costs: Scale,
) -> Option<Chart> {
    let drawn: Vec<&Curve> =
        curves.iter().filter(|curve| !curve.points.is_empty()).take(MAX_SERIES).collect();
    // Points alone are in the table.
    if drawn.iter().all(|curve| curve.points.len() < 2) {
        return None;
    }
    let levels = axis.levels.iter().map(|(value, _)| *value);
    let x = Scale::of(levels, LEFT + 6.0, WIDTH - RIGHT - 6.0)?;
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        escaped(&format!("{unit} by {}: {title}", axis.name))
    );
    grid(&mut svg, axis, unit, x, costs);
    for band in bands {
        crossing(&mut svg, band, x);
    }
    for (number, curve) in drawn.iter().enumerate() {
        line(&mut svg, number, curve, x, costs);
    }
    names(&mut svg, &drawn, costs);
    svg.push_str("</svg>");
    Some(Chart { title: title.to_owned(), svg })
}

/// The stretch of the page for costs.
pub(super) fn costs(values: impl Iterator<Item = f64>) -> Option<Scale> {
    Scale::of(values, HEIGHT - BOTTOM, TOP).map(|scale| scale.wider(0.06))
}

fn grid(svg: &mut String, axis: &Axis, unit: &str, x: Scale, y: Scale) {
    let right = WIDTH - RIGHT;
    for tick in y.ticks() {
        let at = y.at(tick);
        write!(
            svg,
            "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{right}\"/><text class=\"tick end\" x=\"{:.1}\" \
             y=\"{:.1}\">{}</text>",
            LEFT - 6.0,
            at + 3.5,
            plain(tick)
        )
        .ok();
    }
    let bottom = HEIGHT - BOTTOM;
    let mut free = f64::NEG_INFINITY;
    for (value, name) in &axis.levels {
        let at = x.at(*value);
        write!(svg, "<path class=\"mark\" d=\"M{at:.1} {bottom}v4\"/>").ok();
        let half = name.chars().count() as f64 * 3.4;
        if at - half > free {
            let y = bottom + 16.0;
            write!(
                svg,
                "<text class=\"tick middle\" x=\"{at:.1}\" y=\"{y}\">{}</text>",
                escaped(name)
            )
            .ok();
            free = at + half + 4.0;
        }
    }
    write!(
        svg,
        "<path class=\"axis\" d=\"M{LEFT} {bottom}H{right}\"/><text class=\"name end\" x=\"{right}\" \
         y=\"{:.1}\">{}</text><text class=\"name\" x=\"4\" y=\"{:.1}\">{}</text>",
        HEIGHT - 4.0,
        escaped(&axis.name),
        TOP - 11.0,
        escaped(unit)
    )
    .ok();
}

fn crossing(svg: &mut String, band: &Band, x: Scale) {
    let (low, high, at) = (x.at(band.low), x.at(band.high), x.at(band.at));
    let (bottom, height) = (HEIGHT - BOTTOM, HEIGHT - BOTTOM - TOP);
    write!(
        svg,
        "<g class=\"crossing\"><title>{}</title><rect x=\"{low:.1}\" y=\"{TOP}\" width=\"{:.1}\" \
         height=\"{height}\"/><path d=\"M{at:.1} {TOP}V{bottom}\"/></g>",
        escaped(&band.words),
        (high - low).max(1.0)
    )
    .ok();
}

fn line(svg: &mut String, number: usize, curve: &Curve, x: Scale, y: Scale) {
    let mut path = String::new();
    let (mut upper, mut lower) = (Vec::new(), Vec::new());
    for (at, point) in curve.points.iter().enumerate() {
        let pen = if at == 0 { 'M' } else { 'L' };
        let across = x.at(point.x);
        write!(path, "{pen}{across:.1} {:.1}", y.at(point.middle)).ok();
        upper.push(format!("{across:.1} {:.1}", y.at(point.high)));
        lower.push(format!("{across:.1} {:.1}", y.at(point.low)));
    }
    lower.reverse();
    let edge: Vec<String> = upper.into_iter().chain(lower).collect();
    write!(
        svg,
        "<g class=\"curve s{number}\"><path class=\"band\" d=\"M{}Z\"/><path class=\"line\" d=\"{path}\"/>",
        edge.join("L")
    )
    .ok();
    for point in &curve.points {
        write!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.6\"><title>{}: {} ({} to {})</title></circle>",
            x.at(point.x),
            y.at(point.middle),
            escaped(&curve.name),
            digits(point.middle),
            digits(point.low),
            digits(point.high)
        )
        .ok();
    }
    svg.push_str("</g>");
}

/// The curves' names beside their ends, moved apart where they would cover each other.
fn names(svg: &mut String, curves: &[&Curve], y: Scale) {
    let end = |curve: &Curve| curve.points.last().map_or(0.0, |point| y.at(point.middle));
    let mut places: Vec<(usize, f64)> =
        curves.iter().enumerate().map(|(number, curve)| (number, end(curve))).collect();
    places.sort_by(|left, right| left.1.total_cmp(&right.1));
    let mut free = TOP;
    for (_, place) in &mut places {
        *place = place.max(free);
        free = *place + LINE;
    }
    let mut floor = HEIGHT - BOTTOM;
    for (_, place) in places.iter_mut().rev() {
        *place = place.min(floor);
        floor = *place - LINE;
    }
    for (number, place) in places {
        write!(
            svg,
            "<text class=\"label s{number}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            WIDTH - RIGHT + 4.0,
            place + 4.0,
            escaped(&shortened(&levels(&curves[number].name)))
        )
        .ok();
    }
}

/// A curve's levels without the names of their factors where there are several: the table has them.
fn levels(name: &str) -> String {
    let levels: Vec<&str> =
        name.split(' ').map(|word| word.split_once('=').map_or(word, |(_, level)| level)).collect();
    if levels.len() > 1 { levels.join(" ") } else { name.to_owned() }
}

fn shortened(name: &str) -> String {
    if name.chars().count() <= 25 {
        return name.to_owned();
    }
    name.chars().take(24).chain(['…']).collect()
}

fn plain(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{}M", v / 1e6),
        v if v >= 1e3 => format!("{}k", v / 1e3),
        v => format!("{v}"),
    }
}

/// Text inside of markup.
pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis() -> Axis {
        let levels =
            [1024.0, 4096.0, 65_536.0].map(|value| (value, format!("{}K", value / 1024.0)));
        Axis { name: "a<b".to_owned(), levels: levels.into() }
    }

    fn curve(name: &str, scale: f64) -> Curve {
        let point = |(x, _): &(f64, String)| Point {
            x: *x,
            low: scale,
            middle: 2.0 * scale,
            high: 3.0 * scale,
        };
        Curve { name: name.to_owned(), points: axis().levels.iter().map(point).collect() }
    }

    #[test]
    fn a_chart_shows_every_curve_and_escapes_names() {
        let curves = [curve("x & y", 1.0), curve("z", 1.0)];
        let costs = costs([1.0, 3.0].into_iter()).unwrap();
        let band = Band { at: 2048.0, low: 1500.0, high: 3000.0, words: "here".to_owned() };
        let svg = draw("t", &axis(), "ticks", &curves, &[band], costs).unwrap().svg;
        assert_eq!(svg.matches("<circle").count(), 6);
        assert_eq!(svg.matches("class=\"crossing\"").count(), 1);
        assert!(svg.contains("x &amp; y") && svg.contains("a&lt;b") && !svg.contains("x & y"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        assert!(draw("t", &axis(), "ticks", &[], &[], costs).is_none());
    }

    #[test]
    fn names_at_the_same_height_are_moved_apart() {
        let curves = [curve("x", 1.0), curve("y", 1.0), curve("z", 1.0)];
        let mut svg = String::new();
        names(&mut svg, &curves.iter().collect::<Vec<_>>(), costs([1.0, 3.0].into_iter()).unwrap());
        let heights: Vec<f64> = svg
            .split(" y=\"")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap().parse().unwrap())
            .collect();
        assert!(
            heights.windows(2).all(|pair| (pair[1] - pair[0]).abs() >= LINE - 0.2),
            "{heights:?}"
        );
    }
}
