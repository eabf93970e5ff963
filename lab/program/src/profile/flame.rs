// SPDX-License-Identifier: Apache-2.0
//! The flame graph of a profile.

use super::Folded;
use super::frame::plain;
use super::svg::{Frame, NARROWEST, Picture, ROW, WIDTH};
use super::tree::Node;
use crate::table::digits;

/// Above the frames.
pub(super) const HEAD: f64 = 44.0;

/// The flame graph of a profile: inclusive, the outermost function at the bottom.
pub(crate) fn flame(title: &str, folded: &Folded) -> String {
    let root = Node::of(folded);
    let scale = WIDTH / root.samples.max(1) as f64;
    let rows = root.depth(NARROWEST / scale);
    let bottom = HEAD + ROW * rows as f64;
    let mut picture = Picture::new(title, bottom);
    let mut left = 2.0;
    for (class, word) in [("k0", "kernel"), ("u0", "program"), ("x", "without a name")] {
        left = picture.key(left, 34.0, class, word);
    }
    picture.words(WIDTH - 2.0, 34.0, true, &format!("{} samples", root.samples));
    let mut paint = |node: &Node, name: &str, left: f64, row: usize| {
        let share = 100.0 * node.samples as f64 / root.samples.max(1) as f64;
        picture.frame(&Frame {
            left,
            top: bottom - ROW * (row + 1) as f64,
            width: node.samples as f64 * scale,
            class: colour(name),
            name,
            says: &format!("{} samples, {} %", node.samples, digits(share)),
        });
    };
    walk(&root, 0.0, 0, scale, &mut paint);
    picture.end()
}

/// Visits all frames that are wide enough.
fn walk(
    node: &Node,
    left: f64,
    row: usize,
    scale: f64,
    paint: &mut impl FnMut(&Node, &str, f64, usize),
) {
    let mut left = left;
    for (name, below) in &node.below {
        let width = below.samples as f64 * scale;
        if width >= NARROWEST {
            paint(below, name, left, row);
            walk(below, left, row + 1, scale, paint);
        }
        left += width;
    }
}

/// A colour that neighbours rarely share.
fn colour(name: &str) -> &'static str {
    if name.starts_with('[') {
        return "x";
    }
    let hash = name.bytes().fold(0_usize, |hash, byte| hash.wrapping_mul(31) + usize::from(byte));
    let colours = if plain(name).1 { ["k0", "k1", "k2"] } else { ["u0", "u1", "u2"] };
    colours[hash % colours.len()]
}

#[cfg(test)]
mod tests {
    use super::super::svg::testing::{classes, folded};
    use super::*;

    #[test]
    fn every_frame_is_drawn_once_and_as_wide_as_its_share() {
        let svg = flame("x", &folded("main;a 300\nmain;b_[k] 100\nmain;[libx.so] 200\n"));
        assert_eq!(svg.matches("<g>").count(), 4);
        assert!(svg.contains("b\n100 samples, 16.7 %"), "{svg}");
        assert!(svg.contains("width=\"600.0\"") && svg.contains("width=\"200.0\""), "{svg}");
        assert_eq!(classes(&svg, "[libx.so]"), ["x"]);
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn a_picture_of_nothing_is_still_a_picture() {
        assert!(flame("x", &Folded::default()).ends_with("</svg>\n"));
    }
}
