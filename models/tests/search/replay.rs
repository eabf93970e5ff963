// SPDX-License-Identifier: Apache-2.0
//! Sequences that were found once, as files: each works under `legacy`, as what its first line says, and
//! leads to nothing under the default policy.

use crate::game::Game;
use crate::stage::Stock;
use crate::step::Step;
use crate::verdict;
use metaslot_engine::Policy;
use std::fs;
use std::path::Path;

/// The kind that the file names, and its steps.
fn read(text: &str) -> (&str, Vec<Step>) {
    let kind = text.lines().find_map(|line| line.strip_prefix("# ")).expect("the kind comes first");
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    (kind, lines.map(Step::parse).collect())
}

#[test]
fn attacks_that_were_found_work_under_legacy_only() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/attacks");
    let (legacy, default) = (Stock::new(Policy::legacy()), Stock::new(Policy::DEFAULT));
    let mut files = 0;
    for file in fs::read_dir(folder).expect("it is there") {
        let file = file.expect("it can be read").path();
        let text = fs::read_to_string(&file).expect("it is text");
        let (kind, steps) = read(&text);
        let found = Game::replay(&legacy, &steps);
        let found = found.map(|(finding, count)| verdict::kind(finding, &steps[..count]));
        assert_eq!(found, Some(kind), "{} under legacy", file.display());
        assert_eq!(Game::replay(&default, &steps), None, "{} under default", file.display());
        files += 1;
    }
    assert!(files >= 8, "{files} files");
}

#[test]
fn a_step_is_read_as_it_is_written() {
    for line in [
        "1 owner pair rsa-gen : rsa-2048 +wrap / +unwrap",
        "2 owner trust k1",
        "12 unwrap kwp p1 d7.tail : generic length-1 +sign",
        "13 derive salted k2 k3 : generic length-32",
        "14 verify hmac k2 =zeros d13",
        "15 resume d14",
    ] {
        assert_eq!(Step::parse(line).to_string(), line);
    }
}
