// SPDX-License-Identifier: Apache-2.0
//! Memory of one's own, and which pages the kernel gives for it.

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
    pub fn ask_for_large_pages(&mut self) -> io::Result<()> {
        self.advise(libc::MADV_HUGEPAGE)
    }

    /// Asks for small pages, whatever the system's default is.
    ///
    /// # Errors
    /// The kernel's: EINVAL where there are no others.
    pub fn ask_for_small_pages(&mut self) -> io::Result<()> {
        self.advise(libc::MADV_NOHUGEPAGE)
    }

    /// Has a page behind every byte, as if each had been written to.
    ///
    /// # Errors
    /// The kernel's: ENOMEM, or EINVAL before Linux 5.14.
    pub fn populate(&mut self) -> io::Result<()> {
        self.advise(libc::MADV_POPULATE_WRITE)
    }

    /// Gives all pages back: every byte is zero and untouched again.
    ///
    /// # Errors
    /// The kernel's: EINVAL where pages are locked.
    pub fn give_back(&mut self) -> io::Result<()> {
        self.advise(libc::MADV_DONTNEED)
    }

    fn advise(&mut self, advice: libc::c_int) -> io::Result<()> {
        let start = self.start.as_ptr().cast();
        // SAFETY: the whole range is this mapping's, and no other reference to it exists: contents may change.
        done(unsafe { libc::madvise(start, self.length, advice) })
    }

    /// Writes to every page.
    pub fn touch(&mut self) {
        self.bytes_mut().iter_mut().step_by(4096).for_each(|byte| *byte = 1);
    }

    /// The memory.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the range is mapped, only `&mut self` changes it, and any byte is a valid one.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    /// The memory, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the range is mapped, is this mapping's alone, and any byte is a valid one.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
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

    #[test]
    fn memory_that_was_given_back_is_zero() {
        let mut mapping = Mapping::new(1 << 16, Pages::Ordinary).unwrap();
        mapping.populate().unwrap();
        mapping.bytes_mut().fill(7);
        assert!(mapping.bytes().iter().all(|byte| *byte == 7));
        mapping.give_back().unwrap();
        assert!(mapping.bytes().iter().all(|byte| *byte == 0));
    }
}
