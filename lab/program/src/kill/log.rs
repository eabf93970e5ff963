// SPDX-License-Identifier: Apache-2.0
//! What a writer says about its calls: one short line before and one after each, by one `write`
//! each, so that a kill loses at most a line that was not begun.

use crate::{Failure, Result};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// What a line says about one object.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Event {
    /// The writer has logged in; the object is 0.
    Ready,
    /// `C_GenerateKey` is about to be called.
    Creating,
    /// It returned `CKR_OK`.
    Created,
    /// `C_DestroyObject` is about to be called.
    Destroying,
    /// It returned `CKR_OK`.
    Destroyed,
}

const LETTERS: [(Event, u8); 5] = [
    (Event::Ready, b'r'),
    (Event::Creating, b'c'),
    (Event::Created, b'C'),
    (Event::Destroying, b'd'),
    (Event::Destroyed, b'D'),
];

/// A log being written.
#[derive(Debug)]
pub(crate) struct Log(File);

impl Log {
    /// Opens for appending.
    ///
    /// # Errors
    /// The file cannot be made.
    pub(crate) fn append(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.map(Self).map_err(|error| Failure::file(path, &error))
    }

    /// Appends one line.
    ///
    /// # Errors
    /// The disk is full.
    pub(crate) fn say(&mut self, event: Event, object: u64) -> Result<()> {
        let letter = LETTERS.iter().find(|(known, _)| *known == event).map_or(b'?', |(_, l)| *l);
        let line = format!("{}{object}\n", char::from(letter));
        self.0.write_all(line.as_bytes()).map_err(Into::into)
    }
}

/// The lines of a log, without one that a kill cut short.
pub(crate) fn read(path: &Path) -> Result<Vec<(Event, u64)>> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        text => text.map_err(|error| Failure::file(path, &error))?,
    };
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().map(|line| parse(line).ok_or_else(|| unreadable(path, line))).collect()
}

fn parse(line: &str) -> Option<(Event, u64)> {
    let letter = *line.as_bytes().first()?;
    let (event, _) = LETTERS.iter().find(|(_, known)| *known == letter)?;
    Some((*event, line.get(1..)?.parse().ok()?))
}

fn unreadable(path: &Path, line: &str) -> Failure {
    Failure::new(format!("{}: cannot read {line:?}", path.display()))
}

/// What must be true of an object after the last kill.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum State {
    /// Its creation was acknowledged, and no writer began to destroy it.
    Present,
    /// Its destruction was acknowledged.
    Absent,
    /// A kill fell inside a call: both are right, but nothing in between.
    Either,
}

/// The state of each object that a log names.
pub(crate) fn states(events: &[(Event, u64)]) -> BTreeMap<u64, State> {
    let mut states = BTreeMap::new();
    for (event, object) in events {
        let state = match event {
            Event::Ready => continue,
            Event::Creating | Event::Destroying => State::Either,
            Event::Created => State::Present,
            Event::Destroyed => State::Absent,
        };
        states.insert(*object, state);
    }
    states
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_about_an_object_counts() {
        use Event::{Created, Creating, Destroyed, Destroying, Ready};
        let events = [
            (Ready, 0),
            (Creating, 1),
            (Created, 1),
            (Creating, 2),
            (Created, 2),
            (Destroying, 1),
            (Destroyed, 1),
            (Destroying, 2),
            (Creating, 3),
        ];
        let states = states(&events);
        assert_eq!(states[&1], State::Absent);
        assert_eq!(states[&2], State::Either);
        assert_eq!(states[&3], State::Either);
        assert_eq!(states.len(), 3);
    }

    #[test]
    fn a_line_that_a_kill_cut_short_is_left_out() {
        let directory = std::env::temp_dir();
        let path = directory.join(format!("metaslot-lab-log-{}", std::process::id()));
        std::fs::write(&path, "r0\nc1\nC1\nc2").unwrap();
        let events = read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(events, [(Event::Ready, 0), (Event::Creating, 1), (Event::Created, 1)]);
    }
}
