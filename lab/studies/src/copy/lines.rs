// SPDX-License-Identifier: Apache-2.0
//! Cache lines: slices of them, and taking them out of the cache.

/// Bytes of a line.
#[cfg(target_arch = "x86_64")]
pub(super) const LINE: usize = 64;

/// A line's bytes, where a line begins.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(super) struct Line(pub(super) [u8; LINE]);

/// The whole lines in the middle of `bytes`, and what is before and after them.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(super) fn split(bytes: &mut [u8]) -> (&mut [u8], &mut [Line], &mut [u8]) {
    // SAFETY: a line is bytes and nothing else, and any bytes are a line.
    unsafe { bytes.align_to_mut::<Line>() }
}

/// Takes `bytes` out of all caches, written back where they were changed. Does nothing on processors
/// without an instruction for it.
pub fn evict(bytes: &[u8]) {
    #[cfg(target_arch = "x86_64")]
    for line in bytes.chunks(LINE) {
        // SAFETY: the address is that of a byte that can be read.
        unsafe { std::arch::x86_64::_mm_clflush(line.as_ptr()) };
    }
    // Evictions are in order with this fence only.
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    #[cfg(not(target_arch = "x86_64"))]
    std::hint::black_box(bytes);
}
