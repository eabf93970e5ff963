// SPDX-License-Identifier: Apache-2.0
//! What a timer gets wrong: while interrupts are off it cannot fire, so all that is done meanwhile shows
//! where they are allowed again. Inclusive numbers are right; exclusive ones belong to the caller.

use super::frame::plain;

/// Functions of the kernel that allow interrupts again, without what the compiler appends.
const FUNCTIONS: [&str; 14] = [
    "_raw_read_unlock_irq",
    "_raw_read_unlock_irqrestore",
    "_raw_spin_unlock_irq",
    "_raw_spin_unlock_irqrestore",
    "_raw_write_unlock_irq",
    "_raw_write_unlock_irqrestore",
    "__do_softirq",
    "__local_bh_enable_ip",
    "exit_to_user_mode_loop",
    "finish_lock_switch",
    "finish_task_switch",
    "handle_softirqs",
    "local_irq_enable",
    "raw_spin_rq_unlock",
];

/// Whether samples that end in this function belong to its caller.
pub(crate) fn is(name: &str) -> bool {
    let (plain, kernel) = plain(name);
    // `finish_task_switch.isra.0`
    let plain = plain.split_once('.').map_or(plain, |(plain, _)| plain);
    kernel && FUNCTIONS.contains(&plain)
}

#[cfg(test)]
mod tests {
    use super::is;

    #[test]
    fn only_the_kernels_functions_are_meant() {
        assert!(is("finish_task_switch.isra.0_[k]") && is("_raw_spin_unlock_irqrestore_[k]"));
        assert!(!is("finish_task_switch") && !is("_raw_spin_lock_[k]"));
    }
}
