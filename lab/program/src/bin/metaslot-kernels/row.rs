// SPDX-License-Identifier: Apache-2.0
//! What a kernel has to offer to be timed.

use metaslot_lab::kernels::{Buffer, Claim};
use metaslot_lanes::cpu::Cpu;
use metaslot_lanes::data::Data;
use metaslot_lanes::peak::Port;
use std::sync::OnceLock;

/// What went wrong, in words.
pub(crate) type Result<T> = std::result::Result<T, String>;

/// One operation of one kernel, with keys and messages of its own for each lane.
pub(crate) trait Work {
    /// One operation by the plain library.
    ///
    /// # Panics
    /// When it fails.
    fn raw(&mut self);

    /// One operation in each of the first `filled` lanes.
    ///
    /// # Panics
    /// When one fails.
    fn batch(&mut self, filled: usize);

    /// The work whose instructions are counted, at this size.
    fn counted(&mut self, size: usize) {
        self.batch(size);
    }

    /// Compares what the lanes' last operations left with the plain library's word.
    fn check(&mut self) -> Result<()>;

    /// Results that only OpenSSL can judge.
    fn claims(&self) -> Vec<Claim> {
        Vec::new()
    }
}

/// How the number of instructions is known.
#[derive(Clone, Copy)]
pub(crate) enum Count {
    /// From the algorithm: the number for one operation in full lanes.
    Formula(fn() -> f64),
    /// By executing work of two sizes step by step, and a straight line through both to the `full` size, which is so many
    /// operations.
    Steps { small: usize, large: usize, full: usize, operations: usize },
}

/// A row of the table.
#[derive(Clone, Copy)]
pub(crate) struct KernelRow {
    pub(crate) name: &'static str,
    /// Whether this processor has the kernel's instructions.
    pub(crate) available: fn() -> bool,
    /// How many lanes are filled; the last is how many there are.
    pub(crate) lanes: &'static [usize],
    /// The kinds of instructions that may be the limit.
    pub(crate) kinds: &'static [Port],
    pub(crate) count: Count,
    /// Whether the plain library can do it, too.
    pub(crate) raw: bool,
    pub(crate) make: fn() -> Result<Box<dyn Work>>,
}

/// What the kernels may not use in this run.
pub(crate) static WITHOUT: OnceLock<Cpu> = OnceLock::new();

/// The same, for anyone who masks more for a while.
pub(crate) fn without() -> Cpu {
    WITHOUT.get().copied().unwrap_or(Cpu::NONE)
}

/// Words for a failure of the library.
pub(crate) fn failed<E: std::fmt::Debug>(what: &str) -> impl FnOnce(E) -> String + '_ {
    move |error| format!("{what}: {error:?}")
}

/// So many random bytes.
pub(crate) fn random(length: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    metaslot_awslc_wrapper::random::fill(&mut bytes).map_err(failed("random numbers"))?;
    Ok(bytes)
}

/// A lane's message of so many random bytes.
pub(crate) fn message(lane: usize, length: usize) -> Result<Buffer> {
    let mut bytes = Buffer::input_of(lane, length);
    metaslot_awslc_wrapper::random::fill(&mut bytes).map_err(failed("random numbers"))?;
    Ok(bytes)
}

/// As many random bytes as an array has.
pub(crate) fn array<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    metaslot_awslc_wrapper::random::fill(&mut bytes).map_err(failed("random numbers"))?;
    Ok(bytes)
}

/// One of something for each lane.
pub(crate) fn each<T>(lanes: usize, make: impl FnMut(usize) -> Result<T>) -> Result<Vec<T>> {
    (0..lanes).map(make).collect()
}

/// The first `length` bytes of a message, and of where its result goes.
pub(crate) fn between<'a>(input: &'a [u8], output: &'a mut [u8], length: usize) -> Data<'a> {
    Data::between(&input[..length], &mut output[..length])
}

/// Fails with the row's name unless `same`.
pub(crate) fn same(same: bool, what: &str) -> Result<()> {
    if same { Ok(()) } else { Err(format!("wrong result: {what} of the kernel")) }
}
