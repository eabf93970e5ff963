// SPDX-License-Identifier: Apache-2.0
//! Which kind an instruction is, from its first bytes: as much of the encoding (Intel's manual, volume 2, §2.7 and appendix A) as
//! that takes.

use super::Port;

/// Opcode maps by their numbers in the prefix.
const MAP_0F: u8 = 1;
const MAP_0F38: u8 = 2;
const MAP_0F3A: u8 = 3;

/// What the prefix of an instruction of 512 bits and its opcode say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Wide {
    map: u8,
    opcode: u8,
}

impl Wide {
    /// Bytes that [`Self::from_bytes`] looks at.
    pub(super) const LENGTH: usize = 5;
    /// What every instruction with this kind of prefix begins with; all of them are longer than [`Self::LENGTH`].
    pub(super) const PREFIX: u8 = 0x62;

    /// `None` for everything that is not of 512 bits.
    pub(super) const fn from_bytes(bytes: [u8; Self::LENGTH]) -> Option<Self> {
        let [prefix, first, _, third, opcode] = bytes;
        // With the bit for broadcasts set on registers, the two bits of the length are a rounding mode: integers have none.
        if prefix != Self::PREFIX || third >> 5 & 3 != 2 {
            return None;
        }
        Some(Self { map: first & 7, opcode })
    }

    pub(super) const fn is(self, port: Port) -> bool {
        match port {
            Port::Multiply52 => self.map == MAP_0F38 && matches!(self.opcode, 0xb4 | 0xb5),
            Port::Multiply32 => self.map == MAP_0F38 && matches!(self.opcode, 0x28 | 0x40),
            Port::Carryless => self.map == MAP_0F3A && self.opcode == 0x44,
            Port::Aes => self.map == MAP_0F38 && matches!(self.opcode, 0xdc..=0xdf),
            Port::Vector => !self.moves(),
            Port::Shift => self.shifts(),
            Port::Load => false,
        }
    }

    /// Moves between registers and memory, aligned or not, with and without a mask.
    const fn moves(self) -> bool {
        self.map == MAP_0F
            && matches!(self.opcode, 0x10 | 0x11 | 0x28 | 0x29 | 0x6f | 0x7f | 0xe7 | 0x2b)
    }

    /// Shifts and rotations by a number, by a register, by a vector, and of two joined words.
    const fn shifts(self) -> bool {
        match self.map {
            MAP_0F => matches!(self.opcode, 0x71..=0x73 | 0xd1..=0xd3 | 0xe1 | 0xe2 | 0xf1..=0xf3),
            MAP_0F38 => {
                matches!(self.opcode, 0x10..=0x12 | 0x14 | 0x15 | 0x45..=0x47 | 0x70..=0x73)
            }
            MAP_0F3A => matches!(self.opcode, 0x70..=0x73),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(bytes: [u8; Wide::LENGTH]) -> Vec<Port> {
        let wide = Wide::from_bytes(bytes);
        Port::ALL.into_iter().filter(|port| wide.is_some_and(|wide| wide.is(*port))).collect()
    }

    #[test]
    fn encodings_of_the_manual_are_told_apart() {
        // vpmadd52luq zmm1, zmm2, zmm3
        assert_eq!(kinds([0x62, 0xf2, 0xed, 0x48, 0xb4]), [Port::Multiply52, Port::Vector]);
        // vpmadd52luq ymm1, ymm2, ymm3
        assert_eq!(kinds([0x62, 0xf2, 0xed, 0x28, 0xb4]), []);
        // vpmuldq zmm1, zmm2, zmm3
        assert_eq!(kinds([0x62, 0xf2, 0xed, 0x48, 0x28]), [Port::Multiply32, Port::Vector]);
        // vpmulld zmm1, zmm2, zmm3
        assert_eq!(kinds([0x62, 0xf2, 0x6d, 0x48, 0x40]), [Port::Multiply32, Port::Vector]);
        // vpclmulqdq zmm1, zmm2, zmm3, 0
        assert_eq!(kinds([0x62, 0xf3, 0x6d, 0x48, 0x44]), [Port::Carryless, Port::Vector]);
        // vaesenc zmm1, zmm2, zmm3
        assert_eq!(kinds([0x62, 0xf2, 0x6d, 0x48, 0xdc]), [Port::Aes, Port::Vector]);
        // vprold zmm1, zmm2, 7
        assert_eq!(kinds([0x62, 0xf1, 0x75, 0x48, 0x72]), [Port::Vector, Port::Shift]);
        // vmovdqu64 zmm1, [rax]
        assert_eq!(kinds([0x62, 0xf1, 0xfe, 0x48, 0x6f]), []);
        // vzeroupper and what follows
        assert_eq!(kinds([0xc5, 0xf8, 0x77, 0x48, 0xb4]), []);
    }
}
