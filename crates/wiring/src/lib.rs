// SPDX-License-Identifier: Apache-2.0
//! From a configuration to an engine, for each program that holds one: which slots and providers there are, what changes
//! while it runs, and where it is told.

pub mod audit;
pub mod cancel;
pub mod caught;
pub mod config;
pub mod environment;
pub mod error_log;
pub mod outside;
#[cfg(feature = "panicking-provider")]
mod panicking;
mod parts;
mod peer;
mod providers;
pub mod reload;
pub mod remote;
pub mod room;
mod signal;
mod sink;
mod slots;
pub mod text;
pub mod version;

pub use metaslot_lanes::combiner::Company;
pub use parts::Parts;
pub use peer::peer;
