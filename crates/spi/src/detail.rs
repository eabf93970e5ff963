// SPDX-License-Identifier: Apache-2.0
//! What a return code cannot say: which file, which line, which row, how many tries are left.
//!
//! Anyone who knows it says it here, on the thread of the call; the C edge hands it out through the
//! vendor interface. Nothing secret may be said.

use std::cell::RefCell;
use std::fmt::{self, Write};

/// Of a sentence, in bytes.
const MAX_LENGTH: usize = 512;

struct Text {
    bytes: [u8; MAX_LENGTH],
    length: usize,
    fresh: bool,
    refusal: bool,
}

thread_local! {
    // Without `Drop`, so that it can be used while a thread ends.
    static TEXT: RefCell<Text> =
        const { RefCell::new(Text { bytes: [0; MAX_LENGTH], length: 0, fresh: false, refusal: false }) };
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MAX_LENGTH - self.length;
        let length = (0..=text.len().min(room)).rev().find(|at| text.is_char_boundary(*at));
        let length = length.unwrap_or(0);
        self.bytes[self.length..][..length].copy_from_slice(&text.as_bytes()[..length]);
        self.length += length;
        Ok(())
    }
}

/// Says why the call that is under way will fail: `detail::set(format_args!("…"))`. What is longer
/// than 512 bytes is cut.
pub fn set(what: fmt::Arguments<'_>) {
    TEXT.with_borrow_mut(|text| {
        text.length = 0;
        text.fresh = true;
        text.refusal = false;
        // `write_str` above cannot fail; a `Display` that does just ends the text.
        text.write_fmt(what).unwrap_or_default();
    });
}

/// As [`set`], where a policy refuses what would work.
pub fn refuse(what: fmt::Arguments<'_>) {
    set(what);
    TEXT.with_borrow_mut(|text| text.refusal = true);
}

/// What [`refuse`] said during the call that is under way.
#[must_use]
pub fn refusal() -> Option<String> {
    let said = TEXT.with_borrow(|text| text.fresh && text.refusal);
    said.then(|| with(str::to_owned))
}

/// A call of this thread failed: what was said during an earlier one is forgotten. For the C edge.
pub fn failed() {
    TEXT.with_borrow_mut(|text| {
        if !text.fresh {
            text.length = 0;
        }
        text.fresh = false;
    });
}

/// What was said about the last call of this thread that failed; empty when nothing was.
pub fn with<T>(read: impl FnOnce(&str) -> T) -> T {
    TEXT.with_borrow(|text| read(str::from_utf8(&text.bytes[..text.length]).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_one_of_its_own_call_only() {
        set(format_args!("not there"));
        assert_eq!(refusal(), None);
        failed();
        refuse(format_args!("refused"));
        assert_eq!(refusal().as_deref(), Some("refused"));
        failed();
        assert_eq!(refusal(), None);
    }

    #[test]
    fn only_the_last_failure_is_explained() {
        set(format_args!("{}: line {}", "a.toml", 3));
        failed();
        assert_eq!(with(str::to_owned), "a.toml: line 3");
        failed();
        assert_eq!(with(str::len), 0);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        set(format_args!("{}", "é".repeat(300)));
        assert_eq!(with(str::len), 512);
        set(format_args!("x{}", "é".repeat(300)));
        assert_eq!(with(str::len), 511);
    }
}
