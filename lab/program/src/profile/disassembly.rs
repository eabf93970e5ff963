// SPDX-License-Identifier: Apache-2.0
//! Instructions of a file, by objdump where it is installed.

use crate::probe;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::{Command, Stdio};

/// After the last instruction that is wanted, in bytes.
const AFTER: u64 = 24;
/// Before and after one in the middle of code without names.
const AROUND: u64 = 2048;

/// Instructions by address, from the start of a function on; nothing where there is no program to ask, or
/// no such file.
pub(super) fn of(file: &str, start: u64, last: u64) -> BTreeMap<u64, String> {
    let Some(program) = probe::find("objdump").filter(|_| file.starts_with('/')) else {
        return BTreeMap::new();
    };
    let output = Command::new(program)
        .args(["--disassemble", "--no-show-raw-insn", "--wide", "--demangle"])
        .arg(format!("--start-address={start:#x}"))
        .arg(format!("--stop-address={:#x}", last.saturating_add(AFTER)))
        .arg("--")
        .arg(file)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    let text = output.map(|output| output.stdout).unwrap_or_default();
    instructions(&String::from_utf8_lossy(&text))
}

/// Instructions around a place, by their offsets in the file. The first few may be wrong: they are begun in
/// the middle.
pub(super) fn around(file: &str, offset: u64) -> BTreeMap<u64, String> {
    let Some(shift) = File::open(file).ok().and_then(|file| shift(&file, offset)) else {
        return BTreeMap::new();
    };
    let address = offset.wrapping_add(shift);
    let code = of(file, address.saturating_sub(AROUND), address.saturating_add(AROUND));
    code.into_iter().map(|(address, text)| (address.wrapping_sub(shift), text)).collect()
}

/// What is added to an offset in an ELF file to have the address, by the table of its loaded parts (ELF-64
/// Object File Format, "Program header").
fn shift(file: &File, offset: u64) -> Option<u64> {
    const LOADED: u64 = 1;
    let mut head = [0; 64];
    file.read_exact_at(&mut head, 0).ok()?;
    // The 64-bit kind, in this machine's order of bytes where that is little.
    (head[..6] == *b"\x7fELF\x02\x01").then_some(())?;
    let (table, size, count) =
        (number(&head, 32, 8)?, number(&head, 54, 2)?, number(&head, 56, 2)?);
    (0..count).find_map(|row| {
        let mut part = [0; 56];
        file.read_exact_at(&mut part, table.checked_add(row * size)?).ok()?;
        let (kind, from, address, length) = (
            number(&part, 0, 4)?,
            number(&part, 8, 8)?,
            number(&part, 16, 8)?,
            number(&part, 32, 8)?,
        );
        let inside = kind == LOADED && (from..from.saturating_add(length)).contains(&offset);
        inside.then(|| address.wrapping_sub(from))
    })
}

/// A number of so many bytes, the lowest first.
fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at + length)?;
    Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
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
        assert!(around("[vdso]", 0).is_empty() && around("/no/such/file", 0).is_empty());
        assert!(around("/proc/self/maps", 0).is_empty());
    }

    #[test]
    fn offsets_become_addresses_by_the_table_of_loaded_parts() {
        let path = std::env::temp_dir().join(format!("elf-{}", std::process::id()));
        let mut bytes = vec![0; 64 + 2 * 56];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let mut put = |at: usize, number: u64, length: usize| {
            bytes[at..at + length].copy_from_slice(&number.to_le_bytes()[..length]);
        };
        put(32, 64, 8);
        put(54, 56, 2);
        put(56, 2, 2);
        for (at, kind, from, address) in [(64, 4, 0, 0x9000), (120, 1, 0x1000, 0x40_2000)] {
            put(at, kind, 4);
            put(at + 8, from, 8);
            put(at + 16, address, 8);
            put(at + 32, 0x500, 8);
        }
        std::fs::write(&path, &bytes).unwrap();
        let file = File::open(&path).unwrap();
        assert_eq!(shift(&file, 0x1234), Some(0x40_1000));
        assert_eq!(shift(&file, 0x1500), None);
        assert_eq!(shift(&file, 0x10), None);
        std::fs::remove_file(path).unwrap();
    }
}
