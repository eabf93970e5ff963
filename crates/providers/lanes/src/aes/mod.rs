// SPDX-License-Identifier: Apache-2.0
//! AES by VAES: four blocks per instruction.
//!
//! - one message at a time: ECB, CBC decryption and counter mode ([`Key::ecb`], [`Key::cbc_decrypt`], [`Key::ctr`]), of any
//!   length and in any number of parts;
//! - many messages side by side: CBC encryption ([`cbc_encrypt`]), which within one message cannot be parallel.
//!
//! Constant time: the only instructions that see keys or data are AES rounds, exclusive or, additions and
//! shuffles by constant patterns. Branches and addresses depend on lengths and on the counter's width; a counter's
//! value, which is public, decides where a run of blocks is cut at the wrap of its low half.

mod blocks;
mod key;
mod modes;
mod streams;
#[cfg(test)]
mod tests;

pub use key::{BLOCK, Key};
pub use modes::Counter;
pub(crate) use streams::transposed;
pub use streams::{LANES, Stream, cbc_encrypt};

use crate::cpu::{Cpu, cpu};

/// The instructions that it takes to compute requests side by side.
pub const NEEDS: Cpu = Cpu::AVX512.and(Cpu::VAES).and(Cpu::AES);

/// Whether this machine has the instructions; without them [`Key::new`] makes no key.
#[must_use]
pub fn available() -> bool {
    cpu().has(NEEDS)
}
