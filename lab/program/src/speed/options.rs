// SPDX-License-Identifier: Apache-2.0
//! What to measure, and how.

use crate::bridge::Mode;
use crate::scenario::TokenOptions;
use std::path::PathBuf;

/// What to measure, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The rival module, or `none` [default: Debian's SoftHSM where installed]
    #[arg(long, value_name = "PATH")]
    pub rival: Option<String>,
    /// Measure Sun's table of 2008 instead, on one thread and on several, and explain what several gain
    #[arg(long, conflicts_with = "list")]
    pub sun: bool,
    /// Measure every mechanism of the module's token instead that digests, signs or encrypts, with lanes and
    /// without, and where it is called directly, the raw library
    #[arg(long, conflicts_with_all = ["sun", "list", "threads"])]
    pub all: bool,
    /// Measure mixes of what services do instead, by all providers together and by each alone
    #[arg(long, conflicts_with_all = ["sun", "all", "list"])]
    pub mix: bool,
    /// Measure `openssl speed` itself instead: plain, by this project's provider for OpenSSL, by libp11's engine; and its loop with
    /// a key of the token. --threads says how many processes
    #[arg(long, conflicts_with_all = ["sun", "all", "mix", "list"])]
    pub through_openssl: bool,
    /// With --through-openssl, numbers of OpenSSL's jobs in each process, beside none
    #[arg(long, value_name = "N,…", value_delimiter = ',', requires = "through_openssl",
        default_value = "1,16,64,128", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Vec<u16>,
    /// With --through-openssl, the provider [default: the one beside the module]
    #[arg(long, value_name = "PATH", requires = "through_openssl")]
    pub provider: Option<PathBuf>,
    /// With --through-openssl, what the provider does for `openssl speed`, which makes its keys itself
    #[arg(long, value_enum, value_name = "MODE", default_value_t = Mode::All, requires = "through_openssl")]
    pub provider_mode: Mode,
    /// With --mix, what operations cost here, as `metaslot tune` wrote it
    #[arg(long, value_name = "FILE", requires = "mix")]
    pub costs: Option<PathBuf>,
    /// Numbers of threads; more than one only for cells that are meant to scale. With --sun the largest
    /// counts [default: 1,2; with --sun 1 and one for each CPU]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    pub threads: Vec<usize>,
    /// Seconds for all of it [default: 90; with --sun 60]
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,
    /// Repetitions of every cell, whatever the time
    #[arg(long, value_name = "N")]
    pub repetitions: Option<usize>,
    /// Only cells whose name contains one of these texts
    #[arg(long, value_name = "TEXT,…", value_delimiter = ',')]
    pub filter: Vec<String>,
    /// The `openssl` to compare with; from version 3.5 on it knows ML-DSA, ML-KEM and SLH-DSA [default: the one that is installed]
    #[arg(long, value_name = "PATH", conflicts_with = "no_openssl")]
    pub openssl: Option<PathBuf>,
    /// Leave out the comparison with `openssl speed`
    #[arg(long)]
    pub no_openssl: bool,
    /// List the cells, and measure nothing
    #[arg(long)]
    pub list: bool,
    /// Goals of each cell, and whether they were reached
    #[arg(long, conflicts_with_all = ["sun", "all", "mix"])]
    pub goals: bool,
    /// The token
    #[command(flatten)]
    pub token: TokenOptions,
}
