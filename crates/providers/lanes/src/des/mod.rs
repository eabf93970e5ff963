// SPDX-License-Identifier: Apache-2.0
//! Triple DES, bitsliced: bit n of 512 blocks in one register, the S-boxes as circuits (Biham: "A Fast New DES Implementation in
//! Software", FSE 1997).
//!
//! - one message at a time: ECB and CBC decryption ([`Key::ecb`], [`Key::cbc_decrypt`]);
//! - up to 512 messages side by side: CBC encryption ([`Lanes::cbc_encrypt`]).
//!
//! A pass computes [`LANES`] blocks however many are wanted, so it pays from a few dozen on (the benchmark says from how many).
//! Without AVX-512 the same code runs on AVX2 or on plain 64-bit words.
//!
//! Constant time: no table is looked up and no branch taken by a bit of a key or of data; permutations are which register is named,
//! and the schedule of which key bit goes where is the standard's constant.

mod cipher;
mod circuits;
mod key;
mod lanes;
mod message;
#[cfg(test)]
mod tests;
mod transpose;
mod word;

pub use key::{BLOCK, Key};
pub use lanes::{Lanes, Stream};

use crate::cpu::{Cpu, cpu};

/// Blocks computed in one pass.
pub const LANES: usize = 512;

/// The instructions that the ratios were measured with. The kernel computes without them too.
pub const NEEDS: Cpu = Cpu::AVX512;

/// Whether this machine has them.
#[must_use]
pub fn available() -> bool {
    cpu().has(NEEDS)
}
