// SPDX-License-Identifier: Apache-2.0
//! `lab tcp`: what it costs to move bytes through TCP, by connections, size of writes and buffers.
//!
//! The generator is this program itself: one process sends on all connections, another one receives on
//! them, each with one thread and without waiting in any call. CPU time of both is counted in a control
//! group of their own, in a window in the middle of steady traffic.

mod beside;
mod control;
mod counts;
mod cpus;
mod exchange;
mod link;
mod load;
mod matrix;
mod pair;
mod part;
mod path;
mod print;
mod process;
mod receiver;
mod sender;
mod socket;
mod sun;
mod transfer;
mod window;
mod words;

pub use cpus::Cpus;
pub(crate) use exchange::text as transfer_text;
pub use load::Buffer;
pub(crate) use part::Part;
pub use path::Path;
pub(crate) use print::text;

use crate::experiment::Experiment;
use crate::scenario::{Made, RunOptions, Scenario, make};
use crate::summary::summary;
use crate::{Failure, Result};
pub use beside::Beside;
use beside::Other;
use exchange::Exchange;
use load::Load;
use matrix::Matrix;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use window::Timing;

/// What is sent, and how.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Numbers of connections [default: 1,8,100,1000; with --beside 1]
    #[arg(
        long, value_name = "N,…", value_delimiter = ',', value_parser = load::connections
    )]
    pub connections: Vec<usize>,
    /// Sizes of a write: 64K, 65483, 1M [default: 64K,8K,1K; with --beside 128K]
    #[arg(
        long, value_name = "SIZE,…", value_delimiter = ',', value_parser = load::size
    )]
    pub writes: Vec<usize>,
    /// Buffers that each socket is asked to have; default: the system's, which grow by themselves
    #[arg(
        long, value_name = "SIZE,…", value_delimiter = ',', value_parser = load::buffer,
        default_values = ["default"]
    )]
    pub buffers: Vec<Buffer>,
    /// TCP's congestion control [default: cubic, where this user may have it]
    #[arg(long, value_name = "NAME")]
    pub congestion: Option<String>,
    /// Through which network stacks
    #[arg(long, value_name = "PATH", value_enum, default_value_t = Path::Loopback)]
    pub path: Path,
    /// On which CPUs sender and receiver run: where that is a matter of chance, the cost is too
    /// [default: together; apart with --transfer]
    #[arg(long, value_name = "WHERE", value_enum)]
    pub cpus: Option<Cpus>,
    /// Another generator with the same settings, as a second arm of every cell
    #[arg(long, value_name = "PROGRAM", value_enum, conflicts_with = "transfer")]
    pub beside: Option<Beside>,
    /// Instead of the matrix: so many megabytes through one connection, by write, sendfile and splice,
    /// over one network stack and over two, in namespaces
    #[arg(
        long, value_name = "MB", value_parser = clap::value_parser!(u64).range(1..=10_000),
        conflicts_with_all = ["connections", "writes", "path", "window"]
    )]
    pub transfer: Option<u64>,
    /// Length of the window that counts, in milliseconds; a warm-up comes before it
    #[arg(long, value_name = "MS", default_value_t = 200, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    pub window: u64,
    /// How it is run
    #[command(flatten)]
    pub run: RunOptions,
}

/// What was asked for, or else what is usual.
fn or_else<T: Copy>(asked: &[T], usual: &[T]) -> Vec<T> {
    if asked.is_empty() { usual.to_vec() } else { asked.to_vec() }
}

impl Options {
    fn base(&self) -> Load {
        Load {
            connections: 1,
            write: 1,
            buffer: None,
            congestion: self.congestion.clone().or_else(|| {
                let chosen = self.beside.is_none_or(Beside::chooses_congestion);
                chosen.then(socket::usual_congestion).flatten()
            }),
            path: self.path,
        }
    }

    fn matrix(&self) -> Result<Matrix> {
        let beside = self.beside.map(Other::find).transpose()?;
        if beside.is_some() && self.path != Path::Loopback {
            return Err(Failure::new("another generator runs over the loopback interface only")
                .hint("leave out --path or --beside"));
        }
        let fixed = self.beside.is_some_and(|beside| !beside.chooses_congestion());
        if fixed && self.congestion.is_some() {
            return Err(Failure::new("uperf cannot choose the congestion control")
                .hint("leave out --congestion: both take the system's"));
        }
        let (connections, writes): (&[usize], &[usize]) = match beside {
            None => (&[1, 8, 100, 1000], &[64 << 10, 8 << 10, 1 << 10]),
            Some(_) => (&[1], &[128 << 10]),
        };
        Ok(Matrix {
            base: self.base(),
            connections: or_else(&self.connections, connections),
            writes: or_else(&self.writes, writes),
            buffers: self.buffers.clone(),
            without: Vec::new(),
            cpus: self.cpus.unwrap_or(Cpus::Together),
            timing: Timing::of_window(Duration::from_millis(self.window)),
            beside,
            pairs: BTreeMap::new(),
        })
    }
}

/// Measures.
pub(crate) fn run(options: &Options) -> Result<Made> {
    if let Some(name) = &options.congestion
        && !socket::available().split(' ').any(|known| known == name)
    {
        return Err(Failure::new(format!("congestion control {name} is not here"))
            .hint(format!("this system has: {}", socket::available())));
    }
    let mut scenario: Box<dyn Scenario> = match options.transfer {
        None => Box::new(options.matrix()?),
        Some(megabytes) => {
            let cpus = options.cpus.unwrap_or(Cpus::Apart);
            let buffer = options.buffers.first().and_then(|buffer| buffer.0);
            Box::new(Exchange::new(Load { buffer, ..options.base() }, cpus, megabytes))
        }
    };
    make(&mut *scenario, &options.run)
}

/// The summary of either scenario, with the sentences.
pub(crate) fn json(experiment: &Experiment) -> Value {
    let mut summary = summary(experiment);
    let transfer = experiment.manifest.provenance.scenario == "transfer";
    let findings =
        if transfer { exchange::sentences(experiment) } else { words::sentences(experiment) };
    summary["findings"] = findings.into();
    summary
}

/// Two small cells, for two identical arms.
pub(crate) fn alike() -> Result<Box<dyn Scenario>> {
    let base = Load {
        connections: 1,
        write: 1,
        buffer: None,
        congestion: socket::usual_congestion(),
        path: Path::Loopback,
    };
    let cell =
        |connections, write| format!("connections={connections} write={write} buffer=default");
    Ok(Box::new(Matrix {
        base,
        connections: vec![4, 100],
        writes: vec![64 << 10, 8 << 10],
        buffers: vec![Buffer(None)],
        without: vec![cell(4, "8K"), cell(100, "64K")],
        cpus: Cpus::Together,
        timing: Timing::of_window(Duration::from_millis(100)),
        beside: None,
        pairs: BTreeMap::new(),
    }))
}
