// SPDX-License-Identifier: Apache-2.0
//! Instructions of one kind in independent chains, so that nothing but their number counts.

use super::Port;

/// Instructions of the kind in a turn.
pub const TURN: u64 = 16;

/// A loop of sixteen instructions with sixteen destinations: the text of each is put around the number of its register.
macro_rules! chains {
    ($turns:ident, $first:literal, $second:literal, $last:literal) => {{
        let turns: u64 = $turns;
        // SAFETY: only registers that are named as changed are written; the caller saw that the processor has the instructions.
        unsafe {
            std::arch::asm!(
                "2:",
                concat!($first, "0", $last), concat!($second, "1", $last),
                concat!($first, "2", $last), concat!($second, "3", $last),
                concat!($first, "4", $last), concat!($second, "5", $last),
                concat!($first, "6", $last), concat!($second, "7", $last),
                concat!($first, "16", $last), concat!($second, "17", $last),
                concat!($first, "18", $last), concat!($second, "19", $last),
                concat!($first, "20", $last), concat!($second, "21", $last),
                concat!($first, "22", $last), concat!($second, "23", $last),
                "dec {turns}",
                "jnz 2b",
                // What is left in upper halves slows down older instructions that come later.
                "vzeroupper",
                turns = inout(reg) turns => _,
                out("zmm0") _, out("zmm1") _, out("zmm2") _, out("zmm3") _,
                out("zmm4") _, out("zmm5") _, out("zmm6") _, out("zmm7") _,
                out("zmm16") _, out("zmm17") _, out("zmm18") _, out("zmm19") _,
                out("zmm20") _, out("zmm21") _, out("zmm22") _, out("zmm23") _,
                options(nomem, nostack),
            );
        }
    }};
}

/// Executes [`TURN`] instructions of the kind `turns` times.
///
/// # Panics
/// When the processor has no such instructions, or `turns` is 0.
pub fn run(port: Port, turns: u64) {
    assert!(port.available(), "no {} on this processor", port.name());
    assert!(turns > 0, "nothing to run");
    match port {
        Port::Multiply52 => chains!(turns, "vpmadd52luq zmm", "vpmadd52huq zmm", ", zmm31, zmm31"),
        Port::Multiply32 => chains!(turns, "vpmuldq zmm", "vpmuldq zmm", ", zmm31, zmm30"),
        Port::Carryless => chains!(turns, "vpclmulqdq zmm", "vpclmulqdq zmm", ", zmm31, zmm31, 16"),
        Port::Aes => chains!(turns, "vaesenc zmm", "vaesenc zmm", ", zmm31, zmm31"),
        Port::Vector => chains!(turns, "vpaddq zmm", "vpxorq zmm", ", zmm31, zmm30"),
        Port::Shift => chains!(turns, "vprold zmm", "vprolq zmm", ", zmm31, 7"),
        Port::Multiply16 => chains!(turns, "vpmullw ymm", "vpmulhw ymm", ", ymm31, ymm30"),
        Port::ShortVector => chains!(turns, "vpaddq ymm", "vpxorq ymm", ", ymm31, ymm30"),
        Port::ShortShift => chains!(turns, "vprold ymm", "vprolq ymm", ", ymm31, 7"),
        Port::Load => loads(turns),
    }
}

fn loads(turns: u64) {
    let word = 0_u64;
    // SAFETY: reads a word of this frame into registers that are named as changed.
    unsafe {
        std::arch::asm!(
            "2:",
            "mov {a:e}, [{word}]", "mov {b:e}, [{word}]", "mov {a:e}, [{word}]", "mov {b:e}, [{word}]",
            "mov {a:e}, [{word}]", "mov {b:e}, [{word}]", "mov {a:e}, [{word}]", "mov {b:e}, [{word}]",
            "mov {a:e}, [{word}]", "mov {b:e}, [{word}]", "mov {a:e}, [{word}]", "mov {b:e}, [{word}]",
            "mov {a:e}, [{word}]", "mov {b:e}, [{word}]", "mov {a:e}, [{word}]", "mov {b:e}, [{word}]",
            "dec {turns}",
            "jnz 2b",
            turns = inout(reg) turns => _,
            word = in(reg) &raw const word,
            a = out(reg) _,
            b = out(reg) _,
            options(readonly, nostack),
        );
    }
}
