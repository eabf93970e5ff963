// SPDX-License-Identifier: Apache-2.0
//! Many copies in a row, so that a program that is not optimised can measure them: source and destination
//! are walked through in steps of one copy, from the start again at the end.

use super::Kernel;

/// Where a walk through two areas has come to, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Walk {
    to: usize,
    from: usize,
}

impl Walk {
    /// Does so many copies of `size` bytes; with `read`, each is read at once by the same thread. The
    /// result depends on every byte that was read.
    ///
    /// # Panics
    /// An area is smaller than one copy.
    #[inline(never)]
    pub fn copy(
        &mut self,
        kernel: Kernel,
        to: &mut [u8],
        from: &[u8],
        size: usize,
        copies: usize,
        read: bool,
    ) -> u64 {
        let mut total = 0u64;
        for _ in 0..copies {
            (self.to, self.from) = (fit(self.to, size, to.len()), fit(self.from, size, from.len()));
            let place = &mut to[self.to..self.to + size];
            kernel.copy(place, &from[self.from..self.from + size]);
            if read {
                total = total.wrapping_add(sum(place));
            }
            (self.to, self.from) = (self.to + size, self.from + size);
        }
        total
    }
}

/// This place, if a whole copy fits there.
const fn fit(at: usize, size: usize, length: usize) -> usize {
    if at + size <= length { at } else { 0 }
}

/// The sum of all whole words of 8 bytes: a reader that does little else but read.
#[must_use]
pub fn sum(bytes: &[u8]) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        return unsafe { by_vectors(bytes) };
    }
    words(bytes)
}

/// The same, where the compiler may use vectors.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn by_vectors(bytes: &[u8]) -> u64 {
    words(bytes)
}

#[inline]
fn words(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().fold(0, |sum: u64, word| sum.wrapping_add(u64::from_ne_bytes(*word)))
}
