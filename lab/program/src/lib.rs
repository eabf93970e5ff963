// SPDX-License-Identifier: Apache-2.0
//! The performance lab: what a machine can tell, what a call costs, and what a crash loses.
//!
//! The program `metaslot-lab` is around it, which `metaslot lab` starts. Each experiment is files first
//! (every sample), and a table made from them second. The lab speaks to modules through their C ABI
//! only, and to the bare library directly.
//!
//! A module reads its configuration from the environment, and an environment belongs to a process:
//! so an experiment starts this program once more for each module and each configuration, with the
//! environment of a fresh token, and asks it to work.
#![forbid(unsafe_code)]

mod aa;
mod apart;
mod bridge;
mod buffer;
mod child;
mod clock;
mod compare;
mod copy;
mod cross;
mod crossover;
pub mod experiment;
mod failure;
mod filter;
mod goal;
mod growth;
mod interrupt;
mod judged;
pub mod kernels;
mod kill;
mod lanes;
mod lines;
mod local;
mod machine;
mod meter;
mod output;
mod print;
mod probe;
mod profile;
mod progress;
mod random;
mod ranks;
mod report;
mod rerun;
mod role;
mod sandbox;
mod scenario;
mod speed;
mod statistics;
mod store;
mod study;
mod summary;
mod table;
mod tcp;
mod tls;
mod token;
pub mod verdict;

pub use aa::{Of, Options as AaOptions};
pub use bridge::Mode as ProviderMode;
pub use compare::{Metric, Options as CompareOptions};
pub use copy::{
    Consumer as CopyConsumer, Options as CopyOptions, PageSize as CopyPageSize, State as CopyState,
    Target as CopyTarget,
};
pub use cross::Options as CrossOptions;
pub use failure::{Failure, Result};
pub use kill::Options as KillOptions;
pub use lanes::Options as LanesOptions;
pub use local::{LocalPath, Options as LocalOptions};
pub use output::{Output, say as write_out, tell};
pub use print::Options as PrintOptions;
pub use probe::Options as ProbeOptions;
pub use profile::{
    AnnotateOptions, Chosen, Functions as FunctionsOptions, Metric as ProfileMetric,
    Options as ProfileOptions, Sort,
};
pub use report::Options as ReportOptions;
pub use scenario::{RunOptions, SamplingOptions, TokenOptions};
pub use speed::Options as SpeedOptions;
pub use store::Options as StoreOptions;
pub use study::{Options as StudyOptions, Study};
pub use tcp::{Beside, Buffer, Cpus, Options as TcpOptions, Path as TcpPath};
pub use tls::{Options as TlsOptions, ServerKind};

use std::path::PathBuf;

/// What the lab can do: look at the machine, measure, and read what was measured.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum Command {
    /// Find out by trying what this machine can tell: clocks, counters, accounts, networks
    ///
    /// Each ability is tried in full and says whether it works, what would be needed, and what is
    /// used in its place; a counter whose numbers cannot be true is implausible. At the end stands
    /// where each kind of number comes from. It takes a second or two, needs no privileges, and leaves
    /// nothing behind.
    Probe(ProbeOptions),
    /// Run two identical arms: how small a difference can this machine see today?
    ///
    /// Memory copies and round trips through a pipe, in pairs, interleaved at random. Whatever the arms
    /// seem to differ by is the machine's doing: the floor, below which no verdict goes for a day, or
    /// until the machine is started again. Writes an experiment with every sample.
    Aa(AaOptions),
    /// Time every mechanism: the raw library, this module and a rival, in one run
    ///
    /// Each operation is C_…Init and the one-shot call, with token keys. "Raw" is AWS-LC's C
    /// function with a prepared key, a reused context and a fresh IV. Times are CPU time of the
    /// working threads, scaling is by the wall clock. The last result of every sample is checked:
    /// signatures by the raw library, ciphertexts by decryption. Tokens have a policy that allows old
    /// mechanisms. Writes an experiment with every sample, and ends with a sentence on what it comes to.
    Speed(SpeedOptions),
    /// Time the kernels: by themselves, against the physical limit, and through the C ABI
    ///
    /// Each kernel with one to all lanes filled beside the plain library one at a time (AWS-LC; OpenSSL
    /// for binary curves), and how near its instructions come to what the processor can execute. Then a
    /// C program, compiled for the run, that loads the module: threads with sessions of their own that
    /// wait, and asynchronous sessions, with lanes and without, in turn. OpenSSL checks every result
    /// after the clock has stopped.
    Lanes(LanesOptions),
    /// Compare ways to copy memory, by the state of the memory, the size, and who reads next
    ///
    /// The C library's memcpy, `rep movsb`, and vectors of 32 and 64 bytes with ordinary stores, which
    /// bring the destination into the cache, and with non-temporal ones, which write past it. From which
    /// size on the latter cost less is computed for every state and reader, with an interval, and printed as
    /// advice. With --to, copies into the kernel: a file in memory, a pipe, a socket.
    Copy(CopyOptions),
    /// Send through TCP: cost by connections, size of writes, buffers, and network stacks
    ///
    /// A sender and a receiver, two processes with thousands of connections. Both are in a control group
    /// of their own, and only a window in the middle of steady traffic counts: ticks of both for each
    /// KB, throughput, segments for each write, data segments for each acknowledgement. Every cell is
    /// visited in every repetition, in random order, so cells can be compared. Needs no privileges on
    /// the loopback interface; control groups and namespaces want root.
    Tcp(TcpOptions),
    /// Measure full handshakes of TLS servers: the key in a file, in a token, and with OpenSSL's jobs
    ///
    /// HAProxy, nginx and Apache, each in a control group of its own, with this project's provider for
    /// OpenSSL; the clients are outside. What counts is the server's processor time for each handshake,
    /// beside the same server with its key in a file. With --servers loop,haproxy and 1 connection among
    /// --connections it says which share of a handshake the signature has, what a pause costs, and what
    /// Amdahl's law allows. Writes an experiment with every sample.
    Tls(TlsOptions),
    /// Compare local paths: TCP loopback, AF_UNIX, pipe; what they cost, and when they refuse
    ///
    /// One thread writes, another one reads: CPU time of both for each KB, throughput, and how many
    /// writes are under way, by the size of the writes. With --eagain nobody reads: how many writes
    /// each path accepts until EAGAIN, and why.
    Local(LocalOptions),
    /// Measure old optimisations again: RC4, RSA, KASUMI, SHA-1, AES
    ///
    /// Each study has several versions of one algorithm, from what was usual in 2008 to what processors
    /// have instructions for, checked against each other on random data first. It prints what each one
    /// costs and its verdict over the first, Sun's figure of 2008–2009, and the reason, computed from
    /// what was measured; an effect that is absent on this machine is said to be absent. Without a name,
    /// the studies are listed. Writes an experiment with every sample.
    Study(StudyOptions),
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
    /// Find where a program's time goes: its functions, the kernel's, and what they cost
    ///
    /// Runs any command while samples are taken of it and of all that it starts: by core cycles where
    /// the processor counts them, by a timer where not. Prints its functions with what is inside them
    /// and below them; writes an experiment with folded stacks, for flame graphs and comparisons. Other
    /// experiments take samples with --profile.
    Profile(ProfileOptions),
    /// Show where in a function the samples are: by line of source, or by instruction
    ///
    /// Lines where the program was built with them, instructions by objdump where not, addresses where
    /// neither is there. Needs an experiment with profiles.
    Annotate(AnnotateOptions),
    /// Print an experiment that was made before
    ///
    /// Finished or interrupted, on this machine or another one: everything is computed again from its
    /// samples. As text, JSON, CSV or Markdown.
    Print(PrintOptions),
    /// Compare two experiments, or arms or cells of one: faster, slower, same, or how many more pairs
    ///
    /// Cells by the Hodges-Lehmann estimate with its exact interval: of pairs within one experiment, of
    /// two groups between two, whose intervals are widened by how far runs of the same code lie apart.
    /// The margin is 2 %, or what two identical arms differed by that day.
    /// Experiments of different machines or clocks are compared only with --anyway.
    Compare(CompareOptions),
    /// Find where two arms change places, and where a curve has a cliff
    ///
    /// Along a factor that is a number: the size of a write, the number of connections. Crossovers have
    /// an interval by bootstrap over the pairs; a cliff is a step that costs more, or less, than the
    /// curve on both sides explains, by more than 10 % with its whole interval.
    Cross(CrossOptions),
    /// Write an experiment, or two, as one page of HTML
    ///
    /// What was found in a few sentences, the costs as a coloured table with every sample, curves with
    /// their crossovers, flame graphs with search and zoom, what was counted, where the numbers come from,
    /// and the command to run it again. One file without network.
    Report(ReportOptions),
}

impl Command {
    /// The PKCS#11 module to measure, unless the command names one itself.
    pub fn use_module(&mut self, module: PathBuf) {
        let named = match self {
            Self::Speed(options) => &mut options.token.module,
            Self::Store(options) => &mut options.token.module,
            Self::Kill(options) => &mut options.token.module,
            Self::Lanes(options) => &mut options.token.module,
            Self::Tls(options) => &mut options.token.module,
            // The others look at the machine, or at what was measured.
            _ => return,
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
    match role::Role::of_this_process()? {
        Some(role::Role::Tcp(part)) => return part.play(),
        Some(role::Role::Speed(part)) => return part.play(),
        _ => {}
    }
    match command {
        Command::Probe(options) => probe::run(options),
        Command::Speed(options) => shown(speed::run(options)?),
        Command::Lanes(options) => shown(lanes::run(options)?),
        Command::Store(options) => shown(store::run(options)?),
        Command::Kill(options) => killed(kill::run(options)?),
        Command::Local(options) => shown(local::run(options)?),
        Command::Tcp(options) => print::show(&tcp::run(options)?),
        Command::Tls(options) => print::show(&tls::run(options)?),
        Command::Aa(options) => aa::run(options),
        Command::Copy(options) => print::show(&copy::run(options)?),
        Command::Study(options) => shown(study::run(options)?),
        Command::Profile(options) => profile::run(options),
        Command::Annotate(options) => profile::annotate(options),
        Command::Print(options) => print::run(options),
        Command::Compare(options) => compare::run(options),
        Command::Cross(options) => cross::run(options),
        Command::Report(options) => report::run(options),
    }
}

/// Prints the experiment, if one was made.
fn shown(made: Option<scenario::Made>) -> Result<()> {
    made.as_ref().map_or(Ok(()), print::show)
}

/// The same; that something was lost is an error.
fn killed(made: Option<scenario::Made>) -> Result<()> {
    made.map_or(Ok(()), |made| print::show(&made).and_then(|()| kill::check(&made)))
}
