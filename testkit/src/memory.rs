// SPDX-License-Identifier: Apache-2.0
//! What is in the memory of another process.

use memchr::memmem;
use std::fs;
use std::io::{Read, Seek, SeekFrom};

/// How often each of these is in the memory of a process that goes into a core dump, and in the rest of it.
pub fn copies<T: AsRef<[u8]>>(process: u32, wanted: &[T]) -> Vec<[usize; 2]> {
    let maps = fs::read_to_string(format!("/proc/{process}/smaps")).expect("it runs");
    let mut memory = fs::File::open(format!("/proc/{process}/mem")).expect("it is ours");
    let mut counts = vec![[0, 0]; wanted.len()];
    let mut range = 0..0;
    for line in maps.lines() {
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        let number = |text| u64::from_str_radix(text, 16).ok();
        if let Some((Some(from), Some(to))) =
            first.split_once('-').map(|(from, to)| (number(from), number(to)))
        {
            // Room that is kept free is not looked at.
            range = from..to.min(from.saturating_add(64 << 20));
        } else if first == "VmFlags:" {
            let mut bytes =
                vec![0; usize::try_from(range.end - range.start).expect("it is mapped")];
            memory.seek(SeekFrom::Start(range.start)).expect("any place is one");
            // What is mapped and not readable holds nothing.
            if memory.read_exact(&mut bytes).is_ok() {
                let kind = usize::from(rest.split(' ').any(|flag| flag == "dd"));
                for (count, wanted) in counts.iter_mut().zip(wanted) {
                    count[kind] += memmem::find_iter(&bytes, wanted).count();
                }
            }
        }
    }
    counts
}
