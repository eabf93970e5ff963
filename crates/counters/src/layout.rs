// SPDX-License-Identifier: Apache-2.0
//! Where everything stands in the page, in words of 8 bytes. A change of anything here is a new
//! [`VERSION`].

/// Word 0: `MTSLTCNT`, little-endian.
pub const MAGIC: u64 = u64::from_le_bytes(*b"MTSLTCNT");
/// Word 1.
pub const VERSION: u64 = 2;

/// Words of the header.
pub const HEADER: usize = 512;
/// Header: the process.
pub const PID: usize = 2;
/// Header: when the process started, in clock ticks after boot (field 22 of `/proc/PID/stat`).
pub const STARTED: usize = 3;
/// Header: when the page was made, in seconds since 1970.
pub const MADE: usize = 4;
/// Header: how many shards follow.
pub const SHARD_COUNT: usize = 5;
/// Header: words of one shard.
pub const SHARD_LENGTH: usize = 6;
/// Header: how many functions a shard counts.
pub const FUNCTION_COUNT: usize = 7;
/// Header: how many rows are in use.
pub const ROWS_USED: usize = 8;
/// Header: the program's name, two words, as in `/proc/PID/comm`.
pub const PROGRAM: usize = 10;
/// Header: sixteen provider names, two words each, padded with zeros.
pub const PROVIDER_NAMES: usize = 32;
/// Header: provider in the top byte and mechanism below, one word for each row.
pub const ROW_KEYS: usize = 64;

/// How many providers a process can have.
pub const PROVIDERS: usize = 16;
/// How many pairs of provider and mechanism a process can use; the last row takes all others.
pub const ROWS: usize = 64;
/// What stands in the directory for the row of all others.
pub const OTHERS: u64 = u64::MAX;
const _: () = assert!(PROVIDER_NAMES + 2 * PROVIDERS <= ROW_KEYS);

/// Shard: pairs of calls and errors, by function.
pub const CALLS: usize = 0;
/// How many functions fit.
pub const FUNCTIONS: usize = 128;
/// Shard: counts by [`crate::Event`].
pub const EVENTS: usize = CALLS + 2 * FUNCTIONS;
/// How many events fit.
pub const EVENT_COUNT: usize = 31;
/// Shard of one thread: since when it is in another module's code, in milliseconds of the monotonic clock; 0 while it is not.
pub const OUTSIDE: usize = EVENTS + EVENT_COUNT;
/// Shard: return codes, pairs of key and count. The key is function plus one in the upper half and
/// the code in the lower; 0 is an empty place.
pub const CODES: usize = OUTSIDE + 1;
/// How many pairs of function and code; when they are all taken, the rest is not told apart.
pub const CODE_COUNT: usize = 112;
/// Shard: the cells, by row and size class.
pub const CELLS: usize = CODES + 2 * CODE_COUNT;

/// Operations on up to so many bytes are in each class; the last class has no limit.
pub const SIZE_LIMITS: [usize; SIZES - 1] = [64, 1024, 16 * 1024, 256 * 1024];
/// How many size classes.
pub const SIZES: usize = 5;

/// Cell: operations.
pub const OPERATIONS: usize = 0;
/// Cell: bytes of input.
pub const BYTES: usize = 1;
/// Cell: operations that failed.
pub const ERRORS: usize = 2;
/// Cell: nanoseconds, over the operations whose time was taken.
pub const NANOSECONDS: usize = 3;
/// Cell: how many operations took a time of each bucket. Bucket `n` ends before `2^(n + 8)` ns, the
/// last one never.
pub const BUCKETS: usize = 4;
/// How many buckets.
pub const BUCKET_COUNT: usize = 20;
/// Words of a cell.
pub const CELL: usize = BUCKETS + BUCKET_COUNT;

/// Words of a shard: a whole number of cache lines.
pub const SHARD: usize = (CELLS + ROWS * SIZES * CELL).next_multiple_of(8);
/// Shards of one thread each.
pub const EXCLUSIVE: usize = 31;
/// All shards; the last one is for every thread beyond those.
pub const SHARDS: usize = EXCLUSIVE + 1;
/// Words of the page.
pub const WORDS: usize = HEADER + SHARDS * SHARD;

/// What processes that have ended counted, word 0: `MTSLTEND`, little-endian.
pub const ENDED_MAGIC: u64 = u64::from_le_bytes(*b"MTSLTEND");
/// Word 1.
pub const ENDED_VERSION: u64 = 1;
/// Which of the two halves counts.
pub const ENDED_ACTIVE: usize = 2;
/// Words before the first half.
pub const ENDED_HEADER: usize = 512;
/// Words of a half: a header as a page has it, about the page that was added last, and one shard.
pub const ENDED_HALF: usize = HEADER + SHARD;
/// Words of the file.
pub const ENDED_WORDS: usize = ENDED_HEADER + 2 * ENDED_HALF;
/// Header of a half, in the place of the number of shards: how many processes were added.
pub const ENDED_PROCESSES: usize = SHARD_COUNT;
/// Header of a half, in the place of the length of a shard: when the first was added, in seconds since 1970.
pub const ENDED_SINCE: usize = SHARD_LENGTH;

/// Which class an operation on `bytes` belongs to.
#[must_use]
pub fn size_class(bytes: usize) -> usize {
    SIZE_LIMITS.iter().position(|limit| bytes <= *limit).unwrap_or(SIZES - 1)
}

/// Which bucket a time belongs to.
#[must_use]
pub fn bucket(nanoseconds: u64) -> usize {
    let log = 64 - (nanoseconds >> 8).leading_zeros() as usize;
    log.min(BUCKET_COUNT - 1)
}

/// Where a bucket ends, in nanoseconds; `None` for the last one.
#[must_use]
pub fn bucket_end(bucket: usize) -> Option<u64> {
    (bucket + 1 < BUCKET_COUNT).then(|| 1 << (bucket + 8))
}

/// Where the cell of `row` and `size` begins in a shard.
#[must_use]
pub const fn cell(row: usize, size: usize) -> usize {
    CELLS + (row * SIZES + size) * CELL
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_ends_where_the_format_says() {
        assert_eq!(bucket(0), 0);
        assert_eq!(bucket(255), 0);
        assert_eq!(bucket(256), 1);
        assert_eq!(bucket(511), 1);
        assert_eq!(bucket(512), 2);
        assert_eq!(bucket(u64::MAX), BUCKET_COUNT - 1);
        for at in 0..BUCKET_COUNT - 1 {
            let end = bucket_end(at).unwrap();
            assert_eq!((bucket(end - 1), bucket(end)), (at, at + 1));
        }
        assert_eq!(bucket_end(BUCKET_COUNT - 1), None);
    }

    #[test]
    fn a_size_class_includes_its_limit() {
        assert_eq!(size_class(0), 0);
        assert_eq!(size_class(64), 0);
        assert_eq!(size_class(65), 1);
        assert_eq!(size_class(usize::MAX), SIZES - 1);
    }
}
