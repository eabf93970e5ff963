// SPDX-License-Identifier: Apache-2.0
//! What a return code cannot say: which file, which line, which row, how many tries are left.
//!
//! Anyone who knows it says it here, on the thread of the call; the C edge hands it out through the
//! vendor interface. Nothing secret may be said.

use std::cell::{Cell, RefCell};
use std::fmt::{self, Write};

/// Of a sentence, in bytes.
const MAX_LENGTH: usize = 512;

#[derive(Clone, Debug)]
struct Text {
    bytes: [u8; MAX_LENGTH],
    length: usize,
    refusal: bool,
}

thread_local! {
    // Without `Drop`, so that they can be used while a thread ends.
    static TEXT: RefCell<Text> =
        const { RefCell::new(Text { bytes: [0; MAX_LENGTH], length: 0, refusal: false }) };
    /// Whether it was said during the call that is under way. Apart, because every call looks.
    static FRESH: Cell<bool> = const { Cell::new(false) };
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
    say(what, false);
}

/// As [`set`], where a policy refuses what would work.
pub fn refuse(what: fmt::Arguments<'_>) {
    say(what, true);
}

fn say(what: fmt::Arguments<'_>, refusal: bool) {
    change(|text| {
        (text.length, text.refusal) = (0, refusal);
        // `write_str` above cannot fail; a `Display` that does just ends the text.
        text.write_fmt(what).unwrap_or_default();
    });
    FRESH.set(true);
}

/// A signal handler that interrupts this changes nothing.
fn change(change: impl FnOnce(&mut Text)) {
    TEXT.with(|text| text.try_borrow_mut().map_or((), |mut text| change(&mut text)));
}

/// What [`refuse`] said during the call that is under way.
#[must_use]
pub fn refusal() -> Option<String> {
    let said = FRESH.get() && TEXT.with_borrow(|text| text.refusal);
    said.then(|| with(str::to_owned))
}

/// A call of this thread ended well: why a part of it failed explains nothing. For the C edge.
#[inline]
pub fn succeeded() {
    if FRESH.get() {
        forget();
    }
}

/// A call of this thread failed: what was said during an earlier one is forgotten. For the C edge.
pub fn failed() {
    if !FRESH.get() {
        forget();
    }
    FRESH.set(false);
}

#[cold]
fn forget() {
    change(|text| text.length = 0);
    FRESH.set(false);
}

/// What was said until now; it is so again when the value is dropped, no matter what is said meanwhile.
#[derive(Debug)]
pub struct Aside(Box<(Text, bool)>);

/// Begins something that must not explain the call that is under way: a call within it, say.
#[cold]
#[must_use]
pub fn aside() -> Option<Aside> {
    let text = TEXT.with(|text| text.try_borrow().map(|text| text.clone())).ok()?;
    Some(Aside(Box::new((text, FRESH.get()))))
}

impl Drop for Aside {
    fn drop(&mut self) {
        change(|text| text.clone_from(&self.0.0));
        FRESH.set(self.0.1);
    }
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
    fn what_a_call_that_ends_well_said_explains_no_other() {
        set(format_args!("one of two is not there"));
        succeeded();
        failed();
        assert_eq!(with(str::len), 0);
        refuse(format_args!("refused"));
        succeeded();
        assert_eq!(refusal(), None);
    }

    #[test]
    fn a_call_within_a_call_leaves_what_the_outer_one_said() {
        refuse(format_args!("refused"));
        let outer = aside();
        set(format_args!("within"));
        failed();
        succeeded();
        drop(outer);
        assert_eq!(refusal().as_deref(), Some("refused"));
        failed();
        assert_eq!(with(str::to_owned), "refused");
        let outer = aside();
        set(format_args!("within"));
        drop(outer);
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
