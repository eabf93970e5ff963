// SPDX-License-Identifier: Apache-2.0
//! How fast the machine can be at best, for programs that measure the kernels: how many instructions of a kind it executes when
//! nothing else limits it ([`run`]), and how many of them a computation executes ([`count`]). Nothing of the module calls this.

mod decode;
mod run;
mod steps;

pub use run::{TURN, run};
pub use steps::count;

use crate::cpu::{Cpu, cpu};

/// A kind of instruction that may be what limits a kernel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Port {
    /// `vpmadd52luq`, `vpmadd52huq` of 512 bits.
    Multiply52,
    /// `vpmuldq` and `vpmulld` of 512 bits; some processors need two steps for the second, which is counted as one.
    Multiply32,
    /// `vpclmulqdq` of 512 bits.
    Carryless,
    /// `vaesenc` and its relatives of 512 bits.
    Aes,
    /// Any instruction that computes with 512 bits: additions, logic, and all of the other kinds.
    Vector,
    /// Shifts and rotations of 512 bits, which not every unit can do.
    Shift,
    /// `vpmullw`, `vpmulhw`, `vpmulhuw`, `vpmulhrsw` and `vpmaddwd` of 256 bits.
    Multiply16,
    /// Any instruction that computes with 256 bits, as [`Self::Vector`]; broadcasts are taken for the loads that most of them are.
    ShortVector,
    /// As [`Self::Shift`], of 256 bits.
    ShortShift,
    /// Loads from memory into ordinary registers. They are not counted, because they have too many forms.
    Load,
}

impl Port {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Multiply52,
        Self::Multiply32,
        Self::Carryless,
        Self::Aes,
        Self::Vector,
        Self::Shift,
        Self::Multiply16,
        Self::ShortVector,
        Self::ShortShift,
        Self::Load,
    ];

    /// What it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Multiply52 => "vpmadd52",
            Self::Multiply32 => "vpmuldq",
            Self::Carryless => "vpclmulqdq",
            Self::Aes => "vaesenc",
            Self::Vector => "vector ALU",
            Self::Shift => "vector shift",
            Self::Multiply16 => "vpmullw",
            Self::ShortVector => "256-bit ALU",
            Self::ShortShift => "256-bit shift",
            Self::Load => "load",
        }
    }

    /// Whether this processor has such instructions.
    #[must_use]
    pub fn available(self) -> bool {
        cpu().has(match self {
            Self::Multiply52 => Cpu::IFMA,
            Self::Carryless => Cpu::VPCLMUL,
            Self::Aes => Cpu::VAES,
            Self::Multiply32 | Self::Vector | Self::Shift => Cpu::AVX512,
            // They have forms for AVX2, too; what is run here has not.
            Self::Multiply16 | Self::ShortVector | Self::ShortShift => Cpu::AVX512,
            Self::Load => Cpu::NONE,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_executed_is_what_is_counted() {
        for port in Port::ALL.into_iter().filter(|port| port.available() && *port != Port::Load) {
            let counted = count(&[port], || run(port, 10)).unwrap();
            assert_eq!(counted, [10 * TURN], "{port:?}");
        }
    }

    #[test]
    fn every_kind_is_a_vector_instruction_too() {
        if !Port::Multiply52.available() {
            return;
        }
        let kinds = [Port::Vector, Port::Multiply52, Port::Shift];
        let counted = count(&kinds, || run(Port::Multiply52, 3)).unwrap();
        assert_eq!(counted, [3 * TURN, 3 * TURN, 0]);
        assert_eq!(count(&kinds, || ()).unwrap(), [0, 0, 0]);
        let kinds = [Port::ShortVector, Port::Multiply16, Port::ShortShift, Port::Vector];
        let counted = count(&kinds, || run(Port::Multiply16, 3)).unwrap();
        assert_eq!(counted, [3 * TURN, 3 * TURN, 0, 0]);
    }

    /// The counters are the process's.
    #[test]
    fn threads_do_not_read_each_others_counts() {
        if !Port::Vector.available() {
            return;
        }
        let turns = || {
            for _ in 0..500 {
                let counted = count(&[Port::Vector], || run(Port::Vector, 1)).unwrap();
                assert_eq!(counted, [TURN]);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(turns);
            }
        });
    }

    #[test]
    fn a_panic_ends_the_counting() {
        let caught = std::panic::catch_unwind(|| {
            count(&[Port::Vector], || std::panic::resume_unwind(Box::new(())))
        });
        assert!(caught.is_err());
        assert_eq!(count(&[Port::Vector], || ()).unwrap(), [0]);
    }
}
