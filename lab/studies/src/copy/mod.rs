// SPDX-License-Identifier: Apache-2.0
//! Copies of memory, one kernel for each kind of instruction.
//!
//! Ordinary stores allocate: the destination's lines are brought into the cache and changed there.
//! Non-temporal ones do not: they write whole lines to memory, past the cache. Which is better depends on
//! who reads the destination next.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod lines;
#[cfg(target_arch = "x86_64")]
mod ours;
#[cfg(target_arch = "x86_64")]
mod small;
#[cfg(target_arch = "x86_64")]
mod string;
#[cfg(test)]
mod tests;
mod walk;

pub use lines::evict;
pub use walk::{Walk, sum};

/// How a kernel writes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stores {
    /// Into the cache.
    Allocating,
    /// Past the cache.
    NonTemporal,
    /// By the size: into the cache below a limit, past it above.
    Either,
}

/// A way to copy that this processor has. Others cannot be had.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    name: &'static str,
    stores: Stores,
    copy: fn(&mut [u8], &[u8]),
}

/// A kernel, and whether the processor has its instructions.
type KernelRow = (Kernel, fn() -> bool);

impl Kernel {
    /// The kernels' names, in the order of the tables, whatever the processor has.
    pub fn names() -> impl Iterator<Item = &'static str> {
        rows().into_iter().map(|(kernel, _)| kernel.name)
    }

    /// The kernels that this processor has.
    pub fn available() -> impl Iterator<Item = Self> {
        rows().into_iter().filter(|(_, has)| has()).map(|(kernel, _)| kernel)
    }

    /// The kernel of this name; `None` where the processor lacks its instructions.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::available().find(|kernel| kernel.name == name)
    }

    /// Its name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// How it writes.
    #[must_use]
    pub const fn stores(&self) -> Stores {
        self.stores
    }

    /// Copies.
    ///
    /// # Panics
    /// The lengths differ.
    pub fn copy(&self, to: &mut [u8], from: &[u8]) {
        assert_eq!(to.len(), from.len(), "source and destination of a copy have one length");
        (self.copy)(to, from);
    }
}

/// `memcpy` of the C library: what the compiler makes of a copy whose length it does not know.
fn libc(to: &mut [u8], from: &[u8]) {
    to.copy_from_slice(from);
}

#[cfg(target_arch = "x86_64")]
fn rows() -> Vec<KernelRow> {
    use Stores::{Allocating, Either, NonTemporal};
    let avx2 = || is_x86_feature_detected!("avx2");
    let avx512 = || is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx2");
    let row = |name, stores, copy, has| (Kernel { name, stores, copy }, has);
    vec![
        row("libc", Allocating, libc as fn(&mut [u8], &[u8]), (|| true) as fn() -> bool),
        row("movsb", Allocating, string::movsb, || true),
        row("avx2", Allocating, avx2::copy, avx2),
        row("avx512", Allocating, avx512::copy, avx512),
        row("avx512-back", Allocating, avx512::copy_back, avx512),
        row("nt-avx2", NonTemporal, avx2::stream, avx2),
        row("nt-avx512", NonTemporal, avx512::stream, avx512),
        row("ours", Either, ours::copy, avx512),
    ]
}

#[cfg(not(target_arch = "x86_64"))]
fn rows() -> Vec<KernelRow> {
    vec![(Kernel { name: "libc", stores: Stores::Allocating, copy: libc }, || true)]
}
