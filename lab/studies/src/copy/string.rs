// SPDX-License-Identifier: Apache-2.0
//! The string instruction: the processor's own loop.

use std::arch::asm;

/// `rep movsb`.
pub(super) fn movsb(to: &mut [u8], from: &[u8]) {
    let length = to.len().min(from.len());
    // SAFETY: reads so many bytes of `from` and writes as many of `to`, which do not overlap; the
    // direction flag is clear, as everywhere.
    unsafe {
        asm!(
            "rep movsb",
            inout("rcx") length => _,
            inout("rdi") to.as_mut_ptr() => _,
            inout("rsi") from.as_ptr() => _,
            options(nostack, preserves_flags),
        );
    }
}
