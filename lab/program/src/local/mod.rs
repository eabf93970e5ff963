// SPDX-License-Identifier: Apache-2.0
//! `lab local`: the ways from one process to another on the same machine.
//!
//! It needs neither a module nor a token, and no rights. Both ends are threads of this process: for
//! the kernel a pair of ends is the same in one process and in two, and nothing is left behind when
//! the process is killed.

mod eagain;
mod flow;
mod options;
mod path;

pub(crate) use flow::{json, text};
pub use options::Options;
pub use path::LocalPath;

use crate::Result;
use crate::scenario::Made;

/// Does what the options say; without an experiment, it is printed already.
pub(crate) fn run(options: &Options) -> Result<Option<Made>> {
    if options.eagain { eagain::run(options).map(|()| None) } else { flow::run(options).map(Some) }
}
