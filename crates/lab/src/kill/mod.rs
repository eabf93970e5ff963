// SPDX-License-Identifier: Apache-2.0
//! `lab kill`.
use crate::Result;
/// Options.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {}
pub(crate) fn run(_options: &Options) -> Result<()> {
    Ok(())
}
