// SPDX-License-Identifier: Apache-2.0
//! Which instructions a kernel may use: asked once, and maskable, so that a machine without them can be
//! played on one that has them.

use std::sync::atomic::{AtomicU32, Ordering};

/// A set of instruction set extensions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Cpu(u32);

impl Cpu {
    /// None.
    pub const NONE: Self = Self(0);
    /// AVX-512 F, BW, DQ, VL: eight 64-bit lanes.
    pub const AVX512: Self = Self(1);
    /// 52-bit multiply and add in eight lanes (with [`Self::AVX512`]).
    pub const IFMA: Self = Self(2);
    /// Four AES blocks per instruction (with [`Self::AVX512`]).
    pub const VAES: Self = Self(4);
    /// Four carry-less products per instruction (with [`Self::AVX512`]).
    pub const VPCLMUL: Self = Self(8);
    /// AVX2.
    pub const AVX2: Self = Self(16);
    /// One AES block, one carry-less product per instruction.
    pub const AES: Self = Self(32);

    /// What kernels over limbs of 52 bits need.
    pub const AVX512_IFMA: Self = Self::AVX512.and(Self::IFMA);

    /// All that this knows.
    pub const ALL: Self = Self(63);

    const NAMES: [(&'static str, Self); 6] = [
        ("avx512", Self::AVX512),
        ("ifma", Self::IFMA),
        ("vaes", Self::VAES),
        ("vpclmul", Self::VPCLMUL),
        ("avx2", Self::AVX2),
        ("aes", Self::AES),
    ];

    /// Whether all of `other` is there.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// And all that comes only with one of these.
    const fn with_dependents(self) -> Self {
        let mut all = self;
        if all.has(Self::AVX2) {
            all = all.and(Self::AVX512);
        }
        if all.has(Self::AVX512) {
            all = all.and(Self::IFMA).and(Self::VAES).and(Self::VPCLMUL);
        }
        if all.has(Self::AES) {
            all = all.and(Self::VAES).and(Self::VPCLMUL);
        }
        all
    }

    /// The names of what is there, for people.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(_, one)| self.has(*one)).map(|(name, _)| name)
    }

    /// The extension of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, one)| one)
    }
}

/// What the machine has, and [`KNOWN`]; 0 until the first call.
static DETECTED: AtomicU32 = AtomicU32::new(0);
/// What is left out although the machine has it.
static MASKED: AtomicU32 = AtomicU32::new(0);
const KNOWN: u32 = 1 << 31;

/// What kernels may use.
#[must_use]
pub fn cpu() -> Cpu {
    let mut found = DETECTED.load(Ordering::Relaxed);
    if found == 0 {
        found = detect().0 | KNOWN;
        DETECTED.store(found, Ordering::Relaxed);
    }
    Cpu(found & !KNOWN & !MASKED.load(Ordering::Relaxed))
}

/// Leaves `extensions` out from now on, and what no processor has without them; replaces what was masked before.
pub fn mask(extensions: Cpu) {
    MASKED.store(extensions.with_dependents().0, Ordering::Relaxed);
}

/// Why something that needs these instructions cannot be done; `None` when it can.
#[must_use]
pub fn lacks(needs: Cpu) -> Option<String> {
    let masked = Cpu(MASKED.load(Ordering::Relaxed));
    let missing = Cpu(needs.0 & !cpu().0);
    let (name, one) = Cpu::NAMES.into_iter().find(|(_, one)| missing.has(*one))?;
    let who = if masked.has(one) { "the configuration leaves out" } else { "this processor lacks" };
    Some(format!("needs {name}, which {who}"))
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Cpu {
    let mut found = Cpu::NONE;
    let mut add = |there: bool, what: Cpu| {
        if there {
            found = found.and(what);
        }
    };
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    add(avx512, Cpu::AVX512);
    add(avx512 && is_x86_feature_detected!("avx512ifma"), Cpu::IFMA);
    add(avx512 && is_x86_feature_detected!("vaes"), Cpu::VAES);
    add(avx512 && is_x86_feature_detected!("vpclmulqdq"), Cpu::VPCLMUL);
    add(is_x86_feature_detected!("avx2"), Cpu::AVX2);
    add(is_x86_feature_detected!("aes") && is_x86_feature_detected!("pclmulqdq"), Cpu::AES);
    found
}

#[cfg(not(target_arch = "x86_64"))]
const fn detect() -> Cpu {
    Cpu::NONE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_made_of_its_names() {
        let both = Cpu::IFMA.and(Cpu::VAES);
        assert_eq!(both.names().collect::<Vec<_>>(), ["ifma", "vaes"]);
        assert!(both.has(Cpu::IFMA) && !both.has(Cpu::AVX2));
        assert_eq!(Cpu::named("vpclmul"), Some(Cpu::VPCLMUL));
        assert_eq!(Cpu::named("mmx"), None);
        assert_eq!(Cpu::NAMES.map(|(_, one)| one).into_iter().fold(Cpu::NONE, Cpu::and), Cpu::ALL);
    }

    #[test]
    fn what_comes_only_with_another_goes_with_it() {
        let without = |extensions: Cpu| Cpu(Cpu::ALL.0 & !extensions.with_dependents().0);
        assert_eq!(without(Cpu::IFMA).names().count(), 5);
        assert_eq!(without(Cpu::AVX512), Cpu::AVX2.and(Cpu::AES));
        assert_eq!(without(Cpu::AVX2), Cpu::AES);
        assert_eq!(without(Cpu::AVX2.and(Cpu::AES)), Cpu::NONE);
        assert_eq!(without(Cpu::AES), Cpu::AVX2.and(Cpu::AVX512).and(Cpu::IFMA));
    }
}
