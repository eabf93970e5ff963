// SPDX-License-Identifier: Apache-2.0
//! The C library's allocator, which has all that is no secret.

/// From so many bytes on a block has pages of its own, which go back when it is freed; and so many may be free at the end of an
/// arena before they go back, too.
const KEPT: i32 = 128 * 1024;

/// Has what this process frees go back to the system, for as long as it lives: these are the limits that the allocator begins with,
/// and which it raises up to 32 and 64 MiB, for each thread's arena, where a longer block is freed. For a program of ours; a library
/// leaves it to its host.
pub fn give_freed_memory_back() {
    for limit in [libc::M_MMAP_THRESHOLD, libc::M_TRIM_THRESHOLD] {
        // SAFETY: sets a number under the allocator's lock, which `free` sets without it in any thread. A number that is refused
        // stays as it was.
        unsafe { libc::mallopt(limit, KEPT) };
    }
}
