// SPDX-License-Identifier: Apache-2.0
//! The bytes that a cipher reads and writes: two buffers of one length, or one buffer in place.

use std::fmt;
use std::marker::PhantomData;

/// Which way a cipher goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(missing_docs, reason = "two words that say it")]
pub enum Way {
    Encrypt,
    Decrypt,
}

/// Input and output of a cipher that keeps lengths.
pub struct Data<'a> {
    input: *const u8,
    output: *mut u8,
    length: usize,
    borrowed: PhantomData<&'a mut [u8]>,
}

// SAFETY: it stands for a shared and an exclusive borrow of bytes, which may be sent.
unsafe impl Send for Data<'_> {}

impl<'a> Data<'a> {
    /// Replaces `bytes` by what comes out.
    #[must_use]
    pub const fn in_place(bytes: &'a mut [u8]) -> Self {
        let output = bytes.as_mut_ptr();
        Self { input: output, output, length: bytes.len(), borrowed: PhantomData }
    }

    /// Reads `input` and writes `output`.
    ///
    /// # Panics
    /// When they are not equally long.
    #[must_use]
    pub const fn between(input: &'a [u8], output: &'a mut [u8]) -> Self {
        assert!(input.len() == output.len(), "a cipher keeps the length");
        let length = input.len();
        Self { input: input.as_ptr(), output: output.as_mut_ptr(), length, borrowed: PhantomData }
    }

    /// How many bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Where to read: [`Self::len`] bytes are readable while this lives. The same as [`Self::output`], or apart from it.
    pub(crate) const fn input(&self) -> *const u8 {
        self.input
    }

    /// Where to write: [`Self::len`] bytes are writable while this lives.
    pub(crate) const fn output(&self) -> *mut u8 {
        self.output
    }

    /// Copies bytes of the input from `at` on.
    ///
    /// # Panics
    /// When there are fewer than `to` takes.
    pub const fn read(&self, at: usize, to: &mut [u8]) {
        assert!(at <= self.length && to.len() <= self.length - at, "read beyond the end");
        let from = self.input.wrapping_add(at);
        // SAFETY: so many bytes are readable from there (asserted); `to` is borrowed exclusively, so it is no part of them.
        unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) };
    }

    /// Writes bytes of the output from `at` on.
    ///
    /// # Panics
    /// When there is less room.
    pub const fn write(&mut self, at: usize, from: &[u8]) {
        assert!(at <= self.length && from.len() <= self.length - at, "write beyond the end");
        let to = self.output.wrapping_add(at);
        // SAFETY: so many bytes are writable from there (asserted), and borrowed exclusively, so `from` is no part of them.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
    }

    /// The same bytes, borrowed for a while.
    #[must_use]
    pub const fn again(&mut self) -> Data<'_> {
        Data { input: self.input, output: self.output, length: self.length, borrowed: PhantomData }
    }

    /// The first `at` bytes, and the rest.
    ///
    /// # Panics
    /// When there are not so many.
    #[must_use]
    pub const fn split(self, at: usize) -> (Self, Self) {
        assert!(at <= self.length, "cut beyond the end");
        let first = Self { length: at, ..self };
        // SAFETY: `at` is at most the length of what `input` points to.
        let input = unsafe { self.input.add(at) };
        // SAFETY: as above, for `output`.
        let output = unsafe { self.output.add(at) };
        (first, Self { input, output, length: self.length - at, borrowed: PhantomData })
    }
}

impl fmt::Debug for Data<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Data({} bytes)", self.length)
    }
}
