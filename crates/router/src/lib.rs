// SPDX-License-Identifier: Apache-2.0
//! Who does the work: of the providers that can do an operation, one, and another where that one fails.
//!
//! The table of routes is read without a lock, and replaced whole where the configuration changes. Whether a caller may do what it wants is not asked here.
#![forbid(unsafe_code)]

mod bench;
mod candidate;
pub mod cost;
mod count;
mod health;
mod home;
mod job;
mod judge;
mod key;
mod known;
mod material;
mod meeting;
mod routes;
mod selftest;
pub mod shipped;
pub mod tested;
mod versions;

pub use bench::Measured;
pub use candidate::Candidate;
pub use count::Count;
pub use health::is_providers;
pub use home::HomeRoute;
pub use job::{CROWD, Job};
pub use key::key_bits;
pub use routes::{Answer, Estimate, Flight, Routes, SelfTest, Settings};
