// SPDX-License-Identifier: Apache-2.0
//! The border between the engine and what serves it: the traits that providers and stores implement,
//! and the values that cross it.
//!
//! Providers and stores know this crate and not the engine. No session, no file, no pointer and no
//! cryptographic library is known here.
#![forbid(unsafe_code)]

pub mod agreement;
mod attributes;
pub mod buffer;
pub mod curves;
pub mod der;
pub mod detail;
mod direction;
pub mod ephemeral;
pub mod field_key;
pub mod hashes;
pub mod key;
pub mod key_info;
pub mod known_groups;
pub mod lengths;
mod message;
pub mod number_key;
mod params;
pub mod parts;
pub mod prime_key;
pub mod provider;
mod shown;
pub mod store;
pub mod table;
mod template;
pub mod wrapping;

pub use attributes::{Attributes, NewObject, Secrets, Value};
pub use key::{Key, Material};
pub use message::Message;
pub use params::{Beside, Bytes, DsaSeed, KdfParam, Otp, Params, Signing, Tls};
pub use template::{RawValue, Template};
