// SPDX-License-Identifier: Apache-2.0
//! What a program demands of a module, from the log of OpenSC's spy: functions, mechanisms, attributes. A summary is kept as
//! a file, so that a change in what a program calls, or is answered, shows.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use metaslot_ck::{attribute_name, mechanism_name};

/// Where Debian has it.
const SPY: &[&str] =
    &["/usr/lib/x86_64-linux-gnu/pkcs11-spy.so", "/usr/lib/aarch64-linux-gnu/pkcs11-spy.so"];

/// Writes the summaries anew in place of comparing them.
const OVERWRITE: &str = "METASLOT_SUMMARIES";

pub(crate) fn spy() -> Result<PathBuf> {
    let found = SPY.iter().map(PathBuf::from).find(|path| path.exists());
    found.context("pkcs11-spy.so is not installed: it is in opensc-pkcs11")
}

/// A line for each function, mechanism, attribute and code, in order of its name: several processes write a log, so what
/// stands in it beside what says nothing.
pub(crate) fn of(log: &str) -> String {
    let mut all = BTreeSet::new();
    for line in log.lines().map(str::trim) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match *words.as_slice() {
            [number, name] if name.starts_with("C_") && number.ends_with(':') => {
                all.insert(name.to_owned());
            }
            ["Returned:", _, code] if code != "CKR_OK" => {
                all.insert(code.to_owned());
            }
            _ => all.extend(named(&words).into_iter().map(str::to_owned)),
        }
    }
    all.into_iter().map(|line| line + "\n").collect()
}

/// Mechanisms and attributes in a line; those that the module lists are its own, and not the program's.
fn named<'a>(words: &[&'a str]) -> Vec<&'a str> {
    match *words {
        [_, "pMechanism->type", "=", mechanism, ..] => {
            mechanism_named(mechanism).into_iter().collect()
        }
        ["CKA_?", number, ..] => attribute_numbered(number).into_iter().collect(),
        [attribute, ..] if attribute.starts_with("CKA_") => vec![attribute],
        _ => Vec::new(),
    }
}

/// Version 0.23 of the spy has no name for the newer mechanisms, and shows the number.
fn mechanism_named(word: &str) -> Option<&str> {
    let number = |digits| u64::from_str_radix(digits, 16).ok();
    match word.strip_prefix("0x").and_then(number) {
        Some(number) => mechanism_name(number),
        None => word.starts_with("CKM_").then_some(word),
    }
}

/// The same for attributes, whose number is in parentheses.
fn attribute_numbered(word: &str) -> Option<&'static str> {
    let digits = word.strip_prefix("(0x")?.strip_suffix(')')?;
    attribute_name(u64::from_str_radix(digits, 16).ok()?)
}

pub(crate) fn compare(name: &str, summary: &str) -> Result<()> {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../testdata/clients/{name}.txt"));
    let used = ["C_Sign", "C_Decrypt"].iter().any(|call| summary.contains(call));
    ensure!(used, "the program used no key:\n{summary}");
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
        let log = "7: C_SignInit\n[in] hSession = 0x1\n[in] pMechanism->type = CKM_ECDSA\n\
            [in] hKey = 0x2\nReturned:  0 CKR_OK\n8: C_FindObjectsInit\n[in] pTemplate[1]: \n    CKA_CLASS  \
            CKO_PRIVATE_KEY\n    CKA_? (0x00000633)  0 / 0\n[in] pMechanism->type = 0x00001044\nReturned:  0 CKR_OK\n9: C_Login\nReturned:  160 CKR_PIN_INCORRECT\n";
        let summary = of(log);
        let lines: Vec<&str> = summary.lines().collect();
        let expected = [
            "CKA_CLASS",
            "CKA_ENCAPSULATE",
            "CKM_ECDSA",
            "CKM_ECDSA_SHA256",
            "CKR_PIN_INCORRECT",
            "C_FindObjectsInit",
            "C_Login",
            "C_SignInit",
        ];
        assert_eq!(lines, expected);
    }
}
