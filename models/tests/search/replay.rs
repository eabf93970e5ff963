// SPDX-License-Identifier: Apache-2.0
//! Sequences that were found once, as files. Each works under `legacy`, as what its first line says, and
//! under the default policy with what its second line re-opens; with any of that refused it leads to
//! nothing.

use crate::game::Game;
use crate::stage::Stock;
use crate::step::Step;
use crate::verdict;
use metaslot_engine::Policy;
use std::fs;
use std::path::Path;

struct File<'a> {
    kind: &'a str,
    /// What re-opens it.
    allow: Vec<&'a str>,
    steps: Vec<Step>,
}

impl<'a> File<'a> {
    fn read(text: &'a str) -> Self {
        let (kind, rest) = text.split_once('\n').expect("several lines");
        let (allow, rest) = rest.split_once('\n').expect("several lines");
        let kind = kind.strip_prefix("# ").expect("the kind");
        let allow = allow.strip_prefix("# allow ").expect("what re-opens it");
        let (allow, steps) = (allow.split(" and ").collect(), rest.lines().map(Step::parse));
        Self { kind, allow, steps: steps.collect() }
    }

    /// What it leads to under the default policy without these refusals.
    fn found(&self, allowed: &[&str]) -> Option<&'static str> {
        let mut policy = Policy::DEFAULT;
        assert!(allowed.iter().all(|name| policy.allow(name)), "names of the policy: {allowed:?}");
        self.found_under(policy)
    }

    fn found_under(&self, policy: Policy) -> Option<&'static str> {
        let (finding, count) = Game::replay(&Stock::new(policy), &self.steps)?;
        Some(verdict::kind(finding, &self.steps[..count]))
    }
}

#[test]
fn attacks_that_were_found_work_where_they_are_allowed_only() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/attacks");
    let mut files = 0;
    for path in fs::read_dir(folder).expect("it is there") {
        let path = path.expect("it can be read").path();
        let text = fs::read_to_string(&path).expect("it is text");
        let file = File::read(&text);
        let shown = path.display();
        assert_eq!(file.found_under(Policy::legacy()), Some(file.kind), "{shown} under legacy");
        assert_eq!(file.found(&file.allow), Some(file.kind), "{shown} where it is allowed");
        for left_out in &file.allow {
            let mut others = file.allow.clone();
            others.retain(|name| name != left_out);
            assert_eq!(file.found(&others), None, "{shown} with {left_out} refused");
        }
        files += 1;
    }
    assert!(files >= 20, "{files} files");
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
