// SPDX-License-Identifier: Apache-2.0
//! What is done with polynomials, by the widest rows that the processor has.

#[cfg(any(test, not(target_arch = "x86_64")))]
use super::plain::Plain;
use super::ring::{Poly, Rounding};
use super::row::Row;
#[cfg(target_arch = "x86_64")]
use super::{ymm::Ymm, zmm::Zmm};
use crate::cpu::{Cpu, cpu};

/// Rows that this processor has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kernel(Width);

#[derive(Clone, Copy, Debug)]
enum Width {
    #[cfg(any(test, not(target_arch = "x86_64")))]
    Plain,
    #[cfg(target_arch = "x86_64")]
    Ymm,
    #[cfg(target_arch = "x86_64")]
    Zmm,
}

/// One of the functions of [`Poly`].
enum Step<'a> {
    Transform(&'a mut Poly),
    Product(&'a mut Poly, &'a [Poly], &'a [Poly]),
    Add(&'a mut Poly, &'a Poly, i32, i32),
    Decompose(&'a mut Poly, &'a Rounding, &'a mut [u8; 256]),
}

impl Step<'_> {
    #[inline(always)]
    fn run<R: Row>(self) -> bool {
        match self {
            Self::Transform(poly) => poly.transform::<R>(),
            Self::Product(poly, some, others) => poly.product::<R>(some, others),
            Self::Add(poly, other, sign, bound) => return poly.add::<R>(other, sign, bound),
            Self::Decompose(poly, rounding, highs) => poly.decompose::<R>(rounding, highs),
        }
        false
    }
}

impl Kernel {
    /// The widest; `None` without vector instructions, where the plain library is faster.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn best() -> Option<Self> {
        if cpu().has(Cpu::AVX512) {
            return Some(Self(Width::Zmm));
        }
        cpu().has(Cpu::AVX2).then_some(Self(Width::Ymm))
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn best() -> Option<Self> {
        Some(Self(Width::Plain))
    }

    /// All that are here.
    #[cfg(test)]
    pub(super) fn all() -> Vec<Self> {
        let mut all = vec![Self(Width::Plain)];
        #[cfg(target_arch = "x86_64")]
        {
            all.extend(cpu().has(Cpu::AVX2).then_some(Self(Width::Ymm)));
            all.extend(cpu().has(Cpu::AVX512).then_some(Self(Width::Zmm)));
        }
        all
    }

    fn run(self, step: Step<'_>) -> bool {
        match self.0 {
            #[cfg(any(test, not(target_arch = "x86_64")))]
            Width::Plain => step.run::<Plain>(),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: it was made where the processor has the instructions.
            Width::Ymm => unsafe { run_ymm(step) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above.
            Width::Zmm => unsafe { run_zmm(step) },
        }
    }

    pub(super) fn transform(self, poly: &mut Poly) {
        self.run(Step::Transform(poly));
    }

    /// See [`Poly::product`].
    pub(super) fn product(self, some: &[Poly], others: &[Poly], out: &mut Poly) {
        self.run(Step::Product(out, some, others));
    }

    /// See [`Poly::add`].
    pub(super) fn add(self, poly: &mut Poly, other: &Poly, sign: i32, bound: i32) -> bool {
        self.run(Step::Add(poly, other, sign, bound))
    }

    /// See [`Poly::decompose`].
    pub(super) fn decompose(self, poly: &mut Poly, rounding: &Rounding, highs: &mut [u8; 256]) {
        self.run(Step::Decompose(poly, rounding, highs));
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn run_zmm(step: Step<'_>) -> bool {
    step.run::<Zmm>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn run_ymm(step: Step<'_>) -> bool {
    step.run::<Ymm>()
}
