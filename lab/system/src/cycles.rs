// SPDX-License-Identifier: Apache-2.0
//! The processor's time stamp, and a loop whose length in core cycles is known.

/// The time stamp counter now; `None` on a processor without one.
#[cfg(target_arch = "x86_64")]
pub fn time_stamp() -> Option<u64> {
    // SAFETY: every processor of this kind has the instruction, and it changes nothing else.
    Some(unsafe { core::arch::x86_64::_rdtsc() })
}

/// The time stamp counter now; `None` on a processor without one.
#[cfg(not(target_arch = "x86_64"))]
pub fn time_stamp() -> Option<u64> {
    None
}

/// Additions in one round of the loop.
pub const ADDITIONS: u64 = 64;

/// Runs a loop of `rounds` times [`ADDITIONS`] additions, each of which needs the one before: so
/// it takes one core cycle per addition. Two more instructions per round count the rounds, beside
/// them. `false` where there is no such loop.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub fn additions(rounds: u64) -> bool {
    if rounds == 0 {
        return true;
    }
    // An addend in a register: some processors add constants without executing anything.
    // SAFETY: changes registers that are named here, and touches no memory.
    unsafe {
        core::arch::asm!(
            "2:",
            ".rept 64",
            #[cfg(target_arch = "x86_64")]
            "add {sum}, {addend}",
            #[cfg(target_arch = "aarch64")]
            "add {sum}, {sum}, {addend}",
            ".endr",
            #[cfg(target_arch = "x86_64")]
            "dec {rounds}",
            #[cfg(target_arch = "x86_64")]
            "jnz 2b",
            #[cfg(target_arch = "aarch64")]
            "subs {rounds}, {rounds}, #1",
            #[cfg(target_arch = "aarch64")]
            "b.ne 2b",
            sum = inout(reg) 0_u64 => _,
            addend = in(reg) 1_u64,
            rounds = inout(reg) rounds => _,
            options(nomem, nostack),
        );
    }
    true
}

/// Runs no loop: there is none for this processor.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub fn additions(_rounds: u64) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn four_times_the_loop_takes_about_four_times_as_long() {
        let time = |rounds| {
            let spans = (0..50).map(|_| {
                let before = time_stamp().unwrap();
                assert!(additions(rounds));
                time_stamp().unwrap() - before
            });
            spans.min().unwrap() as f64
        };
        let ratio = time(4000) / time(1000);
        assert!((3.0..5.0).contains(&ratio), "{ratio}");
    }
}
