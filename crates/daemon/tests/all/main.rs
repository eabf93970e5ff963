// SPDX-License-Identifier: Apache-2.0
//! The daemon, from its calls to its program. One binary: each would be linked with all of the engine's parts. What is said of a
//! whole process (its environment, its system calls) is said here of threads and of child processes.
#![forbid(unsafe_code)]

mod activation;
mod agent;
mod answers;
mod book;
mod client;
mod clients;
mod common;
mod counted;
mod databases;
mod derived;
mod descriptors;
mod far;
mod fence;
mod fleet;
mod itself;
mod lanes;
mod malformed;
mod moments;
mod networks;
mod ours;
mod pause;
mod pins;
mod programs;
mod protocol;
mod reload;
mod restart;
mod revoked;
mod room;
mod secrets;
mod service;
mod speed;
mod templates;
mod told;
mod unit;
