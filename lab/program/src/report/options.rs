// SPDX-License-Identifier: Apache-2.0
//! Of what the page is made.

use std::path::PathBuf;

/// What is on the page.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The experiment
    #[arg(value_name = "A.labx")]
    pub a: PathBuf,
    /// An experiment to compare it with
    #[arg(value_name = "B.labx")]
    pub b: Option<PathBuf>,
    /// The file to write [default: the experiment's name with .html]
    #[arg(long, short, value_name = "FILE.html")]
    pub output: Option<PathBuf>,
    /// Compare experiments of different machines, clocks or sources all the same
    #[arg(long)]
    pub anyway: bool,
}
