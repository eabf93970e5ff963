// SPDX-License-Identifier: Apache-2.0
//! Which file was mapped where in which process at the time of a sample: an address means nothing later.

use crate::record::{Mapping, Record};
use crate::recorded::Recorded;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Where an address is, whichever process had it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum CodePlace {
    /// In the kernel.
    Kernel(u64),
    /// In a file: its number, and the offset in it.
    File(u32, u64),
    /// In no file that is known.
    Nowhere,
}

/// A stack and how often it was seen.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Stack {
    /// Numbers of places, the innermost first.
    pub places: Vec<u32>,
    /// How often.
    pub count: u64,
}

/// Samples whose addresses have found their files.
#[derive(Clone, Debug, Default)]
pub struct Placed {
    /// Every place once.
    pub places: Vec<CodePlace>,
    /// The names of the files.
    pub files: Vec<String>,
    /// Every stack once.
    pub stacks: Vec<Stack>,
    /// Samples of each program, by its name.
    pub programs: BTreeMap<String, u64>,
    /// Samples whose stack led to where no code is: without frame pointers it cannot be followed.
    pub broken: u64,
}

/// A mapping as it is kept: end, offset, file.
type Kept = (u64, u64, u32);

/// The processes as they were at one time.
#[derive(Debug, Default)]
struct Spaces {
    files: Vec<String>,
    numbers: HashMap<String, u32>,
    of: HashMap<u32, BTreeMap<u64, Kept>>,
    names: HashMap<u32, String>,
    /// The processes that are meant.
    members: BTreeSet<u32>,
    from_exec: Option<u32>,
}

impl Spaces {
    fn happens(&mut self, record: &Record) {
        match record {
            Record::Mapped(_, mapping) => self.map(mapping),
            Record::Named { pid, tid, name, exec, .. } => {
                if *exec {
                    self.of.remove(pid);
                    if self.from_exec == Some(*pid) {
                        self.members.insert(*pid);
                    }
                }
                if pid == tid {
                    self.names.insert(*pid, name.clone());
                }
            }
            Record::Forked { pid, parent, .. } if pid != parent => {
                if self.members.contains(parent) {
                    self.members.insert(*pid);
                }
                if let Some(space) = self.of.get(parent).cloned() {
                    self.of.insert(*pid, space);
                }
                if let Some(name) = self.names.get(parent).cloned() {
                    self.names.insert(*pid, name);
                }
            }
            _ => {}
        }
    }

    /// What was there before gives way.
    fn map(&mut self, mapping: &Mapping) {
        let Mapping { pid, start, length, offset, .. } = *mapping;
        let Some(end) = start.checked_add(length).filter(|end| *end > start) else { return };
        let file = self.file(&mapping.path);
        let space = self.of.entry(pid).or_default();
        let below: Vec<(u64, Kept)> = space
            .range(..end)
            .rev()
            .take_while(|(_, kept)| kept.0 > start)
            .map(|(at, kept)| (*at, *kept))
            .collect();
        for (at, (kept_end, kept_offset, kept_file)) in below {
            space.remove(&at);
            if at < start {
                space.insert(at, (start, kept_offset, kept_file));
            }
            if kept_end > end {
                space.insert(end, (kept_end, kept_offset + (end - at), kept_file));
            }
        }
        space.insert(start, (end, offset, file));
    }

    fn file(&mut self, path: &str) -> u32 {
        if let Some(number) = self.numbers.get(path) {
            return *number;
        }
        let number = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        self.files.push(path.to_owned());
        self.numbers.insert(path.to_owned(), number);
        number
    }

    fn find(&self, pid: u32, address: u64) -> Option<CodePlace> {
        let (start, (end, offset, file)) = self.of.get(&pid)?.range(..=address).next_back()?;
        (address < *end).then_some(CodePlace::File(*file, address - start + offset))
    }
}

impl Recorded {
    /// Finds the file of every address, for the samples whose time is wanted.
    #[must_use]
    pub fn place(mut self, wanted: impl Fn(u64) -> bool) -> Placed {
        self.happenings.sort_by_key(time);
        self.samples.sort_unstable_by_key(|sample| sample.0);
        let members = std::mem::take(&mut self.members);
        let mut spaces = Spaces { members, from_exec: self.from_exec, ..Spaces::default() };
        let mut placed = Placed::default();
        let mut happenings = self.happenings.iter().peekable();
        let (mut places, mut stacks) = (HashMap::new(), HashMap::new());
        for (time_of, pid, number) in &self.samples {
            while let Some(happening) = happenings.next_if(|record| time(record) <= *time_of) {
                spaces.happens(happening);
            }
            if !wanted(*time_of) || !spaces.members.contains(pid) {
                continue;
            }
            let (stack, broken) = resolve(&spaces, *pid, &self.stacks[*number as usize]);
            placed.broken += u64::from(broken);
            let stack: Vec<u32> = stack
                .into_iter()
                .map(|place| intern(&mut places, &mut placed.places, place))
                .collect();
            *stacks.entry(stack).or_insert(0_u64) += 1;
            let name = spaces.names.get(pid).map_or("[unknown]", String::as_str);
            *placed.programs.entry(name.to_owned()).or_default() += 1;
        }
        placed.files = spaces.files;
        placed.stacks = stacks.into_iter().map(|(places, count)| Stack { places, count }).collect();
        placed.stacks.sort_by(|one, other| one.places.cmp(&other.places));
        placed
    }
}

fn intern(
    numbers: &mut HashMap<CodePlace, u32>,
    places: &mut Vec<CodePlace>,
    place: CodePlace,
) -> u32 {
    *numbers.entry(place).or_insert_with(|| {
        places.push(place);
        u32::try_from(places.len() - 1).unwrap_or(u32::MAX)
    })
}

/// The places of a stack, innermost first, and whether it led astray. All but the innermost are where a
/// call returns to: the call itself is before.
fn resolve(
    spaces: &Spaces,
    pid: u32,
    (kernel, user): &(Vec<u64>, Vec<u64>),
) -> (Vec<CodePlace>, bool) {
    let before = |at: usize, address: u64| address - u64::from(at > 0 && address > 0);
    let mut stack: Vec<CodePlace> = kernel
        .iter()
        .enumerate()
        .map(|(at, address)| CodePlace::Kernel(before(at, *address)))
        .collect();
    for (at, address) in user.iter().enumerate() {
        match spaces.find(pid, before(at, *address)) {
            Some(place) => stack.push(place),
            None if at == 0 => stack.push(CodePlace::Nowhere),
            // What follows a wrong frame pointer is no stack.
            None => return (stack, true),
        }
    }
    (stack, false)
}

const fn time(record: &Record) -> u64 {
    match record {
        Record::Mapped(time, _) | Record::Named { time, .. } | Record::Forked { time, .. } => *time,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Taken;

    fn mapped(time: u64, pid: u32, start: u64, length: u64, path: &str) -> Record {
        Record::Mapped(time, Mapping { pid, start, length, offset: 0x100, path: path.to_owned() })
    }

    fn sample(time: u64, pid: u32, user: &[u64]) -> Record {
        Record::Sample(Taken { time, pid, tid: pid, kernel: vec![], user: user.to_vec() })
    }

    fn named(time: u64, pid: u32, name: &str, exec: bool) -> Record {
        Record::Named { time, pid, tid: pid, name: name.to_owned(), exec }
    }

    /// File and offset of the innermost address of every stack, by the stacks' counts.
    fn innermost(placed: &Placed) -> Vec<(String, u64)> {
        let place = |stack: &Stack| match placed.places[stack.places[0] as usize] {
            CodePlace::File(file, offset) => (placed.files[file as usize].clone(), offset),
            _ => (String::new(), 0),
        };
        placed.stacks.iter().map(place).collect()
    }

    fn placed(records: Vec<Record>) -> Placed {
        let mut recorded = Recorded { members: [1].into(), ..Recorded::default() };
        records.into_iter().for_each(|record| recorded.take(record));
        recorded.place(|_| true)
    }

    #[test]
    fn an_address_is_of_the_file_that_was_there_at_the_time() {
        let records = vec![
            mapped(10, 1, 0x1000, 0x1000, "/a"),
            sample(30, 1, &[0x1010]),
            // Comes later in the ring of another CPU.
            mapped(20, 1, 0x1000, 0x1000, "/b"),
            sample(15, 1, &[0x1020]),
        ];
        let found = innermost(&placed(records));
        assert!(found.contains(&("/a".to_owned(), 0x120)), "{found:?}");
        assert!(found.contains(&("/b".to_owned(), 0x110)), "{found:?}");
    }

    #[test]
    fn a_child_has_its_parents_files_until_it_runs_another_program() {
        let records = vec![
            mapped(1, 1, 0x1000, 0x1000, "/a"),
            named(1, 1, "make", false),
            Record::Forked { time: 2, pid: 2, parent: 1 },
            sample(3, 2, &[0x1001]),
            named(4, 2, "cc", true),
            mapped(5, 2, 0x1000, 0x1000, "/cc"),
            sample(6, 2, &[0x1002]),
        ];
        let placed = placed(records);
        let found = innermost(&placed);
        assert!(found.contains(&("/a".to_owned(), 0x101)), "{found:?}");
        assert!(found.contains(&("/cc".to_owned(), 0x102)), "{found:?}");
        assert_eq!(placed.programs, BTreeMap::from([("cc".to_owned(), 1), ("make".to_owned(), 1)]));
    }

    #[test]
    fn strangers_do_not_count_and_a_command_does_from_its_exec_on() {
        let mut recorded = Recorded { from_exec: Some(5), ..Recorded::default() };
        let fork = |time, pid, parent| Record::Forked { time, pid, parent };
        let records = [
            sample(1, 5, &[0x10]),
            fork(2, 6, 5),
            named(3, 5, "cc", true),
            sample(4, 5, &[0x20]),
            fork(5, 7, 5),
            sample(6, 7, &[0x20]),
            // Started before, and a stranger.
            sample(7, 6, &[0x30]),
            sample(8, 9, &[0x40]),
        ];
        records.into_iter().for_each(|record| recorded.take(record));
        let placed = recorded.place(|_| true);
        assert_eq!(placed.stacks.iter().map(|stack| stack.count).sum::<u64>(), 2);
    }

    #[test]
    fn a_mapping_in_the_middle_leaves_both_ends() {
        let mut spaces = Spaces::default();
        spaces.happens(&mapped(0, 1, 0x1000, 0x3000, "/a"));
        spaces.happens(&mapped(0, 1, 0x2000, 0x1000, "/b"));
        assert_eq!(spaces.find(1, 0x1fff), Some(CodePlace::File(0, 0x10ff)));
        assert_eq!(spaces.find(1, 0x2000), Some(CodePlace::File(1, 0x100)));
        assert_eq!(spaces.find(1, 0x3000), Some(CodePlace::File(0, 0x2100)));
        assert_eq!((spaces.find(1, 0x4000), spaces.find(1, 0xfff)), (None, None));
    }

    #[test]
    fn a_stack_ends_where_no_code_is() {
        let stack = sample(2, 1, &[0x1001, 0x1801, 0x7777_0000, 0x1003]);
        let placed = placed(vec![mapped(1, 1, 0x1000, 0x1000, "/a"), stack]);
        assert_eq!((placed.stacks[0].places.len(), placed.broken), (2, 1));
        // The caller is before the address that it returns to.
        let caller = placed.places[placed.stacks[0].places[1] as usize];
        assert_eq!(caller, CodePlace::File(0, 0x900));
    }

    #[test]
    fn samples_outside_the_window_do_not_count() {
        let mut recorded = Recorded { members: [1].into(), ..Recorded::default() };
        recorded.take(mapped(0, 1, 0x1000, 0x1000, "/a"));
        for time in 0..100 {
            recorded.take(sample(time, 1, &[0x1000 + time % 3]));
        }
        let placed = recorded.place(|time| (10..20).contains(&time));
        assert_eq!(placed.stacks.iter().map(|stack| stack.count).sum::<u64>(), 10);
    }
}
