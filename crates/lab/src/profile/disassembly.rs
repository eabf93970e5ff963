// SPDX-License-Identifier: Apache-2.0
//! Instructions of a file, by objdump where it is installed.

use crate::probe;
use std::collections::BTreeMap;
use std::process::{Command, Stdio};

/// Around the first and the last instruction that are wanted, in bytes.
const AROUND: u64 = 24;

/// Instructions by address; nothing where there is no program to ask, or no such file.
pub(super) fn of(file: &str, first: u64, last: u64) -> BTreeMap<u64, String> {
    let Some(program) = probe::find("objdump").filter(|_| file.starts_with('/')) else {
        return BTreeMap::new();
    };
    let output = Command::new(program)
        .args(["--disassemble", "--no-show-raw-insn", "--wide", "--demangle"])
        .arg(format!("--start-address={:#x}", first.saturating_sub(AROUND)))
        .arg(format!("--stop-address={:#x}", last.saturating_add(AROUND)))
        .arg("--")
        .arg(file)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    instructions(&String::from_utf8_lossy(&text))
}

/// Lines `  401136:\tpush   %rbp`.
fn instructions(text: &str) -> BTreeMap<u64, String> {
    let line = |line: &str| {
        let (address, instruction) = line.split_once(':')?;
        let address = u64::from_str_radix(address.trim(), 16).ok()?;
        let words: Vec<&str> = instruction.split_whitespace().collect();
        (!words.is_empty() && line.starts_with(' ')).then(|| (address, words.join(" ")))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_told_from_headings() {
        let text = "\n/bin/x:     file format elf64-x86-64\n\n0000000000401130 <main>:\n  \
                    401130:\tpush   %rbp\n  401131:\tmov    %rsp,%rbp\n";
        let found = instructions(text);
        assert_eq!(found.len(), 2);
        assert_eq!(found[&0x40_1131], "mov %rsp,%rbp");
    }

    #[test]
    fn what_is_no_file_has_no_instructions() {
        assert!(of("[vdso]", 0, 10).is_empty() && of("/no/such/file", 0, 10).is_empty());
    }
}
