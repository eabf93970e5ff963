// SPDX-License-Identifier: Apache-2.0
//! `lab store`.
use crate::Result;
/// Options.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {}
pub(crate) fn run(_options: &Options) -> Result<()> {
    Ok(())
}
