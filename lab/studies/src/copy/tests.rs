// SPDX-License-Identifier: Apache-2.0

use super::*;

const CANARY: u8 = 0xC5;
/// Before and behind the destination.
const MARGIN: usize = 160;

/// Bytes that tell their places apart.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 131 + at / 251).to_le_bytes()[0]).collect()
}

/// Copies `length` bytes between places with these offsets, and says what is around afterwards.
fn check(kernel: Kernel, length: usize, to_offset: usize, from_offset: usize) {
    let source = pattern(length + 128);
    let mut area = vec![CANARY; length + 2 * MARGIN + 64];
    let base = area.as_ptr().align_offset(64) + MARGIN / 64 * 64 + to_offset;
    let from = &source[from_offset..from_offset + length];
    kernel.copy(&mut area[base..base + length], from);
    let what = (kernel.name(), length, to_offset, from_offset);
    assert_eq!(&area[base..base + length], from, "{what:?}");
    assert!(area[..base].iter().all(|byte| *byte == CANARY), "before: {what:?}");
    assert!(area[base + length..].iter().all(|byte| *byte == CANARY), "behind: {what:?}");
}

#[test]
fn every_kernel_copies_every_length() {
    for kernel in Kernel::available() {
        for length in 0..=600 {
            check(kernel, length, 0, 0);
            check(kernel, length, 1, 3);
            check(kernel, length, 63, 17);
        }
    }
}

#[test]
fn every_kernel_copies_from_and_to_every_place_in_a_line() {
    for kernel in Kernel::available() {
        for to in 0..64 {
            for length in [1, 31, 64, 65, 129, 257, 1000] {
                check(kernel, length, to, 0);
                check(kernel, length, 0, to);
                check(kernel, length, to, 63 - to);
            }
        }
    }
}

#[test]
fn large_copies_are_whole_on_both_sides_of_every_limit() {
    for kernel in Kernel::available() {
        for limit in [8 * 1024, 32 * 1024 * 1024] {
            for length in [limit - 1, limit, limit + 1] {
                check(kernel, length, 5, 9);
            }
        }
    }
}

#[test]
#[should_panic(expected = "one length")]
fn lengths_that_differ_are_refused() {
    Kernel::named("libc").unwrap().copy(&mut [0; 3], &[0; 4]);
}

#[test]
fn names_are_unique_and_unknown_ones_have_no_kernel() {
    let mut names: Vec<_> = Kernel::names().collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Kernel::names().count());
    assert!(Kernel::named("libc").is_some() && Kernel::named("memmove").is_none());
}

#[test]
fn the_reader_reads_every_word() {
    let bytes = pattern(1000);
    let words = bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
    assert_eq!(sum(&bytes), words.fold(0, u64::wrapping_add));
    for at in 0..1000 {
        let mut other = bytes.clone();
        other[at] ^= 1;
        assert_ne!(sum(&other), sum(&bytes));
    }
}

#[test]
fn a_walk_visits_both_areas_and_reads_what_it_copied() {
    let from = pattern(4 * 64);
    let mut to = vec![0; 3 * 64 + 10];
    let kernel = Kernel::named("libc").unwrap();
    let mut walk = Walk::default();
    let read = walk.copy(kernel, &mut to, &from, 64, 3, true);
    assert_eq!((&to[..192], read), (&from[..192], sum(&from[..192])));
    // The fourth goes to the start of the destination, and comes from the end of the source.
    walk.copy(kernel, &mut to, &from, 64, 1, false);
    assert_eq!((&to[..64], &to[192..]), (&from[192..], &[0; 10][..]));
    // A larger one that does not fit where the walk has come to begins anew as well.
    walk.copy(kernel, &mut to, &from, 200, 1, false);
    assert_eq!(&to[..200], &from[..200]);
}

#[test]
fn eviction_changes_nothing() {
    let mut bytes = pattern(1000);
    evict(&bytes);
    assert_eq!(bytes, pattern(1000));
    bytes[7] ^= 1;
    evict(&bytes[3..]);
    assert_eq!(bytes[7], pattern(8)[7] ^ 1);
}

/// Seen in the machine code, since only the code says it on every machine.
#[cfg(target_arch = "x86_64")]
#[test]
fn the_kernels_called_non_temporal_store_past_the_cache_and_no_other_does() {
    let this = std::env::current_exe().unwrap();
    let arguments = ["--disassemble", "--demangle", "--no-show-raw-insn"];
    let shown = std::process::Command::new("objdump").args(arguments).arg(this).output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    let mut past = std::collections::BTreeSet::new();
    let mut function = "";
    for line in shown.lines() {
        if let Some((_, name)) = line.split_once(" <").filter(|_| line.ends_with(">:")) {
            function = name;
        } else if line.contains("movnt") {
            past.insert(function);
        }
    }
    let kernels = ["avx2", "avx512"].map(|module| format!("{module}::non_temporal>:"));
    assert_eq!(past.len(), kernels.len(), "{past:?}");
    for kernel in kernels {
        assert!(past.iter().any(|function| function.ends_with(&kernel)), "{kernel} {past:?}");
    }
}
