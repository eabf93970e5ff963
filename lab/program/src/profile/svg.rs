// SPDX-License-Identifier: Apache-2.0
//! Frames of a flame graph as SVG, readable in dark and in light. A script of its own searches and zooms;
//! without one the picture is the same, and stands still.

use super::frame::plain;
use std::fmt::Write;

/// Width of the picture; what shows it scales it.
pub(super) const WIDTH: f64 = 1200.0;
/// Height of a row.
pub(super) const ROW: f64 = 17.0;
/// Narrower frames are not drawn: a zoom shows what is too narrow for a name, and no more than this.
pub(super) const NARROWEST: f64 = 0.5;
/// Search and zoom, for any number of pictures in one document.
pub(crate) const SCRIPT: &str = include_str!("flame.js");
/// Width of a letter.
const LETTER: f64 = 6.7;

/// Kernel warm, programs cold, what has no name grey; changes from blue (less) over grey to red (more).
const STYLE: &str = "\
.flame{width:100%;height:auto;font:11px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}\
.flame text{fill:#1c1c1a;pointer-events:none}.flame .h{font-size:14px}.flame .s{fill:#66645f}\
.flame g{cursor:pointer}.flame .b{fill:#0b6e8f;cursor:pointer;pointer-events:auto}.flame .above{opacity:.55}\
.flame .hit>rect{fill:#c94fc4}.flame .hit>text{fill:#fff}\
.flame rect{stroke:#fff;stroke-width:.6}.flame g:hover rect{stroke:#1c1c1a;stroke-width:1.2}\
.flame .k0{fill:#f2b880}.flame .k1{fill:#eda968}.flame .k2{fill:#f5c696}\
.flame .u0{fill:#9cc5e3}.flame .u1{fill:#86b6da}.flame .u2{fill:#b3d3ea}.flame .x{fill:#d0cec8}\
.flame .m4{fill:#2f7fc0}.flame .m3{fill:#62a1d2}.flame .m2{fill:#93c0e2}.flame .m1{fill:#c3dcee}\
.flame .z{fill:#e4e2dd}.flame .p1{fill:#f6cfc4}.flame .p2{fill:#eea592}.flame .p3{fill:#e37a62}\
.flame .p4{fill:#d24d35}.flame .few{fill:#eeece8}.flame .few+text{fill:#8d8a84}\
.flame .m4+text,.flame .m3+text,.flame .p4+text,.flame .p3+text{fill:#fff}\
@media(prefers-color-scheme:dark){.flame text{fill:#f1f0ec}.flame .s{fill:#a5a39c}.flame .b{fill:#5cb9da}\
.flame .hit>rect{fill:#a93da4}\
.flame rect{stroke:#16171a}.flame g:hover rect{stroke:#f1f0ec}\
.flame .k0{fill:#8f5524}.flame .k1{fill:#7f4a1e}.flame .k2{fill:#9c6230}\
.flame .u0{fill:#2f6089}.flame .u1{fill:#285478}.flame .u2{fill:#386c98}.flame .x{fill:#4c4b48}\
.flame .m4{fill:#2577ba}.flame .m3{fill:#285f8e}.flame .m2{fill:#2a4b69}.flame .m1{fill:#2d3d4c}\
.flame .z{fill:#393a3c}.flame .p1{fill:#503a35}.flame .p2{fill:#6f4035}.flame .p3{fill:#954433}\
.flame .p4{fill:#c0472f}.flame .few{fill:#2a2b2d}.flame .few+text{fill:#85837d}}\
@media print{.flame{color-scheme:light}}";

/// A picture that is being drawn.
#[derive(Debug)]
pub(super) struct Picture {
    text: String,
}

/// A frame: where, how wide, and what it says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    /// The class of its colour.
    pub(super) class: &'a str,
    pub(super) name: &'a str,
    /// What stands after the name where the pointer rests.
    pub(super) says: &'a str,
}

impl Picture {
    /// An empty picture with a heading.
    pub(super) fn new(title: &str, height: f64) -> Self {
        let title = escaped(title);
        let text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"flame\" viewBox=\"0 0 {WIDTH} {height}\" \
             role=\"img\" aria-label=\"{title}\"><style>{STYLE}</style>\
             <text class=\"h\" x=\"2\" y=\"16\">{title}</text>\n"
        );
        Self { text }
    }

    /// Small words, from `left` on or, with `end`, up to there.
    pub(super) fn words(&mut self, left: f64, top: f64, end: bool, words: &str) {
        let anchor = if end { " text-anchor=\"end\"" } else { "" };
        let words = escaped(words);
        // Writing to a string does not fail.
        writeln!(self.text, "<text class=\"s\" x=\"{left}\" y=\"{top}\"{anchor}>{words}</text>")
            .ok();
    }

    /// A coloured square with a word after it; says where the next one may begin.
    pub(super) fn key(&mut self, left: f64, top: f64, class: &str, word: &str) -> f64 {
        let square = top - 9.0;
        writeln!(
            self.text,
            "<rect class=\"{class}\" x=\"{left}\" y=\"{square}\" width=\"11\" height=\"11\"/>"
        )
        .ok();
        if word.is_empty() {
            return left + 12.0;
        }
        self.words(left + 16.0, top, false, word);
        left + 16.0 + (word.chars().count() as f64 + 2.0) * LETTER
    }

    /// A frame with as much of its name as fits.
    pub(super) fn frame(&mut self, frame: &Frame<'_>) {
        let Frame { left, top, width, class, name, says } = *frame;
        let (height, base, start) = (ROW - 1.0, top + 12.0, left + 3.0);
        let shown = plain(name).0;
        let full = escaped(shown);
        let says = escaped(says);
        write!(
            self.text,
            "<g><title>{full}\n{says}</title><rect class=\"{class}\" x=\"{left:.1}\" y=\"{top:.0}\" \
             width=\"{width:.1}\" height=\"{height:.0}\"/>"
        )
        .ok();
        if let Some(fits) = fitting(shown, width - 5.0) {
            let fits = escaped(&fits);
            write!(self.text, "<text x=\"{start:.1}\" y=\"{base:.0}\">{fits}</text>").ok();
        }
        self.text.push_str("</g>\n");
    }

    /// Frames beside the graph, which no zoom moves: all until the end of them.
    pub(super) fn beside(&mut self) {
        self.text.push_str("<g class=\"gone\">\n");
    }

    pub(super) fn end_beside(&mut self) {
        self.text.push_str("</g>\n");
    }

    pub(super) fn end(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }
}

/// The picture as a file of its own: with its script.
pub(crate) fn alone(picture: &str) -> String {
    let end = picture.rfind("</svg>").unwrap_or(picture.len());
    let (body, rest) = picture.split_at(end);
    format!("{body}<script><![CDATA[\n{SCRIPT}]]></script>\n{rest}")
}

/// As much of a name as fits, if that says anything.
fn fitting(name: &str, width: f64) -> Option<String> {
    let letters = name.chars().count();
    let room = (1..=letters).rev().find(|count| *count as f64 * LETTER <= width)?;
    match room {
        room if room == letters => Some(name.to_owned()),
        0..3 => None,
        room => Some(name.chars().take(room - 1).chain(['…']).collect()),
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            letter if letter.is_control() && letter != '\n' => escaped.push('?'),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_alone_has_its_script_in_it_and_asks_for_nothing() {
        let text = alone(&Picture::new("x", 50.0).end());
        assert!(text.contains("<script><![CDATA[") && text.ends_with("]]></script>\n</svg>\n"));
        // Inside of a page the script stands between two tags.
        assert!(!SCRIPT.contains("</") && !SCRIPT.contains("]]>"));
        assert!(!SCRIPT.replace("http://www.w3.org/2000/svg", "").contains("http"));
    }

    #[test]
    fn names_are_cut_to_what_fits() {
        assert_eq!(fitting("read", 4.0 * LETTER).unwrap(), "read");
        assert_eq!(fitting("tcp_sendmsg", 6.0 * LETTER + 0.1).unwrap(), "tcp_s…");
        assert_eq!(fitting("tcp_sendmsg", LETTER), None);
        assert_eq!(fitting("tcp_sendmsg", -3.0), None);
    }

    #[test]
    fn nothing_in_a_name_is_taken_for_markup() {
        let mut picture = Picture::new("a<b & \"c\"", 50.0);
        let says = "1 < 2";
        let name = "Vec<u8>::from";
        picture.frame(&Frame { left: 0.0, top: 20.0, width: 500.0, class: "u0", name, says });
        let text = picture.end();
        assert!(text.contains("Vec&lt;u8&gt;::from") && text.contains("1 &lt; 2"));
        assert!(text.contains("a&lt;b &amp; &quot;c&quot;"));
    }
}

#[cfg(test)]
pub(super) mod testing {
    use crate::profile::Folded;

    pub(in crate::profile) fn folded(text: &str) -> Folded {
        Folded::parse(text).unwrap()
    }

    /// The classes of the rectangles of a function.
    pub(in crate::profile) fn classes<'a>(svg: &'a str, name: &str) -> Vec<&'a str> {
        let title = format!("<g><title>{name}\n");
        let rest = svg.split(&title).skip(1);
        rest.map(|rest| rest.split("class=\"").nth(1).unwrap().split('"').next().unwrap()).collect()
    }
}
