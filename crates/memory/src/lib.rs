// SPDX-License-Identifier: Apache-2.0
//! Everything that maps memory: the protected arena, secrets in it, the fork sentinel, shared pages;
//! secrets that the kernel keeps; and what becomes of memory that is freed.

mod allocator;
mod arena;
pub mod keyring;
mod lock;
mod os;
mod per_process;
mod protected;
mod registers;
mod secret;
mod shared;
mod stack;

pub use allocator::give_freed_memory_back;
pub use arena::{ALIGNMENT, Stats, allocate, free, size_of_allocation, stats};
pub use per_process::PerProcess;
pub use protected::{Held, Protected};
pub use registers::wipe_registers;
pub use secret::{Exhausted, Secret};
pub use shared::{
    Offered, SharedWords, WIPED_WORDS, file_at, has_locked, lock_whole, share_byte, unlock_whole,
    wiped_on_fork,
};
pub use stack::{
    is_own_stack, wipe_deep_stack, wipe_shallow_stack, wipe_slight_stack, wipe_stack,
    wipe_table_stack, wiping,
};
