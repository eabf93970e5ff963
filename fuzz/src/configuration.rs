// SPDX-License-Identifier: Apache-2.0
//! Files of configuration: they are taken, or the complaint names the file.

use crate::input::Seen;
use metaslot_wiring::config::source::Source;
use std::path::PathBuf;
use std::{fs, process};

/// In memory where that can be.
fn file() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let place = if memory.is_dir() { memory } else { std::env::temp_dir() };
    place.join(format!("metaslot-fuzz-{}.toml", process::id()))
}

pub(crate) fn run(bytes: &[u8]) -> u64 {
    let mut seen = Seen::default();
    let file = file();
    fs::write(&file, bytes).expect("the file is written");
    let read = Source::of_file(file.clone()).read();
    fs::remove_file(&file).expect("it was written");
    match read {
        Ok((config, _)) => {
            assert!(!config.tokens.is_empty(), "a configuration without a token");
            seen.note(config.tokens.len());
        }
        Err(problem) => {
            let text = problem.to_string();
            let reason = text.strip_prefix(&format!("{}: ", file.display()));
            let reason = reason.expect("a complaint names the file");
            // The place and what is quoted are no news.
            let words: String = reason.chars().filter(|c| c.is_alphabetic()).take(24).collect();
            seen.note(words);
        }
    }
    seen.finish()
}
