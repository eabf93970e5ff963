// SPDX-License-Identifier: Apache-2.0
//! What became of a suite's tests, beside what is known of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// Every test that was run, and whether it passed.
pub(crate) type Ran = BTreeMap<String, bool>;

/// Begins the line of a test that passes on one machine and not on another.
const VARIES: &str = "varies ";

/// How pytest runs a suite so that [`by_pytest`] can read what it says.
pub(crate) const PYTEST: &str = "-B -m pytest -p no:cacheprovider -q -rA --tb=short";

/// What pytest says of each test, in lines such as `FAILED tests/test_aes.py::AESTests::test_sign - reason`: names begin behind `place`.
pub(crate) fn by_pytest(place: &str, told: &str) -> Ran {
    let outcome = |line: &str| {
        let (word, rest) = line.split_once(' ')?;
        let passed = match word {
            "PASSED" => true,
            "FAILED" | "ERROR" => false,
            _ => return None,
        };
        let (_, name) = rest.split(" - ").next()?.split_once(place)?;
        Some((name.to_owned(), passed))
    };
    told.lines().filter_map(outcome).collect()
}

/// Compares `ran` with `testdata/suites/NAME.txt`: the number of tests that pass, then a line for each of those that fail, `name:
/// reason`.
///
/// # Errors
///
/// When a test fails that is not in the file, or one that is there does not, or another number passes: all of them are named.
pub(crate) fn compare(name: &str, ran: &Ran, told: &str) -> Result<()> {
    compare_part(name, "passed", ran, told, |_| true)
}

/// The same where a part of the suite was run, the tests that `runs` names: the number of those that pass is behind the words `count`.
/// What becomes of a test whose line begins with `varies` is no matter: the machine decides it.
///
/// # Errors
///
/// As [`compare`].
pub(crate) fn compare_part(
    name: &str,
    count: &str,
    ran: &Ran,
    told: &str,
    runs: impl Fn(&str) -> bool,
) -> Result<()> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../testdata/suites/{name}.txt"));
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let lines: Vec<(&str, &str)> = lines
        .map(|line| line.split_once(": "))
        .collect::<Option<_>>()
        .context("a line has no reason")?;
    let (counts, judged): (Vec<_>, Vec<_>) =
        lines.into_iter().partition(|(name, _)| name.starts_with("passed"));
    let passes = counts.into_iter().find(|(name, _)| *name == count);
    let passes: usize = passes.with_context(|| format!("no line `{count}: NUMBER`"))?.1.parse()?;
    let names: BTreeSet<&str> = judged.into_iter().map(|(name, _)| name).collect();
    let varies = |name: &str| names.contains(format!("{VARIES}{name}").as_str());
    let ran: BTreeMap<_, _> = ran.iter().filter(|(name, _)| !varies(name)).collect();
    let is_judged = |name: &&str| runs(name) && !name.starts_with(VARIES);
    let judged: BTreeSet<&str> = names.iter().copied().filter(is_judged).collect();
    let failed: BTreeSet<&str> =
        ran.iter().filter(|(_, passed)| !**passed).map(|(name, _)| name.as_str()).collect();
    let mut wrong = String::new();
    for name in failed.difference(&judged) {
        writeln!(wrong, "{name} fails, and no reason is known")?;
    }
    for name in judged.difference(&failed) {
        writeln!(wrong, "{name} is said to fail, and does not")?;
    }
    let passed = ran.len() - failed.len();
    if passed != passes {
        writeln!(wrong, "{passed} pass, and {passes} should")?;
    }
    ensure!(wrong.is_empty(), "{wrong}{told}");
    Ok(())
}
