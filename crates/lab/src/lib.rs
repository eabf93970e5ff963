// SPDX-License-Identifier: Apache-2.0
//! The performance lab: what a machine can tell, what a call costs, and what a crash loses.
//!
//! The program `metaslot-lab` is around it, which `metaslot lab` starts. Each experiment is a file first (JSON with every sample), and a table made from it second. The lab
//! speaks to modules through their C ABI only, and to the bare library directly.
//!
//! A module reads its configuration from the environment, and an environment belongs to a process:
//! so each experiment starts this program once more, with the environment of a fresh token, and
//! does its work there.
#![forbid(unsafe_code)]

mod aa;
mod buffer;
mod clock;
pub mod experiment;
mod failure;
mod interrupt;
pub mod kernels;
mod kill;
mod lanes;
mod lines;
mod local;
mod machine;
mod meter;
mod output;
mod place;
mod print;
mod probe;
mod progress;
mod random;
mod role;
mod scenario;
mod signed_rank;
mod speed;
mod statistics;
mod store;
mod table;
mod tcp;
mod token;
pub mod verdict;

pub use aa::{Of, Options as AaOptions};
pub use failure::{Failure, Result};
pub use kill::Options as KillOptions;
pub use lanes::Options as LanesOptions;
pub use local::{LocalPath, Options as LocalOptions};
pub use output::{Output, say as write_out};
pub use print::Options as PrintOptions;
pub use probe::Options as ProbeOptions;
pub use scenario::RunOptions;
pub use speed::Options as SpeedOptions;
pub use store::Options as StoreOptions;
pub use tcp::{Beside, Buffer, Cpus, Options as TcpOptions, Path as TcpPath};

use std::path::PathBuf;

/// The experiments.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Command {
    /// Find out by trying what this machine can tell: clocks, counters, accounts, networks
    ///
    /// Each ability is tried in full and says whether it works, what would be needed, and what is
    /// used in its place; a counter whose numbers cannot be true is implausible. At the end stands
    /// where each kind of number comes from. It takes a second or two, needs no privileges, and leaves
    /// nothing behind.
    Probe(ProbeOptions),
    /// Time every mechanism: the raw library, this module and a rival, in one run
    ///
    /// Each operation is C_…Init and the one-shot call, with token keys. "Raw" is AWS-LC's C
    /// function with a prepared key, a reused context and a fresh IV. Times are CPU time of the
    /// calling thread, scaling is by the wall clock. The last result of every batch is checked:
    /// signatures by the raw library, ciphertexts by decryption.
    Speed(SpeedOptions),
    /// Time the kernels: by themselves, against the physical limit, and through the C ABI
    ///
    /// Each kernel with one to all lanes filled beside the plain library one at a time (AWS-LC; OpenSSL
    /// for binary curves), and how near its instructions come to what the processor can execute. Then a
    /// C program, compiled for the run, that loads the module: threads with sessions of their own that
    /// wait, and asynchronous sessions, with lanes and without, in turn. OpenSSL checks every result
    /// after the clock has stopped.
    Lanes(LanesOptions),
    /// Measure the token on disk: finds, cold start, creates per second
    ///
    /// One store for each number of objects, asked in turns; raw SQLite inserts the same rows into
    /// a copy of the store. A store of a million objects takes some minutes to fill and about 1 GB.
    Store(StoreOptions),
    /// Kill writing processes at random moments and count what was lost
    ///
    /// Writers log what they are about to do and, after the call returned, that it was done. In the
    /// end every acknowledged object must be there and usable, and every destroyed one gone.
    Kill(KillOptions),
    /// Compare local paths: TCP loopback, AF_UNIX, pipe; what they cost, and when they refuse
    ///
    /// One thread writes, another one reads: CPU time of both for each KB, throughput, and how many
    /// writes are under way, by the size of the writes. With --eagain nobody reads: how many writes
    /// each path accepts until EAGAIN, and why.
    Local(LocalOptions),
    /// Send through TCP: cost by connections, size of writes, buffers, and network stacks
    ///
    /// A sender and a receiver, two processes with thousands of connections. Both are in a control group
    /// of their own, and only a window in the middle of steady traffic counts: cycles of both for each
    /// KB, throughput, segments for each write, data segments for each acknowledgement. Every cell is
    /// visited in every repetition, in random order, so cells can be compared. Needs no privileges on
    /// the loopback interface; control groups and namespaces want root.
    Tcp(TcpOptions),
    /// Run two identical arms: how small a difference can this machine see today?
    ///
    /// Memory copies and round trips through a pipe, in pairs, interleaved at random. Whatever the arms
    /// seem to differ by is the machine's doing: the floor, below which no verdict goes for a day, or
    /// until the machine is started again. Writes an experiment with every sample.
    Aa(AaOptions),
    /// Print an experiment that was made before
    ///
    /// Finished or interrupted, on this machine or another one: everything is computed again from its
    /// samples. As text, JSON, CSV or Markdown.
    Print(PrintOptions),
}

impl Command {
    /// The PKCS#11 module to measure, unless the command names one itself.
    pub fn use_module(&mut self, module: PathBuf) {
        let named = match self {
            Self::Speed(options) => &mut options.module,
            Self::Store(options) => &mut options.module,
            Self::Kill(options) => &mut options.module,
            Self::Lanes(options) => &mut options.module,
            // These look at the machine only.
            Self::Probe(_) | Self::Local(_) | Self::Tcp(_) | Self::Aa(_) | Self::Print(_) => return,
        };
        named.get_or_insert(module);
    }
}

/// Does one experiment and prints its result.
///
/// # Errors
/// What went wrong, with a hint where there is one. An experiment that finds something wrong (an
/// acknowledged object that is lost, a signature that does not verify) is an error too.
pub fn run(command: &Command) -> Result<()> {
    // Whichever command started this process, it is a part of the generator and nothing else.
    if let Some(role::Role::Tcp(part)) = role::Role::of_this_process()? {
        return part.play();
    }
    match command {
        Command::Probe(options) => probe::run(options),
        Command::Speed(options) => speed::run(options),
        Command::Lanes(options) => lanes::run(options),
        Command::Store(options) => store::run(options),
        Command::Kill(options) => kill::run(options),
        Command::Local(options) => local::run(options),
        Command::Tcp(options) => tcp::run(options),
        Command::Aa(options) => aa::run(options),
        Command::Print(options) => print::run(options),
    }
}
