// SPDX-License-Identifier: Apache-2.0
//! What a program demands of a module: functions, mechanisms and attributes, and the codes that it is answered, as
//! `testdata/clients/spy.c` writes them. A summary is kept as a file, so that a change in what a program calls shows.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use metaslot_ck::{CKR_OK, Error, attribute_name, mechanism_name};

use crate::process::Program;

/// Writes the summaries anew in place of comparing them.
const OVERWRITE: &str = "METASLOT_SUMMARIES";

/// Compiles the spy as `spy.so` in `home`: in front of `module`, with its lines in `log`; `more` is for the compiler.
pub(crate) fn spy(home: &Path, module: &Path, log: &Path, more: &str) -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let spy = home.join("spy.so");
    Program::new("gcc")
        .line(more)
        .line("-std=gnu11 -shared -fPIC -Wall -Wextra -Werror -I")
        .arg(root.join("include"))
        .arg(format!("-DNEXT=\"{}\"", module.display()))
        .arg(format!("-DLOG=\"{}\"", log.display()))
        .arg("-o")
        .arg(&spy)
        .arg(root.join("testdata/clients/spy.c"))
        .run()?;
    Ok(spy)
}

/// A line for each function, mechanism, attribute and code, in order of its name: how often and in what order something was called
/// is not the same each time where threads and processes call.
pub(crate) fn of(log: &str) -> String {
    let lines = log.lines().map(|line| line.split(' '));
    let all: BTreeSet<String> = lines.flat_map(|mut words| named(&mut words)).collect();
    all.into_iter().map(|line| line + "\n").collect()
}

/// What a line says: a function, its code, then mechanisms and attributes behind a letter. Numbers are hexadecimal.
fn named<'a>(words: &mut impl Iterator<Item = &'a str>) -> Vec<String> {
    let number = |digits: &str| u64::from_str_radix(digits, 16).ok();
    let mut all: Vec<String> = words.next().map(str::to_owned).into_iter().collect();
    let code = words.next().and_then(number).filter(|code| *code != CKR_OK);
    all.extend(code.map(|code| Error::new(code).to_string()));
    all.extend(words.filter_map(|word| {
        let (letter, digits) = word.split_at_checked(1)?;
        let (prefix, known): (_, fn(u64) -> Option<&'static str>) = match letter {
            "m" => ("CKM", mechanism_name),
            _ => ("CKA", attribute_name),
        };
        let number = number(digits)?;
        Some(known(number).map_or_else(|| format!("{prefix}_0x{number:x}"), str::to_owned))
    }));
    all
}

/// Fails where a program did nothing that its test is about.
pub(crate) fn uses_a_key(summary: &str) -> Result<()> {
    let used = ["C_Sign", "C_Decrypt"].iter().any(|call| summary.contains(call));
    ensure!(used, "the program used no key:\n{summary}");
    Ok(())
}

pub(crate) fn compare(name: &str, summary: &str) -> Result<()> {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../testdata/clients/{name}.txt"));
    if std::env::var_os(OVERWRITE).is_some() {
        return fs::write(&file, summary).context("write the summary");
    }
    let kept = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
    let (new, old): (BTreeSet<_>, BTreeSet<_>) =
        (summary.lines().collect(), kept.lines().collect());
    if new == old {
        return Ok(());
    }
    let list = |a: &BTreeSet<&str>, b: &BTreeSet<&str>| {
        a.difference(b).copied().collect::<Vec<_>>().join(", ")
    };
    let (more, less) = (list(&new, &old), list(&old, &new));
    bail!("{name} calls other functions than testdata/clients says; more: {more}; less: {less}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_becomes_what_is_asked_and_refused() {
        let log = "C_SignInit 0 m1041\nC_FindObjectsInit 0 a0 a633 ace534351\nC_SignInit 0 m1044\n\
            C_GenerateKeyPair 70 m80000001 a0 a0\nC_Login a0\n";
        let summary = of(log);
        let lines: Vec<&str> = summary.lines().collect();
        let expected = [
            "CKA_0xce534351",
            "CKA_CLASS",
            "CKA_ENCAPSULATE",
            "CKM_0x80000001",
            "CKM_ECDSA",
            "CKM_ECDSA_SHA256",
            "CKR_MECHANISM_INVALID",
            "CKR_PIN_INCORRECT",
            "C_FindObjectsInit",
            "C_GenerateKeyPair",
            "C_Login",
            "C_SignInit",
        ];
        assert_eq!(lines, expected);
    }
}
