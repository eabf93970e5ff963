// SPDX-License-Identifier: Apache-2.0
//! Processes and all that they have started so far.

use std::collections::HashSet;
use std::fs;

/// The processes, and those below them that are still there.
pub(crate) fn of(pids: &[u32]) -> Vec<u32> {
    let pairs: Vec<(u32, u32)> = all().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    below(pids, &pairs)
}

/// All other processes.
pub(crate) fn strangers(family: &[u32]) -> HashSet<u32> {
    all().filter(|pid| !family.contains(pid)).collect()
}

fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn parent(pid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything.
    text.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

/// Anyone who is below the first ones, by pairs of process and parent.
fn below(first: &[u32], pairs: &[(u32, u32)]) -> Vec<u32> {
    let mut family = first.to_vec();
    let mut at = 0;
    while let Some(member) = family.get(at).copied() {
        let children = pairs.iter().filter(|(_, parent)| *parent == member).map(|(pid, _)| *pid);
        let new: Vec<u32> = children.filter(|child| !family.contains(child)).collect();
        family.extend(new);
        at += 1;
    }
    family
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_generations_are_found_and_no_other() {
        let pairs = [(2, 1), (3, 2), (4, 3), (5, 1), (6, 9), (1, 0)];
        assert_eq!(below(&[2], &pairs), [2, 3, 4]);
        assert_eq!(below(&[2, 3], &pairs), [2, 3, 4]);
        assert_eq!(below(&[7], &pairs), [7]);
    }

    #[test]
    fn a_child_of_this_process_is_of_its_family() {
        let mut child = std::process::Command::new("sleep").arg("5").spawn().unwrap();
        let family = of(&[std::process::id()]);
        let strangers = strangers(&family);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(family.contains(&child.id()) && family.contains(&std::process::id()));
        assert!(strangers.contains(&1) && !strangers.contains(&child.id()));
    }
}
