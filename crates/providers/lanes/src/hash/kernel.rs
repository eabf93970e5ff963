// SPDX-License-Identifier: Apache-2.0
//! The compiled inner loops, and which of them the processor can run.

use super::chain::{self, Link, Place};
use super::one::One;
use super::rows::Rows;
use super::shape::Core;
use super::{keccak, sha2};
use crate::cpu::Cpu;

#[cfg(target_arch = "x86_64")]
use super::{avx2::Ymm, avx512::Zmm, md5, pair::Pair, sha1, short::Short};

/// State, rows, what comes before them, and how far. Needs nothing but its instructions.
type Along<Steps> = unsafe fn(&mut [u8], &Rows<'_>, &[u8], Steps);

/// The chains that a kernel can go along.
#[derive(Clone, Copy)]
enum Chains {
    Sha256 {
        /// [`chain::plain`]
        plain: Along<(Link, u8)>,
        /// [`chain::keyed`]. With AVX2, which has no rotations, it would be more than twice as long.
        keyed: Option<Along<u8>>,
    },
    /// [`chain::sponge`]; nothing comes before the rows. One for AVX2 would add 3.5 KB to the library, and there is none.
    Keccak(unsafe fn(&mut [u8], &Rows<'_>, (Place, u8))),
}

/// An inner loop that this processor can run.
#[derive(Clone, Copy)]
pub(super) struct Kernel {
    /// How many lanes it has.
    pub(super) lanes: usize,
    run: unsafe fn(&mut [u8], &Rows<'_>, usize),
    /// Of the functions that have them.
    chains: Option<Chains>,
}

impl Kernel {
    /// Takes the blocks of `block` bytes that the rows consist of into the state, which has the first word of each lane, then
    /// the second of each, and so on, each with its least significant byte first.
    pub(super) fn run(&self, state: &mut [u8], rows: &Rows<'_>, block: usize) {
        // SAFETY: the function needs nothing but its instructions, and `choose` gives only what the processor can run.
        unsafe { (self.run)(state, rows, block) }
    }

    /// Goes so many steps of chains of HSS or SLH-DSA, whose digests of `length` bytes stand at the byte `at` of their block, as
    /// [`chain::plain`] and [`chain::sponge`] do; says whether it can.
    pub(super) fn chain(
        &self,
        state: &mut [u8],
        rows: &Rows<'_>,
        start: &[u8],
        (at, length, steps): (usize, usize, u8),
    ) -> bool {
        match self.chains {
            Some(Chains::Sha256 { plain, .. }) => {
                let Some(link) = Link::of(at, length) else { return false };
                // SAFETY: as in `run`.
                unsafe { plain(state, rows, start, (link, steps)) }
            }
            Some(Chains::Keccak(sponge)) => {
                let Some(place) = Place::of(at, length) else { return false };
                // SAFETY: as in `run`.
                unsafe { sponge(state, rows, (place, steps)) }
            }
            None => return false,
        }
        true
    }

    /// Goes so many steps of chains of XMSS, as [`chain::keyed`] does; says whether it can.
    pub(super) fn keyed_chain(
        &self,
        state: &mut [u8],
        addresses: &Rows<'_>,
        seed: &[u8],
        steps: u8,
    ) -> bool {
        let Some(Chains::Sha256 { keyed: Some(keyed), .. }) = self.chains else { return false };
        // SAFETY: as in `run`.
        unsafe { keyed(state, addresses, seed, steps) }
        true
    }

    /// The best for so many requests; `None` without such instructions.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn choose(core: Core, cpu: Cpu, requests: usize) -> Option<Self> {
        if cpu.has(Cpu::AVX512) {
            return Some(match core {
                Core::Md5 if requests > 16 => Self { lanes: 32, run: md5_zmm_pair, chains: None },
                Core::Md5 => Self { lanes: 16, run: md5_zmm, chains: None },
                Core::Sha1 => Self { lanes: 16, run: sha1_zmm, chains: None },
                Core::Sha256 => Self { lanes: 16, run: sha256_zmm, chains: Some(CHAINS_ZMM) },
                Core::Sha512 => Self { lanes: 8, run: sha512_zmm, chains: None },
                Core::Keccak => Self { lanes: 8, run: keccak_zmm, chains: Some(SPONGE_ZMM) },
            });
        }
        cpu.has(Cpu::AVX2).then_some(match core {
            Core::Md5 if requests > 8 => Self { lanes: 16, run: md5_ymm_pair, chains: None },
            Core::Md5 => Self { lanes: 8, run: md5_ymm, chains: None },
            Core::Sha1 => Self { lanes: 8, run: sha1_ymm, chains: None },
            Core::Sha256 => Self { lanes: 8, run: sha256_ymm, chains: Some(CHAINS_YMM) },
            Core::Sha512 => Self { lanes: 4, run: sha512_ymm, chains: None },
            Core::Keccak => Self { lanes: 4, run: keccak_ymm, chains: None },
        })
    }

    /// Four lanes of Keccak: less of them than [`Self::choose`] may give, but sooner done with one permutation.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn four(cpu: Cpu) -> Option<Self> {
        if cpu.has(Cpu::AVX512) {
            return Some(Self { lanes: 4, run: keccak_short, chains: None });
        }
        cpu.has(Cpu::AVX2).then_some(Self { lanes: 4, run: keccak_ymm, chains: None })
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn four(_: Cpu) -> Option<Self> {
        None
    }

    /// One lane, for every processor; `None` of functions that nobody needs so.
    pub(super) fn one(core: Core) -> Option<Self> {
        let run: fn(&mut [u8], &Rows<'_>, usize) = match core {
            Core::Sha256 => sha2::absorb::<One<u32>>,
            Core::Sha512 => sha2::absorb::<One<u64>>,
            Core::Keccak => keccak::absorb::<One<u64>>,
            Core::Md5 | Core::Sha1 => return None,
        };
        Some(Self { lanes: 1, run, chains: None })
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn choose(_: Core, _: Cpu, _: usize) -> Option<Self> {
        None
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn md5_zmm(state: &mut [u8], rows: &Rows<'_>, block: usize) {
    md5::absorb::<Zmm<u32>>(state, rows, block);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn md5_zmm_pair(state: &mut [u8], rows: &Rows<'_>, block: usize) {
    md5::absorb::<Pair<Zmm<u32>>>(state, rows, block);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn sha1_zmm(state: &mut [u8], rows: &Rows<'_>, block: usize) {
    sha1::absorb::<Zmm<u32>>(state, rows, block);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn sha256_zmm(state: &mut [u8], rows: &Rows<'_>, block: usize) {
    sha2::absorb::<Zmm<u32>>(state, rows, block);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn sha512_zmm(state: &mut [u8], rows: &Rows<'_>, block: usize) {
    sha2::absorb::<Zmm<u64>>(state, rows, block);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn keccak_zmm(state: &mut [u8], rows: &Rows<'_>, block: usize) {
    keccak::absorb::<Zmm<u64>>(state, rows, block);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn md5_ymm(state: &mut [u8], rows: &Rows<'_>, block: usize) {
    md5::absorb::<Ymm<u32>>(state, rows, block);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn md5_ymm_pair(state: &mut [u8], rows: &Rows<'_>, block: usize) {
    md5::absorb::<Pair<Ymm<u32>>>(state, rows, block);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn sha1_ymm(state: &mut [u8], rows: &Rows<'_>, block: usize) {
    sha1::absorb::<Ymm<u32>>(state, rows, block);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn sha256_ymm(state: &mut [u8], rows: &Rows<'_>, block: usize) {
    sha2::absorb::<Ymm<u32>>(state, rows, block);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn sha512_ymm(state: &mut [u8], rows: &Rows<'_>, block: usize) {
    sha2::absorb::<Ymm<u64>>(state, rows, block);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn keccak_ymm(state: &mut [u8], rows: &Rows<'_>, block: usize) {
    keccak::absorb::<Ymm<u64>>(state, rows, block);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn keccak_short(state: &mut [u8], rows: &Rows<'_>, block: usize) {
    keccak::absorb::<Short>(state, rows, block);
}

#[cfg(target_arch = "x86_64")]
const CHAINS_ZMM: Chains = Chains::Sha256 { plain: chain_zmm, keyed: Some(keyed_chain_zmm) };

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn chain_zmm(state: &mut [u8], rows: &Rows<'_>, start: &[u8], steps: (Link, u8)) {
    chain::plain::<Zmm<u32>>(state, rows, start, steps);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn keyed_chain_zmm(state: &mut [u8], addresses: &Rows<'_>, seed: &[u8], steps: u8) {
    chain::keyed::<Zmm<u32>>(state, addresses, seed, steps);
}

#[cfg(target_arch = "x86_64")]
const CHAINS_YMM: Chains = Chains::Sha256 { plain: chain_ymm, keyed: None };

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn chain_ymm(state: &mut [u8], rows: &Rows<'_>, start: &[u8], steps: (Link, u8)) {
    chain::plain::<Ymm<u32>>(state, rows, start, steps);
}

#[cfg(target_arch = "x86_64")]
const SPONGE_ZMM: Chains = Chains::Keccak(sponge_zmm);

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn sponge_zmm(state: &mut [u8], rows: &Rows<'_>, steps: (Place, u8)) {
    chain::sponge::<Zmm<u64>>(state, rows, steps);
}
