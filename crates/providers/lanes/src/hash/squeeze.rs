// SPDX-License-Identifier: Apache-2.0
//! Many outputs of SHAKE of one seed and a short end: noise, masks and matrices of lattices (FIPS 203 §4.1, FIPS 204 §7.3).

use super::kernel::Kernel;
use super::rows::{MAX_LANES, Rows};
use super::shape::Core;
use crate::cpu::cpu;

/// Bytes of a block of SHAKE128, which is the longest.
pub(crate) const BLOCK_128: usize = 168;
/// Bytes of a block of SHAKE256.
pub(crate) const BLOCK_256: usize = 136;
/// Bytes of Keccak's state.
const STATE: usize = 200;
/// Lanes of Keccak's kernels at most.
const LANES: usize = 8;

/// For each `length` bytes of `out` the SHAKE whose blocks have `block` bytes, of `seed` and an end; ends are asked for by number.
///
/// # Panics
/// For a message that is not shorter than a block.
pub(crate) fn squeezed<const END: usize>(
    block: usize,
    seed: &[u8],
    end: impl Fn(u8) -> [u8; END],
    length: usize,
    out: &mut [u8],
) {
    let write = |number, place: &mut [u8]| place.copy_from_slice(&end(number));
    ended(block, seed, (END, &write), length, out);
}

/// The length of ends, and what writes one.
type Ends<'a> = (usize, &'a dyn Fn(u8, &mut [u8]));

/// The same for ends of any length, once in the library.
#[inline(never)]
fn ended(block: usize, seed: &[u8], (end_length, end): Ends<'_>, length: usize, out: &mut [u8]) {
    let kernel =
        Kernel::choose(Core::Keccak, cpu(), usize::MAX).or_else(|| Kernel::one(Core::Keccak));
    let kernel = kernel.expect("Keccak has one lane at least");
    let message = seed.len() + end_length;
    assert!(block <= BLOCK_128 && message < block && length.is_multiple_of(8));
    assert!(kernel.lanes <= LANES && LANES <= MAX_LANES);
    let mut blocks = [[0; BLOCK_128]; LANES];
    for padded in &mut blocks[..kernel.lanes] {
        padded[..seed.len()].copy_from_slice(seed);
        // FIPS 202 §6.2, §5.1: the bits that follow a message to SHAKE, and the padding.
        padded[message] = 0x1f;
        padded[block - 1] |= 0x80;
    }
    let mut number = 0_u8;
    for out in out.chunks_mut(length * kernel.lanes) {
        for padded in &mut blocks[..kernel.lanes] {
            end(number, &mut padded[seed.len()..message]);
            number = number.wrapping_add(1);
        }
        let mut rows = Rows::all(&blocks[0], block);
        for (lane, padded) in blocks[..kernel.lanes].iter().enumerate() {
            rows.set(lane, padded);
        }
        let mut state = [0; STATE * LANES];
        let state = &mut state[..STATE * kernel.lanes];
        for at in (0..length).step_by(block) {
            kernel.run(state, &rows, block);
            for (lane, out) in out.chunks_mut(length).enumerate() {
                let out = &mut out[at..length.min(at + block)];
                super::many::read(state, kernel.lanes, 8, true, lane, out);
            }
            // What follows takes nothing more in.
            rows = Rows::all(&[0; BLOCK_128], block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_awslc_wrapper::shake::{Function, Shake};

    #[test]
    fn every_lane_is_shake_of_its_end() {
        let seed: [u8; 64] = std::array::from_fn(|at| u8::try_from(at).unwrap() * 3);
        for (function, block) in [(Function::Shake128, BLOCK_128), (Function::Shake256, BLOCK_256)]
        {
            for length in [128, 136, 192, 640] {
                let mut out = vec![0; 19 * length];
                squeezed(block, &seed, |at| [at, 3], length, &mut out);
                for (at, out) in out.chunks(length).enumerate() {
                    let mut shake = Shake::new(function).unwrap();
                    shake.update(&seed).unwrap();
                    shake.update(&[u8::try_from(at).unwrap(), 3]).unwrap();
                    let mut right = vec![0; length];
                    shake.finish(&mut right).unwrap();
                    assert_eq!(out, right, "lane {at}");
                }
            }
        }
    }
}
