// SPDX-License-Identifier: Apache-2.0
//! Fresh memory of one's own, to learn which pages the kernel gives.

use crate::done;
use std::io;
use std::ptr::{self, NonNull};

/// Fresh anonymous memory, given back when it is dropped.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

/// From which pages memory is made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pages {
    /// As the kernel likes.
    Ordinary,
    /// Pages from the reserve of large ones, of the default size.
    Reserved,
}

impl Mapping {
    /// Maps so many bytes; nothing is touched yet.
    ///
    /// # Errors
    /// The kernel's: ENOMEM where the reserve is empty.
    pub fn new(length: usize, pages: Pages) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let flags = if pages == Pages::Reserved { flags | libc::MAP_HUGETLB } else { flags };
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: maps fresh memory at an address that the kernel chooses.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, access, flags, -1, 0) };
        match NonNull::new(start.cast()).filter(|_| start != libc::MAP_FAILED) {
            Some(start) => Ok(Self { start, length }),
            None => Err(io::Error::last_os_error()),
        }
    }

    /// Asks for large pages.
    ///
    /// # Errors
    /// The kernel's: EINVAL where it has none.
    pub fn ask_for_large_pages(&self) -> io::Result<()> {
        let start = self.start.as_ptr().cast();
        // SAFETY: the whole range is this mapping's; the advice changes no contents.
        done(unsafe { libc::madvise(start, self.length, libc::MADV_HUGEPAGE) })
    }

    /// Writes to every page.
    pub fn touch(&mut self) {
        // SAFETY: the range is mapped, is this mapping's alone, and any byte is a valid one.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) };
        bytes.iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    }

    /// Where it begins.
    pub fn address(&self) -> usize {
        self.start.as_ptr().addr()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let start = self.start.as_ptr().cast();
        // SAFETY: the range was mapped by `new`, and nothing refers to it any more.
        unsafe { libc::munmap(start, self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_memory_can_be_touched() {
        let mut mapping = Mapping::new(1 << 16, Pages::Ordinary).unwrap();
        mapping.touch();
        assert_eq!(mapping.address() % 4096, 0);
    }
}
