// SPDX-License-Identifier: Apache-2.0
//! What PKCS#11 means: operations, sessions, objects, tokens, and the metaslot that chooses who does
//! the work. No file, no pointer and no cryptographic library is known here.
#![forbid(unsafe_code)]

mod engine;
mod find;
mod keys;
mod metaslot;
mod object;
mod objects;
mod operation;
mod output;
mod policy;
mod session;
mod slots;
mod template;
mod token;

pub use engine::{Config, Engine, SlotConfig};
pub use metaslot::route::Candidate;
pub use object::{Answer, Object};
pub use operation::OperationKind;
pub use operation::later::Room;
pub use output::Output;
pub use policy::Policy;
pub use slots::{SessionInfo, SlotInfo, TokenInfo};
