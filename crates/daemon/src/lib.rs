// SPDX-License-Identifier: Apache-2.0
//! The doors of `metaslotd`: protocols by which clients in other processes reach an engine.
//!
//! Nothing from a client is believed: lengths are checked before memory is taken, and what is malformed ends the client's own
//! call or connection. What a client gives or is given is wiped afterwards, as it may be a PIN or the value of a key.
#![forbid(unsafe_code)]

pub mod p11kit;
