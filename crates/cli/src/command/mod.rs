// SPDX-License-Identifier: Apache-2.0
//! One file per command: its arguments, then what it does.

mod agreement;
pub(crate) mod arguments;
mod bridges;
pub(crate) mod cert;
pub(crate) mod cipher;
pub(crate) mod complete;
pub(crate) mod config;
pub(crate) mod data;
pub(crate) mod derive;
pub(crate) mod doctor;
pub(crate) mod encapsulate;
mod engine;
pub(crate) mod explain;
mod fate;
pub(crate) mod import;
pub(crate) mod key;
pub(crate) mod lab;
pub(crate) mod mechanisms;
pub(crate) mod pages;
pub(crate) mod payload;
pub(crate) mod policy;
pub(crate) mod provider;
mod pss;
pub(crate) mod random;
pub(crate) mod setup;
pub(crate) mod sign;
pub(crate) mod stat;
pub(crate) mod target;
pub(crate) mod token;
pub(crate) mod top;
pub(crate) mod tune;
pub(crate) mod uri2pem;
pub(crate) mod verify;
pub(crate) mod wrap;
