// SPDX-License-Identifier: Apache-2.0
//! What PKCS#11 means: mechanisms, operations, sessions, objects, tokens, and the metaslot that
//! chooses who does the work. No file, no pointer and no cryptographic library is known here.
#![forbid(unsafe_code)]

mod attributes;
mod key;
pub mod mechanism;
mod params;
pub mod provider;
pub mod store;

pub use attributes::{Attributes, NewObject, Secrets, Value};
pub use key::Key;
pub use params::{Bytes, KdfParam, Params, Shape};
