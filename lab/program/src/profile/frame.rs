// SPDX-License-Identifier: Apache-2.0
//! The names of frames: the kernel's have a mark.

/// What a function of the kernel ends in.
pub(crate) const KERNEL: &str = "_[k]";

/// The name as people say it, and whether it is the kernel's.
pub(crate) fn plain(name: &str) -> (&str, bool) {
    name.strip_suffix(KERNEL).map_or((name, false), |plain| (plain, true))
}
