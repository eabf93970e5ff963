// SPDX-License-Identifier: Apache-2.0
//! How a probe is written down: the notes that SystemTap defined and that every tracer reads
//! (<https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation>).

/// A probe of the provider `metaslot`: a no-op, and a note of where it is, where its watchers are counted, and in which
/// registers its arguments are. `$registers` has one ` -8@{}`, signed and 8 bytes long, for each argument; arguments
/// are evaluated only where a tracer watches.
macro_rules! probe {
    ($name:literal, $registers:literal $(, $argument:expr)* $(,)?) => {{
        // The kernel counts the tracers of a probe here.
        #[unsafe(link_section = ".probes")]
        static WATCHERS: std::sync::atomic::AtomicU16 = std::sync::atomic::AtomicU16::new(0);
        if WATCHERS.load(std::sync::atomic::Ordering::Relaxed) != 0 {
            // SAFETY: one no-op is executed, which reads and writes nothing; the rest goes into sections that are not code.
            unsafe {
                std::arch::asm!(
                    concat!(
                        "1: nop\n",
                        ".pushsection .note.stapsdt, \"?\", \"note\"\n",
                        ".balign 4\n",
                        ".4byte 3f - 2f, 6f - 5f, 3\n",
                        "2: .asciz \"stapsdt\"\n",
                        "3: .balign 4\n",
                        "5: .8byte 1b, _.stapsdt.base, {}\n",
                        ".asciz \"metaslot\"\n",
                        ".asciz \"", $name, "\"\n",
                        ".asciz \"", $registers, "\"\n",
                        "6: .balign 4\n",
                        ".popsection\n",
                        // An address that tells by how much a file was moved after it was linked.
                        ".ifndef _.stapsdt.base\n",
                        ".pushsection .stapsdt.base, \"aGR\", \"progbits\", .stapsdt.base, comdat\n",
                        ".weak _.stapsdt.base\n",
                        ".hidden _.stapsdt.base\n",
                        "_.stapsdt.base: .space 1\n",
                        ".size _.stapsdt.base, 1\n",
                        ".popsection\n",
                        ".endif\n",
                    ),
                    sym WATCHERS,
                    $(in(reg) $argument as isize,)*
                    // Where registers have the names that tracers read.
                    #[cfg(target_arch = "x86_64")]
                    options(att_syntax),
                    options(nomem, nostack, preserves_flags),
                );
            }
        }
    }};
}

pub(crate) use probe;
