// SPDX-License-Identifier: Apache-2.0
//! Lanes that are alike: each has a key, an input and a result, which is compared with the plain library's.

use crate::row::{Result, Work, same};

/// One operation in each lane of which there is a result, with inputs of this length; whether all succeeded.
pub(crate) type Kernel<K, I, O> = fn(&[K], &[I], &mut [O], usize) -> bool;

pub(crate) struct Lanes<L, K, I, O> {
    /// Keys for the library; where there are fewer than lanes, they are used in turn.
    pub(crate) library: Vec<L>,
    /// The same keys for the kernel.
    pub(crate) keys: Vec<K>,
    pub(crate) inputs: Vec<I>,
    pub(crate) out: Vec<O>,
    /// The library's result.
    pub(crate) alone: O,
    /// Length of the inputs if instructions are counted by it; 0 if they are counted by the number of lanes.
    pub(crate) length: usize,
    /// What a result is.
    pub(crate) what: &'static str,
    /// One operation by the library; whether it succeeded.
    pub(crate) plain: fn(&L, &I, &mut O) -> bool,
    pub(crate) kernel: Kernel<K, I, O>,
}

impl<L, K, I, O: PartialEq> Lanes<L, K, I, O> {
    fn by_library(&mut self, lane: usize) {
        let key = &self.library[lane % self.library.len()];
        let done = (self.plain)(key, &self.inputs[lane], &mut self.alone);
        assert!(done, "AWS-LC fails at {}", self.what);
    }

    fn run(&mut self, filled: usize, length: usize) {
        let done = (self.kernel)(&self.keys, &self.inputs, &mut self.out[..filled], length);
        assert!(done, "the kernel fails at {}", self.what);
    }
}

impl<L, K, I, O: PartialEq> Work for Lanes<L, K, I, O> {
    fn raw(&mut self) {
        self.by_library(0);
    }

    fn batch(&mut self, filled: usize) {
        self.run(filled, self.length);
    }

    fn counted(&mut self, size: usize) {
        match self.length {
            0 => self.run(size, 0),
            _ => self.run(self.out.len(), size),
        }
    }

    fn check(&mut self) -> Result<()> {
        for lane in 0..self.out.len() {
            self.by_library(lane);
            same(self.alone == self.out[lane], self.what)?;
        }
        Ok(())
    }
}

/// Verification: of a message and its signature, whether they belong together.
pub(crate) struct Verify<L, K, S>(pub(crate) Lanes<L, K, (Vec<u8>, S), bool>);

impl<L, K, S: AsMut<[u8]>> Work for Verify<L, K, S> {
    fn raw(&mut self) {
        self.0.raw();
        assert!(self.0.alone, "AWS-LC verifies");
    }

    fn batch(&mut self, filled: usize) {
        self.0.batch(filled);
    }

    fn check(&mut self) -> Result<()> {
        same(self.0.out.iter().all(|good| *good), "a good signature that was refused")?;
        let changed = self.0.inputs.iter_mut().step_by(3);
        changed.for_each(|(_, signature)| signature.as_mut()[40] ^= 1);
        self.batch(self.0.out.len());
        self.0.check()
    }
}

/// A request for each lane.
pub(crate) fn requests<'k, 'o, K, I, O, R>(
    keys: &'k [K],
    inputs: &'k [I],
    out: &'o mut [O],
    make: impl Fn(&'k K, &'k I, &'o mut O) -> R,
) -> Vec<R> {
    let lanes = keys.iter().cycle().zip(inputs).zip(out);
    lanes.map(|((key, input), out)| make(key, input, out)).collect()
}
