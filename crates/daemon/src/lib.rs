// SPDX-License-Identifier: Apache-2.0
//! `metaslotd`: keys of tokens for other processes. It opens the tokens of a configuration once, and serves them by protocols
//! of several kinds; each client has an engine of its own.
//!
//! Nothing from a client is believed: lengths are checked before memory is taken, and what is malformed ends the client's own
//! call or connection. What a client gives or is given is wiped afterwards, as it may be a PIN or the value of a key.
#![forbid(unsafe_code)]

pub mod agent;
mod allowance;
mod ask;
mod calls;
mod connect;
mod failure;
pub mod fence;
mod granted;
mod login;
mod manager;
pub mod p11kit;
mod passed;
mod process;
mod reload;
pub mod remote;
mod rights;
mod service;
mod shared;
mod socket;
mod stream;
mod tls;
mod tokens;
mod told;

pub use allowance::{Allowance, Allowances};
pub use granted::Granted;
pub use rights::Rights;
pub use service::run;
pub use shared::{Own, Shared, View};
pub use tokens::{Admitted, Client, Tokens};
