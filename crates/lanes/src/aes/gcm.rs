// SPDX-License-Identifier: Apache-2.0
//! GCM for short messages (NIST SP 800-38D): 96-bit IVs, the hash with one reduction for up to 64 blocks.
//!
//! A prepared key holds the powers of the hash key, so every block is multiplied by its own power, all products are added, and
//! only the sum is reduced. Numbers of GF(2^128) are kept bit-reflected and the powers multiplied by x, which makes the
//! reflected product come out in place; the reduction is by two carry-less products (Gueron, Kounavis: "Intel Carry-Less Multiplication
//! Instruction and its Usage for Computing the GCM Mode", 2010).

use super::blocks::{self, REGISTER, encrypt, first, load, store};
use super::key::{self, BLOCK, RoundKeys};
use crate::cpu::{Cpu, cpu};
use crate::data::Data;
use metaslot_memory::{Protected, wipe_shallow_stack};
use std::arch::x86_64::*;

/// Length of the IV, in bytes.
pub const IV: usize = 12;

/// Length of a whole tag, in bytes.
pub const TAG: usize = 16;

/// Blocks hashed with one reduction at most.
const SLAB: usize = 64;

/// Bytes at most: 2^36 - 32 (SP 800-38D §5.2.1.1).
const LONGEST: usize = (1 << 36) - 32;

/// Whether this machine has the instructions; without them [`Key::new`] makes no key.
#[must_use]
pub fn available() -> bool {
    super::available() && cpu().has(Cpu::VPCLMUL)
}

/// The tag does not belong to what came with it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Forged;
