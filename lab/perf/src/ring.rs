// SPDX-License-Identifier: Apache-2.0
//! The memory into which the kernel writes records: a page about the ring, and the ring.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

/// Where the page about the ring says how many bytes were written.
const HEAD: usize = 1024;
/// Where it is told how many were read.
const TAIL: usize = 1032;

/// A ring of an event.
#[derive(Debug)]
pub(crate) struct Ring {
    start: NonNull<u8>,
    /// Bytes of a page, and of the ring, which is a power of two.
    page: usize,
    size: usize,
}

// SAFETY: the memory belongs to this value alone on our side, and the kernel writes it from any CPU.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps a ring of so many pages, a power of two.
    ///
    /// # Errors
    /// The kernel's: EPERM where this user may not lock so much memory.
    pub(crate) fn map(event: &File, pages: usize) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let (length, number) = (page * (pages + 1), event.as_raw_fd());
        let (access, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: maps fresh memory at an address that the kernel chooses.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, access, shared, number, 0) };
        match NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED) {
            Some(start) => Ok(Self { start, page, size: page * pages }),
            None => Err(io::Error::last_os_error()),
        }
    }

    /// Bytes that the kernel has written so far.
    pub(crate) fn written(&self) -> u64 {
        self.word(HEAD).load(Ordering::Acquire)
    }

    /// Appends what was written since the last time: whole records.
    pub(crate) fn drain(&self, into: &mut Vec<u8>) {
        let (head, tail) = (self.written(), self.word(TAIL).load(Ordering::Relaxed));
        let new = usize::try_from(head.wrapping_sub(tail)).unwrap_or(0).min(self.size);
        let first = usize::try_from(tail).unwrap_or(0) & (self.size - 1);
        let before_end = new.min(self.size - first);
        self.copy(first, before_end, into);
        self.copy(0, new - before_end, into);
        self.word(TAIL).store(head, Ordering::Release);
    }

    /// Appends so many bytes of the ring, which end before it does.
    fn copy(&self, at: usize, count: usize, into: &mut Vec<u8>) {
        assert!(at + count <= self.size, "bytes beyond the ring");
        // SAFETY: the ring begins after one page, and the place is inside, as asserted.
        let from = unsafe { self.start.as_ptr().add(self.page + at) };
        // SAFETY: the bytes are mapped, and the kernel leaves them alone until the tail has passed them.
        into.extend_from_slice(unsafe { std::slice::from_raw_parts(from, count) });
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: the first page is mapped and longer than that.
        let word = unsafe { self.start.as_ptr().add(at) };
        // SAFETY: the page is mapped as long as this lives, the word is aligned, and both sides use it
        // atomically.
        unsafe { AtomicU64::from_ptr(word.cast()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let length = self.page + self.size;
        // SAFETY: these pages were mapped by `map`, and nothing refers to them any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Seek, SeekFrom, Write};

    /// A file that looks like an event's memory: one page about the ring, and one page of ring.
    fn file(name: &str) -> (File, std::path::PathBuf) {
        let path = std::env::temp_dir().join(format!("ring-{name}-{}", std::process::id()));
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        file.set_len(2 * rustix::param::page_size() as u64).unwrap();
        (file, path)
    }

    fn put(mut file: &File, at: usize, bytes: &[u8]) {
        file.seek(SeekFrom::Start(at as u64)).unwrap();
        file.write_all(bytes).unwrap();
    }

    #[test]
    fn bytes_come_in_order_around_the_end_and_once() {
        let (file, path) = file("order");
        let page = rustix::param::page_size();
        let ring = Ring::map(&file, 1).unwrap();
        // Read nearly to the end before, five times around: eight bytes are left of this round.
        let tail = 5 * page as u64 + page as u64 - 8;
        put(&file, TAIL, &tail.to_ne_bytes());
        put(&file, HEAD, &(tail + 12).to_ne_bytes());
        put(&file, page + page - 8, b"together");
        put(&file, page, b"here");
        let mut bytes = b"before ".to_vec();
        ring.drain(&mut bytes);
        assert_eq!(bytes, b"before togetherhere");
        ring.drain(&mut bytes);
        assert_eq!(bytes.len(), 19);
        // The kernel learns how far we are.
        let mut word = [0; 8];
        (&file).seek(SeekFrom::Start(TAIL as u64)).unwrap();
        (&file).read_exact(&mut word).unwrap();
        assert_eq!(u64::from_ne_bytes(word), tail + 12);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_full_ring_is_read_whole() {
        let (file, path) = file("full");
        let page = rustix::param::page_size();
        let ring = Ring::map(&file, 1).unwrap();
        put(&file, page, &vec![7; page]);
        put(&file, HEAD, &(page as u64).to_ne_bytes());
        let mut bytes = Vec::new();
        ring.drain(&mut bytes);
        assert_eq!(bytes, vec![7; page]);
        std::fs::remove_file(path).unwrap();
    }
}
