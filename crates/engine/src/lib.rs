// SPDX-License-Identifier: Apache-2.0
//! What PKCS#11 means: mechanisms, operations, sessions, objects, tokens, and the metaslot that
//! chooses who does the work. No file, no pointer and no cryptographic library is known here.
#![forbid(unsafe_code)]

pub mod agreement;
mod attributes;
pub mod der;
pub mod detail;
mod engine;
mod find;
pub mod hashes;
mod key;
pub mod key_info;
mod keys;
pub mod mechanism;
mod metaslot;
mod object;
mod objects;
mod operation;
mod output;
mod params;
pub mod provider;
mod session;
mod slots;
pub mod store;
mod template;
mod token;

pub use attributes::{Attributes, NewObject, Secrets, Value};
pub use engine::{Config, Engine, SlotConfig};
pub use key::{Key, Material};
pub use metaslot::policy::Policy;
pub use metaslot::route::Candidate;
pub use object::{Answer, Object};
pub use operation::later::Room;
pub use output::Output;
pub use params::{Bytes, KdfParam, Params, Shape};
pub use slots::{SessionInfo, SlotInfo, TokenInfo};
pub use template::{RawValue, Template};
