// SPDX-License-Identifier: Apache-2.0
//! Many outputs of SHAKE256 of one seed and a counter, as long as two blocks at most: the noise of lattices (FIPS 203, algorithm 8's PRF).

use super::kernel::Kernel;
use super::rows::{MAX_LANES, Rows};
use super::shape::Core;
use crate::cpu::cpu;

/// Bytes of a block of SHAKE256.
const BLOCK: usize = 136;
/// Bytes of Keccak's state.
const STATE: usize = 200;
/// Lanes of Keccak's kernels at most.
const LANES: usize = 8;
const SEED: usize = 32;

/// SHAKE256 of `seed` and `first`, of `seed` and `first + 1`, and so on.
pub(crate) fn noise<const N: usize>(seed: &[u8; SEED], first: u8, out: &mut [[u8; N]]) {
    let kernel =
        Kernel::choose(Core::Keccak, cpu(), usize::MAX).or_else(|| Kernel::one(Core::Keccak));
    let kernel = kernel.expect("Keccak has one lane at least");
    assert!(N <= 2 * BLOCK && N.is_multiple_of(8) && kernel.lanes <= LANES && LANES <= MAX_LANES);
    let mut blocks = [[0; BLOCK]; LANES];
    for block in &mut blocks[..kernel.lanes] {
        block[..SEED].copy_from_slice(seed);
        // FIPS 202 §6.2, §5.1: the bits that follow a message to SHAKE, and the padding.
        block[SEED + 1] = 0x1f;
        block[BLOCK - 1] = 0x80;
    }
    let mut counter = first;
    for out in out.chunks_mut(kernel.lanes) {
        for block in &mut blocks[..kernel.lanes] {
            block[SEED] = counter;
            counter = counter.wrapping_add(1);
        }
        let mut rows = Rows::all(&blocks[0], BLOCK);
        for (lane, block) in blocks[..kernel.lanes].iter().enumerate() {
            rows.set(lane, block);
        }
        let mut state = [0; STATE * LANES];
        kernel.run(&mut state[..STATE * kernel.lanes], &rows, BLOCK);
        for (lane, out) in out.iter_mut().enumerate() {
            super::many::read(&state, kernel.lanes, 8, true, lane, &mut out[..N.min(BLOCK)]);
        }
        if N > BLOCK {
            // A block of zeros changes nothing before the permutation.
            kernel.run(&mut state[..STATE * kernel.lanes], &Rows::all(&[0; BLOCK], BLOCK), BLOCK);
            for (lane, out) in out.iter_mut().enumerate() {
                super::many::read(&state, kernel.lanes, 8, true, lane, &mut out[BLOCK..]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_awslc_wrapper::shake::{Function, Shake};

    fn check<const N: usize>() {
        let seed = std::array::from_fn(|at| u8::try_from(at).unwrap() * 7);
        let mut out = [[0; N]; 19];
        noise(&seed, 3, &mut out);
        for (at, out) in out.iter().enumerate() {
            let mut shake = Shake::new(Function::Shake256).unwrap();
            shake.update(&seed).unwrap();
            shake.update(&[3 + u8::try_from(at).unwrap()]).unwrap();
            let mut right = [0; N];
            shake.finish(&mut right).unwrap();
            assert_eq!(*out, right, "lane {at}");
        }
    }

    #[test]
    fn every_lane_is_shake256_of_its_counter() {
        check::<128>();
        check::<136>();
        check::<192>();
    }
}
