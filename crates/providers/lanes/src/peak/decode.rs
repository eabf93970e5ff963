// SPDX-License-Identifier: Apache-2.0
//! Which kind an instruction is, from its first bytes: as much of the encoding (Intel's manual, volume 2, §2.7 and appendix A) as
//! that takes.

use super::Port;

/// Opcode maps by their numbers in the prefix.
const MAP_0F: u8 = 1;
const MAP_0F38: u8 = 2;
const MAP_0F3A: u8 = 3;

/// First bytes of prefixes: of AVX-512, and the two of AVX. In 64-bit mode nothing else begins with them.
const EVEX: u8 = 0x62;
const VEX_3: u8 = 0xc4;
const VEX_2: u8 = 0xc5;

/// What the prefix of an instruction of 256 or 512 bits and its opcode say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Wide {
    bits: u16,
    map: u8,
    opcode: u8,
}

impl Wide {
    /// Bytes that [`Self::from_bytes`] looks at, at most.
    pub(super) const LENGTH: usize = 5;

    /// How many bytes from the first one to the opcode there are; `None` when it has none of these prefixes.
    pub(super) const fn length(first: u8) -> Option<usize> {
        match first {
            EVEX => Some(5),
            VEX_3 => Some(4),
            VEX_2 => Some(3),
            _ => None,
        }
    }

    /// `None` for everything that is not of 256 or 512 bits.
    pub(super) const fn from_bytes(bytes: [u8; Self::LENGTH]) -> Option<Self> {
        let (bits, map, opcode) = match bytes {
            // With the bit for broadcasts set on registers, the two bits of the length are a rounding mode: integers have none.
            [EVEX, first, _, third, opcode] => (128 << (third >> 5 & 3), first & 7, opcode),
            [VEX_3, first, second, opcode, _] => (Self::short(second), first & 31, opcode),
            [VEX_2, first, opcode, ..] => (Self::short(first), MAP_0F, opcode),
            _ => return None,
        };
        if bits != 256 && bits != 512 {
            return None;
        }
        Some(Self { bits, map, opcode })
    }

    /// What the last byte of a prefix of AVX says.
    const fn short(byte: u8) -> u16 {
        if byte & 4 == 0 { 128 } else { 256 }
    }

    pub(super) const fn is(self, port: Port) -> bool {
        let (bits, is) = match port {
            Port::Multiply52 => (512, self.map == MAP_0F38 && matches!(self.opcode, 0xb4 | 0xb5)),
            Port::Multiply32 => (512, self.map == MAP_0F38 && matches!(self.opcode, 0x28 | 0x40)),
            Port::Carryless => (512, self.map == MAP_0F3A && self.opcode == 0x44),
            Port::Aes => (512, self.map == MAP_0F38 && matches!(self.opcode, 0xdc..=0xdf)),
            Port::Vector => (512, !self.moves()),
            Port::Shift => (512, self.shifts()),
            Port::Multiply16 => (256, self.multiplies_16()),
            Port::ShortVector => (256, !self.moves() && !self.broadcasts()),
            Port::ShortShift => (256, self.shifts()),
            Port::Load => (0, false),
        };
        is && self.bits == bits
    }

    /// Moves between registers and memory, aligned or not, with and without a mask; and what clears upper halves.
    const fn moves(self) -> bool {
        self.map == MAP_0F
            && matches!(self.opcode, 0x10 | 0x11 | 0x28 | 0x29 | 0x6f | 0x77 | 0x7f | 0xe7 | 0x2b)
    }

    /// A number or a part in every place: out of memory, as most are, it is a load.
    const fn broadcasts(self) -> bool {
        self.map == MAP_0F38 && matches!(self.opcode, 0x18..=0x1b | 0x58..=0x5b | 0x78 | 0x79)
    }

    /// Products of 16 bits: either half, rounded, of signed numbers or not, and sums of two.
    const fn multiplies_16(self) -> bool {
        match self.map {
            MAP_0F => matches!(self.opcode, 0xd5 | 0xe4 | 0xe5 | 0xf5),
            MAP_0F38 => self.opcode == 0x0b,
            _ => false,
        }
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
        assert_eq!(kinds([0x62, 0xf2, 0xed, 0x28, 0xb4]), [Port::ShortVector]);
        // vpmadd52luq xmm1, xmm2, xmm3
        assert_eq!(kinds([0x62, 0xf2, 0xed, 0x08, 0xb4]), []);
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
        // vzeroupper and what follows, vzeroall
        assert_eq!(kinds([0xc5, 0xf8, 0x77, 0x48, 0xb4]), []);
        assert_eq!(kinds([0xc5, 0xfc, 0x77, 0x48, 0xb4]), []);
    }

    #[test]
    fn encodings_of_256_bits_are_told_apart() {
        let product = [Port::Multiply16, Port::ShortVector];
        // vpmullw ymm1, ymm2, ymm3; with ymm8 in the place of ymm3; ymm1, ymm2, ymm19
        assert_eq!(kinds([0xc5, 0xed, 0xd5, 0xcb, 0]), product);
        assert_eq!(kinds([0xc4, 0xc1, 0x6d, 0xd5, 0xc8]), product);
        assert_eq!(kinds([0x62, 0xb1, 0x6d, 0x28, 0xd5]), product);
        // vpmullw xmm1, xmm2, xmm3
        assert_eq!(kinds([0xc5, 0xe9, 0xd5, 0xcb, 0]), []);
        // vpmulhrsw ymm1, ymm2, ymm3
        assert_eq!(kinds([0xc4, 0xe2, 0x6d, 0x0b, 0xcb]), product);
        // vpsrlw ymm1, ymm2, 6; vprolq ymm1, ymm2, 7
        let shift = [Port::ShortVector, Port::ShortShift];
        assert_eq!(kinds([0xc5, 0xf5, 0x71, 0xd2, 6]), shift);
        assert_eq!(kinds([0x62, 0xf1, 0xf5, 0x28, 0x72]), shift);
        // vmovdqa ymm1, ymm2; vpbroadcastw ymm1, [rax]
        assert_eq!(kinds([0xc5, 0xfd, 0x6f, 0xca, 0]), []);
        assert_eq!(kinds([0xc4, 0xe2, 0x7d, 0x79, 0x08]), []);
        // mov rax, rbx
        assert_eq!(kinds([0x48, 0x89, 0xd8, 0, 0]), []);
    }
}
