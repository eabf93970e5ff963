// SPDX-License-Identifier: Apache-2.0
//! The five fields.

/// The largest number of elements that any form works on at once.
pub(super) const LANES: usize = 8;

/// GF(2)[z] modulo z^DEGREE + the sum of z^MIDDLE + 1, in `W` words of 64 bits.
pub(super) trait Field<const W: usize>: Copy + 'static {
    /// m: odd and not a multiple of 64.
    const DEGREE: usize;
    /// The exponents between m and 0, below m - 64.
    const MIDDLE: &'static [usize];
    /// The powers of z whose trace is 1; all others' is 0.
    const TRACE: &'static [usize];

    /// The trace of an element: 0 or 1.
    fn trace(value: &[u64; W]) -> u64 {
        Self::TRACE.iter().fold(0, |sum, at| sum ^ (value[at / 64] >> (at % 64))) & 1
    }
}

#[derive(Clone, Copy)]
pub(super) struct F163;
#[derive(Clone, Copy)]
pub(super) struct F233;
#[derive(Clone, Copy)]
pub(super) struct F283;
#[derive(Clone, Copy)]
pub(super) struct F409;
#[derive(Clone, Copy)]
pub(super) struct F571;

impl Field<3> for F163 {
    const DEGREE: usize = 163;
    const MIDDLE: &'static [usize] = &[7, 6, 3];
    const TRACE: &'static [usize] = &[0, 157];
}

impl Field<4> for F233 {
    const DEGREE: usize = 233;
    const MIDDLE: &'static [usize] = &[74];
    const TRACE: &'static [usize] = &[0, 159];
}

impl Field<5> for F283 {
    const DEGREE: usize = 283;
    const MIDDLE: &'static [usize] = &[12, 7, 5];
    const TRACE: &'static [usize] = &[0, 271];
}

impl Field<7> for F409 {
    const DEGREE: usize = 409;
    const MIDDLE: &'static [usize] = &[87];
    const TRACE: &'static [usize] = &[0];
}

impl Field<9> for F571 {
    const DEGREE: usize = 571;
    const MIDDLE: &'static [usize] = &[10, 5, 2];
    const TRACE: &'static [usize] = &[0, 561, 569];
}
