// SPDX-License-Identifier: Apache-2.0
//! The flame graph of the difference between two profiles: inclusive, and by what a unit of work costs, not
//! by how often the timer fired.

use super::Folded;
use super::flame::HEAD;
use super::frame::plain;
use super::ratio::FEW;
use super::svg::{Frame, NARROWEST, Picture, ROW, WIDTH};
use super::tree::Node;
use crate::table::digits;

/// Both profiles' samples as cost: ticks for a unit of work in one sample.
#[derive(Clone, Copy, Debug)]
struct Costs {
    a: f64,
    b: f64,
    /// Width of a tick.
    scale: f64,
}

/// The flame graph of B, coloured by what each frame costs with everything below it, over what it costs
/// in A. `a_cost` and `b_cost` are the whole cost of a unit of work, whatever unit both share. What only
/// A has stands above, in the same scale.
pub(crate) fn difference(title: &str, a: &Folded, a_cost: f64, b: &Folded, b_cost: f64) -> String {
    let (old, new) = (Node::of(a), Node::of(b));
    let each = |cost: f64, samples: u64| cost.max(0.0) / samples.max(1) as f64;
    let scale = WIDTH / b_cost.max(f64::MIN_POSITIVE);
    let costs = Costs { a: each(a_cost, old.samples), b: each(b_cost, new.samples), scale };
    let gone = costs.gone(&old, &new);
    let shelves = gone.last().map_or(0, |frame| frame.shelf + 1);
    let above = if shelves == 0 { 0.0 } else { ROW * (shelves + 1) as f64 + 6.0 };
    let rows = new.depth(NARROWEST / (costs.b * scale).max(f64::MIN_POSITIVE));
    let bottom = HEAD + above + ROW * rows as f64;
    let mut picture = Picture::new(title, bottom);
    legend(&mut picture, a_cost, b_cost);
    if shelves > 0 {
        picture.words(2.0, HEAD + 12.0, false, "only in A, in the same scale:");
    }
    picture.beside();
    for frame in &gone {
        picture.frame(&Frame {
            left: frame.left,
            top: HEAD + ROW * (frame.shelf + 1) as f64,
            width: frame.width,
            class: if frame.samples < FEW { "few" } else { "m4" },
            name: &frame.name,
            says: &format!(
                "{} in A, not in B; {} samples\nunder {}",
                digits(frame.samples as f64 * costs.a),
                frame.samples,
                frame.under
            ),
        });
    }
    picture.end_beside();
    costs.frames(&mut picture, Some(&old), &new, bottom, 0.0);
    picture.end()
}

fn legend(picture: &mut Picture, a_cost: f64, b_cost: f64) {
    let mut left = 2.0;
    let keys = [
        ("m4", ""),
        ("m3", ""),
        ("m2", ""),
        ("m1", "cheaper in B"),
        ("z", "same"),
        ("p1", ""),
        ("p2", ""),
        ("p3", ""),
        ("p4", "dearer in B, or new"),
        ("few", "below 100 samples"),
    ];
    for (class, word) in keys {
        left = picture.key(left, 34.0, class, word);
    }
    let whole = format!("A {}, B {} for a unit of work", digits(a_cost), digits(b_cost));
    picture.words(WIDTH - 2.0, 34.0, true, &whole);
}

/// A frame of A whose place B does not have.
#[derive(Debug)]
struct Gone {
    name: String,
    under: String,
    samples: u64,
    left: f64,
    width: f64,
    shelf: usize,
}

impl Costs {
    /// B's frames from `bottom` upwards, each beside A's in the same place.
    fn frames(self, picture: &mut Picture, old: Option<&Node>, new: &Node, bottom: f64, left: f64) {
        let mut left = left;
        for (name, node) in &new.below {
            let width = node.samples as f64 * self.b * self.scale;
            if width >= NARROWEST {
                let before = old.and_then(|old| old.below.get(name));
                let says = self.says(before.map_or(0, |before| before.samples), node.samples);
                let class = self.colour(before.map_or(0, |before| before.samples), node.samples);
                let top = bottom - ROW;
                picture.frame(&Frame { left, top, width, class, name, says: &says });
                self.frames(picture, before, node, top, left);
            }
            left += width;
        }
    }

    fn says(self, old: u64, new: u64) -> String {
        let (a, b) = (old as f64 * self.a, new as f64 * self.b);
        let times = if old == 0 { "new".to_owned() } else { format!("× {}", digits(b / a)) };
        format!("{times}: A {} ({old} samples), B {} ({new} samples)", digits(a), digits(b))
    }

    /// A step of colour for each third more or less.
    fn colour(self, old: u64, new: u64) -> &'static str {
        if new < FEW || (old < FEW && old > 0) {
            return "few";
        }
        if old == 0 {
            return "p4";
        }
        let log = (new as f64 * self.b / (old as f64 * self.a)).ln();
        let step = (log.abs() / (4.0_f64 / 3.0).ln()).round();
        let colours =
            if log < 0.0 { ["z", "m1", "m2", "m3", "m4"] } else { ["z", "p1", "p2", "p3", "p4"] };
        let at = [0.0, 1.0, 2.0, 3.0].iter().position(|bound| step <= *bound);
        colours[at.unwrap_or(4)]
    }

    /// The outermost frames that only A has, widest first, side by side on as many shelves as it takes.
    fn gone(self, old: &Node, new: &Node) -> Vec<Gone> {
        let mut gone = Vec::new();
        self.only_in(old, Some(new), "all", &mut gone);
        gone.sort_by(|one, other| other.width.total_cmp(&one.width));
        let (mut left, mut shelf) = (0.0, 0);
        for frame in &mut gone {
            frame.width = frame.width.min(WIDTH);
            if left + frame.width > WIDTH + 0.1 {
                (left, shelf) = (0.0, shelf + 1);
            }
            (frame.left, frame.shelf) = (left, shelf);
            left += frame.width;
        }
        gone
    }

    fn only_in(self, old: &Node, new: Option<&Node>, under: &str, gone: &mut Vec<Gone>) {
        for (name, node) in &old.below {
            let width = node.samples as f64 * self.a * self.scale;
            match new.and_then(|new| new.below.get(name)) {
                _ if width < NARROWEST => {}
                Some(new) => self.only_in(node, Some(new), plain(name).0, gone),
                None => gone.push(Gone {
                    name: name.clone(),
                    under: under.to_owned(),
                    samples: node.samples,
                    left: 0.0,
                    width,
                    shelf: 0,
                }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::svg::testing::{classes, folded};
    use super::*;

    #[test]
    fn a_difference_of_nothing_is_still_a_picture() {
        let none = Folded::default();
        assert!(difference("x", &none, 0.0, &none, 0.0).ends_with("</svg>\n"));
    }

    #[test]
    fn colours_follow_cost_for_a_unit_of_work_and_not_samples() {
        // B has twice the samples of everything, at the same cost: nothing has changed.
        let a = folded("m;x 500\nm;y 500\n");
        let svg = difference("d", &a, 100.0, &folded("m;x 1000\nm;y 1000\n"), 100.0);
        assert_eq!((classes(&svg, "x"), classes(&svg, "y")), (vec!["z"], vec!["z"]));
        // The same samples at twice the cost: all is dearer.
        let svg = difference("d", &a, 100.0, &a, 200.0);
        assert_eq!(classes(&svg, "m"), ["p2"]);
        assert!(svg.contains("× 2.00: A 50.0 (500 samples), B 100 (500 samples)"), "{svg}");
    }

    #[test]
    fn what_came_what_went_and_what_was_hardly_seen_are_told_apart() {
        let a = folded("m;x 500\nm;gone 400\nm;rare 50\n");
        let b = folded("m;x 500\nm;new 400\nm;rare 60\n");
        let svg = difference("d", &a, 100.0, &b, 100.0);
        assert_eq!(classes(&svg, "new"), ["p4"]);
        assert_eq!(classes(&svg, "gone"), ["m4"]);
        assert!(svg.contains("not in B; 400 samples\nunder m"), "{svg}");
        assert_eq!(classes(&svg, "rare"), ["few"]);
    }
}
