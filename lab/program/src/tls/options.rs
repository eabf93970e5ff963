// SPDX-License-Identifier: Apache-2.0
//! What to measure, and how.

use crate::scenario::TokenOptions;
use std::path::PathBuf;

/// A program whose handshakes are measured.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, clap::ValueEnum)]
pub enum Server {
    /// The signature alone: the loop of `openssl speed`, with a job for each connection
    Loop,
    /// HAProxy; with `ssl-mode-async` where signatures pause
    Haproxy,
    /// nginx
    Nginx,
    /// Apache with a process for each connection
    Apache,
    /// OpenSSL in a thread for each connection, which asks the module itself: waiting threads fill the lanes
    Threads,
    /// The same in Java, with SunPKCS11; RSA-2048
    Java,
}

/// What to measure, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// The servers
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_enum,
        default_values = ["loop", "haproxy", "nginx", "apache", "threads"])]
    pub servers: Vec<Server>,
    /// Only keys whose name contains one of these texts: rsa2048, rsa4096, p384, p256
    #[arg(long, value_name = "TEXT,…", value_delimiter = ',')]
    pub filter: Vec<String>,
    /// Connections at a time. With one, HAProxy's jobs say what a pause costs
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1,16,64",
        value_parser = clap::value_parser!(u16).range(1..=256))]
    pub connections: Vec<u16>,
    /// Threads of HAProxy, processes of nginx
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub workers: u16,
    /// How long one sample of a server is, in seconds
    #[arg(long, value_name = "S", default_value_t = 1.5)]
    pub window: f64,
    /// Seconds for all of it [default: 600]
    #[arg(long, value_name = "S")]
    pub seconds: Option<f64>,
    /// Repetitions of every cell, whatever the time
    #[arg(long, value_name = "N")]
    pub repetitions: Option<usize>,
    /// The provider [default: the one beside the module]
    #[arg(long, value_name = "PATH")]
    pub provider: Option<PathBuf>,
    /// The token
    #[command(flatten)]
    pub token: TokenOptions,
}
