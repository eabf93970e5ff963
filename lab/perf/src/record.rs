// SPDX-License-Identifier: Apache-2.0
//! What the kernel writes into the ring, for the fields that [`crate::Recording`] asks for
//! (`linux/perf_event.h`, `enum perf_event_type`).

use std::collections::HashSet;

/// `PERF_SAMPLE_IP | TID | TIME | CALLCHAIN | CPU`: each record ends in thread, time and CPU.
pub(crate) const FIELDS: u64 = 1 | 2 | 4 | 32 | 128;

/// Addresses from here on are marks: what follows is the kernel's or a program's.
const FIRST_MARK: u64 = u64::MAX - 4094;
/// `PERF_CONTEXT_KERNEL`
const KERNEL: u64 = 0u64.wrapping_sub(128);
/// `PERF_CONTEXT_USER`
const USER: u64 = 0u64.wrapping_sub(512);
/// `PERF_RECORD_MISC_COMM_EXEC`
const BY_EXEC: u16 = 1 << 13;
/// `PERF_RECORD_MISC_CPUMODE_MASK` and its value for the kernel.
const MODE: u16 = 7;
const KERNEL_MODE: u16 = 1;
/// Thread, time, CPU at the end of a record.
const TRAILER: usize = 24;

/// A sample.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Taken {
    /// Nanoseconds of the monotonic clock.
    pub time: u64,
    /// The process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Where it was in the kernel, innermost first.
    pub kernel: Vec<u64>,
    /// Where it was in the program, innermost first.
    pub user: Vec<u64>,
}

/// A part of a file that a process may execute.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Mapping {
    /// The process.
    pub pid: u32,
    /// The first address.
    pub start: u64,
    /// How many bytes.
    pub length: u64,
    /// Where in the file they begin.
    pub offset: u64,
    /// The file, or a name in brackets.
    pub path: String,
}

/// One record.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Record {
    /// A sample.
    Sample(Taken),
    /// A process mapped a file.
    Mapped(u64, Mapping),
    /// A thread was named, by `exec` if so.
    Named {
        /// When.
        time: u64,
        /// The process.
        pid: u32,
        /// The thread.
        tid: u32,
        /// The name.
        name: String,
        /// It runs another program from now on.
        exec: bool,
    },
    /// A process or a thread began.
    Forked {
        /// When.
        time: u64,
        /// The process; its parent's for a thread.
        pid: u32,
        /// Who started it.
        parent: u32,
    },
    /// So many records did not fit the ring.
    Lost(u64),
    /// Samples came faster than the kernel allows, and it took none for a while.
    Throttled,
    /// Something else.
    Other,
}

/// Records in the bytes of a ring.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    bytes: &'a [u8],
    strangers: Option<&'a HashSet<u32>>,
}

impl<'a> Records<'a> {
    /// Reads from these bytes.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, strangers: None }
    }

    /// Reads from these bytes, and only passes over samples of these processes: anyone who samples CPUs on a
    /// busy machine meets many of them.
    #[must_use]
    pub const fn without(bytes: &'a [u8], strangers: &'a HashSet<u32>) -> Self {
        Self { bytes, strangers: Some(strangers) }
    }
}

impl Iterator for Records<'_> {
    type Item = Record;

    /// Nothing at the end, and nothing more after a record that does not have the length that it says.
    fn next(&mut self) -> Option<Record> {
        let mut header = Fields(self.bytes);
        let (kind, misc, size) = (header.u32()?, header.u16()?, header.u16()?);
        let record = self.bytes.get(..usize::from(size)).filter(|record| record.len() >= 8)?;
        self.bytes = &self.bytes[usize::from(size)..];
        let body = &record[8..];
        if kind == SAMPLE && self.strangers.is_some_and(|strangers| is_of(body, strangers)) {
            return Some(Record::Other);
        }
        Some(read(kind, misc, body).unwrap_or(Record::Other))
    }
}

/// `PERF_RECORD_SAMPLE`
const SAMPLE: u32 = 9;

/// Whether a sample is of one of these processes.
fn is_of(body: &[u8], processes: &HashSet<u32>) -> bool {
    // After the address.
    body.get(8..).and_then(|rest| Fields(rest).u32()).is_some_and(|pid| processes.contains(&pid))
}

/// What a record says; `None` if it is shorter than its kind.
fn read(kind: u32, misc: u16, body: &[u8]) -> Option<Record> {
    let mut fields = Fields(body);
    match kind {
        2 => {
            fields.u64()?;
            Some(Record::Lost(fields.u64()?))
        }
        3 => Some(Record::Named {
            time: time(body)?,
            pid: fields.u32()?,
            tid: fields.u32()?,
            name: fields.text()?,
            exec: misc & BY_EXEC != 0,
        }),
        5 => Some(Record::Throttled),
        7 => Some(Record::Forked { pid: fields.u32()?, parent: fields.u32()?, time: time(body)? }),
        SAMPLE => sample(misc, fields).map(Record::Sample),
        10 => {
            let (pid, _tid) = (fields.u32()?, fields.u32()?);
            let (start, length, offset) = (fields.u64()?, fields.u64()?, fields.u64()?);
            // Device and inode or the build's digest; protection and flags.
            for _ in 0..4 {
                fields.u64()?;
            }
            let mapping = Mapping { pid, start, length, offset, path: fields.text()? };
            Some(Record::Mapped(time(body)?, mapping))
        }
        13 => Some(Record::Lost(fields.u64()?)),
        _ => Some(Record::Other),
    }
}

fn sample(misc: u16, mut fields: Fields<'_>) -> Option<Taken> {
    let (address, pid, tid) = (fields.u64()?, fields.u32()?, fields.u32()?);
    let (time, _cpu, count) = (fields.u64()?, fields.u64()?, fields.u64()?);
    let mut taken = Taken { time, pid, tid, ..Taken::default() };
    let mut of_kernel = misc & MODE == KERNEL_MODE;
    for _ in 0..count {
        match fields.u64()? {
            KERNEL => of_kernel = true,
            USER => of_kernel = false,
            // The guest's or the hypervisor's.
            mark if mark >= FIRST_MARK => break,
            address if of_kernel => taken.kernel.push(address),
            address => taken.user.push(address),
        }
    }
    if taken.kernel.is_empty() && taken.user.is_empty() {
        let of = if misc & MODE == KERNEL_MODE { &mut taken.kernel } else { &mut taken.user };
        of.push(address);
    }
    Some(taken)
}

/// The time in a record's last words.
fn time(body: &[u8]) -> Option<u64> {
    Fields(body.get(body.len().checked_sub(TRAILER)? + 8..)?).u64()
}

/// Fields of a record, one after the other.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn bytes<const COUNT: usize>(&mut self) -> Option<[u8; COUNT]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn u16(&mut self) -> Option<u16> {
        self.bytes().map(u16::from_ne_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_ne_bytes)
    }

    /// A text that ends in a zero byte.
    fn text(&self) -> Option<String> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        Some(String::from_utf8_lossy(&self.0[..end]).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, misc: u16, body: &[u64]) -> Vec<u8> {
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(misc.to_ne_bytes());
        bytes.extend(u16::try_from(8 + 8 * body.len()).unwrap().to_ne_bytes());
        bytes.extend(body.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    fn pair(low: u32, high: u32) -> u64 {
        u64::from(low) | u64::from(high) << 32
    }

    fn word(text: &str) -> u64 {
        let mut bytes = [0; 8];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        u64::from_ne_bytes(bytes)
    }

    #[test]
    fn a_sample_is_split_where_the_kernel_ends() {
        let chain = [KERNEL, 0xffff_8000_0000_0001, 0xffff_8000_0000_0002, USER, 0x1000, 0x2000];
        let mut body = vec![0xffff_8000_0000_0001, pair(7, 8), 99, 1, 6];
        body.extend(chain);
        let bytes = record(9, KERNEL_MODE, &body);
        let Some(Record::Sample(taken)) = Records::new(&bytes).next() else { panic!("no sample") };
        assert_eq!((taken.pid, taken.tid, taken.time), (7, 8, 99));
        assert_eq!(taken.kernel, [0xffff_8000_0000_0001, 0xffff_8000_0000_0002]);
        assert_eq!(taken.user, [0x1000, 0x2000]);
    }

    #[test]
    fn samples_of_strangers_are_passed_over_and_nothing_else() {
        let mut bytes = record(9, 2, &[0x1234, pair(7, 8), 99, 1, 0]);
        bytes.extend(record(9, 2, &[0x1234, pair(8, 7), 99, 1, 0]));
        bytes.extend(record(7, 0, &[pair(7, 7), pair(7, 7), 57, pair(7, 7), 57, 0]));
        let strangers = HashSet::from([7]);
        let records: Vec<Record> = Records::without(&bytes, &strangers).collect();
        assert_eq!(records[0], Record::Other);
        assert!(matches!(&records[1], Record::Sample(taken) if taken.pid == 8), "{records:?}");
        assert_eq!(records[2], Record::Forked { time: 57, pid: 7, parent: 7 });
    }

    #[test]
    fn a_sample_without_a_chain_is_where_it_was() {
        let bytes = record(9, 2, &[0x1234, pair(7, 8), 99, 1, 0]);
        let Some(Record::Sample(taken)) = Records::new(&bytes).next() else { panic!("no sample") };
        assert_eq!((taken.kernel.len(), taken.user), (0, vec![0x1234]));
    }

    #[test]
    fn mappings_names_and_forks_have_their_time() {
        let trailer = [pair(7, 7), 55, 0];
        let mut mapped = vec![pair(7, 7), 0x40_0000, 0x1000, 0x2000, 1, 2, 3, pair(5, 2)];
        mapped.extend([word("/bin/x"), trailer[0], trailer[1], trailer[2]]);
        let mut bytes = record(10, 0, &mapped);
        bytes.extend(record(3, BY_EXEC, &[pair(7, 8), word("cc1"), trailer[0], 56, 0]));
        bytes.extend(record(7, 0, &[pair(9, 7), pair(9, 7), 57, trailer[0], 57, 0]));
        let records: Vec<Record> = Records::new(&bytes).collect();
        let path = "/bin/x".to_owned();
        let mapping = Mapping { pid: 7, start: 0x40_0000, length: 0x1000, offset: 0x2000, path };
        assert_eq!(records[0], Record::Mapped(55, mapping));
        let name = "cc1".to_owned();
        assert_eq!(records[1], Record::Named { time: 56, pid: 7, tid: 8, name, exec: true });
        assert_eq!(records[2], Record::Forked { time: 57, pid: 9, parent: 7 });
        assert_eq!(records.len(), 3);
    }

    #[test]
    fn losses_are_read_and_unknown_records_are_passed_over() {
        let mut bytes = record(2, 0, &[1, 12, 0, 0, 0]);
        bytes.extend(record(4_000, 0, &[1]));
        bytes.extend(record(13, 0, &[30, 0, 0, 0]));
        bytes.extend(record(5, 0, &[1, 2, 3]));
        let records: Vec<Record> = Records::new(&bytes).collect();
        let expected = [Record::Lost(12), Record::Other, Record::Lost(30), Record::Throttled];
        assert_eq!(records, expected);
    }

    #[test]
    fn bytes_that_are_no_records_end_the_reading() {
        let whole = record(9, 0, &[1, 2, 3, 4, 1, 5]);
        for cut in 0..whole.len() {
            assert_eq!(Records::new(&whole[..cut]).count(), 0);
        }
        // A length that cannot be.
        let mut wrong = record(9, 0, &[1]);
        wrong[6] = 4;
        assert_eq!(Records::new(&wrong).count(), 0);
        // More addresses than the record holds.
        let bytes = record(9, 0, &[1, 2, 3, 4, u64::MAX, 5]);
        assert_eq!(Records::new(&bytes).collect::<Vec<_>>(), [Record::Other]);
    }
}
