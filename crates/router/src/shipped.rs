// SPDX-License-Identifier: Apache-2.0
//! Costs that were measured elsewhere, for machines with such a processor on which nothing was measured.

use crate::cost::{self, Cost};

/// What was measured on processors of a family.
struct Shipped {
    /// As `cpuid` has it, leaf 0: EBX, EDX, ECX.
    vendor: [u8; 12],
    family: u32,
    /// Only with the instructions of the kernels that were measured.
    applies: fn() -> bool,
    costs: &'static str,
}

/// One file for each, in which only operations are whose order of providers is not the order of cost.
static ALL: [Shipped; 1] = [Shipped {
    vendor: *b"AuthenticAMD",
    family: 25,
    applies: || is_x86_feature_detected!("avx512ifma"),
    costs: include_str!("../costs/amd-25.tsv"),
}];

/// Costs for this processor; none for families that we have not measured.
#[must_use]
pub fn costs() -> Vec<Cost> {
    let (vendor, family) = processor();
    let fits = |one: &&Shipped| (one.vendor, one.family) == (vendor, family) && (one.applies)();
    let fitting = ALL.iter().find(fits);
    fitting.and_then(|one| cost::parse(one.costs).ok()).unwrap_or_default()
}

/// Vendor and family (AMD64 Architecture Programmer's Manual, volume 3, appendix E.3; Intel's has the same).
fn processor() -> ([u8; 12], u32) {
    let named = std::arch::x86_64::__cpuid(0);
    let mut vendor = [0; 12];
    for (place, word) in vendor.chunks_exact_mut(4).zip([named.ebx, named.edx, named.ecx]) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    let signature = std::arch::x86_64::__cpuid(1).eax;
    let (base, extended) = (signature >> 8 & 0xf, signature >> 20 & 0xff);
    (vendor, if base == 0xf { base + extended } else { base })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_one_of_costs() {
        for one in &ALL {
            assert!(!cost::parse(one.costs).unwrap().is_empty());
        }
    }

    #[test]
    fn the_processor_is_who_the_system_says() {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let says = |name: &str| {
            let line =
                info.lines().find(|line| line.split(':').next().map(str::trim) == Some(name));
            line.and_then(|line| line.split(':').nth(1)).unwrap().trim().to_owned()
        };
        let (vendor, family) = processor();
        assert_eq!(says("vendor_id").as_bytes(), vendor);
        assert_eq!(says("cpu family"), family.to_string());
    }
}
