// SPDX-License-Identifier: Apache-2.0
//! `lab profile`: where the time goes, by function, in the kernel and in programs.
//!
//! Samples of the experiment's own threads, processes or group become folded stacks beside its other
//! files. Everything else is made from these when it is wanted: tables, flame graphs, ratios.

mod about;
mod annotate;
mod artefact;
mod command;
mod details;
mod difference;
mod disassembly;
mod flame;
mod fold;
mod folded;
mod frame;
mod functions;
mod launch;
mod neighbours;
mod print;
mod ratio;
mod sampler;
mod svg;
mod tree;

pub use annotate::Options as AnnotateOptions;
pub(crate) use annotate::run as annotate;
pub use command::Options;
pub(crate) use command::{run, text};
pub(crate) use details::{Profile, profiles};
pub(crate) use difference::difference;
pub(crate) use flame::flame;
pub(crate) use folded::Folded;
pub use functions::{Metric, Sort};
pub use print::{Chosen, Functions};
pub(crate) use print::{json, text as functions};
pub(crate) use ratio::{RatioRow, View, ratios};
pub(crate) use sampler::{Sampled, Sampler, Sampling};
pub(crate) use svg::{SCRIPT as FLAME_SCRIPT, alone};
