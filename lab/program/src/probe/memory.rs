// SPDX-License-Identifier: Apache-2.0
//! Large pages: whether they come when they are asked for.

use super::files::text;
use super::outcome::{Outcome, Trouble};
use metaslot_system::memory::{Mapping, Pages};

type Attempt = Result<Outcome, Trouble>;

/// Some of the usual large pages, wherever the mapping begins.
const LENGTH: usize = 8 << 20;

/// Asks for large pages, writes, and looks what came.
pub(crate) fn large_pages() -> Attempt {
    let mut mapping = Mapping::new(LENGTH, Pages::Ordinary)?;
    mapping.ask_for_large_pages()?;
    mapping.touch();
    let kib = large_kib(&text("/proc/self/smaps")?, mapping.address()).unwrap_or(0);
    if kib == 0 {
        let why = "the advice was taken, but ordinary pages came";
        return Err(Trouble::reason(
            why,
            "the mode 'madvise' or 'always', and memory in one piece",
        ));
    }
    Ok(Outcome::new(format!("{kib} KiB of {} in large pages", LENGTH >> 10))
        .figure("kib", kib as f64))
}

/// How much of the area around an address is in large pages.
pub(crate) fn large_kib(smaps: &str, address: usize) -> Option<u64> {
    let mut inside = false;
    for line in smaps.lines() {
        if let Some(range) = range(line) {
            inside = range.contains(&address);
        } else if inside && let Some(value) = line.strip_prefix("AnonHugePages:") {
            return value.trim().strip_suffix(" kB")?.parse().ok();
        }
    }
    None
}

/// The addresses at the start of an area's first line.
fn range(line: &str) -> Option<std::ops::Range<usize>> {
    let (start, end) = line.split(' ').next()?.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    Some(address(start)?..address(end)?)
}

/// Takes a page of the kernel's reserve and writes to it.
pub(crate) fn reserved_pages() -> Attempt {
    let kib = meminfo("Hugepagesize:")?;
    let bytes = usize::try_from(kib << 10).unwrap_or(0);
    Mapping::new(bytes, Pages::Reserved)?.touch();
    let free = meminfo("HugePages_Free:")?;
    Ok(Outcome::new(format!("one of {kib} KiB; {free} are free")).figure("free", free as f64))
}

fn meminfo(name: &str) -> Result<u64, Trouble> {
    let text = text("/proc/meminfo")?;
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    let value = value.and_then(|value| value.split_ascii_whitespace().next()?.parse().ok());
    value.ok_or_else(|| Trouble::reason("the kernel has no such pages", "a kernel with hugetlbfs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_areas_large_pages_are_its_own() {
        let smaps = "1000-2000 rw-p 0 00:00 0\nAnonHugePages:  0 kB\n\
                     2000-9000 rw-p 0 00:00 0\nRss: 8 kB\nAnonHugePages:    2048 kB\n";
        assert_eq!(large_kib(smaps, 0x1000), Some(0));
        assert_eq!(large_kib(smaps, 0x3000), Some(2048));
        assert_eq!(large_kib(smaps, 0x9000), None);
    }
}
