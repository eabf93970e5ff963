// SPDX-License-Identifier: Apache-2.0
//! What copies and kernels leave in vector registers is wiped with the stack, and with a secret that is dropped.
#![cfg(target_arch = "x86_64")]

use metaslot_memory::{Secret, wipe_stack};
use std::arch::{asm, is_x86_feature_detected};

/// What is in three registers after a secret was in them and this was done.
fn left_behind(done: impl FnOnce()) -> [[u8; 64]; 3] {
    let (secret, mut left) = ([0x5a_u8; 64], [[0xff_u8; 64]; 3]);
    // SAFETY: the processor has the instructions, and reads the array. Nothing else here uses the registers beyond the first sixteen.
    unsafe {
        asm!("vmovdqu64 zmm9, [{0}]", "vmovdqu64 zmm17, [{0}]", "vmovdqu64 zmm31, [{0}]",
            in(reg) secret.as_ptr(), out("xmm9") _, options(nostack, readonly));
    }
    done();
    // SAFETY: as above; it writes the other array.
    unsafe {
        asm!("vmovdqu64 [{0}], zmm9", "vmovdqu64 [{0} + 64], zmm17", "vmovdqu64 [{0} + 128], zmm31",
            in(reg) left.as_mut_ptr(), options(nostack));
    }
    left
}

/// The same of one register, on a processor with AVX.
fn left_in_one(done: impl FnOnce()) -> [u8; 32] {
    let (secret, mut left) = ([0x5a_u8; 32], [0xff_u8; 32]);
    // SAFETY: the processor has the instruction, and reads the array.
    unsafe {
        asm!("vmovdqu ymm9, [{0}]", in(reg) secret.as_ptr(), out("xmm9") _, options(nostack, readonly));
    }
    done();
    // SAFETY: as above; it writes the other array.
    unsafe { asm!("vmovdqu [{0}], ymm9", in(reg) left.as_mut_ptr(), options(nostack)) };
    left
}

/// The same of a mask, on a processor with AVX-512.
fn left_of_a_mask(done: impl FnOnce()) -> u32 {
    let mut left: u32;
    // SAFETY: the processor has the instruction.
    unsafe { asm!("kmovw k5, {0:e}", in(reg) 0x5a5a_u32, out("k5") _, options(nomem, nostack)) };
    done();
    // SAFETY: as above.
    unsafe { asm!("kmovw {0:e}, k5", out(reg) left, options(nomem, nostack)) };
    left
}

#[test]
fn nothing_stays_in_registers() {
    if is_x86_feature_detected!("avx") {
        assert_eq!(left_in_one(wipe_stack), [0; 32]);
    }
    if is_x86_feature_detected!("avx512vl") {
        assert_eq!(left_behind(wipe_stack), [[0; 64]; 3]);
        assert_eq!(left_of_a_mask(wipe_stack), 0);
        let secret = Secret::zeroed(32);
        assert_eq!(left_behind(|| drop(secret)), [[0; 64]; 3]);
    }
}
