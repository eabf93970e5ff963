// SPDX-License-Identifier: Apache-2.0
//! Salsa20 with nonces of 64 bits, and of 192 (`XSalsa20`; Bernstein, 2005 and 2011; PKCS#11 3.2 §6.59). It looks up no table: it
//! takes the same time for every key.

use crate::modes::take;
use metaslot_ck::*;
use metaslot_memory::{Secret, wipe_shallow_stack};
use metaslot_spi::lengths::Lengths;
use metaslot_spi::provider::{Algorithm, Cipher, CipherStream, Direction, Generate};
use metaslot_spi::wrapping::{self, ByCipher};
use metaslot_spi::{Attributes, Key, NewObject, Params};
use std::sync::Arc;

pub(crate) static ROWS: [Algorithm; 2] = [
    wrapping::row(CKM_SALSA20, (256, 256), &ByCipher(Salsa20)),
    Algorithm {
        mechanism: CKM_SALSA20_KEY_GEN,
        key_sizes: (32, 32),
        generate: Some(&Salsa20),
        ..Algorithm::NONE
    },
];

#[derive(Debug)]
struct Salsa20;

/// "expand 32-byte k"
const CONSTANT: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// Where constant, key and input stand among the words of a block.
const CONSTANTS: [usize; 4] = [0, 5, 10, 15];
const KEY: [usize; 8] = [1, 2, 3, 4, 11, 12, 13, 14];
const INPUT: [usize; 4] = [6, 7, 8, 9];

type Words = [u32; 16];

fn put(words: &mut Words, places: &[usize], bytes: &[u8]) {
    for (place, bytes) in places.iter().zip(bytes.as_chunks().0) {
        words[*place] = u32::from_le_bytes(*bytes);
    }
}

fn block(key: &[u8], input: &[u8]) -> Words {
    let mut words = [0; 16];
    for (place, word) in CONSTANTS.into_iter().zip(CONSTANT) {
        words[place] = word;
    }
    put(&mut words, &KEY, key);
    put(&mut words, &INPUT, input);
    words
}

/// Twenty rounds: columns, then rows.
fn rounds(words: &Words) -> Words {
    let mut x = *words;
    for round in 0..20 {
        for line in 0..4 {
            let at = |step: usize| {
                let (across, along) = ((line + step) % 4, line);
                if round % 2 == 0 { 4 * across + along } else { 4 * along + across }
            };
            let [a, b, c, d] = [at(0), at(1), at(2), at(3)];
            x[b] ^= x[a].wrapping_add(x[d]).rotate_left(7);
            x[c] ^= x[b].wrapping_add(x[a]).rotate_left(9);
            x[d] ^= x[c].wrapping_add(x[b]).rotate_left(13);
            x[a] ^= x[d].wrapping_add(x[c]).rotate_left(18);
        }
    }
    x
}

/// The key and the nonce of 64 bits that a longer nonce stands for.
fn extended(key: &[u8], nonce: &[u8]) -> Secret {
    let mixed = rounds(&block(key, &nonce[..16]));
    let mut derived = Secret::zeroed(32);
    let places = CONSTANTS.iter().chain(&INPUT);
    for (place, out) in places.zip(derived.expose_mut().as_chunks_mut().0) {
        *out = mixed[*place].to_le_bytes();
    }
    derived
}

/// In the middle of the key stream.
#[derive(Debug)]
struct Running {
    /// The key, nonce and counter as words of a block; then the block that masks.
    state: Secret,
    /// Blocks until the counter has come round.
    left: u128,
    /// Bytes of the mask that were used.
    at: usize,
}

const BLOCK: usize = 64;

impl Running {
    fn new(key: &Key, params: &Params) -> Result<Self> {
        let running = Self::begun(key, params);
        wipe_shallow_stack();
        running
    }

    /// In a frame of its own, which the caller can wipe.
    #[inline(never)]
    fn begun(key: &Key, params: &Params) -> Result<Self> {
        let Params::Salsa20 { counter, nonce } = params else {
            return Err(Error::MECHANISM_PARAM_INVALID);
        };
        let key = key.secret(CKA_VALUE)?;
        let derived = match (key.len(), nonce.len()) {
            (32, 8) => None,
            (32, 24) => Some(extended(key, nonce)),
            (32, _) => return Err(Error::MECHANISM_PARAM_INVALID),
            _ => return Err(Error::KEY_SIZE_RANGE),
        };
        let key = derived.as_ref().map_or(key, Secret::expose);
        let mut input = [0; 16];
        input[..8].copy_from_slice(&nonce[nonce.len() - 8..]);
        input[8..].copy_from_slice(&counter.to_le_bytes());
        let mut running = Self {
            state: Secret::zeroed(2 * BLOCK),
            left: (1 << 64) - u128::from(*counter),
            at: 0,
        };
        running.write(0, &block(key, &input));
        Ok(running)
    }

    fn write(&mut self, start: usize, words: &Words) {
        let out = self.state.expose_mut()[start..].as_chunks_mut().0;
        out.iter_mut().zip(words).for_each(|(out, word)| *out = word.to_le_bytes());
    }

    fn next(&mut self) {
        let mut words = [0; 16];
        let places: [usize; 16] = std::array::from_fn(|at| at);
        put(&mut words, &places, &self.state.expose()[..BLOCK]);
        let mut mixed = rounds(&words);
        mixed.iter_mut().zip(words).for_each(|(out, word)| *out = out.wrapping_add(word));
        self.write(BLOCK, &mixed);
        let (low, carry) = words[INPUT[2]].overflowing_add(1);
        (words[INPUT[2]], words[INPUT[3]]) = (low, words[INPUT[3]].wrapping_add(u32::from(carry)));
        self.write(0, &words);
    }

    /// As [`Self::begun`].
    #[inline(never)]
    fn masked(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        take(&mut self.left, BLOCK, self.at, input.len())?;
        for (byte, out) in input.iter().zip(out) {
            if self.at == 0 {
                self.next();
            }
            *out = byte ^ self.state.expose()[BLOCK + self.at];
            self.at = (self.at + 1) % BLOCK;
        }
        Ok(())
    }
}

impl CipherStream for Running {
    fn update_length(&self, input: usize) -> usize {
        input
    }

    fn update(&mut self, input: &[u8], out: &mut [u8]) -> Result<()> {
        let done = self.masked(input, out);
        wipe_shallow_stack();
        done
    }

    fn finish_length(&self) -> usize {
        0
    }

    fn finish(&mut self, _: &mut [u8]) -> Result<usize> {
        Ok(0)
    }
}

impl Cipher for Salsa20 {
    fn check(&self, _: Direction, key: &Key, params: &Params) -> Result<()> {
        Running::new(key, params).map(drop)
    }

    fn length(&self, _: Direction, _: &Key, _: &Params, input: usize) -> Result<usize> {
        Ok(input)
    }

    fn run(
        &self,
        _: Direction,
        key: &Key,
        params: &Params,
        input: &[u8],
        out: &mut [u8],
    ) -> Result<usize> {
        Running::new(key, params)?.update(input, &mut out[..input.len()])?;
        Ok(input.len())
    }

    fn start(
        &self,
        _: Direction,
        key: &Arc<Key>,
        params: &Params,
    ) -> Result<Box<dyn CipherStream>> {
        Ok(Box::new(Running::new(key, params)?))
    }
}

impl Generate for Salsa20 {
    fn generate(&self, params: &Params, template: &Attributes) -> Result<NewObject> {
        crate::generate::random_key(Lengths::of(CKK_SALSA20), params, template)
    }
}
