// SPDX-License-Identifier: Apache-2.0
//! What is copied, from where, how, and for whom.

use super::words::{Consumer, PageSize, State, Target, size};
use crate::scenario::RunOptions;

/// What is copied, from where, how, and for whom.
#[derive(Clone, Debug, clap::Args)]
#[command(mut_arg("seconds", |argument| argument.default_value("50")))]
pub struct Options {
    /// States of the memory before the copy [default: all]
    #[arg(long, value_name = "STATE,…", value_enum, value_delimiter = ',')]
    pub states: Vec<State>,
    /// Sizes of pages [default: both]
    #[arg(long, value_name = "SIZE,…", value_enum, value_delimiter = ',', ignore_case = true)]
    pub pages: Vec<PageSize>,
    /// Bytes of a copy, such as 512, 16K or 8M [default: 1K,4K,16K,128K,1M,8M]
    #[arg(long, value_name = "SIZE,…", value_parser = size, value_delimiter = ',')]
    pub sizes: Vec<usize>,
    /// Kernels: libc, movsb, avx2, avx512, avx512-back, nt-avx2, nt-avx512, ours [default: what the
    /// processor has]
    #[arg(long, value_name = "KERNEL,…", value_delimiter = ',')]
    pub kernels: Vec<String>,
    /// Who reads what was copied [default: all; other than nobody with 2M pages only, and only where the
    /// destination is not untouched]
    #[arg(long, value_name = "WHO,…", value_enum, value_delimiter = ',')]
    pub consumers: Vec<Consumer>,
    /// Every combination, and copies of 64M too
    #[arg(long)]
    pub full: bool,
    /// Copy into the kernel instead, beside a copy in memory
    #[arg(
        long, value_name = "WHERE,…", value_enum, value_delimiter = ',',
        conflicts_with_all = ["pages", "kernels", "consumers", "full"]
    )]
    pub to: Vec<Target>,
    /// How it is run
    #[command(flatten)]
    pub run: RunOptions,
}
